"""Human ratings to fine-tune on: a benchmark's rows, split as its users split it or by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval import benchmarks
from dialeval.benchmarks import FileSource, SourceFile
from dialeval.benchmarks.fetch import fetch_files
from dialeval.core.exchange import Exchange

#: The 270 rows on which the authors of QuantiDCE fine-tuned; the other 30 of the 300 are their validation.
SHIPPED_SPLIT = FileSource(
    "James-Yip/QuantiDCE",
    "b62b56a42b3553caa4fd2c474a313ceff5b861ad",
    (
        SourceFile(
            "data/human_judgement_for_fine_tuning/dailydialog_EVAL/train/context_response.text",
            "abb1cb5a2fd23aff9828a5c0328a664d6e654c914530dd7250e6194d772d9946",
            46362,
        ),
    ),
)


@dataclass(frozen=True)
class Rated:
    """A reply with its mean human rating, from 1 to 5."""

    exchange: Exchange
    rating: float


def read_ratings(
    benchmark: str, held_out: str | int, *, mirror: Path | None, percent: float, seed: int
) -> tuple[list[Rated], list[Rated]]:
    """Rated rows to train on, and held-out ones.

    `held_out` is `shipped` (only for dailydialog_grade) or a number of rows drawn by `seed`. `percent`
    keeps that share of the training rows; a larger share contains the smaller ones.
    """
    data = benchmarks.load(benchmark, mirror=mirror)
    aspect = data.info.main_aspect or next(iter(data.info.aspects))
    rows = [
        Rated(Exchange(context=tuple(row["context"]), response=row["response"], id=row["id"]), row["scores"][aspect])
        for row in data.dataset
        if row["scores"][aspect] is not None
    ]
    if any(not 1 <= row.rating <= 5 for row in rows):
        raise SystemExit(f"{benchmark}: {aspect} is not rated from 1 to 5; QuantiDCE cannot be fitted to it")
    if held_out == "shipped":
        train, held = _shipped_split(rows, mirror)
    else:
        count = int(held_out)
        if not 0 < count < len(rows):
            raise SystemExit(f"{count} of {len(rows)} rated rows cannot be held out; leave some to train on")
        order = np.random.default_rng(seed).permutation(len(rows))
        held = [rows[int(index)] for index in order[:count]]
        train = [rows[int(index)] for index in order[count:]]
    order = np.random.default_rng([seed, 1]).permutation(len(train))
    kept = sorted(order[: round(len(train) * percent / 100)])
    return [train[int(index)] for index in kept], held


def _shipped_split(rows: Sequence[Rated], mirror: Path | None) -> tuple[list[Rated], list[Rated]]:
    declared = replace(benchmarks.info("dailydialog_grade"), sources=(SHIPPED_SPLIT,))
    (path,) = fetch_files(declared, mirror=mirror).values()
    listed = Counter(_key(line.partition("\t")[2].split("|||")) for line in path.read_text("utf-8").splitlines())
    train: list[Rated] = []
    held: list[Rated] = []
    for row in rows:
        key = _key([*row.exchange.context, row.exchange.response])
        (train if listed[key] > 0 else held).append(row)
        listed[key] -= 1
    if len(train) != 270:
        raise SystemExit(f"{len(train)} of {len(rows)} rows are in the shipped split; it belongs to dailydialog_grade")
    return train, held


def _key(turns: Sequence[Any]) -> tuple[str, ...]:
    return tuple(" ".join(turn.split()) for turn in turns)
