"""Running a metric on a benchmark: in chunks that are kept, and past rows on which it fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.sources import Source
from dialeval.agreement.store import Cell, Values, merged, rows_digest
from dialeval.exchange import BadRow, Exchange, check_exchange
from dialeval.metric import Level, Metric
from dialeval.scores import Scores

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks.base import BenchmarkInfo

#: Rows per chunk: large enough for the metric to sort by length, small enough to lose little when killed.
_CHUNK = {"exchange": 512, "dialogue": 32, "system": 1}

#: After so many failing rows and no success the metric is given up, rather than called once for every row.
_HOPELESS = 32

#: Told how many rows were done.
Advance = Callable[[int], None]


class NotApplicable(ValueError):
    """A metric and a benchmark do not go together; the message says why."""


class OtherRows(NotApplicable):
    """A file of scores is about other benchmarks, which is no fault."""


class MetricFailed(RuntimeError):
    """A metric gives no usable values on a benchmark, so that going on would be a waste."""


@dataclass(frozen=True)
class Job:
    """What is to be judged: ids, what the metric gets for each, and how it is called."""

    kind: str
    ids: Sequence[str]
    items: Sequence[Any]
    call: Callable[[Sequence[Any], Sequence[str]], Scores]
    problems: dict[str, str]

    @property
    def all_ids(self) -> list[str]:
        """Every id, also those that cannot be judged at all."""
        return [*self.ids, *self.problems]

    @property
    def n_chunks(self) -> int:
        """How many chunks the work is cut into."""
        return math.ceil(len(self.ids) / _CHUNK[self.kind])


def values_of(
    source: Source, info: BenchmarkInfo, dataset: Dataset, folder: Path | None, advance: Advance = lambda done: None
) -> Values:
    """The values of a source on the rows of a benchmark, from the cache where they are there."""
    if source.metric is None:
        return _from_table(source, info, dataset, advance)
    job = _job(source.metric, info, dataset)
    cell = None
    if folder is not None and source.cacheable:
        header = {
            "metric": source.name,
            "signature": source.signature,
            "benchmark": info.name,
            "revision": info.revision,
            "kind": job.kind,
            "ids": rows_digest(job.all_ids),
        }
        cell = Cell(folder, header)
        if (known := cell.read()) is not None:
            advance(len(job.all_ids))
            return known
    advance(len(job.problems))
    parts = [Values({}, job.problems), *_chunks(job, cell, advance)]
    values = merged(parts)
    if cell is not None:
        cell.finish(job.all_ids, values)
    return values


def _from_table(source: Source, info: BenchmarkInfo, dataset: Dataset, advance: Advance) -> Values:
    ids = list(dataset["id"][:])
    wanted = {key for key in ids if key in source.table}
    if not wanted:
        raise OtherRows(f"its scores are about none of the rows of {info.name}")
    advance(len(ids))
    found = {key: source.table[key] for key in ids if key in wanted and math.isfinite(source.table[key])}
    problems = {
        key: "the score is missing" if key in wanted else "no row of this id" for key in ids if key not in found
    }
    return Values(found, problems)


def _chunks(job: Job, cell: Cell | None, advance: Advance) -> Iterator[Values]:
    size = _CHUNK[job.kind]
    for number, start in enumerate(range(0, len(job.ids), size)):
        ids, items = job.ids[start : start + size], job.items[start : start + size]
        done = cell.read_chunk(number, ids) if cell is not None else None
        if done is None:
            done = _Chunk(job).judge(ids, items)
            if cell is not None:
                cell.write_chunk(number, done)
        advance(len(ids))
        yield done


class _Chunk:
    """Judges some rows; where the metric raises, halves them until those that make it fail stand alone."""

    def __init__(self, job: Job) -> None:
        self._call = job.call
        self._failures = 0
        self._succeeded = False

    def judge(self, ids: Sequence[str], items: Sequence[Any]) -> Values:
        try:
            scores = self._call(items, ids)
        except Exception as error:
            problem = error.problem if isinstance(error, BadRow) else f"{type(error).__name__}: {error}"
            if len(ids) > 1:
                half = len(ids) // 2
                return merged([self.judge(ids[:half], items[:half]), self.judge(ids[half:], items[half:])])
            self._failures += 1
            if not self._succeeded and self._failures >= _HOPELESS:
                raise MetricFailed(f"it failed on {self._failures} rows and succeeded on none: {problem}") from error
            return Values({}, {ids[0]: problem})
        if len(scores.values) != len(ids):
            raise MetricFailed(f"it gave {len(scores.values)} values for {len(ids)} rows")
        self._succeeded = True
        by_id = {key: float(value) for key, value in zip(ids, scores.values, strict=True)}
        odd = {key: f"the value is {value}" for key, value in by_id.items() if not math.isfinite(value)}
        kept = {key: value for key, value in by_id.items() if key not in odd}
        return Values(kept, odd, scores.n_truncated, scores.n_empty)


def _job(metric: Metric, info: BenchmarkInfo, dataset: Dataset) -> Job:
    if info.level == "dialogue":
        return _dialogue_job(metric, info, dataset)
    exchanges, problems = _exchanges(metric, dataset)
    if not exchanges:
        first = next(iter(problems.values()), "it has no rows")
        raise NotApplicable(f"no row of {info.name} can be judged ({first})")
    if metric.info.level is Level.SYSTEM:
        return _system_job(metric, info, exchanges)
    ids = [str(exchange.id) for exchange in exchanges]
    return Job("exchange", ids, exchanges, lambda items, _: metric.score_exchanges(items), problems)


def _dialogue_job(metric: Metric, info: BenchmarkInfo, dataset: Dataset) -> Job:
    if metric.info.level is not Level.TURN:
        raise NotApplicable(f"it judges a {metric.info.level} and {info.name} holds dialogues")
    if "references" in metric.info.needs:
        raise NotApplicable(f"it needs references and {info.name} has none")
    facts = list(dataset["facts"][:]) if "facts" in dataset.column_names else [[]] * len(dataset)
    items = list(zip(dataset["dialogue"][:], facts, strict=True))

    def call(part: Sequence[Any], ids: Sequence[str]) -> Scores:
        return metric.score_dialogues([turns for turns, _ in part], facts=[known for _, known in part], ids=ids)

    return Job("dialogue", list(dataset["id"][:]), items, call, {})


def _system_job(metric: Metric, info: BenchmarkInfo, exchanges: Sequence[Exchange]) -> Job:
    by_system: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        if exchange.system is not None:
            by_system.setdefault(exchange.system, []).append(exchange)
    if not by_system:
        raise NotApplicable(f"it judges systems and {info.name} names none")

    def call(part: Sequence[Any], ids: Sequence[str]) -> Scores:
        (rows,) = part
        scores = metric.score_exchanges(rows)
        return replace(scores, values=np.array([scores.aggregate]))

    return Job("system", list(by_system), list(by_system.values()), call, {})


def _exchanges(metric: Metric, dataset: Dataset) -> tuple[list[Exchange], dict[str, str]]:
    exchanges: list[Exchange] = []
    problems: dict[str, str] = {}
    for row in dataset:
        key = str(row["id"])
        try:
            exchange = check_exchange(
                key,
                response=row["response"],
                context=row["context"],
                references=row.get("references"),
                facts=row.get("facts"),
                system=row.get("system"),
                id=key,
                # Some systems stay silent; what a metric makes of that is part of what is measured.
                empty="score",
            )
        except BadRow as error:
            problems[key] = error.problem
            continue
        if "references" in metric.info.needs and not exchange.references:
            problems[key] = "it needs a reference and the row has none"
            continue
        exchanges.append(exchange)
    return exchanges, problems
