"""Correlations between two columns, with their p-values.

Ties get average ranks in Spearman and the tau-b correction in Kendall. The p-values treat rows as
independent, as papers do; for rows that share a context read the intervals of `resampled`.
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
