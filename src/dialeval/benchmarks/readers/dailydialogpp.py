"""DailyDialog++: one JSON object per line with a context and its valid and invalid replies."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Reader, Row
from dialeval.benchmarks.rows import REPLY_KINDS, labelled_replies
from dialeval.io import parse_json


def reader(*, all_positives: bool = False) -> Reader:
    """One row per reply; see `labelled_replies` for which positives become references."""

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        (path,) = files.values()
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                item = parse_json(line)
                replies = {kind: _replies(item, word) for kind, word in REPLY_KINDS.items()}
                context = [turn.strip() for turn in item["context"]]
                yield from labelled_replies(f"{info.name}-{number:05d}", context, replies, all_positives=all_positives)

    return read


def _replies(item: dict[str, list[str]], word: str) -> list[str]:
    return [reply.strip() for reply in item.get(f"{word}_responses", ())]
