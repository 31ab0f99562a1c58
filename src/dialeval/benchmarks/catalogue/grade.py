"""GRADE's judgements of coherence on three corpora: one JSON of all judgements, a file of references per system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dialeval.benchmarks.base import (
    BenchmarkInfo,
    Definition,
    Files,
    FileSource,
    Reader,
    Row,
    Scale,
    SourceFile,
    Subset,
)
from dialeval.benchmarks.catalogue.papers import GRADE
from dialeval.io import parse_json

JUDGEMENTS = "evaluation/human_score/human_judgement.json"


def references_path(corpus: str, system: str) -> str:
    """Where the human replies to a system's contexts lie."""
    return f"evaluation/eval_data/{corpus}/{system}/human_ref.txt"


def reader(corpus: str, *, judged_as: str) -> Reader:
    """Read one corpus: systems in the order of the declaration, rows in the order of the judgements.

    Contexts are taken per system, because two systems of this release answered other contexts.
    """

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        judged = parse_json(files[JUDGEMENTS].read_text(encoding="utf-8"))
        for system in info.systems:
            references = files[references_path(corpus, system)].read_text(encoding="utf-8").splitlines()
            items = [item for item in judged if item["Dataset"] == judged_as and item["DialogModel"] == system]
            for item, reference in zip(items, references, strict=True):
                yield {
                    "context": [turn.strip() for turn in item["Context"].split("|||")],
                    "response": item["Response"].strip(),
                    "references": [reference.strip()],
                    "system": system,
                    # The list of ratings is stored as text inside the JSON.
                    "ratings": {"coherence": parse_json(item["HumanScores"])},
                }

    return read


def _declared(
    name: str, title: str, corpus: str, references: Mapping[str, tuple[str, int]], **facts: Any
) -> BenchmarkInfo:
    """What the corpora have in common; `references` has sha256 and size of the file of every system."""
    judgements = SourceFile(JUDGEMENTS, "442ff57e0b980ebf820528e952b3e0722eed31fc97debeb88b61ea72efedc83b", 459061)
    files = [SourceFile(references_path(corpus, system), *pinned) for system, pinned in references.items()]
    return BenchmarkInfo(
        name=name,
        title=title,
        level="turn",
        sources=(FileSource("li3cmz/GRADE", "c6cec028e1b4495a388f1c181b10221e4d0c5955", (judgements, *files)),),
        licence="none stated",
        citation=GRADE.citation,
        bibtex=GRADE.bibtex,
        aspects={"coherence": Scale(1, 5)},
        main_aspect="coherence",
        systems=tuple(references),
        **facts,
    )


CONVAI2 = _declared(
    "convai2_grade",
    "GRADE judgements on ConvAI2",
    "convai2",
    {
        "transformer_ranker": ("f1c2270cb2239dd27b207069b43f3b6e95a9ba362dc12b4c4e780f44ed8a5780", 7979),
        "transformer_generator": ("f1c2270cb2239dd27b207069b43f3b6e95a9ba362dc12b4c4e780f44ed8a5780", 7979),
        "bert_ranker": ("52cb4f8a53f5ff26c652fd60a50ff284041b6004e77653816880c4232f5e9055", 8057),
        "dialogGPT": ("b5cbb7fedf7f164737ecfb64ef87a8efec9a7768bcd4f8303e7645950b1fb7a1", 8021),
    },
    rows=600,
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
DAILYDIALOG = _declared(
    "dailydialog_grade",
    "GRADE judgements on DailyDialog",
    "dailydialog",
    {
        "transformer_ranker": ("ec8a2a93422b021bfd3dd95c5440b256d78e3fb5a3a5b812d8a615d1d65ae8ec", 8587),
        "transformer_generator": ("ec8a2a93422b021bfd3dd95c5440b256d78e3fb5a3a5b812d8a615d1d65ae8ec", 8587),
    },
    rows=300,
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
EMPATHETIC = _declared(
    "empathetic_grade",
    "GRADE judgements on EmpatheticDialogues",
    "empatheticdialogues",
    {
        "transformer_ranker": ("b2c7347523ad2c2cc1abbb07f6008e1ae436c18ee81be0ac07ee5d859df24b00", 13683),
        "transformer_generator": ("b2c7347523ad2c2cc1abbb07f6008e1ae436c18ee81be0ac07ee5d859df24b00", 13683),
    },
    rows=300,
    oddities=(
        "Contexts are cut to their last two utterances.",
        "Rows have 8 to 11 ratings: what was left after the authors filtered their annotators.",
    ),
)

BENCHMARKS = {
    "convai2_grade": (Definition(CONVAI2, reader("convai2", judged_as="convai2")),),
    "dailydialog_grade": (Definition(DAILYDIALOG, reader("dailydialog", judged_as="dailydialog_EVAL")),),
    "empathetic_grade": (Definition(EMPATHETIC, reader("empatheticdialogues", judged_as="empatheticdialogues")),),
}
