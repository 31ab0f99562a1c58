"""One metric, one question, all statistics: the value, its p, its interval, and everything to read them by."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from dialeval.agreement import by_system
from dialeval.agreement.judgements import Cut, View
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.registry.metric import Level
from dialeval.statistics import discrimination
from dialeval.statistics.bootstrap import Interval, Resampled, bootstrap, interval, number_groups
from dialeval.statistics.correlation import CORRELATIONS, Estimate, Floats
from dialeval.statistics.discrimination import observed_grid, search_threshold
from dialeval.statistics.resampled import MOST_GROUPS_FOR_KENDALL, RESAMPLED, mean_of, over_systems
from dialeval.statistics.system_level import TooFewSystems, correlate_systems, system_means

_NO_INTERVAL = Interval(math.nan, math.nan, 0)


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

    `people` are the systems whose replies were written by people; see `by_system`.

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
    measured: tuple[Estimate, Resampled | None, str]
    if cut.level == "system":
        measured = _of_systems(name, source, view, settings)
    elif name == "accuracy" and decision is not None:
        measured = _accuracy(view, decision)
    else:
        measured = _pooled(name, view)
    estimate, statistic, p_method = measured
    is_correlation = cut.level != "system" and name in CORRELATIONS and not cut.is_labelled
    within = by_system.within_systems(name, view) if is_correlation else by_system.RowCorrelation()
    machines = by_system.without_people(name, view, people) if is_correlation else by_system.RowCorrelation()
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
        system_means=by_system.of_system_means(name, view) if is_correlation else math.nan,
    )


def _intervals(
    name: str, statistics: Mapping[str, Resampled | None], view: View, settings: Settings, *, absolute: bool
) -> dict[str, Interval]:
    """The interval of each, all from the same resamples; none where a statistic is not resampled."""
    resampled = {key: statistic for key, statistic in statistics.items() if statistic is not None}
    drawn: dict[str, Floats] = {}
    if resampled and settings.resamples_for(name) and len(view.values):
        drawn = bootstrap(
            resampled,
            view.n_groups,
            resamples=settings.resamples_for(name),
            seed=settings.seed,
            rows=len(view.values),
        )
    intervals = {
        key: interval(np.abs(values) if absolute else values, settings.confidence) for key, values in drawn.items()
    }
    return {key: intervals.get(key, _NO_INTERVAL) for key in statistics}


def _pooled(name: str, view: View) -> tuple[Estimate, Resampled | None, str]:
    too_many = name == "kendall" and view.n_groups > MOST_GROUPS_FOR_KENDALL
    statistic = None if too_many else RESAMPLED[name](view.values, view.human, view.groups, view.n_groups)
    if name == "point_biserial":
        return discrimination.point_biserial(view.human, view.values), statistic, "t"
    if name == "auc":
        return discrimination.auc(view.human, view.values), statistic, "Mann-Whitney"
    return CORRELATIONS[name](view.values, view.human), statistic, "normal" if name == "kendall" else "t"


def _accuracy(view: View, decision: Decision) -> tuple[Estimate, Resampled, str]:
    right = discrimination.correct(view.human, view.values, decision.threshold)
    estimate = Estimate(float(right.mean()) if len(right) else math.nan, math.nan, len(right))
    return estimate, mean_of(right, view.groups, view.n_groups), ""


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


def decide(source: ValueSource, cut: Cut, settings: Settings, validation: Validation) -> Decision | None:
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
