"""Ratings of dialogue by people, to train and to fit a judge: one format, a rated thing a line.

`{"id", "source", "family", "level", "context", "speakers", "response", "following", "facts", "system", "scores",
"ratings", "split", "dialogue"}`. Ratings of one source are compared with one another only; scales and raters differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.dialogues import open_text, read_rows
from dialeval.core.exchange import Exchange, check_exchange
from dialeval.io.files import parse_json


@dataclass(frozen=True)
class Rated:
    """One rated reply, or one rated conversation (then `exchange.response` is blank)."""

    exchange: Exchange
    source: str
    #: Sources of one family share a task and raters' instructions.
    family: str
    split: str
    scores: Mapping[str, float]
    #: Single ratings per aspect, or counts of labels.
    ratings: Mapping[str, Any] = field(default_factory=dict)
    speakers: tuple[str, ...] = ()
    #: Rows of one dialogue belong together when rows are held out.
    dialogue: str = ""


def read_ratings(
    root: Path, source: str, *, level: str = "turn", leave_out: frozenset[str] = frozenset()
) -> list[Rated]:
    """Rated rows of one source, without those that share text with an evaluation set and those that say nothing."""
    path, rows = find_ratings(root, source), []
    for number, row in enumerate(read_rows(path), start=1):
        if row.get("level", "turn") != level or str(row.get("id")) in leave_out:
            continue
        rated = _rated(row, source, f"{path} line {number}")
        if rated is not None:
            rows.append(rated)
    if not rows:
        raise ValueError(f"{path} holds no rated {level} that may be used")
    return rows


def find_ratings(root: Path, source: str) -> Path:
    """The file of one source of ratings."""
    for path in (root / f"{source}.jsonl", root / f"{source}.jsonl.gz"):
        if path.is_file():
            return path
    names = ", ".join(sorted(path.name for path in root.glob("*.jsonl*"))) or "no ratings"
    raise FileNotFoundError(f"{root} has no {source}.jsonl(.gz); it holds {names}")


def _rated(row: Mapping[str, Any], source: str, where: str) -> Rated | None:
    response, context = row.get("response") or "", row.get("context") or ()
    if row.get("level", "turn") == "turn" and not response.strip():
        return None
    exchange = check_exchange(
        where, response=response, context=context, references=row.get("references"), facts=row.get("facts"),
        system=row.get("system"), id=row.get("id"), following=row.get("following"), empty="score",
    )  # fmt: skip
    scores = {name: float(value) for name, value in (row.get("scores") or {}).items() if value is not None}
    if not scores:
        return None
    return Rated(
        exchange=exchange,
        source=str(row.get("source", source)),
        family=str(row.get("family", source)),
        split=str(row.get("split", "train")),
        scores=scores,
        ratings=row.get("ratings") or {},
        speakers=tuple(row.get("speakers") or ()),
        dialogue=str(row.get("dialogue") or row.get("id") or number_of(where)),
    )


def number_of(where: str) -> str:
    """A name for a row without one."""
    return where.rsplit(" ", 1)[-1]


def overlapping_ratings(path: Path) -> frozenset[str]:
    """Ids of rated rows that share text with an evaluation set."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; it lists the rated rows to leave out. Put it beside the ratings")
    with open_text(path) as stream:
        listed: Sequence[str] | Mapping[str, Any] = parse_json(stream.read())
    return frozenset(listed)
