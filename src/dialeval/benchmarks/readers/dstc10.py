"""The development files of DSTC10 track 5, which carry other papers' judgements in one JSON layout."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Row
from dialeval.io import parse_json


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per item; turns are separated by line breaks."""
    (path,) = files.values()
    for item in parse_json(path.read_text(encoding="utf-8")):
        yield {
            "context": [turn.strip() for turn in item["context"].split("\n")],
            "response": item["response"].strip(),
            "references": [reference.strip() for reference in item["reference"]],
            "system": item["model"],
            # This track calls "appropriateness" what the original paper calls the overall score.
            "ratings": {
                "overall" if aspect == "appropriateness" else aspect: values
                for aspect, values in item["annotations"].items()
            },
        }
