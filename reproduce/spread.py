"""How far a fitted Gaussian is from a sphere, for which the Mahalanobis distance is the Euclidean one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Eigenvalues of at least this share of the largest count as near it.
NEAR = 0.8


@dataclass(frozen=True)
class Spread:
    """The eigenvalues of a precision matrix, in two numbers."""

    #: The share of directions whose weight is within a fifth of the largest.
    near_largest: float
    #: The largest weight over the smallest that is not zero.
    ratio: float

    @classmethod
    def of(cls, precision: NDArray[np.floating]) -> Spread:
        """The spread of a symmetric matrix; directions that were held constant have no weight and do not count."""
        values = np.linalg.eigvalsh(np.asarray(precision, dtype=np.float64))
        values = values[values > values.max() * 1e-6]
        return cls(float((values >= NEAR * values.max()).mean()), float(values.max() / values.min()))

    @property
    def summary(self) -> str:
        """One sentence."""
        return (
            f"Of the precision's eigenvalues {self.near_largest:.0%} lie within 20 % of the largest, which is "
            f"{self.ratio:.3g} times the smallest; on a sphere, 100 % and 1, the distance would be Euclidean."
        )


def spread_in(folder: Path) -> Spread | None:
    """The spread of a checkpoint's human Gaussian; None for approaches that fit none."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="np") as tensors:
        return Spread.of(tensors.get_tensor("precision")) if "precision" in tensors.keys() else None  # noqa: SIM118
