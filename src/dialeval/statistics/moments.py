"""Streaming mean and covariance: mergeable, in float64, without keeping the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass
class Moments:
    """Count, mean and centred scatter matrix of all rows seen so far.

    Equivalent to keeping n, Σx and Σxxᵀ, but the centred form does not lose digits when the mean
    is large beside the spread, so a rank-deficient covariance stays rank-deficient.
    """

    count: int = 0
    mean: Matrix = field(default_factory=lambda: np.zeros(0))
    scatter: Matrix = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, rows: NDArray[Any]) -> Self:
        """Moments of one block of rows."""
        block = np.asarray(rows, dtype=np.float64)
        if block.ndim != 2 or not len(block):
            raise ValueError(f"moments need a non-empty [rows, features] matrix, not one of shape {block.shape}")
        if not np.isfinite(block).all():
            raise ValueError("features hold NaN or infinite values")
        mean = block.mean(axis=0)
        centred = block - mean
        return cls(len(block), mean, centred.T @ centred)

    def update(self, rows: NDArray[Any]) -> Self:
        """Add a block of rows."""
        return self.merge(type(self).of(rows))

    def merge(self, other: Moments) -> Self:
        """Add another state, as if its rows had been seen here."""
        if not other.count:
            return self
        if not self.count:
            self.count, self.mean, self.scatter = other.count, other.mean.copy(), other.scatter.copy()
            return self
        if self.mean.shape != other.mean.shape:
            raise ValueError(f"cannot merge moments of {len(self.mean)} and {len(other.mean)} features")
        total = self.count + other.count
        shift = other.mean - self.mean
        self.scatter = self.scatter + other.scatter + np.outer(shift, shift) * (self.count * other.count / total)
        self.mean = self.mean + shift * (other.count / total)
        self.count = total
        return self

    def covariance(self, *, ddof: int = 0) -> Matrix:
        """Covariance with divisor `count - ddof`."""
        if self.count <= ddof:
            raise ValueError(f"a covariance with ddof={ddof} needs more than {self.count} rows")
        return self.scatter / (self.count - ddof)
