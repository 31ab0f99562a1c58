"""One metric, one question, all statistics: the value, its p, its interval, and everything to read them by."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.judgements import Cut, View
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.registry.interface import Level
from dialeval.statistics import discrimination
from dialeval.statistics.bootstrap import (
    MOST_GROUPS_FOR_KENDALL,
    RESAMPLED,
    Interval,
    Resampled,
    bootstrap,
    interval,
    mean_of,
    number_groups,
    over_systems,
)
from dialeval.statistics.correlation import CORRELATIONS, Estimate, Floats, is_constant
from dialeval.statistics.discrimination import observed_grid, search_threshold
from dialeval.statistics.system_level import TooFewSystems, correlate_systems, system_means


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A statistic of one metric on one question; `threshold` is on the metric's own scale."""

    statistic: str
    value: float
    low: float
    high: float
    p: float
    p_method: str
    n: int
    n_excluded: int
    n_groups: int
    n_systems: int
    resamples: int
    threshold: float = math.nan
    threshold_method: str = ""
    within_systems: float = math.nan
    within_systems_low: float = math.nan
    within_systems_high: float = math.nan
    without_humans: float = math.nan
    without_humans_low: float = math.nan
    without_humans_high: float = math.nan
    n_without_humans: int | None = None
    system_means: float = math.nan


def measure(
    source: ValueSource,
    view: View,
    cut: Cut,
    settings: Settings,
    decision: Decision | None = None,
    people: Collection[str] = (),
) -> list[Measured]:
    """All statistics of a metric on a question; accuracy only where there is a threshold.

    `people` are the systems whose replies were written by people; see above `RowCorrelation`.

    Raises `TooFewSystems` at the system level below five systems, unless forced.
    """
    wanted = [name for name in cut.statistics if name != "accuracy" or decision is not None]
    return [_measure(name, source, view, cut, settings, decision, people) for name in wanted]


def _measure(
    name: str,
    source: ValueSource,
    view: View,
    cut: Cut,
    settings: Settings,
    decision: Decision | None,
    people: Collection[str],
) -> Measured:
    if cut.level == "system":
        estimate, statistic, p_method = _of_systems(name, source, view, settings)
    else:
        estimate, statistic, p_method = _pooled(name, view, decision)
    is_correlation = cut.level != "system" and name in CORRELATIONS and not cut.is_labelled
    within = within_systems(name, view) if is_correlation else RowCorrelation()
    machines = without_people(name, view, people) if is_correlation else RowCorrelation()
    absolute = settings.absolute and cut.level == "system"
    # Where machines wrote every row it is the same correlation, and costs nothing.
    is_same = machines.n == len(view.values)
    statistics = {"": statistic, "within": within.statistic, "machines": None if is_same else machines.statistic}
    spreads = _intervals(name, statistics, view, settings, absolute=absolute)
    spread = spreads[""]
    of_machines = spread if is_same else spreads["machines"]
    return Measured(
        statistic=name,
        value=abs(estimate.value) if absolute else estimate.value,
        low=spread.low,
        high=spread.high,
        p=estimate.p,
        p_method=p_method if math.isfinite(estimate.p) else "",
        n=estimate.n,
        n_excluded=view.n_excluded,
        n_groups=len(np.unique(view.groups)),
        n_systems=len(view.named_systems),
        resamples=spread.resamples,
        threshold=decision.native if decision is not None and name == "accuracy" else math.nan,
        threshold_method=decision.method if decision is not None and name == "accuracy" else "",
        within_systems=within.value,
        within_systems_low=spreads["within"].low,
        within_systems_high=spreads["within"].high,
        without_humans=machines.value,
        without_humans_low=of_machines.low,
        without_humans_high=of_machines.high,
        n_without_humans=machines.n if is_correlation else None,
        system_means=of_system_means(name, view) if is_correlation else math.nan,
    )


def _intervals(
    name: str, statistics: Mapping[str, Resampled | None], view: View, settings: Settings, *, absolute: bool
) -> dict[str, Interval]:
    """The interval of each, all from the same resamples; none where a statistic is not resampled."""
    resampled = {key: statistic for key, statistic in statistics.items() if statistic is not None}
    drawn: dict[str, Floats] = {}
    if resampled and settings.resamples_for(name) and len(view.values):
        drawn = bootstrap(
            resampled, view.n_groups, resamples=settings.resamples_for(name), seed=settings.seed, rows=len(view.values)
        )
    intervals = {
        key: interval(np.abs(values) if absolute else values, settings.confidence) for key, values in drawn.items()
    }
    return {key: intervals.get(key, interval(np.empty(0))) for key in statistics}


def _pooled(name: str, view: View, decision: Decision | None) -> tuple[Estimate, Resampled | None, str]:
    if name == "accuracy" and decision is not None:
        right = discrimination.correct(view.human, view.values, decision.threshold)
        share = float(right.mean()) if len(right) else math.nan
        return Estimate(share, math.nan, len(right)), mean_of(right, view.groups, view.n_groups), ""
    too_many = name == "kendall" and view.n_groups > MOST_GROUPS_FOR_KENDALL
    statistic = None if too_many else RESAMPLED[name](view.values, view.human, view.groups, view.n_groups)
    if name == "point_biserial":
        return discrimination.point_biserial(view.human, view.values), statistic, "t"
    if name == "auc":
        return discrimination.auc(view.human, view.values), statistic, "Mann-Whitney"
    return CORRELATIONS[name](view.values, view.human), statistic, "normal" if name == "kendall" else "t"


def _of_systems(
    name: str, source: ValueSource, view: View, settings: Settings
) -> tuple[Estimate, Resampled | None, str]:
    names = [str(system) for system in view.systems]
    if not names:
        raise TooFewSystems("no system has a value")
    x, y = system_means(view.values, names)[1], system_means(view.human, names)[1]
    estimate, method = correlate_systems(x, y, name, seed=settings.seed, force=settings.force_systems)
    if source.level is Level.SYSTEM:
        # Resampling only the human side would look surer than it is, and the metric is not run again.
        return estimate, None, f"permutation, {method}"
    numbers = number_groups(names)
    statistic = over_systems(name, view.values, view.human, numbers, view.groups, view.n_groups)
    return estimate, statistic, f"permutation, {method}"


#: Where 0.5 stands for "as likely good as bad".
_MIDDLE = 0.5


@dataclass(frozen=True)
class Decision:
    """A threshold on values turned so that higher is better, the same on the metric's own scale, and its origin."""

    threshold: float
    native: float
    method: str


#: Gives the metric's values (higher better) and the labels of validation rows; None where there are none.
Validation = Callable[[], tuple[Floats, Floats] | None]


def decide(source: ValueSource, settings: Settings, validation: Validation) -> Decision | None:
    """The threshold for one question, or None where it would have to be searched and there is nothing to search on."""
    sign = 1.0 if source.higher_is_better else -1.0
    if not isinstance(settings.threshold, str):
        return Decision(sign * settings.threshold, settings.threshold, "fixed")
    if settings.threshold == "auto" and source.has_middle:
        return Decision(sign * _MIDDLE, _MIDDLE, "fixed")
    rows = validation()
    if rows is None or not len(rows[0]):
        return None
    values, labels = rows
    # Hundredths mean something between 0 and 1 only; elsewhere every observed value is tried.
    unit = source.in_unit_range and source.higher_is_better
    threshold = search_threshold(labels, values, grid=None if unit else observed_grid(values))
    grid = "0, 0.01 … 1" if unit else "observed values"
    method = f"searched over {grid} on {threshold.n} rows, smallest of {threshold.ties} with {threshold.errors} errors"
    return Decision(threshold.value, sign * threshold.value, method)


# What one correlation over all rows hides where some systems are liked better than others. A metric that only
# recognises who spoke can agree with people very well. Three numbers show it:
#
# * within systems: the correlation among the rows of one system, averaged over the systems with their rows as weights.
#   Systems with fewer than three rows, or all of whose values or ratings are the same, have none and are left out.
#   Telling systems apart earns nothing here.
# * without human-written rows: the same correlation over the rows that a machine wrote. Replies of people and planted
#   ones (a human reply to another context) are left out; rows that name no system, too.
# * system means: what is reached by every system's own mean human score in place of a metric, a baseline that knows
#   only who spoke. The mean is of all rows of the system, the row itself among them: without it the score would fall
#   within a system as the rating rises, and the baseline would look weaker than knowing the systems is.

#: Two points always lie on a line.
FEWEST_ROWS = 3


@dataclass(frozen=True)
class RowCorrelation:
    """A correlation of some rows, on how many it stands, and the same of resamples."""

    value: float = math.nan
    n: int = 0
    statistic: Resampled | None = None


def within_systems(name: str, view: View) -> RowCorrelation:
    """The mean correlation within a system, weighted by rows; resamples weigh by the rows that were drawn."""
    systems = [np.flatnonzero(view.systems == system) for system in view.named_systems]
    enough = [rows for rows in systems if len(rows) >= FEWEST_ROWS]
    kept = [rows for rows in enough if not (is_constant(view.values[rows]) or is_constant(view.human[rows]))]
    if not kept:
        return RowCorrelation()
    sizes = [len(rows) for rows in kept]
    values = [CORRELATIONS[name](view.values[rows], view.human[rows]).value for rows in kept]
    resampled = [_resampled(name, view, rows) for rows in kept]
    drawn = [np.bincount(view.groups[rows], minlength=view.n_groups).astype(np.float64) for rows in kept]
    statistics = [drawn_statistic for drawn_statistic in resampled if drawn_statistic is not None]
    return RowCorrelation(
        float(np.average(values, weights=sizes)),
        sum(sizes),
        _weighted(statistics, np.stack(drawn, axis=1)) if len(statistics) == len(kept) else None,
    )


def without_people(name: str, view: View, people: Collection[str]) -> RowCorrelation:
    """The correlation over the rows of named systems that are not among `people`."""
    rows = np.flatnonzero([system is not None and system not in people for system in view.systems])
    if not len(rows):
        return RowCorrelation()
    value = CORRELATIONS[name](view.values[rows], view.human[rows]).value
    return RowCorrelation(value, len(rows), _resampled(name, view, rows) if math.isfinite(value) else None)


def of_system_means(name: str, view: View) -> float:
    """The correlation of people's scores with the mean of their system."""
    rows = np.flatnonzero([system is not None for system in view.systems])
    systems = [str(system) for system in view.systems[rows]]
    if not systems:
        return math.nan
    means = system_means(view.human[rows], systems)[1]
    return CORRELATIONS[name](means[number_groups(systems)], view.human[rows]).value


def _resampled(name: str, view: View, rows: NDArray[np.intp]) -> Resampled | None:
    """The statistic of some rows as a function of all groups' counts; tables only of the groups they are in."""
    present, numbers = np.unique(view.groups[rows], return_inverse=True)
    if name == "kendall" and len(present) > MOST_GROUPS_FOR_KENDALL:
        return None
    statistic = RESAMPLED[name](view.values[rows], view.human[rows], numbers, len(present))
    return lambda counts: statistic(counts[:, present])


def _weighted(statistics: Sequence[Resampled], sizes: Floats) -> Resampled:
    """The mean of statistics weighted by the rows that were drawn for each; undefined ones are left out."""

    def statistic(counts: Floats) -> Floats:
        values = np.stack([statistic(counts) for statistic in statistics], axis=1)
        weights = np.where(np.isfinite(values), counts @ sizes, 0.0)
        total = weights.sum(axis=1)
        summed = (weights * np.where(np.isfinite(values), values, 0.0)).sum(axis=1)
        return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)

    return statistic
