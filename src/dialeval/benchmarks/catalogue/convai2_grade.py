"""Replies to ConvAI2 contexts, judged for coherence by the authors of GRADE."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import GRADE
from dialeval.benchmarks.readers.grade import reader

INFO = BenchmarkInfo(
    name="convai2_grade",
    title="GRADE judgements on ConvAI2",
    level="turn",
    rows=600,
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
                    "evaluation/eval_data/convai2/transformer_ranker/human_ref.txt",
                    "f1c2270cb2239dd27b207069b43f3b6e95a9ba362dc12b4c4e780f44ed8a5780",
                    7979,
                ),
                SourceFile(
                    "evaluation/eval_data/convai2/transformer_generator/human_ref.txt",
                    "f1c2270cb2239dd27b207069b43f3b6e95a9ba362dc12b4c4e780f44ed8a5780",
                    7979,
                ),
                SourceFile(
                    "evaluation/eval_data/convai2/bert_ranker/human_ref.txt",
                    "52cb4f8a53f5ff26c652fd60a50ff284041b6004e77653816880c4232f5e9055",
                    8057,
                ),
                SourceFile(
                    "evaluation/eval_data/convai2/dialogGPT/human_ref.txt",
                    "b5cbb7fedf7f164737ecfb64ef87a8efec9a7768bcd4f8303e7645950b1fb7a1",
                    8021,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=GRADE.citation,
    bibtex=GRADE.bibtex,
    aspects={"coherence": Scale(1, 5)},
    main_aspect="coherence",
    systems=("transformer_ranker", "transformer_generator", "bert_ranker", "dialogGPT"),
    human_systems=(),
    oddities=(
        "Contexts are cut to their last two utterances.",
        "Rows have 8 to 11 ratings: what was left after the authors filtered their annotators.",
        (
            "The systems did not answer the same contexts: bert_ranker shares 65 and dialogGPT 80 of its 150 "
            "with the other two. Never join systems by row."
        ),
        "The persona facts behind the conversations are not in the release.",
    ),
)

DEFINITIONS = (Definition(INFO, reader("convai2", judged_as="convai2")),)
