"""The correction of the judge by ratings, and what to expect of it on contexts that it was not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.judge import fitting
from dialeval.judge.metric import ReadReplies
from dialeval.judge.rule import Matrix, Vector
from dialeval.statistics.bootstrap import bootstrap, interval
from dialeval.tuning.opinions import FEWEST, Opinions

FOLDS = 5
#: The share of resamples that must be for a change before it is made.
SURE = 0.9


def divide(groups: NDArray[np.intp], folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of every row, of about equal sizes; rows of one group share theirs."""
    names, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of: dict[int, int] = {}
    filled = np.zeros(folds)
    # The largest first, each to the fold that is emptiest so far.
    for context in sorted(order, key=lambda place: -sizes[place]):
        fold_of[int(names[context])] = smallest = int(np.argmin(filled))
        filled[smallest] += sizes[context]
    return np.array([fold_of[int(group)] for group in groups], dtype=np.intp)


def out_of_fold(opinions: Opinions, read: ReadReplies, seed: int, *lifted: Sequence[str]) -> list[Vector]:
    """Every opinion's value by a correction that was fitted without its context, for each set of vetoes to lift."""
    folds = divide(opinions.groups, FOLDS, seed)
    values = [np.zeros(len(opinions)) for _ in lifted]
    for fold in range(FOLDS):
        held, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        corrected = read.corrected(fit_correction(opinions, read, others))
        for value, vetoes in zip(values, lifted, strict=True):
            value[held] = opinions.of_opinions(corrected.without(vetoes).values)[held]
    return values


def point(opinions: Opinions, values: Vector, chosen: Chosen | None = None) -> float:
    """The agreement itself; a judge that says the same of all agrees with nobody."""
    rows = np.arange(len(opinions)) if chosen is None else chosen
    value = float(opinions.agreement(values, rows)(np.ones((1, opinions.contexts)))[0])
    return value if np.isfinite(value) else 0.0


def agreement_where_known(opinions: Opinions, column: Vector) -> float | None:
    """The agreement of something else that is known of replies, over the opinions of which it is.

    None where it is known of too few of them, or the same of all.
    """
    values = opinions.of_opinions(column)
    known = np.flatnonzero(np.isfinite(values))
    differs = len(known) >= FEWEST and np.ptp(values[known]) > 0
    return point(opinions, np.nan_to_num(values), known) if differs else None


@dataclass(frozen=True)
class WithInterval:
    """A figure with its 95 % bootstrap interval by context."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def record(self) -> list[float]:
        """For JSON."""
        return [round(number, 4) for number in (self.value, self.low, self.high)]


@dataclass(frozen=True)
class BeforeAfter:
    """Agreement before and after a change, on the same resamples."""

    before: WithInterval
    after: WithInterval
    difference: WithInterval
    #: Share of resamples in which the change is for the better.
    sure: float
    #: The agreement of a judge that knows nothing.
    chance: float

    @property
    def gains(self) -> bool:
        """Whether the change is worth making.

        Ratings without sense may be at odds with the old values by chance; nothing is gained by no longer being so.
        """
        return self.difference.value > 0 and self.sure >= SURE and self.after.low > self.chance


@dataclass(frozen=True)
class Fitted:
    """A correction, or none, and how the judge agrees with and without it on contexts held out."""

    comparison: BeforeAfter
    #: The values that are kept, on contexts held out.
    values: Vector
    correction: Matrix | None = None
    #: Features whose vetoes the ratings speak against.
    lifted: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was gained."""
        return self.correction is not None


def compare(opinions: Opinions, before: Vector, after: Vector, *, resamples: int, seed: int) -> BeforeAfter:
    """Draw contexts anew, and measure both and their difference every time."""
    everything = np.arange(len(opinions))
    columns = {"before": before, "after": after}
    statistics = {name: opinions.agreement(values, everything) for name, values in columns.items()}
    drawn = bootstrap(statistics, opinions.contexts, resamples=resamples, seed=seed, rows=len(opinions))
    resampled = {name: np.nan_to_num(drawn[name]) for name in columns}
    values = {name: point(opinions, column) for name, column in columns.items()}
    resampled["difference"] = resampled["after"] - resampled["before"]
    values["difference"] = values["after"] - values["before"]
    bounds = {name: interval(draws) for name, draws in resampled.items()}
    figures = {name: WithInterval(values[name], ends.low, ends.high) for name, ends in bounds.items()}
    return BeforeAfter(**figures, sure=float((resampled["difference"] > 0).mean()), chance=opinions.chance)


def crossed_coverage(values: Vector, targets: Vector, groups: NDArray[np.intp], seed: int) -> float:
    """Share of ratings within an interval that was fitted on the other folds."""
    folds = divide(groups, FOLDS, seed)
    begins, stops = fitting.edges_of_ties(targets)
    inside = 0.0
    for fold in range(FOLDS):
        held, others = folds == fold, folds != fold
        if held.any():
            fitted = fitting.fit_interval(values[others], targets[others], ties=(begins[others], stops[others]))
            inside += fitting.covered(fitted, values[held], targets[held]) * held.sum()
    return float(inside / len(values))


# What one's own ratings add to the judge is a ridge regression on all that it computes of a reply. It begins from the
# judge's own votes, so that few ratings change little: their slope is fitted first, the ridge explains what is left,
# and vetoes come after it. One row of numbers says it all, so the checkpoint keeps it as a buffer.

#: The penalty on squared weights. Every block of inputs weighs alike, whatever its width; the judge's own value is not
#: shrunk. One for all: on ratings of uss, dbdc4 and abc_eval it does as well on other conversations as the best of five
#: by cross-validation (a little better on 100 rows), in less time. It was picked with these in view.
STRENGTH = 300.0
#: What a block of inputs amounts to; the penalty is in its units.
BLOCK = 100.0

Chosen = NDArray[np.intp]


def fit_correction(opinions: Opinions, read: ReadReplies, chosen: Chosen) -> Matrix:
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


def joined_corrections(first: Matrix | None, then: Matrix) -> Matrix:
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
