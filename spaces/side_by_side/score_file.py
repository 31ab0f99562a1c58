"""A file of rows becomes tables of scores: the command's reader, scoring and outputs behind the page's limits."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from limits import Refused
from models import human_percentile, info_of, metric_of, ready
from workers import Progress

from dialeval.cautions import cautions
from dialeval.exchange import Exchange
from dialeval.io import replacing, write_atomically
from dialeval.metric import Level
from dialeval.readers import Source
from dialeval.readers.rows import RawRow
from dialeval.scores import Scores, explaining_columns
from dialeval.scoring.outputs import ROW_KEYS, OutputFormat, table
from dialeval.scoring.summary import Summary
from dialeval.scoring.task import Chunk, Task, chunked
from dialeval.statistics.bootstrap import bootstrap, interval, number_groups
from dialeval.systems.outcome import Ranking
from dialeval.systems.ranking import paired, rank_values

#: Rows between two steps of the progress bar.
_STEP = 32
_RESAMPLES = 1000
#: Pairs grow with the square of the systems.
MOST_RANKED = 12
_FORMATS: tuple[OutputFormat, ...] = ("jsonl", "csv")


@dataclass
class Scored:
    """Everything about one file: rows, values, tallies, and where the results lie."""

    exchanges: list[Exchange]
    summary: Summary
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    of_systems: dict[str, Scores] = field(default_factory=dict)
    warned: dict[str, list[str]] = field(default_factory=dict)
    downloads: list[Path] = field(default_factory=list)

    @property
    def systems(self) -> list[str | None]:
        """Whose reply each row is."""
        return [exchange.system for exchange in self.exchanges]

    def ranking_of(self, name: str) -> Ranking | str:
        """Which systems a metric tells apart, by paired tests; or why that cannot be said."""
        rows: dict[str, list[Exchange]] = {}
        values: dict[str, list[float]] = {}
        for exchange, value in zip(self.exchanges, self.columns[name], strict=True):
            if exchange.system is not None:
                rows.setdefault(exchange.system, []).append(exchange)
                values.setdefault(exchange.system, []).append(np.nan if value is None else value)
        if not 1 < len(rows) <= MOST_RANKED:
            return (
                "" if len(rows) < 2 else f"More than {MOST_RANKED} systems are not tested here; `dialeval rank` does."
            )
        metric = metric_of(name)
        columns = {system: np.array(column) for system, column in values.items()}
        try:
            places, tests = rank_values(metric, rows, columns, paired(rows, by_context=True), resamples=_RESAMPLES)
        except ValueError as error:  # no context in common
            return f"The systems are not tested against each other: {error}."
        return Ranking(tuple(places), tuple(tests), 0.95, {})

    def mean_of(self, name: str, system: str | None) -> tuple[float, float, float, int]:
        """A system's mean with its 95% interval, contexts drawn anew, and the number of its rows."""
        rows = [row for row, owner in enumerate(self.systems) if owner == system]
        values = np.array([np.nan if self.columns[name][row] is None else self.columns[name][row] for row in rows])
        groups = number_groups([self.exchanges[row].context for row in rows])
        count = int(groups.max()) + 1
        sums = np.bincount(groups, np.nan_to_num(values), count)
        sizes = np.bincount(groups, np.isfinite(values), count)
        with np.errstate(invalid="ignore"):  # a resample, or a system, without any value
            mean = sums.sum() / sizes.sum()
            means = {"mean": lambda times: times @ sums / (times @ sizes)}
            drawn = bootstrap(means, count, resamples=_RESAMPLES, seed=0)
        ends = interval(drawn["mean"])
        low, high = (ends.low, ends.high) if count > 1 else (np.nan, np.nan)
        return float(mean), low, high, len(rows)


def score_rows(
    rows: Sequence[tuple[RawRow, Exchange]], metrics: Sequence[str], folder: Path, progress: Progress
) -> Scored:
    """Score checked rows with the chosen metrics, and leave the tables in `folder`."""
    offered = ready()
    if not metrics or any(name not in offered for name in metrics):
        raise Refused(f"choose one or more of {', '.join(offered)}")
    infos = {name: info_of(name) for name in metrics}
    explain = any(info.explains for info in infos.values())
    task = Task(Source(()), infos, metrics={name: metric_of(name) for name in metrics}, explain=explain)
    scored = Scored([exchange for _, exchange in rows], Summary.begin(str(Level.TURN), task.infos))
    records = list(_scored_chunks(task, rows, scored, progress)) if task.of_rows else []
    if not task.of_rows:
        scored.summary.n = len(rows)
    for name in task.of_systems:
        progress(f"comparing sets of replies: {info_of(name).title}", len(rows), len(rows))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            scored.of_systems[name] = task.score_systems(name, scored.exchanges)
        scored.warned[name] = list(dict.fromkeys(str(one.message) for one in warned if one.category is UserWarning))
        scored.summary.add_systems(name, scored.of_systems[name])
    scored.summary.cautions = list(cautions(scored.exchanges))
    scored.downloads = [*_write_tables(records, scored, task, folder), folder / "summary.json"]
    write_atomically(folder / "summary.json", [json.dumps(scored.summary.to_dict(), ensure_ascii=False, indent=2)])
    return scored


def _scored_chunks(
    task: Task, rows: Sequence[tuple[RawRow, Exchange]], scored: Scored, progress: Progress
) -> Iterator[dict[str, Any]]:
    for chunk in chunked(rows, _STEP):
        record = _record(task, chunk)
        scored.summary.add(record)
        for name in task.of_rows:
            scored.columns.setdefault(name, []).extend(record["values"][name])
            if task.infos[name].explains:
                scored.reasons.setdefault(name, []).extend(record["values"][explaining_columns(name)[-1]])
        progress("scoring", scored.summary.n, len(rows))
        yield record


def _record(task: Task, chunk: Chunk) -> dict[str, Any]:
    """A chunk with every metric, whose options are their own."""
    whole: dict[str, Any] = {}
    for name in task.of_rows:
        info = task.infos[name]
        one = Task(task.source, {name: info}, metrics={name: task.metrics[name]}, explain=info.explains)
        for key, part in one.score(chunk).items():
            whole[key] = {**whole.get(key, {}), **part} if isinstance(part, dict) else part
    return whole


def _write_tables(records: Sequence[dict[str, Any]], scored: Scored, task: Task, folder: Path) -> Iterator[Path]:
    """A row per reply with its values and human percentiles; a row per system if nothing judges replies."""
    columns: list[str] = task.columns
    keys: Sequence[str] = ROW_KEYS
    for record in records:
        for name in task.of_rows:
            found = human_percentile(name, np.array(record["values"][name], dtype=np.float64))
            if found is not None:
                beside = f"{name}_human_percentile"
                columns = columns if beside in columns else [*columns, beside]
                record["values"][beside] = [float(value) if np.isfinite(value) else None for value in found]
    if not records:
        columns, keys = task.of_systems, ("system",)
        values = {name: scored.summary.tallies[name].systems or {} for name in columns}
        systems = list(next(iter(values.values())))
        records = [{"system": systems, "values": {name: [own[s] for s in systems] for name, own in values.items()}}]
    for form in _FORMATS:
        path = folder / f"scores.{form}"
        with (
            replacing(path) as hidden,
            hidden.open("wb") as stream,
            table(stream, form, columns, keys=keys, texts=task.texts) as write,
        ):
            for record in records:
                write(record)
        yield path
