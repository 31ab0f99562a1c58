"""Bootstrap intervals from stored scores: nothing is ever scored again.

Rows that answer the same context resemble each other, so whole groups of rows are drawn with
replacement (the cluster bootstrap); an interval from single rows would be too narrow. A resample is
only a vector of counts, one per group. Every statistic here is a function of a block of such
vectors, computed for many resamples at once (see `resampled`). The same seed draws the same counts,
so two metrics are resampled together and the interval of their difference is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.statistics.correlation import Floats

#: Counts of groups, one resample a row -> the statistic, one value a resample.
Resampled = Callable[[Floats], Floats]

#: Values held at once by one step of the bootstrap, so that memory does not grow with resamples x rows.
BLOCK = 2_000_000
#: All of them are kept at once, to find quantiles.
MAX_RESAMPLES = 10**6


def check_asked(confidence: object, resamples: object, seed: object) -> None:
    """Refuse what no interval or test can be computed with, before anything is scored."""
    if not (isinstance(confidence, int | float | np.floating) and 0.5 <= confidence < 1):
        raise ValueError(f"confidence is {confidence!r:.60}; it must be between 0.5 and 1")
    if not (isinstance(resamples, int | np.integer) and 100 <= resamples <= MAX_RESAMPLES):
        raise ValueError(f"resamples is {resamples!r:.60}; it must be a whole number from 100 to {MAX_RESAMPLES:,}")
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ValueError(f"seed is {seed!r:.60}; it must be a whole number, zero or more")


@dataclass(frozen=True)
class Interval:
    """A percentile interval, and from how many resamples in which the statistic was defined."""

    low: float
    high: float
    resamples: int


def bootstrap(
    statistics: Mapping[str, Resampled], n_groups: int, *, resamples: int, seed: int, rows: int = 0
) -> dict[str, Floats]:
    """All statistics on the same resamples of the groups, one value per resample and statistic.

    `rows` only tells how wide the statistics' tables get, to bound memory; it does not change a value.
    """
    drawn: dict[str, list[Floats]] = {name: [] for name in statistics}
    for counts in draw_counts(n_groups, resamples, seed, max(rows, n_groups)):
        for name, statistic in statistics.items():
            drawn[name].append(statistic(counts))
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in drawn.items()}


def interval(drawn: Floats, confidence: float = 0.95) -> Interval:
    """The percentile interval of resampled values; undefined ones (a constant resample) are left out and counted."""
    defined = drawn[np.isfinite(drawn)]
    if not len(defined):
        return Interval(np.nan, np.nan, 0)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), len(defined))


def number_groups(labels: Sequence[object]) -> NDArray[np.intp]:
    """Groups as numbers 0, 1, … in the order in which they first occur."""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)


def draw_counts(n_groups: int, resamples: int, seed: int, width: int) -> Iterator[Floats]:
    """Blocks of resamples: how often each group is drawn. `width` bounds the size of a block."""
    random = np.random.default_rng(seed)
    if n_groups == 0:
        return
    for start in range(0, resamples, step := max(1, BLOCK // width)):
        size = min(step, resamples - start)
        picked = random.integers(n_groups, size=(size, n_groups))
        picked += np.arange(size)[:, None] * n_groups
        yield np.bincount(picked.ravel(), minlength=size * n_groups).reshape(size, n_groups).astype(np.float64)
