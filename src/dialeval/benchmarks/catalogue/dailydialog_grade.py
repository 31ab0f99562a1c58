"""Replies to DailyDialog contexts, judged for coherence by the authors of GRADE."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile, Subset
from dialeval.benchmarks.catalogue.papers import GRADE
from dialeval.benchmarks.readers.grade import reader

INFO = BenchmarkInfo(
    name="dailydialog_grade",
    title="GRADE judgements on DailyDialog",
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
                    "evaluation/eval_data/dailydialog/transformer_ranker/human_ref.txt",
                    "ec8a2a93422b021bfd3dd95c5440b256d78e3fb5a3a5b812d8a615d1d65ae8ec",
                    8587,
                ),
                SourceFile(
                    "evaluation/eval_data/dailydialog/transformer_generator/human_ref.txt",
                    "ec8a2a93422b021bfd3dd95c5440b256d78e3fb5a3a5b812d8a615d1d65ae8ec",
                    8587,
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
    subsets={
        "density": Subset(
            last_share=0.8, why="the size that the significance marks of the DENSITY paper imply; an inference"
        )
    },
    oddities=(
        "Contexts are cut to their last two utterances.",
        "Rows have 9 to 11 ratings: what was left after the authors filtered their annotators.",
        "QuantiDCE was fine-tuned on 270 of these rows and validated on the other 30.",
    ),
    contaminates=("quantidce",),
)

DEFINITIONS = (Definition(INFO, reader("dailydialog", judged_as="dailydialog_EVAL")),)
