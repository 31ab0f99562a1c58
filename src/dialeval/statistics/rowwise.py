"""Correlations of many short pairs of columns at once, one pair per row of two matrices.

For permutation tests and system-level resamples, where scipy would be called a hundred thousand
times. NaN where a row is constant or holds a NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dialeval.statistics.correlation import Floats


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
