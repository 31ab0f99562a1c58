"""Every aspect that people judged against every aspect that a metric judges, whichever of them a table ranks by."""

from __future__ import annotations

import dataclasses

import numpy as np

from dialeval.agreement.comparisons import compared_statistic
from dialeval.agreement.cuts import cuts, view_of
from dialeval.agreement.judgements import judgements
from dialeval.agreement.measure import measure
from dialeval.agreement.prepare import PreparedBenchmark, ScoredMetric
from dialeval.agreement.record import result_of
from dialeval.agreement.results import Result
from dialeval.agreement.settings import Settings
from dialeval.metric import Level


def of_aspects(one: ScoredMetric, stage: PreparedBenchmark, settings: Settings) -> list[Result]:
    """The ranking statistic of a metric's value and aspects on all aspects of a benchmark; nothing without aspects.

    A row that lacks an aspect is left out of that aspect's numbers and never counts as 0.
    """
    info = stage.benchmark.info
    names = one.source.aspects_at(Level.DIALOGUE if info.level == "dialogue" else Level.TURN)
    if not names or info.kind != "ratings":
        return []
    every = dataclasses.replace(settings, aspects=("all",), levels="own")
    judged = judgements(stage.benchmark, stage.selected, every)
    counts = np.isfinite(one.column)
    columns = {"": one.column}
    columns |= {name: np.where(counts, one.values.column(judged.ids, name), np.nan) for name in names}
    found: list[Result] = []
    for cut in cuts(judged, every):
        ranked = dataclasses.replace(cut, statistics=(compared_statistic(cut),))
        for name, column in columns.items():
            view = view_of(column, ranked, judged)
            for each in measure(one.source, view, ranked, settings, people=info.written_by_people):
                result = result_of(each, one.source, one.values, ranked, judged, settings)
                found.append(_named(result, name) if name else result)
    return found


def _named(result: Result, aspect: str) -> Result:
    """The result of an aspect; of those more is better, whatever the metric's own direction."""
    return dataclasses.replace(
        result, metric_aspect=aspect, higher_is_better=True, signature=f"{result.signature}|metric_aspect:{aspect}"
    )
