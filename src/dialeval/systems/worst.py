"""The rows that pull a result down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialeval.scores import Scores


def weakest(scores: Scores, count: int, by: NDArray[np.float64] | None = None) -> list[int]:
    """Places of the worst values, the worst first; rows without a value are left out.

    `by` takes the place of the values: a number per row, of which less is worse, such as the gain over a baseline.
    """
    turned = by if by is not None else scores.values if scores.higher_is_better else -scores.values
    known = np.flatnonzero(np.isfinite(turned))
    return [int(at) for at in known[np.argsort(turned[known], kind="stable")][:count]]
