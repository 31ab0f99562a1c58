"""Does a combined judge beat every single metric on the mean over benchmarks? Leave one benchmark out, and test.

Whatever is chosen or fitted for a benchmark is chosen or fitted on the others: the weights, and the single
metric that an ensemble has to beat. The tests speak about these benchmarks: contexts are resampled or
swapped within each of them, the set of benchmarks stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dialeval.agreement.settings import Settings
from dialeval.statistics.bootstrap import Interval, bootstrap, interval
from dialeval.statistics.corrections import holm
from dialeval.statistics.correlation import Floats, spearman
from dialeval.statistics.paired_tests import permutation_test_over_sets
from dialeval.statistics.resampled import spearman_of
from dialeval.studies.ensemble import (
    DEPLOYABLE,
    ENSEMBLES,
    Field,
    fit_weights,
    percentile_mean,
    rank_mean,
    weighted_percentiles,
)

#: The judge that has to be beaten: on each benchmark the metric that is best on the others.
BEST_SINGLE = "best_single"

#: What is said of all benchmarks together stands under this name.
MEAN = "mean"


@dataclass(frozen=True)
class Agreement:
    """Spearman's correlation of one judge with people, on one benchmark or (`benchmark` is `mean`) over those named."""

    judge: str
    benchmark: str
    value: float
    spread: Interval
    n: int
    contaminated: bool = False
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnsembleTest:
    """An ensemble against one judge, on the mean over the benchmarks where both count."""

    ensemble: str
    against: str
    difference: float
    spread: Interval
    p: float
    method: str
    over: tuple[str, ...]
    better_on: int


@dataclass(frozen=True)
class EnsembleOutcome:
    """Whether a form that can be shipped beats every single metric; `p` is its weakest test, Holm-corrected."""

    ensemble: str
    beats: bool
    p: float
    weakest: str


@dataclass
class Study:
    """Everything that was found."""

    members: tuple[str, ...]
    singles: tuple[str, ...]
    agreements: list[Agreement] = field(default_factory=list)
    tests: list[EnsembleTest] = field(default_factory=list)
    verdicts: list[EnsembleOutcome] = field(default_factory=list)
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)

    @property
    def winner(self) -> str | None:
        """The form to ship: of those that beat every single metric the one with the higher mean, else None."""
        means = {one.judge: one.value for one in self.agreements if one.benchmark == MEAN}
        passed = [one.ensemble for one in self.verdicts if one.beats]
        return max(passed, key=lambda name: means[name]) if passed else None


def study(fields: Sequence[Field], members: Sequence[str], settings: Settings) -> Study:
    """Measure single metrics and ensembles, and test the ensembles."""
    if len(fields) < 3:
        raise ValueError(f"{len(fields)} benchmarks are too few to leave one out; name at least three")
    if len(members) < 2:
        raise ValueError("an ensemble takes two metrics or more that have human percentiles; name at least two")
    if lonely := [one.name for one in fields if not one.clean(members)]:
        raise ValueError(
            f"no member has values for {lonely[0]}; measure them with `dialeval agreement` or leave it out"
        )
    singles = tuple(dict.fromkeys(name for one in fields for name in one.columns))
    found = Study(tuple(members), singles)
    values = {one.name: _judges(one, fields, members, singles, found) for one in fields}
    found.weights["all"] = fit_weights(fields, members)
    drawn = {
        one.name: _drawn(one, values[one.name], settings.seed + number, settings) for number, one in enumerate(fields)
    }
    for judge in (*singles, BEST_SINGLE, *ENSEMBLES):
        found.agreements += _agreements(judge, fields, values, drawn, settings)
    for ensemble in ENSEMBLES:
        found.tests += [_tested(ensemble, other, fields, values, drawn, settings) for other in (*singles, BEST_SINGLE)]
    found.verdicts = _verdicts(found.tests, 1 - settings.confidence)
    return found


def _judges(
    one: Field, fields: Sequence[Field], members: Sequence[str], singles: Sequence[str], found: Study
) -> dict[str, Floats]:
    others = [other for other in fields if other is not one]
    found.weights[one.name] = fit_weights(others, members)
    found.chosen[one.name] = _best_elsewhere(one, others, singles)
    return {
        **one.columns,
        BEST_SINGLE: one.columns[found.chosen[one.name]],
        "rank_mean": rank_mean(one, members),
        "percentile_mean": percentile_mean(one, members),
        "weighted_percentiles": weighted_percentiles(one, found.weights[one.name]),
    }


def _best_elsewhere(one: Field, others: Sequence[Field], singles: Sequence[str]) -> str:
    """The metric with the highest mean over the other benchmarks, of those that may stand on this one."""
    means = {}
    for name in one.clean(singles):
        values = [_value(other.columns[name], other) for other in others if other.clean([name])]
        defined = [value for value in values if math.isfinite(value)]
        if defined:
            means[name] = float(np.mean(defined))
    if not means:
        raise ValueError(f"no metric on {one.name} has values elsewhere; measure at least one on all benchmarks")
    return max(means, key=lambda name: means[name])


def _value(column: Floats, one: Field) -> float:
    known = np.isfinite(column)
    return spearman(column[known], one.human[known]).value


def _drawn(one: Field, columns: Mapping[str, Floats], seed: int, settings: Settings) -> dict[str, Floats]:
    """Every judge on the same resamples of the contexts of a benchmark."""
    statistics = {}
    for name, column in columns.items():
        known = np.isfinite(column)
        statistics[name] = spearman_of(column[known], one.human[known], one.groups[known], one.n_groups)
    return bootstrap(statistics, one.n_groups, resamples=settings.resamples, seed=seed, rows=len(one.human))


def _counts_on(judge: str, fields: Sequence[Field]) -> list[Field]:
    """Where a judge may be averaged: a metric not on what it was trained on; ensembles are clean everywhere."""
    own = (BEST_SINGLE, *ENSEMBLES)
    return [one for one in fields if judge in own or one.clean([judge])]


def _agreements(
    judge: str,
    fields: Sequence[Field],
    values: Mapping[str, Mapping[str, Floats]],
    drawn: Mapping[str, Mapping[str, Floats]],
    settings: Settings,
) -> list[Agreement]:
    rows = []
    for one in fields:
        if judge in values[one.name]:
            column = values[one.name][judge]
            spread = interval(drawn[one.name][judge], settings.confidence)
            n = int(np.isfinite(column).sum())
            rows.append(Agreement(judge, one.name, _value(column, one), spread, n, judge in one.contaminated))
    counted = _counts_on(judge, fields)
    if counted:
        over = tuple(one.name for one in counted)
        mean = float(np.mean([row.value for row in rows if row.benchmark in over]))
        draws = np.mean([drawn[name][judge] for name in over], axis=0)
        total = sum(row.n for row in rows if row.benchmark in over)
        rows.append(Agreement(judge, MEAN, mean, interval(draws, settings.confidence), total, over=over))
    return rows


def _tested(
    ensemble: str,
    other: str,
    fields: Sequence[Field],
    values: Mapping[str, Mapping[str, Floats]],
    drawn: Mapping[str, Mapping[str, Floats]],
    settings: Settings,
) -> EnsembleTest:
    sets, gaps, draws, over = [], [], [], []
    for one in _counts_on(other, fields):
        a, b = values[one.name][ensemble], values[one.name][other]
        both = np.isfinite(a) & np.isfinite(b)
        sets.append((a[both], b[both], one.human[both], one.groups[both]))
        gaps.append(spearman(a[both], one.human[both]).value - spearman(b[both], one.human[both]).value)
        draws.append(drawn[one.name][ensemble] - drawn[one.name][other])
        over.append(one.name)
    test = permutation_test_over_sets(sets, resamples=max(settings.resamples, 1), seed=settings.seed)
    spread = interval(np.mean(draws, axis=0), settings.confidence) if draws else Interval(math.nan, math.nan, 0)
    difference = float(np.mean(gaps)) if gaps else math.nan
    better = sum(gap > 0 for gap in gaps)
    return EnsembleTest(ensemble, other, difference, spread, test.p, test.method, tuple(over), better)


def _verdicts(tests: Sequence[EnsembleTest], level: float) -> list[EnsembleOutcome]:
    """All tests of a form must succeed, so its weakest p counts; two forms are tried, hence Holm."""
    weakest = {}
    for name in DEPLOYABLE:
        own = [test for test in tests if test.ensemble == name and test.over]
        weakest[name] = max(own, key=lambda test: test.p if test.difference > 0 and math.isfinite(test.p) else 2.0)
    p = [test.p if test.difference > 0 and math.isfinite(test.p) else 1.0 for test in weakest.values()]
    return [
        EnsembleOutcome(name, bool(adjusted < level), float(adjusted), test.against)
        for (name, test), adjusted in zip(weakest.items(), holm(p), strict=True)
    ]
