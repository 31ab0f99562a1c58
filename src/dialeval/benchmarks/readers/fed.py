"""The release of FED: judged turns, and after every three of them the dialogue they were taken from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dialeval.benchmarks.base import BenchmarkInfo, Files, Row
from dialeval.benchmarks.readers.transcript import ratings_of, turns_of
from dialeval.io import parse_json


def read_turns(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The items with a response.

    Turns of one dialogue share their beginning, so their group is the dialogue, not only the context;
    two dialogues in which the same context was judged are one group.
    """
    group_of: dict[str, str] = {}
    waiting: list[Any] = []
    dialogues = 0
    for item in _items(files):
        if "response" in item:
            waiting.append(item)
            continue
        shared = [group_of[turn["context"]] for turn in waiting if turn["context"] in group_of]
        group = shared[0] if shared else f"{info.name}-dialogue-{dialogues:05d}"
        for turn in waiting:
            group_of[turn["context"]] = group
            yield {
                "context": turns_of(turn["context"])[1],
                "response": turns_of(turn["response"])[1][0],
                "following": _following(turn, item),
                "system": turn["system"],
                "group": group,
                "ratings": ratings_of(turn["annotations"]),
            }
        waiting = []
        dialogues += 1


def read_dialogues(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The items without a response: whole dialogues, with everything both speakers said."""
    for item in _items(files):
        if "response" not in item:
            speakers, dialogue = turns_of(item["context"])
            yield {
                "dialogue": dialogue,
                "speakers": speakers,
                "system": item["system"],
                "ratings": ratings_of(item["annotations"]),
            }


def _following(turn: dict[str, Any], dialogue: dict[str, Any]) -> str | None:
    """What the user said after a judged turn; None where the dialogue as it was kept ends with that turn."""
    begun = [*turns_of(turn["context"])[1], turns_of(turn["response"])[1][0]]
    speakers, whole = turns_of(dialogue["context"])
    goes_on = whole[: len(begun)] == begun and speakers[len(begun) :][:1] == ["User"]
    return whole[len(begun)] or None if goes_on else None


def _items(files: Files) -> list[dict[str, Any]]:
    (path,) = files.values()
    items: list[dict[str, Any]] = parse_json(path.read_text(encoding="utf-8"))
    return items
