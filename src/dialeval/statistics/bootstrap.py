"""Bootstrap intervals from stored scores: nothing is ever scored again.

Rows that answer the same context resemble each other, so whole groups of rows are drawn with
replacement (the cluster bootstrap); an interval from single rows would be too narrow. A resample is
only a vector of counts, one per group. Every statistic here is a function of a block of such
vectors, computed for many resamples at once. The same seed draws the same counts,
so two metrics are resampled together and the interval of their difference is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialeval.statistics.correlation import ROWWISE, Floats, correlation_of_sums, group_sums, paired_columns

#: Counts of groups, one resample a row -> the statistic, one value a resample.
Resampled = Callable[[Floats], Floats]

#: Values held at once by one step of the bootstrap, so that memory does not grow with resamples x rows.
BLOCK = 2_000_000
#: All of them are kept at once, to find quantiles.
MAX_RESAMPLES = 10**6


def check_asked(confidence: object, resamples: object, seed: object, **flags: object) -> None:
    """Refuse what no interval or test can be computed with, and what is no yes or no, before anything is scored."""
    for name, flag in flags.items():  # a text such as "no" would count as yes
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name} is of the type {type(flag).__name__}; pass True or False")
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


# The statistics: each takes the columns and returns the statistic as a function of the counts; with every count 1 it
# is that of the rows themselves. Pearson from sums per group; Spearman with ranks taken anew; Kendall from
# the concordance of pairs summed per pair of groups (a quadratic form); AUC from cumulated weights; means from sums.

#: Rows compared with all others at once.
_SLICE = 512

#: Kendall's resamples need a table of all pairs of groups; beyond this it would not fit.
MOST_GROUPS_FOR_KENDALL = 4000


def pearson_of(x: ArrayLike, y: ArrayLike, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """Pearson's correlation (and with labels of 0 and 1 the point-biserial one)."""
    first, second = paired_columns(x, y)
    # Centred and scaled before squares are summed: otherwise a large offset eats the digits.
    first, second = _standardised(first), _standardised(second)
    sums = group_sums(first, second, groups, n_groups)

    def statistic(counts: Floats) -> Floats:
        return correlation_of_sums(counts @ sums)

    return statistic


def spearman_of(x: ArrayLike, y: ArrayLike, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """Spearman's correlation, average ranks taken anew within every resample."""
    first, second = paired_columns(x, y)
    rank_first, rank_second = _ranks_within(first, groups), _ranks_within(second, groups)

    def statistic(counts: Floats) -> Floats:
        weights = counts[:, groups]
        a, b = rank_first(counts), rank_second(counts)
        # Ranks average to (N + 1) / 2 whatever the ties.
        middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
        a -= middle
        b -= middle
        weighted = weights * a
        cross = np.einsum("ij,ij->i", weighted, b)
        spread_a = np.einsum("ij,ij->i", weighted, a)
        spread_b = np.einsum("ij,ij,ij->i", weights, b, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = cross / np.sqrt(spread_a * spread_b)
        return np.where((spread_a > 0) & (spread_b > 0), np.clip(value, -1, 1), np.nan)

    return statistic


def _ranks_within(x: Floats, groups: NDArray[np.intp]) -> Resampled:
    sorted_groups = groups[np.argsort(x, kind="stable")]
    below, upto = _tie_bounds(x)

    def ranks(counts: Floats) -> Floats:
        weight = _cumulated(counts, sorted_groups)
        return (np.take(weight, below, axis=1) + np.take(weight, upto, axis=1) + 1) / 2

    return ranks


def _tie_bounds(x: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For every row, how many values are smaller, and how many smaller or equal."""
    ordered = np.sort(x)
    return np.searchsorted(ordered, x, side="left"), np.searchsorted(ordered, x, side="right")


def _cumulated(counts: Floats, sorted_groups: NDArray[np.intp]) -> Floats:
    """How many drawn rows stand before each position, in the order of the groups given."""
    weight = np.zeros((len(counts), len(sorted_groups) + 1))
    np.cumsum(np.take(counts, sorted_groups, axis=1), axis=1, out=weight[:, 1:])
    return weight


def kendall_of(x: ArrayLike, y: ArrayLike, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """Kendall's tau-b. A row drawn twice is tied with itself, as in a plain bootstrap."""
    first, second = paired_columns(x, y)
    agreement = _agreeing_pairs(first, second, groups, n_groups)
    ties_first, ties_second = _ties_within(first, groups), _ties_within(second, groups)
    sizes = np.bincount(groups, minlength=n_groups).astype(np.float64)

    def statistic(counts: Floats) -> Floats:
        n = counts @ sizes
        pairs = n * (n - 1)
        spread = (pairs - ties_first(counts)) * (pairs - ties_second(counts))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread > 0, agreement(counts) / np.sqrt(spread), np.nan)

    return statistic


def _agreeing_pairs(x: Floats, y: Floats, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """Agreeing minus disagreeing ordered pairs of the drawn rows, from their sum for every pair of groups."""
    order = np.argsort(groups, kind="stable")
    x, y, groups = x[order], y[order], groups[order]
    starts = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
    by_group = np.zeros((n_groups, n_groups))
    # In slices of rows, so that memory grows with the rows and not with their square.
    for begin in range(0, len(x), _SLICE):
        part = slice(begin, begin + _SLICE)
        same_order = _sign(x[part, None], x[None, :]) * _sign(y[part, None], y[None, :])
        summed = np.zeros((len(same_order), n_groups))
        summed[:, groups[starts]] = np.add.reduceat(same_order, starts, axis=1, dtype=np.float64)
        np.add.at(by_group, groups[part], summed)
    return lambda counts: np.einsum("ij,ij->i", counts @ by_group, counts)


def _sign(a: Floats, b: Floats) -> NDArray[np.int8]:
    # Compared, not subtracted: differences can underflow.
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def _ties_within(x: Floats, groups: NDArray[np.intp]) -> Resampled:
    sorted_groups = groups[np.argsort(x, kind="stable")]
    starts = np.unique(_tie_bounds(x)[0])
    ends = np.append(starts[1:], len(x)).astype(np.intp)

    def tied_pairs(counts: Floats) -> Floats:
        weight = _cumulated(counts, sorted_groups)
        heavy = np.take(weight, ends, axis=1) - np.take(weight, starts, axis=1)
        return np.asarray((heavy * (heavy - 1)).sum(axis=1))

    return tied_pairs


def auc_of(labels: ArrayLike, scores: ArrayLike, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """The area under the ROC curve, ties counting half."""
    truth, values = paired_columns(labels, scores)
    is_good = truth == 1
    good, bad = values[is_good], values[~is_good]
    groups_of_good = groups[is_good]
    order = np.argsort(bad, kind="stable")
    sorted_groups = groups[~is_good][order]
    below = np.searchsorted(bad[order], good, side="left")
    upto = np.searchsorted(bad[order], good, side="right")

    def statistic(counts: Floats) -> Floats:
        beaten = _cumulated(counts, sorted_groups)
        weight = np.take(counts, groups_of_good, axis=1)
        wins = np.einsum("ij,ij->i", weight, np.take(beaten, below, axis=1))
        wins += np.einsum("ij,ij->i", weight, np.take(beaten, upto, axis=1))
        pairs = weight.sum(axis=1) * beaten[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(pairs > 0, wins / 2 / pairs, np.nan)

    return statistic


def mean_of(values: ArrayLike, groups: NDArray[np.intp], n_groups: int) -> Resampled:
    """The mean of a column; of a column of hits and misses this is the accuracy."""
    column = np.asarray(values, dtype=np.float64)
    sums = np.stack([np.bincount(groups, column, n_groups), np.bincount(groups, minlength=n_groups)], axis=1)

    def statistic(counts: Floats) -> Floats:
        total, n = (counts @ sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(n > 0, total / n, np.nan)

    return statistic


def _standardised(x: Floats) -> Floats:
    centred = x - x.mean() if len(x) else x
    spread = np.abs(centred).max(initial=0.0)
    return centred / spread if spread > 0 else centred


def over_systems(
    name: str, x: ArrayLike, y: ArrayLike, systems: NDArray[np.intp], groups: NDArray[np.intp], n_groups: int
) -> Resampled:
    """A correlation of system means: the contexts are resampled, the systems stay.

    In a resample that leaves a system without rows the correlation is undefined.
    """
    first, second = paired_columns(x, y)
    n_systems = int(systems.max(initial=-1)) + 1
    cell = groups * n_systems + systems

    def table(column: Floats) -> Floats:
        return np.asarray(np.bincount(cell, column, n_groups * n_systems), np.float64).reshape(n_groups, n_systems)

    sums_x, sums_y, sizes = table(first), table(second), table(np.ones_like(first))

    def statistic(counts: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            n = counts @ sizes
            return ROWWISE[name](counts @ sums_x / n, counts @ sums_y / n)

    return statistic


#: How each statistic of rows is resampled, by the names of tables; labels stand where people's scores do.
RESAMPLED: dict[str, Callable[[ArrayLike, ArrayLike, NDArray[np.intp], int], Resampled]] = {
    "pearson": pearson_of,
    "spearman": spearman_of,
    "kendall": kendall_of,
    "point_biserial": pearson_of,
    "auc": lambda scores, labels, groups, n_groups: auc_of(labels, scores, groups, n_groups),
}
