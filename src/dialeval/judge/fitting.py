"""What the judge's votes are fitted with: tables of reference values, ratings as ranks, intervals around outcomes.

The judge itself replaces every feature by its mid-rank among fixed reference values, so that no feature wins by its
spread and a row's value depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialeval.judge.network import INTERVAL_BINS, TABLE_SIZE
from dialeval.judge.rule import RankInterval, Vector


def reference_table(values: Vector) -> Vector:
    """`TABLE_SIZE` quantiles of the values that are there."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return np.linspace(0.0, 1.0, TABLE_SIZE)
    return np.asarray(np.quantile(known, np.linspace(0, 1, TABLE_SIZE)), dtype=np.float64)


def within_source_ranks(ratings: Vector, sources: Sequence[str]) -> Vector:
    """Ratings as mid-ranks within their own source: scales of different sources cannot be compared."""
    from scipy.stats import rankdata

    names = np.asarray(sources)
    ranks = np.empty(len(ratings))
    for name in np.unique(names):
        inside = names == name
        ranks[inside] = (rankdata(ratings[inside]) - 0.5) / inside.sum()
    return ranks


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
    _, inverse, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    half = counts[inverse] / (2 * len(ranks))
    return ranks - half, ranks + half


def covered(interval: RankInterval, outcomes: Vector, targets: Vector) -> float:
    """Share of ratings inside."""
    low, high = interval.around(outcomes)
    return float(((targets >= low) & (targets <= high)).mean())
