"""Breakdowns of agreement: by aspect, by rows that a metric was trained on, over all benchmarks, and as a filter."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialeval.agreement.comparisons import ComparedMetric, common_views, compared_statistic
from dialeval.agreement.judgements import Cut, Judgements, View, cuts, judgements, view_of
from dialeval.agreement.measure import measure
from dialeval.agreement.prepare import PreparedBenchmark, ScoredMetric
from dialeval.agreement.results import PRECISE, Filtering, Half, Overall, Panel, Result, result_of
from dialeval.agreement.sections import TITLES, Section, between
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.benchmarks.benchmark import OWN_FILE
from dialeval.registry.interface import Level
from dialeval.statistics.bootstrap import bootstrap, interval, number_groups, spearman_of
from dialeval.statistics.correlation import Floats, spearman
from dialeval.statistics.paired_tests import holm, permutation_test_over_sets


def of_aspects(scored: ScoredMetric, stage: PreparedBenchmark, settings: Settings) -> list[Result]:
    """The ranking statistic of a metric's value and aspects on all aspects of a benchmark; nothing without aspects.

    A row that lacks an aspect is left out of that aspect's numbers and never counts as 0.
    """
    info = stage.benchmark.info
    names = scored.source.aspects_at(Level.DIALOGUE if info.level == "dialogue" else Level.TURN)
    if not names or info.kind != "ratings":
        return []
    every = replace(settings, aspects=("all",), levels="own")
    judged = judgements(stage.benchmark, stage.selected, every)
    counts = np.isfinite(scored.column)
    columns = {"": scored.column}
    turned = 1.0 if scored.source.higher_is_better else -1.0
    columns |= {name: np.where(counts, turned * scored.values.column(judged.ids, name), np.nan) for name in names}
    results: list[Result] = []
    for cut in cuts(judged, every):
        ranked = replace(cut, statistics=(compared_statistic(cut),))
        for name, column in columns.items():
            view = view_of(column, ranked, judged)
            for each in measure(scored.source, view, ranked, settings, people=info.written_by_people):
                result = result_of(each, scored.source, scored.values, ranked, judged, settings)
                signature = f"{result.signature}|metric_aspect:{name}" if name else result.signature
                results.append(replace(result, metric_aspect=name, signature=signature))
    return results


def halves_of(
    source: ValueSource, column: Floats, cut: Cut, judged: Judgements, settings: Settings, leaked: Collection[str]
) -> list[Half]:
    """Both halves by the statistic that orders tables; none where one of them is empty, and none over systems."""
    known = np.isin(np.array(judged.ids, dtype=object)[cut.rows].astype(str), list(leaked))
    if cut.level == "system" or known.all() or not known.any():
        return []
    name, info = compared_statistic(cut), judged.info
    both = []
    for is_leaked in (True, False):
        part = known if is_leaked else ~known
        half = replace(cut, rows=cut.rows[part], human=cut.human[part], statistics=(name,))
        (measured,) = measure(source, view_of(column, half, judged), half, settings)
        question = (source.name, info.name, info.protocol, cut.level, cut.aspect, name)
        value, low, high = map(_known, (measured.value, measured.low, measured.high))
        both.append(Half(*question, is_leaked, value, low, high, measured.n))
    return both


def halves_lines(halves: Iterable[Half], section: Section) -> Sequence[str]:
    """A sentence for each contaminated metric of a section."""
    question = (section.benchmark, section.protocol, section.level, section.aspect)
    of_section = [half for half in halves if (half.benchmark, half.protocol, half.level, half.aspect) == question]
    lines = []
    for metric in dict.fromkeys(half.metric for half in of_section):
        parts = {half.leaked: half for half in of_section if half.metric == metric}
        lines.append(
            f"{metric} †, {TITLES[parts[True].statistic]}: {_number(parts[True])} on the {parts[True].n} rows "
            f"whose text it was trained on, {_number(parts[False])} on the {parts[False].n} others"
        )
    return lines


def _number(half: Half) -> str:
    return between(*(math.nan if value is None else value for value in (half.value, half.low, half.high)))


# One metric against every other on the mean over benchmarks: which agrees best altogether, and could that be chance?
# The test speaks about these benchmarks: contexts are swapped within each of them, the set of benchmarks stays. A
# metric does not count where it was trained on the benchmark.

#: Below this a mean over benchmarks says nothing that their own tables do not.
AT_LEAST = 3


@dataclass(frozen=True)
class _Question:
    """The main question of one benchmark, and the metrics that count there."""

    panel: Panel
    cut: Cut
    entrants: dict[str, ComparedMetric]


def overall(panels: Sequence[Panel], settings: Settings) -> list[Overall]:
    """A row per metric, the leader first; none for fewer than three benchmarks or without a metric that counts on all.

    The leader is the metric with the highest mean of those that count on as many benchmarks as any does.
    """
    questions = [question for panel in panels if (question := _question(panel)) is not None]
    names = list(dict.fromkeys(name for question in questions for name in question.entrants))
    counted = {name: [question for question in questions if name in question.entrants] for name in names}
    most = max(map(len, counted.values()), default=0)
    if most < AT_LEAST:
        return []
    means = {name: float(np.mean([_value(name, question) for question in over])) for name, over in counted.items()}
    leader = max((name for name in names if len(counted[name]) == most), key=lambda name: means[name])
    rows = [
        _against(name, leader, means[name], counted[name], settings)
        for name in sorted(names, key=lambda name: -means[name])
        if name != leader and len(counted[name]) >= AT_LEAST
    ]
    adjusted = holm([math.nan if row.p is None else row.p for row in rows])
    first = Overall(leader, leader, means[leader], None, None, None, None, None, 0, _names(counted[leader]))
    return [first, *(replace(row, p_adjusted=_known(p)) for row, p in zip(rows, adjusted, strict=True))]


def _question(panel: Panel) -> _Question | None:
    """The first question about replies or dialogues that is answered by rank correlation."""
    for cut, entrants in panel.questions:
        if cut.level != "system" and "spearman" in cut.statistics:
            every = {entrant.name: entrant for entrant in entrants if entrant.name not in panel.contaminated}
            question = _Question(panel, cut, every)
            defined = {name: entrant for name, entrant in every.items() if math.isfinite(_value(name, question))}
            return replace(question, entrants=defined)
    return None


def _value(name: str, question: _Question) -> float:
    """Spearman's correlation; NaN of fewer than three rows, too, which always lie on a line."""
    view, _ = common_views(question.entrants[name], question.entrants[name], question.cut, question.panel.judged)
    return float(spearman(view.values, view.human).value) if len(view.values) > 2 else math.nan


def _against(name: str, leader: str, mean: float, counted: Sequence[_Question], settings: Settings) -> Overall:
    over = [question for question in counted if leader in question.entrants]
    sets, gaps, draws = [], [], []
    for place, question in enumerate(over):
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
            statistics, count, resamples=settings.resamples, seed=settings.seed + place, rows=len(a.values)
        )
        draws.append(drawn["leader"] - drawn["other"])
    test = permutation_test_over_sets(sets, resamples=max(settings.resamples, 1), seed=settings.seed)
    spread = interval(np.mean(draws, axis=0), settings.confidence)
    low, high, p = map(_known, (spread.low, spread.high, test.p))
    better = sum(gap > 0 for gap in gaps)
    return Overall(name, leader, mean, float(np.mean(gaps)), low, high, p, None, better, _names(over))


def _names(questions: Sequence[_Question]) -> tuple[str, ...]:
    return tuple(question.panel.judged.info.name for question in questions)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def overall_table(rows: Sequence[Overall]) -> tuple[list[str], list[list[str]]]:
    """Header and cells."""
    leader = rows[0].leader
    header = ["metric", "mean", f"{leader} minus it", "p", "p, corrected", f"{leader} is better on"]
    cells = []
    for row in rows:
        compared = [""] * 4
        if row.difference is not None:
            difference = f"{row.difference:+.3f} [{_end(row.low)}, {_end(row.high)}]"
            compared = [difference, _end(row.p, digits=4), _end(row.p_adjusted, digits=4)]
            compared.append(f"{row.better_on} of {len(row.over)}")
        cells.append([row.metric, f"{row.mean:.3f}", *compared])
    return header, cells


def _end(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


ABOUT_OVERALL = (
    "Mean Spearman correlation over the benchmarks where a metric counts: not where it was trained on them. The "
    "difference from the first row is taken on the benchmarks of both; its interval and test resample or swap contexts "
    "within each benchmark, so they speak about these benchmarks and not about others."
)


# What a metric is worth as a filter, on ratings of one's own: does its worst tenth hold what people rated worst, and do
# both agree on what lies below a threshold?

#: The part of the rows that a filter sets aside.
WORST = 0.1


def as_filter(scored: ScoredMetric, stage: PreparedBenchmark, settings: Settings) -> list[Filtering]:
    """A metric as a filter on a user's own ratings; nothing for the known benchmarks and for labels."""
    info = stage.benchmark.info
    if info.kind != "ratings" or not any(source.repository == OWN_FILE for source in info.sources):
        return []
    filterings = []
    for cut in cuts(stage.judged, settings):
        view = view_of(scored.column, cut, stage.judged)
        if cut.level == "system" or len(view.values) < 2:
            continue
        scale = info.aspects[cut.aspect]
        sign = 1.0 if scored.source.higher_is_better else -1.0
        filterings.append(_filtering((scored.source.name, info.name, cut.aspect), view, scale.middle, sign, settings))
    return filterings


def _filtering(names: tuple[str, str, str], view: View, bad_below: float, sign: float, settings: Settings) -> Filtering:
    n = len(view.values)
    n_worst = max(1, round(WORST * n))
    order = np.argsort(view.values, kind="stable")
    is_worst = view.human <= np.sort(view.human)[n_worst - 1]
    bad = view.human < bad_below
    n_bad = int(bad.sum())
    marked = np.zeros(n, dtype=bool)
    marked[order[:n_bad]] = True
    edges = view.values[order[max(0, n_bad - 1) : n_bad + 1]]
    cells = np.stack([np.bincount(view.groups, both, view.n_groups) for both in (
        bad & marked, bad & ~marked, ~bad & marked, ~bad & ~marked
    )], axis=1)  # fmt: skip
    kappa = float(_kappa(cells.sum(axis=0)[None])[0])
    spread = interval(np.empty(0))
    if math.isfinite(kappa) and settings.resamples:
        drawn = bootstrap(
            {"": lambda counts: _kappa(counts @ cells)}, view.n_groups, resamples=settings.resamples, seed=settings.seed
        )
        spread = interval(drawn[""], settings.confidence)
    needed = n * ((spread.high - spread.low) / 2 / PRECISE) ** 2
    return Filtering(
        *names, n, n_worst, int(is_worst[order[:n_worst]].sum()), n_worst * float(is_worst.mean()), bad_below,
        n_bad / n, sign * float(edges.mean()), kappa, spread.low, spread.high,
        math.ceil(needed / 10) * 10 if math.isfinite(needed) else None,
    )  # fmt: skip


def _kappa(cells: Floats) -> Floats:
    """Cohen's kappa of rows of four counts: both, first only, second only, neither."""
    both, first, second, neither = cells.T
    with np.errstate(divide="ignore", invalid="ignore"):
        n = cells.sum(axis=1)
        agreed = (both + neither) / n
        chance = ((both + first) * (both + second) + (neither + second) * (neither + first)) / n**2
        return np.asarray((agreed - chance) / (1 - chance))
