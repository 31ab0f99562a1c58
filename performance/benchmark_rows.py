"""Rows of a human-judgement benchmark with their ratings, for measurements that need real text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialeval import benchmarks
from dialeval.core.exchange import Exchange

BENCHMARK = "convai2_grade"
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Rated:
    """Exchanges and what people gave them."""

    exchanges: list[Exchange]
    ratings: NDArray[np.float64]


def rated_rows(count: int | None, benchmark: str = BENCHMARK) -> Rated:
    """A fixed random choice of rows with a rating, from DIALEVAL_MIRROR or from the folder beside the repository.

    None chooses all.
    """
    beside = _ROOT.parent / "shared" / "data" / "raw"
    mirror = os.environ.get("DIALEVAL_MIRROR") or (beside if beside.is_dir() else None)
    found = benchmarks.load(benchmark, mirror=mirror)
    count = len(found.dataset) if count is None else count
    if not 2 <= count <= len(found.dataset):
        raise SystemExit(f"--rows is {count}; {benchmark} has {len(found.dataset)} rows, and two are the least")
    chosen = np.random.default_rng(0).permutation(len(found.dataset))[:count]
    rows = [found.dataset[int(number)] for number in np.sort(chosen)]
    exchanges = [
        Exchange(tuple(row["context"]), row["response"], tuple(row["references"] or ()), system=row["system"])
        for row in rows
    ]
    return Rated(exchanges, np.array([row["scores"][found.info.main_aspect] for row in rows], dtype=np.float64))
