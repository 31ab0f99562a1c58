"""Benchmarks made ready for metrics, and metrics beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.agreement.judgements import Cut, Judgements, column_of, cuts, judgements
from dialeval.agreement.on_benchmark import Advance, NotApplicable, values_of
from dialeval.agreement.results import Excluded
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.io.files import without_machine
from dialeval.registry.interface import Level
from dialeval.statistics.correlation import Floats

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks import Benchmark


@dataclass(frozen=True)
class PreparedBenchmark:
    """A benchmark ready for metrics: its rows, those that count, and the questions put to it."""

    benchmark: Benchmark
    selected: Dataset
    judged: Judgements
    cuts: Sequence[Cut]


@dataclass(frozen=True)
class ScoredMetric:
    """A metric with its values on a benchmark."""

    source: ValueSource
    values: Values
    column: Floats


def prepare(benchmark: Benchmark, settings: Settings) -> PreparedBenchmark:
    """Select the rows that count and find the questions that can be asked of them."""
    if benchmark.info.kind == "pairs":
        raise NotApplicable("it has no human scores; use it with `dialeval robustness`")
    # Metrics usually get facts, but not the turn that follows, which is still to come.
    withheld = [
        name for name, is_given in (("facts", settings.facts), ("following", settings.following)) if not is_given
    ]
    columns = [name for name in withheld if name in benchmark.dataset.column_names]
    benchmark = replace(benchmark, dataset=benchmark.dataset.remove_columns(columns))
    selected = benchmark.select(exclusion=settings.exclusion, subset=settings.subset)
    judged = judgements(benchmark, selected, settings)
    questions = cuts(judged, settings)
    if not questions:
        raise NotApplicable("these settings leave nothing to compare")
    return PreparedBenchmark(benchmark, selected, judged, questions)


def score_metric(source: ValueSource, stage: PreparedBenchmark, folder: Path | None, advance: Advance) -> ScoredMetric:
    """Get a metric's values on a benchmark; `NotApplicable` or `MetricFailed` where there can be none."""
    over_systems = source.level is Level.SYSTEM
    if over_systems and all(cut.level != "system" for cut in stage.cuts):
        raise NotApplicable("it judges systems, and there are too few")
    # What a system is worth depends on its rows, so such a metric sees only those that count.
    dataset = stage.selected if over_systems else stage.benchmark.dataset
    values = values_of(source, stage.benchmark.info, dataset, folder, advance)
    return ScoredMetric(source, values, column_of(source, stage.judged, values))


def excluded_rows(scored: ScoredMetric, stage: PreparedBenchmark) -> list[Excluded]:
    """The rows that count but for which the metric has no value."""
    judged, source = stage.judged, scored.source
    relevant = {*judged.ids, *(judged.named_systems if source.level is Level.SYSTEM else ())}
    problems = scored.values.problems.items()
    return [
        Excluded(source.name, judged.info.name, key, without_machine(why)) for key, why in problems if key in relevant
    ]


def open_benchmark(wanted: str | os.PathLike[str], mirror: str | os.PathLike[str] | None) -> Benchmark:
    """A benchmark by name, by `name@protocol`, or from a file."""
    from dialeval import benchmarks

    if isinstance(wanted, str) and "@" in wanted and not Path(wanted).exists():
        name, _, protocol = wanted.partition("@")
        return benchmarks.load(name, protocol=protocol, mirror=mirror)
    return benchmarks.load(wanted, mirror=mirror)


def every_benchmark() -> list[str]:
    """What people judged, each row once: no attacks (`dialeval robustness`), other readings or training material."""
    from dialeval import benchmarks

    known = ((name, benchmarks.info(name)) for name in benchmarks.available())
    return [name for name, info in known if info.kind != "pairs" and info.tells_apart and not info.repeats]


def benchmark_names(wanted: Sequence[str]) -> list[str]:
    """The names asked for, each once; `all` and first words such as `fbd@clean` written out, unknown refused."""
    return list(dict.fromkeys(name for text in wanted for name in _written_out(text)))


def _written_out(wanted: str) -> list[str]:
    from dialeval import benchmarks

    if wanted == "all":
        return every_benchmark()
    word, sign, protocol = wanted.partition("@")
    known = benchmarks.available()
    family = [name for name in known if name.startswith(f"{word}_")] if word not in known else []
    names = [f"{name}{sign}{protocol}" for name in family] or [wanted]
    for name in (name for name in names if not Path(name).expanduser().exists()):
        if name.endswith(benchmarks.SUFFIXES):
            raise FileNotFoundError(f"there is no file {name}")
        benchmarks.info(name.partition("@")[0], protocol or None)
    return names
