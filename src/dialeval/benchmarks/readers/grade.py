"""The release of GRADE: one JSON of all judgements, and one text file of references per system."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Reader, Row
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
