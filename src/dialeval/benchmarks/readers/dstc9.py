"""Interactive dialogues of DSTC9: one file per chatbot, one item per annotator of a dialogue."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Row
from dialeval.benchmarks.readers.transcript import numbers, turns_of
from dialeval.io import parse_json


def chatbot_path(system: str) -> str:
    """Where the dialogues of one chatbot lie."""
    return f"FlowScore/data/{system}.json"


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per dialogue: neighbouring items with the same text are one dialogue, judged by several people."""
    for system in info.systems:
        items = parse_json(files[chatbot_path(system)].read_text(encoding="utf-8"))
        for transcript, judged in itertools.groupby(items, key=lambda item: item["context"]):
            judgements = list(judged)
            speakers, dialogue = turns_of(transcript)
            yield {
                "dialogue": dialogue,
                "speakers": speakers,
                "system": system,
                "ratings": {
                    aspect: numbers([judgement[_raw_name(aspect)] for judgement in judgements])
                    for aspect in info.aspects
                },
            }


def _raw_name(aspect: str) -> str:
    return "human (overall)" if aspect == "overall" else aspect
