"""From raw rows to a `datasets.Dataset`: ids, context groups, mean scores, one set of columns per kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.benchmarks.base import BenchmarkInfo, Row

if TYPE_CHECKING:
    from datasets import Dataset, Features

#: The order in which a labelled context's replies stand, and the word for each kind in row ids.
REPLY_KINDS = {"positive": "positive", "adversarial": "adversarial_negative", "random": "random_negative"}


def complete(info: BenchmarkInfo, raw: Iterable[Row]) -> list[Row]:
    """Give every raw row the columns of its kind; what the reader already set (an id, a group) stays."""
    groups: dict[tuple[str, ...], str] = {}
    rows = [_complete(info, row, number, groups) for number, row in enumerate(raw)]
    if len(rows) != info.rows:
        raise ValueError(
            f"{info.name} should have {info.rows} rows but its files gave {len(rows)}; declaration or reader is wrong"
        )
    if info.kind == "ratings":
        rated = {aspect for row in rows for aspect, score in row["scores"].items() if score is not None}
        if missing := [aspect for aspect in info.aspects if aspect not in rated]:
            raise ValueError(f"{info.name}: no row has a rating of {missing[0]!r}; name the aspects as its reader does")
    return rows


def to_dataset(info: BenchmarkInfo, rows: Sequence[Row]) -> Dataset:
    """Typed columns, so that an aspect without ratings or an empty list does not change the schema."""
    from datasets import Dataset

    typed = features(info)
    return Dataset.from_dict({name: [row[name] for row in rows] for name in typed}, features=typed)


def features(info: BenchmarkInfo) -> Features:
    """The columns of a benchmark, by level and kind."""
    from datasets import Features, List, Value

    text, texts, number = Value("string"), List(Value("string")), Value("float64")
    columns: dict[str, Any] = {"id": text, "dataset": text, "level": text}
    if info.level == "dialogue":
        columns |= {"dialogue": texts, "speakers": texts}
    else:
        columns |= {"context": texts, "response": text, "references": texts}
    columns |= {"following": text} if info.following else {}
    columns |= {"facts": texts, "system": text, "group": text}
    if info.kind == "ratings":
        columns["scores"] = dict.fromkeys(info.aspects, number)
        columns["ratings"] = {aspect: List(number) for aspect in info.aspects}
    elif info.kind == "labels":
        columns |= {"label": Value("int8"), "kind_of_reply": text}
    else:
        columns |= {"adversarial_context": texts, "adversarial_response": text}
        columns |= {"attack": text, "domain": text, "harmful": Value("bool")}
    return Features(columns)


def labelled_replies(
    row_id: str, context: Sequence[str], replies: Mapping[str, Sequence[str]], *, all_positives: bool = False
) -> list[Row]:
    """One row per reply of a context with positive, adversarial and random replies.

    A positive is compared with the other positives. A negative could be compared with all of them,
    but then it would have one reference more than a positive has; so the k-th negative leaves out the
    k-th positive unless `all_positives` is set.
    """
    positives = replies["positive"]
    rows = []
    for kind, word in REPLY_KINDS.items():
        for position, reply in enumerate(replies.get(kind, ())):
            keep_all = all_positives and kind != "positive"
            rows.append(
                {
                    "id": f"{row_id}#{word}#{position}",
                    "context": list(context),
                    "response": reply,
                    "references": [
                        text for number, text in enumerate(positives) if keep_all or number != position % len(positives)
                    ],
                    "label": int(kind == "positive"),
                    "kind_of_reply": kind,
                }
            )
    return rows


def mean(ratings: Sequence[float]) -> float | None:
    """The plain mean, or None where nobody gave a number."""
    return math.fsum(ratings) / len(ratings) if ratings else None


def _complete(info: BenchmarkInfo, raw: Row, number: int, groups: dict[tuple[str, ...], str]) -> Row:
    turns = raw["dialogue"] if info.level == "dialogue" else raw["context"]
    group = groups.setdefault(tuple(turns), f"{info.name}-context-{len(groups):05d}")
    row: Row = {
        "id": f"{info.name}-{number:05d}",
        "references": [],
        "facts": [],
        "system": None,
        "group": group,
        **({"following": None} if info.following else {}),
        **raw,
        "dataset": raw.get("dataset", info.name),
        "level": info.level,
    }
    if info.level == "dialogue":
        del row["references"]
    if info.kind == "ratings":
        ratings = raw.get("ratings", {})
        given = raw.get("scores", {})
        row["ratings"] = {aspect: [float(value) for value in ratings.get(aspect, ())] for aspect in info.aspects}
        row["scores"] = {
            aspect: given[aspect] if given.get(aspect) is not None else mean(row["ratings"][aspect])
            for aspect in info.aspects
        }
    return row
