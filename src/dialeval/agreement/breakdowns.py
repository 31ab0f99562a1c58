"""Breakdowns: every aspect of people against every aspect of a metric; rows that it was trained on, apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from dialeval.agreement.comparisons import compared_statistic
from dialeval.agreement.judgements import Cut, Judgements, cuts, judgements, view_of
from dialeval.agreement.leaderboard import TITLES, Section, number
from dialeval.agreement.measure import measure
from dialeval.agreement.prepare import PreparedBenchmark, ScoredMetric
from dialeval.agreement.record import result_of
from dialeval.agreement.results import Half, Result
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.registry.metric import Level
from dialeval.statistics.correlation import Floats


def of_aspects(scored: ScoredMetric, stage: PreparedBenchmark, settings: Settings) -> list[Result]:
    """The ranking statistic of a metric's value and aspects on all aspects of a benchmark; nothing without aspects.

    A row that lacks an aspect is left out of that aspect's numbers and never counts as 0.
    """
    info = stage.benchmark.info
    names = scored.source.aspects_at(Level.DIALOGUE if info.level == "dialogue" else Level.TURN)
    if not names or info.kind != "ratings":
        return []
    every = dataclasses.replace(settings, aspects=("all",), levels="own")
    judged = judgements(stage.benchmark, stage.selected, every)
    counts = np.isfinite(scored.column)
    columns = {"": scored.column}
    columns |= {name: np.where(counts, scored.values.column(judged.ids, name), np.nan) for name in names}
    results: list[Result] = []
    for cut in cuts(judged, every):
        ranked = dataclasses.replace(cut, statistics=(compared_statistic(cut),))
        for name, column in columns.items():
            view = view_of(column, ranked, judged)
            for each in measure(scored.source, view, ranked, settings, people=info.written_by_people):
                result = result_of(each, scored.source, scored.values, ranked, judged, settings)
                results.append(_named(result, name) if name else result)
    return results


def _named(result: Result, aspect: str) -> Result:
    """The result of an aspect; of those more is better, whatever the metric's own direction."""
    return dataclasses.replace(
        result, metric_aspect=aspect, higher_is_better=True, signature=f"{result.signature}|metric_aspect:{aspect}"
    )


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
        value, low, high = (
            each if math.isfinite(each) else None for each in (measured.value, measured.low, measured.high)
        )
        question = (source.name, info.name, info.protocol, cut.level, cut.aspect, name)
        both.append(Half(*question, is_leaked, value, low, high, measured.n))
    return both


def halves_lines(halves: Iterable[Half], section: Section) -> Sequence[str]:
    """A sentence for each contaminated metric of a section."""
    of_section = [
        half
        for half in halves
        if (half.benchmark, half.protocol, half.level, half.aspect)
        == (section.benchmark, section.protocol, section.level, section.aspect)
    ]
    lines = []
    for metric in dict.fromkeys(half.metric for half in of_section):
        parts = {half.leaked: half for half in of_section if half.metric == metric}
        lines.append(
            f"{metric} †, {TITLES[parts[True].statistic]}: {_number(parts[True])} on the {parts[True].n} rows "
            f"whose text it was trained on, {_number(parts[False])} on the {parts[False].n} others"
        )
    return lines


def _number(half: Half) -> str:
    if half.value is None:
        return number(math.nan)
    interval = "" if half.low is None or half.high is None else f" [{number(half.low)}, {number(half.high)}]"
    return f"{number(half.value)}{interval}"
