"""The judge for promptfoo, offline: an assertion on replies, and a provider that answers with the judge's verdict.

`python examples/run.py promptfoo` runs it in an environment of its own. promptfoo calls `get_assert` where an assertion
says `type: python, value: file://judge.py`, and `call_api` where a provider's id is `file://judge.py`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import dialeval


@cache
def judge() -> Any:
    """Loaded once; promptfoo keeps the process of a provider alive."""
    return dialeval.load("judge")


def context_of(variables: dict[str, Any]) -> list[str]:
    """The turns before the reply: `history`, a list, and `message`."""
    history = variables.get("history") or []
    return [*(history if isinstance(history, list) else [history]), variables["message"]]


def get_assert(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Pass a reply whose value is at least the threshold; every aspect is a score with a name of its own."""
    options = context.get("config") or {}
    facts = context["vars"].get("facts") or []
    scores = judge().score([output], [context_of(context["vars"])], facts=[facts])
    aspects = {name: float(column[0]) for name, column in scores.aspects.items() if column[0] == column[0]}
    passed = scores[0] >= options.get("threshold", 0.5)
    return {"pass": passed, "score": scores[0], "reason": scores.explain(0), "namedScores": aspects}


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """As a provider: what the judge says of the reply in the prompt, `{"context": [...], "response": "..."}`."""
    row = json.loads(prompt)
    scores = judge().score([row["response"]], [row["context"]])
    return {"output": {"value": scores[0], "reason": scores.explain(0)}}
