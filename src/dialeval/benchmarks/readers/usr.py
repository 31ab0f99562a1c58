"""The release of USR: one item per context with the replies of all systems and persona facts."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Row
from dialeval.io import parse_json

ORIGINAL = "Original Ground Truth"
_FACT_MARK = "your persona:"


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per reply; the original human reply of the context is the reference of all its rows."""
    (path,) = files.values()
    for item in parse_json(path.read_text(encoding="utf-8")):
        context = [turn.strip() for turn in item["context"].strip().split("\n")]
        facts = [line.removeprefix(_FACT_MARK).strip() for line in item["fact"].strip().split("\n")]
        (reference,) = [reply["response"].strip() for reply in item["responses"] if reply["model"] == ORIGINAL]
        for reply in item["responses"]:
            yield {
                "context": context,
                "response": reply["response"].strip(),
                "references": [reference],
                "facts": facts,
                "system": reply["model"],
                "ratings": {aspect: reply[aspect] for aspect in info.aspects},
            }
