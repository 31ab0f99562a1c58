"""Threads in the layout of the public conversational-datasets recipes: one comment a line with what it answers.

A line is `{"response": "...", "context": "...", "context/0": "...", "context/1": "..."}`: `context` is what
`response` answers, `context/0` stands before it, `context/1` before that. Real exports have hundreds of
millions of lines, so a reader says how many it wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from corpora.dialogues import CorpusDialogue, read_rows


def read_reddit(folder: Path, limit: int) -> list[CorpusDialogue]:
    """The first `limit` usable lines of a folder's .json, .jsonl or .jsonl.gz files, in the order of their names."""
    files = sorted(path for pattern in ("*.json", "*.jsonl", "*.jsonl.gz") for path in folder.glob(pattern))
    if not files:
        raise FileNotFoundError(f"{folder} holds no .json, .jsonl or .jsonl.gz file")
    threads = list(islice((thread for path in files for thread in _threads(path, folder.name)), limit))
    if not threads:
        raise ValueError(f"{folder} holds no line with both a context and a response")
    return threads


def _threads(path: Path, corpus: str) -> Iterator[CorpusDialogue]:
    for number, row in enumerate(read_rows(path)):
        turns = _turns(row)
        if len(turns) > 1:
            yield CorpusDialogue(f"{corpus}-{path.name}-{number}", turns, corpus)


def _turns(row: dict[str, Any]) -> tuple[str, ...]:
    """Oldest first, as far back as turns follow each other without a gap; empty if the line is no use."""
    newest_first = []
    for key in ("response", "context", *(f"context/{back}" for back in range(_history(row)))):
        text = row.get(key)
        if not isinstance(text, str) or not text.strip():
            break
        newest_first.append(text.strip())
    return tuple(reversed(newest_first))


def _history(row: dict[str, Any]) -> int:
    return next(back for back in count() if f"context/{back}" not in row)
