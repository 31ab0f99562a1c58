"""Turns of conversations with Meena, Mitsuku and people, judged by the authors of FED."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import FED
from dialeval.benchmarks.readers.fed import read_turns

INFO = BenchmarkInfo(
    name="fed_turn",
    title="FED judgements of turns",
    level="turn",
    rows=375,
    sources=(
        FileSource(
            "DSincerity/FED_Replication",
            "f0a9a675ffcd134e9cb606c46afc8e0c7ad31ba4",
            (SourceFile("fed_data.json", "69a608314d982e202c46a095ea99f4174332745b513034f6244f7551556e7e46", 832081),),
        ),
    ),
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

DEFINITIONS = (Definition(INFO, read_turns),)
