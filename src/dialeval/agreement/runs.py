"""Many metrics on many benchmarks: compute what is missing, measure, compare."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.agreement.breakdowns import as_filter, halves_of, of_aspects, overall
from dialeval.agreement.comparisons import ComparedMetric, against_best, best_group, compared_statistic
from dialeval.agreement.judgements import Cut, view_of
from dialeval.agreement.measure import decide, measure
from dialeval.agreement.on_benchmark import Advance, MetricFailed, NotApplicable, OtherRows
from dialeval.agreement.prepare import (
    PreparedBenchmark,
    ScoredMetric,
    excluded_rows,
    open_benchmark,
    prepare,
    score_metric,
)
from dialeval.agreement.results import PairedTest, Panel, Report, Result, Skipped, result_of
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import Spec, ValueSource, find_sources
from dialeval.io.files import without_machine
from dialeval.registry.interface import Level
from dialeval.statistics.correlation import Floats
from dialeval.statistics.system_level import TooFewSystems

if TYPE_CHECKING:
    from dialeval.benchmarks import Benchmark

#: Where thresholds are searched unless another benchmark is named.
VALIDATION = "dailydialogpp_dev"


class Reporter:
    """Is told how a run goes; this one keeps it to itself."""

    def begin(self, metric: str, benchmark: str, rows: int) -> Advance:
        """A metric starts on a benchmark; what is returned is told how many rows were done."""
        return lambda done: None

    def say(self, text: str) -> None:
        """Something was left out."""


def run(
    metrics: Iterable[Spec | ValueSource],
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark],
    *,
    settings: Settings | None = None,
    values: Path | None = None,
    mirror: str | os.PathLike[str] | None = None,
    validation: str | os.PathLike[str] | Benchmark = VALIDATION,
    reporter: Reporter | None = None,
) -> Report:
    """Measure metrics on benchmarks.

    Args:
        metrics: names, `scores:` or `python:` texts (see `sources`), metrics, or functions of exchanges.
        benchmarks: names (`name@protocol` for another reading), files of rows, or loaded benchmarks.
        settings: every choice that may change a number.
        values: a folder in which computed values are kept and looked for; without it nothing is kept.
        mirror: a folder or address from which benchmark files are read instead of their origin.
        validation: where decision thresholds are searched.
        reporter: who is told how far the run is and what was left out.
    """
    return _Run(find_sources(metrics), settings or Settings(), values, mirror, validation, reporter or Reporter()).all(
        benchmarks
    )


@dataclasses.dataclass
class _Run:
    sources: Sequence[ValueSource]
    settings: Settings
    values: Path | None
    mirror: str | os.PathLike[str] | None
    validation: str | os.PathLike[str] | Benchmark
    reporter: Reporter

    def __post_init__(self) -> None:
        self.report = Report(self.settings)
        self._validation: list[PreparedBenchmark | None] = []
        self._validated: dict[str, ScoredMetric | None] = {}
        self._unmatched: set[str] = set()
        self._matched: set[str] = set()

    def all(self, benchmarks: Iterable[str | os.PathLike[str] | Benchmark]) -> Report:
        for wanted in benchmarks:
            if (stage := self._stage(wanted)) is not None:
                self._measure(stage)
        for source in self.sources:
            if source.name in self._unmatched and source.name not in self._matched:
                self._skip(source.name, "every benchmark", "its scores match none of their rows; check the ids")
        self.report.overall = overall(self.report.panels, self.settings)
        return self.report

    def _stage(
        self, wanted: str | os.PathLike[str] | Benchmark, settings: Settings | None = None
    ) -> PreparedBenchmark | None:
        from dialeval.benchmarks import Benchmark

        name = wanted.info.name if isinstance(wanted, Benchmark) else str(wanted)
        try:
            benchmark = wanted if isinstance(wanted, Benchmark) else open_benchmark(wanted, self.mirror)
            return prepare(benchmark, settings or self.settings)
        except (ValueError, OSError) as error:
            self._skip("*", name, str(error))
            return None

    def _measure(self, stage: PreparedBenchmark) -> None:
        scored = [metric for source in self.sources if (metric := self._scored_metric(source, stage)) is not None]
        columns = {entry.source.name: entry.column for entry in scored}
        info = stage.benchmark.info
        contaminated = frozenset(
            entry.source.name for entry in scored if entry.source.is_contaminated_by(info.name, info.contaminates)
        )
        questions = [(cut, self._answer(cut, scored, contaminated, stage)) for cut in stage.cuts]
        for entry in scored:
            self.report.aspects.extend(of_aspects(entry, stage, self.settings))
            self.report.filters.extend(as_filter(entry, stage, self.settings))
        self.report.panels.append(Panel(stage.judged, questions, columns, contaminated))

    def _scored_metric(self, source: ValueSource, stage: PreparedBenchmark) -> ScoredMetric | None:
        name = stage.benchmark.info.name
        advance = self.reporter.begin(source.name, name, len(stage.benchmark.dataset))
        try:
            scored = score_metric(source, stage, self.values, advance)
        except OtherRows:
            self._unmatched.add(source.name)
            return None
        except (NotApplicable, MetricFailed) as error:
            self._skip(source.name, name, str(error))
            return None
        self._matched.add(source.name)
        if out := excluded_rows(scored, stage):
            self.report.excluded.extend(out)
            self.reporter.say(f"{source.name} on {name}: {len(out)} rows left out; {out[0].id}: {out[0].problem}")
        return scored

    def _answer(
        self, cut: Cut, scored: Sequence[ScoredMetric], contaminated: frozenset[str], stage: PreparedBenchmark
    ) -> list[ComparedMetric]:
        judged, settings = stage.judged, self.settings
        rows: list[Result] = []
        entrants: list[ComparedMetric] = []
        for entry in scored:
            if entry.source.level is Level.SYSTEM and cut.level != "system":
                continue
            rows_to_search = partial(self._validation_rows, entry.source, cut, stage)
            decision = decide(entry.source, settings, rows_to_search) if cut.is_labelled else None
            view = view_of(entry.column, cut, judged)
            try:
                measured = measure(entry.source, view, cut, settings, decision, judged.info.written_by_people)
            except TooFewSystems as error:
                self._skip(entry.source.name, judged.info.name, str(error))
                continue
            rows.extend(result_of(each, entry.source, entry.values, cut, judged, settings) for each in measured)
            entrants.append(ComparedMetric(entry.source.name, entry.column))
        for entry in scored:
            if entry.source.name in contaminated and (leaked := entry.source.leaked_rows(judged.info.name)):
                self.report.halves += halves_of(entry.source, entry.column, cut, judged, settings, leaked)
        ranked = compared_statistic(cut)
        # Without an interval nobody knows what a number is worth, so it is not ranked.
        sure = {row.metric for row in rows if row.statistic == ranked and math.isfinite(row.low)}
        rivals = [entrant for entrant in entrants if entrant.name in sure - contaminated]
        tests = against_best(rivals, cut, judged, settings)
        info = judged.info
        self.report.tests.extend(PairedTest(info.name, info.protocol, cut.level, cut.aspect, test) for test in tests)
        group = best_group(tests, 1 - settings.confidence)
        self.report.results.extend(
            dataclasses.replace(row, in_best_group=row.metric in group and row.can_be_best)
            if tests and row.statistic == ranked
            else row
            for row in rows
        )
        return entrants

    def _validation_rows(self, source: ValueSource, cut: Cut, stage: PreparedBenchmark) -> tuple[Floats, Floats] | None:
        """The metric's values and the labels where a threshold may be searched: never on the rows it is used on."""
        if not self._validation:
            self._validation.append(
                self._stage(self.validation, dataclasses.replace(self.settings, subset=None, exclusion=None))
            )
        other = self._validation[0]
        twin = next((question for question in other.cuts if question.aspect == cut.aspect), None) if other else None
        if other is None or twin is None or other.benchmark.info.revision == stage.benchmark.info.revision:
            return None
        if source.name not in self._validated:
            self._validated[source.name] = self._scored_metric(source, other)
        entry = self._validated[source.name]
        if entry is None:
            return None
        view = view_of(entry.column, twin, other.judged)
        return view.values, view.human

    def _skip(self, metric: str, benchmark: str, reason: str) -> None:
        skipped = Skipped(metric, without_machine(benchmark), without_machine(reason))
        if skipped not in self.report.skipped:
            self.report.skipped.append(skipped)
            who = "every metric" if metric == "*" else metric
            self.reporter.say(f"{who} left out on {benchmark}: {reason}")
