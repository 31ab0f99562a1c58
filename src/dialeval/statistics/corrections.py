"""p-values of many tests at once."""

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


def _checked(p_values: ArrayLike) -> Floats:
    p = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise ValueError(f"p-value {wrong[0]} is {p[wrong[0]]}; it must lie between 0 and 1")
    return p
