"""Two metrics on the same question: which agrees better, and could that be chance?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.judgements import Cut, Judgements, View, view_of
from dialeval.agreement.settings import Settings
from dialeval.statistics.bootstrap import number_groups
from dialeval.statistics.correlation import CORRELATIONS, Floats
from dialeval.statistics.paired_tests import Swappable, holm, permutation_test
from dialeval.statistics.system_level import system_means

#: A metric must have values for this share of a question's rows to be ranked.
_RANKED_SHARE = 0.8


@dataclass(frozen=True)
class ComparedMetric:
    """A metric that takes part in a comparison, and its values, higher better."""

    name: str
    values: Floats


@dataclass(frozen=True)
class Compared:
    """The difference of two metrics in one statistic, on the rows that both of them judged."""

    first: str
    second: str
    statistic: str
    value_first: float
    value_second: float
    difference: float
    p: float
    method: str
    n: int
    n_groups: int
    p_adjusted: float = math.nan


def compared_statistic(cut: Cut) -> str:
    """The statistic by which metrics are ranked on a question: Spearman, which no monotone change of scale alters."""
    if cut.is_labelled:
        return "point_biserial"
    return "spearman" if "spearman" in cut.statistics or "pearson" not in cut.statistics else "pearson"


def common_views(first: ComparedMetric, second: ComparedMetric, cut: Cut, judged: Judgements) -> tuple[View, View]:
    """Both metrics on the rows that both have values for."""
    both = np.isfinite(first.values) & np.isfinite(second.values)
    a, b = (np.where(both, entrant.values, np.nan) for entrant in (first, second))
    return view_of(a, cut, judged), view_of(b, cut, judged)


def compare(
    first: ComparedMetric, second: ComparedMetric, cut: Cut, judged: Judgements, settings: Settings
) -> Compared:
    """The permutation test. At the system level whole systems are swapped, otherwise whole contexts."""
    name = compared_statistic(cut)
    a, b = common_views(first, second, cut, judged)
    x, y, human, blocks = _points(a, b, cut)
    kind: Swappable = "spearman" if name == "spearman" else "pearson"
    measure = CORRELATIONS[kind]
    test = permutation_test(
        x, y, human, blocks, statistic=kind, resamples=max(settings.resamples, 1), seed=settings.seed
    )
    values = measure(x, human).value, measure(y, human).value
    return Compared(
        first.name, second.name, name, *values, values[0] - values[1], test.p, test.method, len(x), len(set(blocks))
    )


def _points(a: View, b: View, cut: Cut) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    if cut.level != "system":
        return a.values, b.values, a.human, number_groups(a.groups.tolist())
    names = [str(system) for system in a.systems]
    x, y, human = (system_means(column, names)[1] for column in (a.values, b.values, a.human))
    return x, y, human, np.arange(len(x), dtype=np.intp)


def against_best(
    entrants: Sequence[ComparedMetric], cut: Cut, judged: Judgements, settings: Settings
) -> list[Compared]:
    """The best metric against each other one, p-values corrected for their number.

    Metrics that are not significantly worse than the best form the best group of a leaderboard. One
    that judged only a part of the rows is not ranked: a few rows can look like anything.
    """
    statistic = compared_statistic(cut)
    values = {entrant.name: _value(entrant, cut, judged, statistic) for entrant in entrants}
    ranked = [entrant for entrant in entrants if math.isfinite(values[entrant.name])]
    if len(ranked) < 2:
        return []
    best = max(ranked, key=lambda entrant: values[entrant.name])
    tests = [compare(best, other, cut, judged, settings) for other in ranked if other is not best]
    adjusted = holm([test.p for test in tests])
    return [replace(test, p_adjusted=float(p)) for test, p in zip(tests, adjusted, strict=True)]


def best_group(tests: Sequence[Compared], level: float) -> set[str]:
    """The best metric, and those that are not significantly worse than it."""
    return {test.first for test in tests} | {test.second for test in tests if not test.p_adjusted < level}


def _value(entrant: ComparedMetric, cut: Cut, judged: Judgements, statistic: str) -> float:
    view = view_of(entrant.values, cut, judged)
    if len(view.values) < _RANKED_SHARE * len(cut.rows):
        return math.nan
    x, _, human, _ = _points(view, view, cut)
    return CORRELATIONS["pearson" if statistic == "point_biserial" else statistic](x, human).value
