"""What one's own ratings add to the judge: a ridge regression on all that it computes of a reply.

It begins from the judge's own votes, so that few ratings change little: their slope is fitted first, and the ridge
explains what is left; vetoes come after it. One row of numbers says it all, so the checkpoint keeps it as a buffer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialeval.judge.metric import Matrix, ReadReplies
from dialeval.tuning.opinions import Opinions

#: The penalty on squared weights. Every block of inputs weighs alike, whatever its width; the judge's own value is not
#: shrunk. One for all: on ratings of uss, dbdc4 and abc_eval it does as well on other conversations as the best of five
#: by cross-validation (a little better on 100 rows), in less time. It was picked with these in view.
STRENGTH = 300.0
#: What a block of inputs amounts to; the penalty is in its units.
BLOCK = 100.0

Chosen = NDArray[np.intp]


def fit(opinions: Opinions, read: ReadReplies, chosen: Chosen) -> Matrix:
    """The correction that some of the opinions ask for, as `ReadReplies.corrected` takes it."""
    rows, inputs, values = opinions.rows_of(chosen), read.inputs, read.voted
    known = np.isfinite(inputs[rows]).sum(axis=0)
    means = np.nansum(inputs[rows], axis=0) / np.maximum(known, 1)
    scales = np.sqrt(np.nansum((inputs[rows] - means) ** 2, axis=0) / np.maximum(known, 1))
    scales[scales < 1e-6] = np.inf  # what is the same everywhere tells nothing
    scales /= np.sqrt(BLOCK / np.repeat(np.asarray(read.widths, dtype=np.float64), read.widths))
    middle = float(values[rows].mean())
    columns = opinions.of_opinions(np.nan_to_num((inputs - means) / scales))[chosen]
    moved = opinions.of_opinions((values - middle)[:, None])[chosen, 0]
    wanted = opinions.outputs[chosen]
    slope = max(float(moved @ wanted) / max(float(moved @ moved), 1e-9), 0.0)
    penalised = columns.T @ columns + STRENGTH * np.eye(columns.shape[1])
    weights = np.linalg.solve(penalised, columns.T @ (wanted - slope * moved)) / scales
    return np.stack([np.append(means, [middle, 0.0]), np.append(weights, [slope, 0.5])])


def joined(first: Matrix | None, then: Matrix) -> Matrix:
    """One correction for two: `then` was fitted to values that `first` had corrected."""
    if first is None:
        return then
    slope = then[1, -2]
    weights = then[1] + slope * first[1]
    weights[-2] = slope * first[1, -2]
    # What each subtracts becomes one; the value of the first takes the place of the value itself.
    means = first[0].copy()
    weights[-1] = (
        then[1, -1] + slope * (first[1, -1] - then[0, -2]) + float((first[0, :-2] - then[0, :-2]) @ then[1, :-2])
    )
    return np.stack([means, weights])
