"""One metric against every other on the mean over benchmarks: which agrees best altogether, and could that be chance?

The test speaks about these benchmarks: contexts are swapped within each of them, the set of benchmarks stays. A
metric does not count where it was trained on the benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialeval.agreement.comparisons import ComparedMetric, common_views
from dialeval.agreement.judgements import Cut
from dialeval.agreement.results import Overall, Panel
from dialeval.agreement.settings import Settings
from dialeval.statistics.bootstrap import bootstrap, interval, number_groups
from dialeval.statistics.corrections import holm
from dialeval.statistics.correlation import spearman
from dialeval.statistics.paired_tests import permutation_test_over_sets
from dialeval.statistics.resampled import spearman_of

#: Below this a mean over benchmarks says nothing that their own tables do not.
AT_LEAST = 3


@dataclass(frozen=True)
class _Question:
    """The main question of one benchmark, and the metrics that count there."""

    panel: Panel
    cut: Cut
    entrants: dict[str, ComparedMetric]

    @property
    def name(self) -> str:
        return self.panel.judged.info.name


def overall(panels: Sequence[Panel], settings: Settings) -> list[Overall]:
    """A row per metric, the leader first; none for fewer than three benchmarks or without a metric that counts on all.

    The leader is the metric with the highest mean of those that count on as many benchmarks as any does.
    """
    questions = [found for panel in panels if (found := _question(panel)) is not None]
    names = list(dict.fromkeys(name for question in questions for name in question.entrants))
    counted = {name: [question for question in questions if name in question.entrants] for name in names}
    most = max(map(len, counted.values()), default=0)
    if most < AT_LEAST:
        return []
    means = {name: float(np.mean([_value(name, question) for question in over])) for name, over in counted.items()}
    leader = max((name for name in names if len(counted[name]) == most), key=lambda name: means[name])
    rows = [
        _against(
            name, leader, means[name], [question for question in counted[name] if leader in question.entrants], settings
        )
        for name in sorted(names, key=lambda name: -means[name])
        if name != leader and len(counted[name]) >= AT_LEAST
    ]
    tested = [row.metric for row in rows if row.p is not None]
    adjusted = dict(zip(tested, holm([row.p for row in rows if row.p is not None]), strict=True)) if tested else {}
    first = Overall(leader, leader, means[leader], None, None, None, None, None, 0, _names(counted[leader]))
    return [first, *(replace(row, p_adjusted=_known(adjusted.get(row.metric, math.nan))) for row in rows)]


def _question(panel: Panel) -> _Question | None:
    """The first question about replies or dialogues that is answered by rank correlation."""
    for cut, entrants in panel.questions:
        if cut.level != "system" and "spearman" in cut.statistics:
            counting = {entrant.name: entrant for entrant in entrants if entrant.name not in panel.contaminated}
            return _Question(
                panel, cut, {name: entrant for name, entrant in counting.items() if _defined(entrant, cut, panel)}
            )
    return None


def _defined(entrant: ComparedMetric, cut: Cut, panel: Panel) -> bool:
    view, _ = common_views(entrant, entrant, cut, panel.judged)
    return len(view.values) > 2 and math.isfinite(spearman(view.values, view.human).value)


def _value(name: str, question: _Question) -> float:
    view, _ = common_views(question.entrants[name], question.entrants[name], question.cut, question.panel.judged)
    return float(spearman(view.values, view.human).value)


def _against(name: str, leader: str, mean: float, over: Sequence[_Question], settings: Settings) -> Overall:
    sets, gaps, draws = [], [], []
    for number, question in enumerate(over):
        a, b = common_views(question.entrants[leader], question.entrants[name], question.cut, question.panel.judged)
        groups = number_groups(a.groups.tolist())
        sets.append((a.values, b.values, a.human, groups))
        gaps.append(spearman(a.values, a.human).value - spearman(b.values, b.human).value)
        count = int(groups.max()) + 1
        statistics = {
            "leader": spearman_of(a.values, a.human, groups, count),
            "other": spearman_of(b.values, b.human, groups, count),
        }
        drawn = bootstrap(
            statistics, count, resamples=settings.resamples, seed=settings.seed + number, rows=len(a.values)
        )
        draws.append(drawn["leader"] - drawn["other"])
    test = permutation_test_over_sets(sets, resamples=max(settings.resamples, 1), seed=settings.seed)
    spread = interval(np.mean(draws, axis=0), settings.confidence)
    better = sum(gap > 0 for gap in gaps)
    difference = float(np.mean(gaps))
    ends = _known(spread.low), _known(spread.high)
    return Overall(name, leader, mean, difference, *ends, _known(test.p), None, better, _names(over))


def _names(questions: Sequence[_Question]) -> tuple[str, ...]:
    return tuple(question.name for question in questions)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def overall_table(rows: Sequence[Overall]) -> tuple[list[str], list[list[str]]]:
    """Header and cells."""
    leader = rows[0].leader
    header = ["metric", "mean", f"{leader} minus it", "p", "p, corrected", f"{leader} is better on"]
    return header, [list(_cells(row)) for row in rows]


def _cells(row: Overall) -> tuple[str, ...]:
    if row.difference is None:
        return row.metric, f"{row.mean:.3f}", "", "", "", ""
    difference = f"{row.difference:+.3f} [{_end(row.low)}, {_end(row.high)}]"
    tested = (_end(row.p, digits=4), _end(row.p_adjusted, digits=4))
    return row.metric, f"{row.mean:.3f}", difference, *tested, f"{row.better_on} of {len(row.over)}"


def _end(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


ABOUT_OVERALL = (
    "Mean Spearman correlation over the benchmarks where a metric counts: not where it was trained on them. The "
    "difference from the first row is taken on the benchmarks of both; its interval and test resample or swap contexts "
    "within each benchmark, so they speak about these benchmarks and not about others."
)
