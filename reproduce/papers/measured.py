"""Our numbers for the papers' questions, from values that earlier runs left."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dialeval.agreement.results import Report, Result
from dialeval.agreement.runs import Reporter, run
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource, find_sources
from dialeval.io.files import safe_name, without_machine
from reproduce.papers.tables import CellQuery, Row, Table

#: What a cell says for which no values were kept.
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class CellValue:
    """One of our numbers, or why there is none."""

    result: Result | None
    reason: str = ""


#: Our number for the spec of a metric and a question.
Answers = Mapping[tuple[str, CellQuery], CellValue]


def asked(tables: Iterable[Table]) -> list[tuple[Row, CellQuery]]:
    """Every number of ours that the tables have room for, once."""
    cells = [
        (dataclasses.replace(row, ours=spec), column.question)
        for table in tables
        for row in table.rows
        for spec in row.specs
        for column in table.columns
        if column.question is not None
    ]
    return list({(row.ours, question): (row, question) for row, question in cells}.values())


def answers(
    tables: Iterable[Table],
    values: Path,
    *,
    mirror: str | None = None,
    resamples: int = 2000,
    reporter: Reporter | None = None,
    measure: bool = False,
) -> dict[tuple[str, CellQuery], CellValue]:
    """Look up everything that the tables ask for; with `measure` compute what is not there."""
    if not values.is_dir() and not measure:
        raise ValueError(f"there is no folder {values} with values; make some with `dialeval agreement --values`")
    cell_values: dict[tuple[str, CellQuery], CellValue] = {}
    groups: dict[tuple[str, Settings], list[tuple[Row, CellQuery]]] = {}
    for row, question in asked(tables):
        groups.setdefault((question.benchmark, question.settings), []).append((row, question))
    for (benchmark, settings), wanted in groups.items():
        kept = [str(row.ours) for row, _ in wanted if measure or _is_kept(values, benchmark, str(row.source))]
        usable = {spec: _loaded(spec, only_cached=not measure) for spec in kept}
        report = Report(settings)
        if ready := [source for source in usable.values() if isinstance(source, ValueSource)]:
            drawing = dataclasses.replace(settings, resamples=resamples)
            report = run(ready, [benchmark], settings=drawing, values=values, mirror=mirror, reporter=reporter)
        for row, question in wanted:
            source = usable.get(str(row.ours), NOT_MEASURED)
            answer = CellValue(None, source) if isinstance(source, str) else _answer(report, source.name, question)
            cell_values[str(row.ours), question] = answer
    return cell_values


def _is_kept(values: Path, benchmark: str, name: str) -> bool:
    """Whether it is worth loading a metric: a look at file names, which say nothing of versions."""
    folder = values / safe_name(benchmark.partition("@")[0])
    return any(path.name.startswith(f"{safe_name(name)}-") for path in folder.glob("*.jsonl"))


@cache
def _loaded(spec: str, *, only_cached: bool) -> ValueSource | str:
    """A metric, once for all tables that ask for it, or why there is none."""
    try:
        (source,) = find_sources([spec])
    except (ValueError, OSError, ModuleNotFoundError, RuntimeError) as error:
        return f"cannot be loaded here: {without_machine(str(error))}"
    return dataclasses.replace(source, only_cached=only_cached)


def _answer(report: Report, name: str, question: CellQuery) -> CellValue:
    for result in report.results:
        key = (result.metric, result.level, result.statistic)
        if key == (name, question.level, question.statistic) and question.aspect in ("", result.aspect):
            return CellValue(result)
    reasons = [skip.reason for skip in report.skipped if skip.metric in (name, "*")]
    if reasons and "from an earlier run" not in reasons[0]:
        return CellValue(None, reasons[0])
    if not reasons and question.statistic == "accuracy":
        return CellValue(None, "no threshold: its values on the validation part are not there")
    return CellValue(None, NOT_MEASURED)


def commands(missing: Sequence[tuple[str, CellQuery]], values: str) -> list[str]:
    """What to run so that the missing values are kept: one command for all benchmarks with the same gaps."""
    gaps: dict[tuple[str, Settings], list[str]] = {}
    for spec, question in missing:
        specs = gaps.setdefault((question.benchmark, question.settings), [])
        if spec not in specs:
            specs.append(spec)
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (benchmark, settings), specs in gaps.items():
        benchmarks = alike.setdefault((tuple(specs), _flags(settings)), [])
        if benchmark not in benchmarks:
            benchmarks.append(benchmark)
    return [
        " ".join(
            [
                f"dialeval agreement --metrics '{','.join(specs)}' --benchmarks {','.join(benchmarks)}",
                *flags,
                f"--values {values} --plots none --out runs/papers",
            ]
        )
        for (specs, flags), benchmarks in alike.items()
    ]


def _flags(settings: Settings) -> tuple[str, ...]:
    """Those options without which values of whole systems would not be computed."""
    chosen = ["--levels system"] if settings.levels == "system" else []
    return (*chosen, "--force-systems") if settings.force_systems else tuple(chosen)
