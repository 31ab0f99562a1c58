"""deepeval's test cases of one reply; `context` and `retrieval_context` are facts there, not what was said before."""

from __future__ import annotations

from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json, snake_case
from dialeval.readers.chats.calls import call


def matches(row: Row) -> bool:
    """An input with its actual output."""
    return {"input", "actual_output"} <= set(map(snake_case, row))


def turns(row: Row) -> Turns:
    """Input and output, the rest beside them."""
    named: dict[str, Any] = {snake_case(key): as_json(value) for key, value in row.items()}
    facts = [*(named.get("context") or ()), *(named.get("retrieval_context") or ())]
    return call(
        named["input"], named["actual_output"], id=named.get("id") or named.get("name"),
        reference=named.get("expected_output") or None, facts=facts or None,
    )  # fmt: skip
