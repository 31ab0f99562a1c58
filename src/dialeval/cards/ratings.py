"""What a judge's card says of its ratings: sources and licences, the weights they led to, how far these carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The sources of human ratings, and the licences that they state.
RATINGS: dict[str, dict[str, str]] = {
    "dbdc3": {
        "title": "Dialogue Breakdown Detection Challenge 3: can the user go on after this turn of the bot?",
        "licence": "MIT; the paragraphs beside some of its dialogues CC BY-SA 4.0",
    },
    "dbdc4": {"title": "Dialogue Breakdown Detection Challenge 4", "licence": "none stated"},
    "dstc7": {
        "title": "DSTC7 sentence generation: relevance and informativeness of replies grounded in a web page",
        "licence": "O-UDA 1.0",
    },
    "abc_eval": {"title": "ABC-Eval: behaviours of four bots, marked turn by turn", "licence": "none stated"},
    "uss": {
        "title": "User satisfaction simulation: task-oriented, recommendation and preference dialogues",
        "licence": "none stated; the texts of ReDial and CCPE CC BY 4.0",
    },
    "convai2_thumbs": {"title": "ConvAI2 in the wild: thumbs on single turns", "licence": "none stated"},
    "convai2_wild": {"title": "ConvAI2 in the wild: marks for whole chats", "licence": "none stated"},
    "reliable_dialogue": {"title": "Marks for whole chats with persona bots by their partners", "licence": "MIT"},
}
_UNKNOWN = {"title": "ratings of the user's", "licence": "not known to dialeval"}
_USES = {"train": "adapter and heads", "stack": "weights and interval of replies", "dialogues": "of conversations"}
_TITLES = {"turns": "Single replies", "dialogues": "Whole conversations"}


@dataclass(frozen=True)
class StackTables:
    """The stack of one level, as rows of two tables."""

    title: str
    #: Feature and its share of all weights.
    weights: list[tuple[str, str]]
    #: Family left out, rank correlation, rated rows, share of ratings inside the interval.
    left_out: list[tuple[str, str, str, str]]


def stack_tables(training: Mapping[str, Any]) -> list[StackTables]:
    """The stacks of a checkpoint's record; none for approaches without one."""
    found = []
    for level, made in training.get("stack", {}).items():
        total = sum(made["weights"].values()) or 1.0
        weights = sorted(made["weights"].items(), key=lambda one: -one[1])
        left_out = made.get("families_left_out", {}).items()
        found.append(
            StackTables(
                _TITLES.get(level, level),
                [(f"`{name}`", f"{weight / total:.0%}") for name, weight in weights],
                [
                    (family, f"{one['spearman']:.2f}", f"{one['rows']:,.0f}", f"{one['coverage']:.0%}")
                    for family, one in left_out
                ],
            )
        )
    return found


def rated_sources(training: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rated sources of a recipe: what they are, what they were used for, under which licence."""
    settings = training.get("recipe", {}).get("ratings", {})
    if not isinstance(settings, Mapping):
        return []
    named = {use: settings.get(use, ()) for use in _USES}
    names = dict.fromkeys(name for listed in named.values() for name in listed)
    return [
        {
            "name": name,
            "uses": ", ".join(_USES[use] for use in _USES if name in named[use]),
            **RATINGS.get(name, _UNKNOWN),
        }
        for name in names
    ]
