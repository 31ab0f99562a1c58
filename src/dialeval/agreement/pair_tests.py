"""Two metrics side by side: every paired test there is for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.agreement.comparisons import (
    ComparedMetric,
    accuracy_tests,
    common_views,
    compare,
    difference_interval,
    measured_on,
    williams_on,
)
from dialeval.agreement.judgements import Cut
from dialeval.agreement.results import Panel
from dialeval.agreement.settings import Settings
from dialeval.statistics.discrimination import accuracy, auc
from dialeval.statistics.resampled import MOST_GROUPS_FOR_KENDALL


@dataclass(frozen=True)
class PairTestRow:
    """One statistic of both, their difference with its interval, and the p-values of the tests that apply."""

    question: str
    statistic: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p: Mapping[str, float]
    n: int

    def verdict(self, first: str, second: str, level: float) -> str:
        """Who agrees more with people, by the first test that applies."""
        p = next((one for one in self.p.values() if math.isfinite(one)), math.nan)
        if math.isnan(p):
            return "not tested"
        if p >= level or self.difference == 0:
            return "cannot be told apart"
        return f"{first if self.difference > 0 else second} agrees more"


def pair_tests(panel: Panel, first: str, second: str, settings: Settings) -> list[PairTestRow]:
    """All statistics of two metrics on a benchmark, on the rows that both judged."""
    lines: list[PairTestRow] = []
    for cut, entrants in panel.questions:
        by_name = {entrant.name: entrant for entrant in entrants}
        if first in by_name and second in by_name:
            a, b = by_name[first], by_name[second]
            name = f"{panel.judged.info.name}, {cut.level} level, {cut.aspect}"
            if contaminated := sorted({first, second} & panel.contaminated):
                name += f" († {' and '.join(contaminated)} trained on it)"
            lines += [line for one in cut.statistics if (line := _line(name, one, a, b, cut, panel, settings))]
    return lines


def _line(
    question: str, statistic: str, a: ComparedMetric, b: ComparedMetric, cut: Cut, panel: Panel, settings: Settings
) -> PairTestRow | None:
    judged = panel.judged
    view_a, view_b = common_views(a, b, cut, judged)
    n = len(view_a.named_systems) if cut.level == "system" else len(view_a.values)
    if statistic == "accuracy":
        if a.decision is None or b.decision is None:
            return None
        x, y = (
            accuracy(view.human, view.values, decision.threshold).value
            for view, decision in ((view_a, a.decision), (view_b, b.decision))
        )
        paired, unpaired = accuracy_tests(a, b, cut, judged)
        p = {"McNemar": paired.p, "chi-square": unpaired.p}
        return PairTestRow(question, statistic, x, y, x - y, math.nan, math.nan, p, n)
    low, high = math.nan, math.nan
    if "kendall" not in statistic or judged.n_groups <= MOST_GROUPS_FOR_KENDALL:
        low, high = difference_interval(a, b, cut, judged, settings, statistic)
    if statistic == "auc":
        x, y = (auc(view.human, view.values).value for view in (view_a, view_b))
        return PairTestRow(question, statistic, x, y, x - y, low, high, {}, n)
    p = {"Williams": williams_on(a, b, cut, judged, statistic).p}
    if statistic in ("pearson", "spearman", "point_biserial"):
        p = {"permutation": compare(a, b, cut, judged, settings, statistic).p, **p}
    x, y = (measured_on(view, cut, statistic) for view in (view_a, view_b))
    return PairTestRow(question, statistic, x, y, x - y, low, high, p, n)
