"""Write docs/api.md, the signatures of what `import dialeval` offers: `python docs/site/api.py`.

The site has the full docstrings in their place; see `on_page_markdown` in `hooks.py`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "api.md"
SECTIONS = {
    "Loading and scoring": [
        "dialeval.registry.load", "dialeval.registry.available", "dialeval.registry.register",
        "dialeval.registry.interface.Metric", "dialeval.core.scores.Scores", "dialeval.core.exchange.Exchange",
    ],
    "Comparing replies, and conversations": [
        "dialeval.judge.verdicts.compare_replies", "dialeval.judge.verdicts.Comparison",
        "dialeval.judge.verdicts.judge_conversation",
    ],
    "Systems": [
        "dialeval.systems.ranking.rank", "dialeval.systems.ranking_outcome.Ranking",
        "dialeval.agreement.score_comparison.compare", "dialeval.agreement.score_comparison.Verdict",
        "dialeval.systems.gate.gate", "dialeval.systems.gate_outcome.Gate",
    ],
    "A judge of your own": ["dialeval.tuning.tune"],
}  # fmt: skip
#: A longer signature has a line for each parameter.
_WIDTH = 110


def page() -> str:
    """The whole page."""
    parts = ["# Python reference", "What `import dialeval` offers. Made by `python docs/site/api.py`."]
    for title, paths in SECTIONS.items():
        parts.append(f"## {title}")
        for path in paths:
            module, _, name = path.rpartition(".")
            thing = getattr(importlib.import_module(module), name)
            parts += [f"### `{name}`", f"<!-- ::: {path} -->", _first(thing), f"```text\n{_of(thing, name)}\n```"]
    return "\n\n".join(parts) + "\n"


def _of(thing: Any, name: str) -> str:
    if not inspect.isclass(thing):
        return _signature(thing, name)
    members = [(key, value) for key, value in vars(thing).items() if not key.startswith("_")]
    properties = [f"{key}  # {_first(value)}" for key, value in members if isinstance(value, property)]
    methods = [_signature(value, key) for key, value in members if inspect.isfunction(value)]
    fields = getattr(thing, "__dataclass_fields__", {})
    columns = [f"{field.name}: {field.type}" for field in fields.values() if not field.name.startswith("_")]
    body = "\n".join(f"    {line}" for block in (*columns, *properties, *methods) for line in block.splitlines())
    return f"class {name}:\n{body or '    ...'}"


def _signature(function: Any, name: str) -> str:
    found = inspect.signature(function)
    short = _plain(f"{name}{found}")
    if len(short) <= _WIDTH:
        return short
    lines, keyword_only = [], False
    for one in found.parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            lines.append("*,")
        lines.append(_plain(f"{one},"))
    returns = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    return f"{name}(\n" + "\n".join(f"    {line}" for line in lines) + f"\n){returns}"


def _plain(text: str) -> str:
    """Annotations without their quotes, and members of an enumeration as their values."""
    return re.sub(r"<\w+\.\w+: (\w+)>", r'"\1"', text.replace("'", ""))


def _first(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
