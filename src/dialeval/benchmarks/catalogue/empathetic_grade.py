"""Replies to EmpatheticDialogues contexts, judged for coherence by the authors of GRADE."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import GRADE
from dialeval.benchmarks.readers.grade import reader

INFO = BenchmarkInfo(
    name="empathetic_grade",
    title="GRADE judgements on EmpatheticDialogues",
    level="turn",
    rows=300,
    sources=(
        FileSource(
            "li3cmz/GRADE",
            "c6cec028e1b4495a388f1c181b10221e4d0c5955",
            (
                SourceFile(
                    "evaluation/human_score/human_judgement.json",
                    "442ff57e0b980ebf820528e952b3e0722eed31fc97debeb88b61ea72efedc83b",
                    459061,
                ),
                SourceFile(
                    "evaluation/eval_data/empatheticdialogues/transformer_ranker/human_ref.txt",
                    "b2c7347523ad2c2cc1abbb07f6008e1ae436c18ee81be0ac07ee5d859df24b00",
                    13683,
                ),
                SourceFile(
                    "evaluation/eval_data/empatheticdialogues/transformer_generator/human_ref.txt",
                    "b2c7347523ad2c2cc1abbb07f6008e1ae436c18ee81be0ac07ee5d859df24b00",
                    13683,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=GRADE.citation,
    bibtex=GRADE.bibtex,
    aspects={"coherence": Scale(1, 5)},
    main_aspect="coherence",
    systems=("transformer_ranker", "transformer_generator"),
    human_systems=(),
    oddities=(
        "Contexts are cut to their last two utterances.",
        "Rows have 8 to 11 ratings: what was left after the authors filtered their annotators.",
    ),
)

DEFINITIONS = (Definition(INFO, reader("empatheticdialogues", judged_as="empatheticdialogues")),)
