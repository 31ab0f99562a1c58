"""A judge's last step: features on one scale, votes, an interval around the outcome.

Every feature is replaced by its mid-rank among fixed reference values, so that no feature wins by its spread and a
row's value depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Reference values kept of each feature.
TABLE_SIZE = 401
#: The bins of outcomes that have an interval of their own.
INTERVAL_BINS = 5


def reference_table(values: Vector) -> Vector:
    """`TABLE_SIZE` quantiles of the values that are there."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return np.linspace(0.0, 1.0, TABLE_SIZE)
    return np.asarray(np.quantile(known, np.linspace(0, 1, TABLE_SIZE)), dtype=np.float64)


def mid_ranks(values: Vector, table: Vector) -> Vector:
    """Share of the reference values below each value, half of the equal ones counted; NaN stays NaN."""
    below = np.searchsorted(table, values, side="left")
    upto = np.searchsorted(table, values, side="right")
    # A value between two quantiles lies where the line between them puts it; ties keep their middle.
    left = np.clip(below, 1, len(table) - 1)
    low, high = table[left - 1], table[left]
    between = np.where(high > low, (values - low) / np.where(high > low, high - low, 1), 0.5)
    smooth = np.clip((left - 1 + np.clip(between, 0, 1)) / (len(table) - 1), 0, 1)
    ranks = np.where(upto > below, (below + upto) / 2 / len(table), smooth)
    known: Vector = np.where(np.isfinite(values), ranks, np.nan)
    return known


def rank_all(features: Matrix, tables: Matrix) -> Matrix:
    """Every column by its own table."""
    return np.stack([mid_ranks(features[:, at], tables[at]) for at in range(features.shape[1])], axis=1)


def combine(ranks: Matrix, weights: Vector) -> Vector:
    """Weighted mean of the features that a row has: one half and the contributions."""
    outcome: Vector = 0.5 + contributions(ranks, weights).sum(axis=1)
    return outcome


def contributions(ranks: Matrix, weights: Vector) -> Matrix:
    """How far each feature moves each row's outcome from one half; a missing feature moves nothing."""
    there = np.isfinite(ranks)
    total = (there * weights).sum(axis=1, keepdims=True)
    moved = np.where(there, ranks - 0.5, 0.0) * weights
    share: Matrix = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return share


def within_source_ranks(ratings: Vector, sources: Sequence[str]) -> Vector:
    """Ratings as mid-ranks within their own source: scales of different sources cannot be compared."""
    from scipy.stats import rankdata

    names = np.asarray(sources)
    ranks = np.empty(len(ratings))
    for name in np.unique(names):
        inside = names == name
        ranks[inside] = (rankdata(ratings[inside]) - 0.5) / inside.sum()
    return ranks


@dataclass(frozen=True)
class RankInterval:
    """Where the ratings of rows with such an outcome lie, as ranks among their source."""

    edges: Vector
    low: Vector
    high: Vector

    def around(self, outcomes: Vector) -> tuple[Vector, Vector]:
        """Both ends for each outcome, bent between the middles of the bins so that they do not jump."""
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        return np.interp(outcomes, middles, self.low), np.interp(outcomes, middles, self.high)


def fit_interval(
    outcomes: Vector, targets: Vector, coverage: float = 0.9, *, ties: tuple[Vector, Vector] | None = None
) -> RankInterval:
    """Split-conformal ends for held-out ratings, in bins of equal size by outcome.

    Neighbouring bins share their ends where ratings are few: forty or more stand behind each, or all there are.
    `ties` are the ranks at which each rating's equals begin and end. On a scale of a few points the middles of these
    shift a little from one set of ratings to the next, so an end has to lie at the edge and not in the middle.
    """
    begins, stops = (targets, targets) if ties is None else ties
    edges = np.quantile(outcomes, np.linspace(0, 1, INTERVAL_BINS + 1))
    bins = np.clip(np.searchsorted(edges, outcomes, side="right") - 1, 0, INTERVAL_BINS - 1)
    shared = np.arange(INTERVAL_BINS) * min(INTERVAL_BINS, max(1, len(outcomes) // 40)) // INTERVAL_BINS
    ends = []
    for number in range(INTERVAL_BINS):
        inside = shared[bins] == shared[number]
        ends.append(_conformal(begins[inside], stops[inside], coverage) if inside.sum() >= 20 else (0.0, 1.0))
    low, high = np.array(ends).T
    return RankInterval(np.asarray(edges, dtype=np.float64), np.asarray(low), np.asarray(high))


def _conformal(begins: Vector, stops: Vector, coverage: float) -> tuple[float, float]:
    """Ends that leave out the same share on each side, with the correction for a finite sample."""
    # The little more keeps a product like 0.05 times 40, which floats put just below 2, from losing a place.
    tail = int(np.floor((1 - coverage) / 2 * (len(begins) + 1) + 1e-9))
    return (float(np.sort(begins)[tail - 1]), float(np.sort(stops)[-tail])) if tail else (0.0, 1.0)


def edges_of_ties(ranks: Vector) -> tuple[Vector, Vector]:
    """Where the equals of each mid-rank of one set begin and end."""
    _, at, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    half = counts[at] / (2 * len(ranks))
    return ranks - half, ranks + half


def covered(interval: RankInterval, outcomes: Vector, targets: Vector) -> float:
    """Share of ratings inside."""
    low, high = interval.around(outcomes)
    return float(((targets >= low) & (targets <= high)).mean())
