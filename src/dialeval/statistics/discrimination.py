"""How well a metric tells good replies from bad ones: point-biserial correlation, AUC, accuracy.

A reply counts as accepted when its score is *greater* than the threshold; a score that equals it
is refused. Scores come in already turned so that higher is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialeval.statistics.correlation import Estimate, Floats, paired_columns, pearson

#: The thresholds that are tried for scores in [0, 1].
UNIT_GRID: Floats = np.arange(101) / 100


@dataclass(frozen=True)
class Threshold:
    """A decision threshold, the errors it makes where it was searched, and how many others make as few."""

    value: float
    errors: int
    n: int
    ties: int


def point_biserial(labels: ArrayLike, scores: ArrayLike) -> Estimate:
    """Pearson's correlation of scores with labels that are 0 or 1."""
    truth, values = labelled_columns(labels, scores)
    return pearson(truth.astype(np.float64), values)


def auc(labels: ArrayLike, scores: ArrayLike) -> Estimate:
    """The chance that a good reply scores above a bad one, ties counting half; p from the Mann-Whitney test."""
    from scipy import stats

    truth, values = labelled_columns(labels, scores)
    good, bad = values[truth], values[~truth]
    if not len(good) or not len(bad):
        return Estimate(math.nan, math.nan, len(values))
    test = stats.mannwhitneyu(good, bad, alternative="two-sided")
    return Estimate(float(test.statistic) / (len(good) * len(bad)), float(test.pvalue), len(values))


def correct(labels: ArrayLike, scores: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """For every row, whether `score > threshold` gives its label."""
    truth, values = labelled_columns(labels, scores)
    return np.asarray((values > threshold) == truth)


def search_threshold(labels: ArrayLike, scores: ArrayLike, *, grid: ArrayLike | None = None) -> Threshold:
    """The threshold with the fewest errors on validation rows.

    Candidates are 0, 0.01 … 1, or `grid`; of several that make equally few errors the smallest is taken.
    """
    truth, values = labelled_columns(labels, scores)
    if not len(values):
        raise ValueError("there are no validation rows to search a threshold on; pass at least one")
    candidates = np.sort(np.asarray(UNIT_GRID if grid is None else grid, dtype=np.float64))
    good, bad = np.sort(values[truth]), np.sort(values[~truth])
    refused_good = np.searchsorted(good, candidates, side="right")
    accepted_bad = len(bad) - np.searchsorted(bad, candidates, side="right")
    errors = refused_good + accepted_bad
    best = np.flatnonzero(errors == errors.min())
    return Threshold(float(candidates[best[0]]), int(errors.min()), len(values), len(best))


def observed_grid(scores: ArrayLike) -> Floats:
    """Every threshold that makes a difference on these scores: one below all of them, and each score itself.

    For metrics that do not live in [0, 1], where a grid of hundredths means nothing.
    """
    values = np.unique(np.asarray(scores, dtype=np.float64))
    return np.concatenate([[np.nextafter(values[0], -np.inf)], values]) if len(values) else values


def labelled_columns(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
    """Check a column of labels, 0 or 1, beside a column of scores."""
    truth, values = paired_columns(labels, scores)
    odd = np.flatnonzero((truth != 0) & (truth != 1))
    if len(odd):
        raise ValueError(f"row {odd[0]} has label {truth[odd[0]]:g}; labels are 1 (good) or 0 (bad)")
    return truth.astype(bool), values
