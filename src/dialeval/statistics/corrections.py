"""p-values of many tests at once, and what a printed p-value says about n."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dialeval.statistics.correlation import Floats


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment: controls the chance of any false discovery, needs no independence."""
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Benjamini and Hochberg's step-up adjustment: controls the expected share of false discoveries."""
    from scipy import stats

    p = _checked(p_values)
    return np.asarray(stats.false_discovery_control(p, method="bh")) if len(p) else p


def sample_sizes(r: float, p: float, *, decimals: int = 4, largest: int = 5000) -> list[int]:
    """The numbers of rows for which a correlation and a p-value printed to `decimals` digits fit together.

    Papers often leave n out. Whatever lies within half a unit of the last digit of both is
    possible; the p-value is the two-sided one of the t-test.
    """
    from scipy import stats

    half = 0.5 * 10.0**-decimals
    if not 0 <= p <= 1 or not -1 <= r <= 1:
        raise ValueError(f"r = {r} and p = {p} cannot be a correlation and its p-value; check the numbers")
    n = np.arange(3, largest + 1)

    def p_of(correlation: float) -> Floats:
        bounded = min(max(correlation, 0.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(bounded >= 1, np.inf, bounded * np.sqrt((n - 2) / max(1 - bounded**2, 1e-300)))
        return np.asarray(2 * stats.t.sf(t, n - 2))

    most, least = p_of(abs(r) - half), p_of(abs(r) + half)
    return [int(size) for size in n[(least <= p + half) & (most >= p - half)]]


def _checked(p_values: ArrayLike) -> Floats:
    p = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise ValueError(f"p-value {wrong[0]} is {p[wrong[0]]}; it must lie between 0 and 1")
    return p
