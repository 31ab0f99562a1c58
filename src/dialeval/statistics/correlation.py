"""Correlations between two columns, with their p-values.

Ties get average ranks in Spearman and the tau-b correction in Kendall. The p-values treat rows as
independent, as papers do; for rows that share a context read the intervals of `bootstrap`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A statistic, its two-sided p-value (NaN where it has none) and the number of rows behind it."""

    value: float
    p: float
    n: int


def pearson(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Linear correlation; p from Student's t with n - 2 degrees of freedom."""
    from scipy import stats

    return _correlate(stats.pearsonr, x, y)


def spearman(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Pearson's correlation of average ranks; p from the same t distribution."""
    from scipy import stats

    return _correlate(stats.spearmanr, x, y)


def kendall(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Tau-b; p exact for short columns without ties, else from the normal approximation."""
    from scipy import stats

    return _correlate(stats.kendalltau, x, y)


def paired_columns(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Check two columns: one-dimensional, of one length, finite."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"columns must have one dimension, not {first.ndim} and {second.ndim}; pass flat lists")
    if len(first) != len(second):
        raise ValueError(f"columns differ in length: {len(first)} and {len(second)}; give one value of each per row")
    for name, column in (("first", first), ("second", second)):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise ValueError(
                f"row {bad[0]} of the {name} column is {column[bad[0]]}; leave such rows out and count them"
            )
    return first, second


def is_constant(x: Floats) -> bool:
    """Whether a column says nothing: fewer than two rows, or all the same."""
    return len(x) < 2 or bool(np.all(x == x[0]))


def _correlate(function: Callable[..., tuple[float, float]], x: ArrayLike, y: ArrayLike) -> Estimate:
    first, second = paired_columns(x, y)
    n = len(first)
    if is_constant(first) or is_constant(second):
        return Estimate(math.nan, math.nan, n)
    with warnings.catch_warnings():
        # Columns that are constant up to rounding; scipy's result for them is what we want, not its warning.
        warnings.simplefilter("ignore")
        value, p = function(first, second)
    # Two points always lie on a line: that is no evidence, and scipy says p = 1 or NaN depending on the statistic.
    return Estimate(float(value), math.nan if n < 3 else float(p), n)


#: The correlations by the names used in tables and on the command line.
CORRELATIONS: dict[str, Callable[[ArrayLike, ArrayLike], Estimate]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


# Many short pairs of columns at once, one pair per row of two matrices: for permutation tests and system-level
# resamples, where scipy would be called a hundred thousand times. NaN where a row is constant or holds a NaN.


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of each row of `x` with the same row of `y`."""
    a, b = np.broadcast_arrays(x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True))
    sums = [np.full(a.shape[:-1], a.shape[-1]), a.sum(-1), b.sum(-1), (a * a).sum(-1), (b * b).sum(-1), (a * b).sum(-1)]
    scale = np.abs(x).max(-1), np.abs(y).max(-1)
    flat = (np.abs(a).max(-1) <= 1e-14 * scale[0]) | (np.abs(b).max(-1) <= 1e-14 * scale[1])
    return np.where(flat, np.nan, correlation_of_sums(np.stack(sums, axis=-1)))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of average ranks, row by row."""
    from scipy import stats

    return pearson_rows(_ranks(stats.rankdata, x), _ranks(stats.rankdata, y))


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Tau-b, row by row; meant for short rows, since every pair is compared."""
    a, b = _signs(x), _signs(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_dot(a, b) / np.sqrt(_dot(a, a) * _dot(b, b)))


def group_sums(x: Floats, y: Floats, groups: NDArray[np.intp], n_groups: int) -> Floats:
    """What Pearson's correlation needs to know of each group of rows: (n, Σx, Σy, Σxx, Σyy, Σxy)."""
    columns = [np.ones_like(x), x, y, x * x, y * y, x * y]
    return np.stack([np.bincount(groups, column, n_groups) for column in columns], axis=1)


def correlation_of_sums(sums: Floats) -> Floats:
    """Pearson from (n, Σx, Σy, Σxx, Σyy, Σxy) in the last axis; NaN where a column is constant."""
    n, sx, sy, sxx, syy, sxy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread_x, spread_y = sxx - sx * sx / n, syy - sy * sy / n
        value = (sxy - sx * sy / n) / np.sqrt(spread_x * spread_y)
    # What rounding leaves of a constant column is not a spread.
    constant = ~((spread_x > 1e-12 * np.abs(sxx)) & (spread_y > 1e-12 * np.abs(syy)))
    return np.asarray(np.where(constant, np.nan, np.clip(value, -1, 1)))


def _ranks(rankdata: Callable[..., Floats], x: Floats) -> Floats:
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, rankdata(np.nan_to_num(x), axis=-1))


def _signs(x: Floats) -> Floats:
    """Which of each pair of values is greater, the pairs of a row side by side; NaN stays NaN."""
    left, right = np.triu_indices(x.shape[-1], 1)
    return np.sign(x[..., left] - x[..., right])


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("...i,...i->...", a, b))


#: Row-wise correlations by the names of `correlation.CORRELATIONS`.
ROWWISE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "pearson": pearson_rows,
    "spearman": spearman_rows,
    "kendall": kendall_rows,
}
