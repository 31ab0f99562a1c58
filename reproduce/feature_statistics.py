"""Features of replies: how narrow a cone they fill, and how normal their distribution is."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def conicity(vectors: ArrayLike) -> float:
    """Mean cosine of a set of vectors to their mean: near 1 they lie in one narrow cone.

    Of vectors that cancel out, or that contain a zero vector, it is not defined: NaN and a warning.
    """
    matrix = np.asarray(vectors, dtype=np.float64)
    centre = matrix.mean(axis=0)
    lengths = np.linalg.norm(matrix, axis=1)
    # What rounding leaves of a mean that cancels out is no direction.
    if np.linalg.norm(centre) <= 1e-12 * lengths.max(initial=0.0) or not lengths.all():
        warnings.warn("conicity is not defined for a zero vector or a zero mean; it is NaN here", stacklevel=2)
        return math.nan
    cosines = (matrix @ centre) / (lengths * np.linalg.norm(centre))
    return float(np.clip(cosines, -1, 1).mean())


@dataclass(frozen=True)
class Normality:
    """Shapiro-Wilk's test of each feature dimension.

    `w` and `p` hold the statistic and p-value of every dimension that varies; `constant` counts
    those that do not, for which the test says nothing.
    """

    w: Floats
    p: Floats
    n: int
    constant: int

    @property
    def pooled(self) -> tuple[float, float]:
        """Mean and standard deviation of statistics and p-values thrown together.

        Not a sensible figure: exactly normal features give about 0.74 ± 0.32. It is what the code behind a
        published table computes, and only here to compare with that table.
        """
        both = np.concatenate([self.w, self.p])
        return float(both.mean()), float(both.std())


def normality(features: ArrayLike) -> Normality:
    """Test every column of a feature matrix (one row per reply) for normality."""
    from scipy import stats

    matrix = np.asarray(features, dtype=np.float64)
    spread = np.ptp(matrix, axis=0)
    # Dimensions that an encoder never uses hold what rounding leaves of zero.
    varies = spread > spread.max() * np.finfo(np.float32).eps
    if not varies.any():
        raise ValueError("every feature dimension is constant; there is nothing to test")
    tested = [stats.shapiro(column) for column in matrix[:, varies].T]
    return Normality(
        w=np.array([result.statistic for result in tested]),
        p=np.array([result.pvalue for result in tested]),
        n=len(matrix),
        constant=int((~varies).sum()),
    )
