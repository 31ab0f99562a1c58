"""What a run leaves behind: one tidy table, whose rows say how they came about, the paired tests, what was left out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialeval.agreement.comparisons import Compared, ComparedMetric
from dialeval.agreement.judgements import Cut, Judgements
from dialeval.agreement.measure import Measured
from dialeval.agreement.settings import Settings, inputs_in_words
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.core.scores import Signature
from dialeval.io.files import plain, read_json_lines, write_atomically
from dialeval.io.harmless import json_text
from dialeval.statistics import raters
from dialeval.statistics.correlation import Floats
from dialeval.version import __version__

#: Between them stands the metric's own signature in that of a number.
METRIC_PART, END_OF_METRIC = "|metric:[", "]|dialeval:"


@dataclass(frozen=True, kw_only=True)
class Result(Measured):
    """One row of the table: one number, and everything that it must not be shown without."""

    metric: str
    benchmark: str
    protocol: str
    level: str
    aspect: str
    n_left_out: int
    contaminated: bool
    in_best_group: bool | None
    ceiling: float
    attainable: float
    alpha: float
    n_truncated: int
    n_empty: int
    higher_is_better: bool
    selection: str
    signature: str
    revision: str
    #: Which of the metric's aspects was measured; its own value has no name.
    metric_aspect: str = ""
    #: Dollars and seconds that judging took, for each row that was judged, where a metric tells.
    cost_per_row: float = math.nan
    seconds_per_row: float = math.nan

    def to_row(self) -> dict[str, Any]:
        """Plain values, what was asked first; NaN is None."""
        row = dataclasses.asdict(self)
        asked = ("metric", "benchmark", "protocol", "level", "aspect")
        ordered: dict[str, Any] = plain({**{name: row[name] for name in asked}, **row})
        return ordered

    @property
    def question(self) -> tuple[str, str, str, str, str]:
        """What rows must share to be compared: benchmark, protocol, level, aspect, statistic."""
        return self.benchmark, self.protocol, self.level, self.aspect, self.statistic

    @property
    def metric_signature(self) -> str:
        """The part of the signature that is the metric's."""
        return self.signature.partition(METRIC_PART)[2].rpartition(END_OF_METRIC)[0]

    @property
    def can_be_best(self) -> bool:
        """Whether the number may be called the best: it has an interval, which lies above zero, and is no memory."""
        return not self.contaminated and self.low > 0


def result_of(
    measured: Measured, source: ValueSource, values: Values, cut: Cut, judged: Judgements, settings: Settings
) -> Result:
    """Complete a measured statistic: ceiling, contamination, and the signature of every choice."""
    info = judged.info
    is_rated = not cut.is_labelled
    over_systems = cut.level == "system"
    asked = len(values.by_id) + len(values.problems)
    ceiling = attainable = alpha = math.nan
    if is_rated:
        ceiling = judged.of_raters(raters.human_ceiling, cut.aspect, measured.statistic, over_systems=over_systems)
        alpha = judged.of_raters(raters.alpha, cut.aspect)
        attainable = math.nan if over_systems else judged.of_raters(raters.attainable, cut.aspect)
    return Result(
        metric=source.name,
        benchmark=info.name,
        protocol=info.protocol,
        level=cut.level,
        aspect=cut.aspect,
        n_left_out=judged.n_left_out,
        contaminated=source.is_contaminated_by(info.name, info.contaminates),
        in_best_group=None,
        ceiling=ceiling,
        attainable=attainable,
        alpha=alpha,
        n_truncated=values.n_truncated,
        n_empty=values.n_empty,
        higher_is_better=source.higher_is_better,
        selection=selection(judged, settings),
        signature=str(signature(measured, values.signature or source.signature, cut, judged, settings)),
        cost_per_row=values.took["cost"] / asked if values.took else math.nan,
        seconds_per_row=values.took["seconds"] / asked if values.took else math.nan,
        revision=info.revision,
        **vars(measured),
    )


def selection(judged: Judgements, settings: Settings) -> str:
    """Which rows count, in words."""
    if settings.subset is not None:
        return f"subset {settings.subset}"
    name = settings.exclusion or judged.info.default_exclusion
    return {"none": "all rows", "generated": "generated rows"}.get(name, f"without {name}")


def signature(measured: Measured, metric: str, cut: Cut, judged: Judgements, settings: Settings) -> Signature:
    """Everything that, if changed, may change the number, its p-value or its interval."""
    parts = {
        "benchmark": f"{judged.info.name}@{judged.info.revision}",
        "protocol": judged.info.protocol,
        "rows": selection(judged, settings),
        "level": cut.level,
        "aspect": cut.aspect,
        "stat": measured.statistic,
        "missing": "drop",
    }
    if inputs := inputs_in_words(facts=settings.facts, following=settings.following and judged.info.following):
        parts["inputs"] = inputs
    if not cut.is_labelled:
        parts["ratings"] = settings.ratings
        if cut.level == "system":
            parts["sign"] = "absolute" if settings.absolute else "signed"
        else:
            parts["pooling"] = "pooled"
        if ties := {"spearman": "average ranks", "kendall": "tau-b"}.get(measured.statistic):
            parts["ties"] = ties
    if measured.threshold_method:
        parts["threshold"] = f"score > {measured.threshold:g}, {measured.threshold_method}"
    if measured.p_method:
        parts["p"] = measured.p_method
    if measured.resamples:
        drawn = settings.resamples_for(measured.statistic)
        parts["interval"] = f"{settings.confidence:g} percentile, {drawn} resamples of contexts, seed {settings.seed}"
    return Signature({**parts, "metric": f"[{metric}]", "dialeval": __version__})


@dataclass(frozen=True)
class Excluded:
    """A row without a value: it counts neither for nor against the metric."""

    metric: str
    benchmark: str
    id: str
    problem: str


@dataclass(frozen=True)
class Skipped:
    """A metric and a benchmark that gave no number, and why; `*` stands for all metrics."""

    metric: str
    benchmark: str
    reason: str


@dataclass(frozen=True)
class PairedTest:
    """The best metric of a question against another one."""

    benchmark: str
    protocol: str
    level: str
    aspect: str
    compared: Compared


@dataclass(frozen=True)
class Panel:
    """The numbers behind the results on one benchmark: people's, and every metric's beside each question."""

    judged: Judgements
    questions: Sequence[tuple[Cut, Sequence[ComparedMetric]]]
    columns: Mapping[str, Floats]
    contaminated: frozenset[str] = frozenset()

    @property
    def marked_columns(self) -> dict[str, Floats]:
        """The columns under names that say where a metric was trained on the benchmark."""
        return {marked(name, name in self.contaminated): column for name, column in self.columns.items()}


def marked(metric: str, contaminated: bool) -> str:
    """A metric's name, with the mark of one that was trained on the benchmark."""
    return f"{metric} †" if contaminated else metric


@dataclass(frozen=True)
class Half:
    """One number of a contaminated metric, on rows whose text it was trained on (`leaked`) or on the others."""

    metric: str
    benchmark: str
    protocol: str
    level: str
    aspect: str
    statistic: str
    leaked: bool
    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Overall:
    """The mean Spearman correlation of `metric`, and how far `leader` lies above it on the benchmarks of both."""

    metric: str
    leader: str
    mean: float
    #: Of the leader, minus the metric's, with its interval; None for the leader itself.
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    better_on: int
    over: tuple[str, ...]


#: How wide an interval of kappa may be on either side to be of use.
PRECISE = 0.1


@dataclass(frozen=True)
class Filtering:
    """A metric as a filter of rows that people rated."""

    metric: str
    benchmark: str
    aspect: str
    n: int
    #: Rows in the metric's worst tenth, how many of them people rated as low as their worst tenth, and how many of a
    #: tenth drawn by chance they would have.
    n_worst: int
    hits: int
    hits_by_chance: float
    #: Rows that people rated below the middle of their scale, as a share, and the value of the metric below which
    #: as many rows lie.
    bad_below: float
    base_rate: float
    threshold: float
    #: Cohen's kappa of both marks, with its bootstrap interval over contexts; NaN where all rows or none are rated so.
    kappa: float
    low: float
    high: float
    #: For an interval of a tenth on either side.
    rows_needed: int | None

    @property
    def lines(self) -> list[str]:
        """What to tell a user."""
        sentences = [
            f"{self.metric} on {self.benchmark} ({self.aspect}): of the {self.n_worst} worst rows, its worst tenth, "
            f"{self.hits} {'is' if self.hits == 1 else 'are'} among those that people rated worst "
            f"({self.hits_by_chance:.1f} by chance)"
        ]
        if math.isfinite(self.kappa):
            sentences.append(
                f"people rated {self.base_rate:.0%} of the rows below {self.bad_below:g}; {self.metric} marks as many "
                f"below {self.threshold:.3g}; Cohen's kappa of both is {self.kappa:.2f} [{self.low:.2f}, "
                f"{self.high:.2f}]"
            )
        if self.rows_needed is not None and self.rows_needed > self.n:
            sentences.append(
                f"an interval of ±{PRECISE:g} around kappa needs about {self.rows_needed} rows; there are {self.n}"
            )
        return sentences


@dataclass
class Report:
    """Everything that a run found."""

    settings: Settings
    results: list[Result] = field(default_factory=list)
    #: The aspects of metrics that have some, on all aspects of a benchmark; see `aspects`.
    aspects: list[Result] = field(default_factory=list)
    tests: list[PairedTest] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    command: str = ""
    halves: list[Half] = field(default_factory=list)
    #: Every metric against the one that agrees best on the mean over benchmarks.
    overall: list[Overall] = field(default_factory=list)
    #: Metrics as filters, on a user's own ratings.
    filters: list[Filtering] = field(default_factory=list)

    def to_rows(self) -> list[dict[str, Any]]:
        """The table as plain values, NaN as None."""
        return [result.to_row() for result in self.results]

    def write(self, folder: Path) -> list[Path]:
        """Write the table, the tests, the exclusions, and how they came about."""
        folder.mkdir(parents=True, exist_ok=True)
        about = {
            "command": self.command,
            "settings": plain(dataclasses.asdict(self.settings)),
            "versions": versions(),
            "skipped": [dataclasses.asdict(row) for row in self.skipped],
        }
        # First: it tells the next run that the others are its own.
        write_atomically(folder / "run.json", [json_text(about, indent=1)])
        flat = [{**vars(test), **vars(test.compared)} for test in self.tests]
        tests = [plain({name: value for name, value in row.items() if name != "compared"}) for row in flat]
        paths = [_write_lines(folder / "agreement.jsonl", self.to_rows()), _write_lines(folder / "tests.jsonl", tests)]
        tables: dict[str, Sequence[Any]] = {
            "excluded": self.excluded, "halves": self.halves, "overall": self.overall, "filters": self.filters,
        }  # fmt: skip
        for name, rows in tables.items():
            if rows or name == "excluded":  # that nothing was left out is told, too
                paths.append(_write_lines(folder / f"{name}.jsonl", [plain(dataclasses.asdict(row)) for row in rows]))
        if self.aspects:
            paths.append(_write_lines(folder / "aspects.jsonl", [result.to_row() for result in self.aspects]))
        return [*paths, folder / "run.json"]


def read_results(folder: Path) -> list[Result]:
    """The table of an earlier run."""
    path = folder / "agreement.jsonl"
    try:
        return read_records(path, Result)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}); run `dialeval agreement --out {folder}` first"
        ) from None


def read_records(path: Path, kind: type[Any]) -> list[Any]:
    """The rows of a table that an earlier run wrote, each made one of `kind`; in one sentence, what is none."""
    try:
        return [as_record(row, kind) for row in read_json_lines(path)]
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is not what `dialeval agreement` writes ({error}); make it again") from None


def as_record(row: Any, kind: type[Any]) -> Any:
    """A row of JSON as one of `kind`: absent numbers are NaN, and what an older run did not have has its default."""
    values: dict[str, Any] = {}
    for declared in dataclasses.fields(kind):
        value = row.get(declared.name)
        if declared.name not in row and declared.default is not dataclasses.MISSING:
            value = declared.default
        if declared.type == "float":
            value = math.nan if value is None else float(value)
        elif isinstance(value, list):
            value = tuple(map(str, value))
        elif value is None and not str(declared.type).endswith("None"):
            raise ValueError(f"a row has no {declared.name}")
        values[declared.name] = value
    return kind(**values)


def versions() -> dict[str, str]:
    """The versions that may change a number."""
    from importlib.metadata import version

    return {"dialeval": __version__, **{name: version(name) for name in ("numpy", "scipy", "krippendorff")}}


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    known = ({name: value for name, value in row.items() if value is not None} for row in rows)
    write_atomically(path, map(json_text, known))
    return path
