"""FED's judgements of conversations with Meena, Mitsuku and people: judged turns, and the dialogue they are of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import FED
from dialeval.benchmarks.catalogue.transcript import ratings_of, turns_of
from dialeval.io import parse_json

_SOURCES = (
    FileSource(
        "DSincerity/FED_Replication",
        "f0a9a675ffcd134e9cb606c46afc8e0c7ad31ba4",
        (SourceFile("fed_data.json", "69a608314d982e202c46a095ea99f4174332745b513034f6244f7551556e7e46", 832081),),
    ),
)


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


TURNS = BenchmarkInfo(
    name="fed_turn",
    title="FED judgements of turns",
    level="turn",
    rows=375,
    sources=_SOURCES,
    licence="none stated in the repository this copy comes from",
    citation=FED.citation,
    bibtex=FED.bibtex,
    aspects={
        "Interesting": Scale(0, 2),
        "Engaging": Scale(0, 2),
        "Specific": Scale(0, 2),
        "Relevant": Scale(0, 2),
        "Correct": Scale(0, 2),
        "Semantically appropriate": Scale(0, 2),
        "Understandable": Scale(0, 1),
        "Fluent": Scale(0, 2),
        "Overall": Scale(0, 4),
    },
    main_aspect="Overall",
    systems=("Meena", "Mitsuku", "Human"),
    human_systems=("Human",),
    exclusions={"none": (), "generated": ("Human",)},
    default_exclusion="none",
    following=True,
    oddities=(
        (
            "After 250 of the turns the dialogue goes on with a turn of the user. It is in the column `following`, "
            "and metrics get it only where that is asked for."
        ),
        ("Answers that are no number (a question that does not apply) are dropped, so the number of ratings varies."),
        "The system 'Human' is a person in the system's seat.",
        (
            "Three turns come from each of 125 dialogues, so a group is a dialogue; one context was judged in"
            " two dialogues, which makes them one group: 124 groups."
        ),
    ),
)

DIALOGUES = BenchmarkInfo(
    name="fed_dialogue",
    title="FED judgements of dialogues",
    level="dialogue",
    rows=125,
    sources=_SOURCES,
    licence="none stated in the repository this copy comes from",
    citation=FED.citation,
    bibtex=FED.bibtex,
    aspects={
        "Coherent": Scale(0, 2),
        "Error recovery": Scale(0, 2),
        "Consistent": Scale(0, 1),
        "Diverse": Scale(0, 2),
        "Depth": Scale(0, 2),
        "Likeable": Scale(0, 2),
        "Understanding": Scale(0, 2),
        "Flexible": Scale(0, 2),
        "Informative": Scale(0, 2),
        "Inquisitive": Scale(0, 2),
        "Overall": Scale(0, 4),
    },
    main_aspect="Overall",
    systems=("Meena", "Mitsuku", "Human"),
    human_systems=("Human",),
    exclusions={"none": (), "generated": ("Human",)},
    default_exclusion="none",
    oddities=(
        ("Answers that are no number (a question that does not apply) are dropped, so the number of ratings varies."),
        "The system 'Human' is a person in the system's seat.",
        ("One dialogue has no numeric answer at all for 'Error recovery'; its score there is missing, not zero."),
        "Dialogues end with a turn of the user.",
    ),
)

BENCHMARKS = {
    "fed_turn": (Definition(TURNS, read_turns),),
    "fed_dialogue": (Definition(DIALOGUES, read_dialogues),),
}
