"""Whole conversations with Meena, Mitsuku and people, judged by the authors of FED."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import FED
from dialeval.benchmarks.readers.fed import read_dialogues

INFO = BenchmarkInfo(
    name="fed_dialogue",
    title="FED judgements of dialogues",
    level="dialogue",
    rows=125,
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

DEFINITIONS = (Definition(INFO, read_dialogues),)
