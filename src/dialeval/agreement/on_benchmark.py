"""Running a metric on a benchmark: rows, dialogues or systems, in chunks that are kept, past rows that fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.agreement.settings import inputs_in_words
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import StoredValues, Values, merged, rows_digest
from dialeval.core.exchange import BadRow, Exchange, check_exchange
from dialeval.core.scores import Scores
from dialeval.registry.functions import FunctionFailed
from dialeval.registry.interface import CannotGoOn, Level, Metric

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks.benchmark import BenchmarkInfo


class NotApplicable(ValueError):
    """A metric and a benchmark do not go together; the message says why."""


@dataclass(frozen=True)
class Judgement:
    """What is to be judged: ids, what the metric gets for each, how it is called, and what cannot be judged.

    The values of systems depend on each other's rows and are asked for in one call; `rows` tells which rows.
    """

    kind: Literal["exchange", "dialogue", "systems"]
    ids: Sequence[str]
    items: Sequence[Any]
    call: Callable[[Sequence[Any], Sequence[str]], Scores]
    problems: dict[str, str]
    rows: Sequence[str] = ()

    @property
    def all_ids(self) -> list[str]:
        """Every id, also those that cannot be judged at all."""
        return [*self.ids, *self.problems]


def job_of(metric: Metric, info: BenchmarkInfo, dataset: Dataset) -> Judgement:
    """How the metric is asked; `NotApplicable` where it can say nothing."""
    if info.level == "dialogue":
        return _dialogues(metric, info, dataset)
    exchanges, problems = _exchanges(metric, dataset)
    if not exchanges:
        raise NotApplicable(f"no row of {info.name} can be judged ({next(iter(problems.values()), 'it has no rows')})")
    if metric.info.level is Level.SYSTEM:
        return _systems(metric, info, exchanges, problems)
    ids = [str(exchange.id) for exchange in exchanges]
    return Judgement("exchange", ids, exchanges, lambda items, _: metric.score_exchanges(items), problems)


def _dialogues(metric: Metric, info: BenchmarkInfo, dataset: Dataset) -> Judgement:
    if metric.info.level is not Level.TURN:
        raise NotApplicable(f"it judges a {metric.info.level} and {info.name} holds dialogues")
    if "references" in metric.info.needs:
        raise NotApplicable(f"it needs references and {info.name} has none")
    given = dataset.column_names
    facts, speakers = (
        list(dataset[column][:]) if column in given else [[]] * len(dataset) for column in ("facts", "speakers")
    )
    items = list(zip(dataset["dialogue"][:], facts, speakers, strict=True))

    def call(part: Sequence[Any], ids: Sequence[str]) -> Scores:
        turns, known, who = zip(*part, strict=True)
        return metric.score_dialogues(turns, facts=known, speakers=who, ids=ids)

    return Judgement("dialogue", list(dataset["id"][:]), items, call, {})


def _systems(metric: Metric, info: BenchmarkInfo, exchanges: Sequence[Exchange], problems: dict[str, str]) -> Judgement:
    """All systems in one call, rows in the benchmark's order, so that all face the same human side."""
    named = [exchange for exchange in exchanges if exchange.system is not None]
    systems = list(dict.fromkeys(str(exchange.system) for exchange in named))
    if not systems:
        raise NotApplicable(f"it judges systems and {info.name} names none")

    def call(_: Sequence[Any], wanted: Sequence[str]) -> Scores:
        scores = metric.score_exchanges([exchange for exchange in named if exchange.system in set(wanted)])
        if list(scores.ids or ()) != list(wanted):
            raise ValueError(f"{metric.info.name} judges systems; it must give one value each, their names as ids")
        return scores

    return Judgement("systems", systems, systems, call, problems, [str(exchange.id) for exchange in named])


def _exchanges(metric: Metric, dataset: Dataset) -> tuple[list[Exchange], dict[str, str]]:
    checked, problems = _checked(dataset)
    if "references" not in metric.info.needs:
        return list(checked), dict(problems)
    without = {
        str(exchange.id): "it needs a reference and the row has none" for exchange in checked if not exchange.references
    }
    return [exchange for exchange in checked if exchange.references], {**problems, **without}


@lru_cache(maxsize=3)
def _checked(dataset: Dataset) -> tuple[list[Exchange], dict[str, str]]:
    """The rows of a benchmark as exchanges; kept, because many metrics judge one benchmark after the other."""
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
                following=row.get("following"),
                # Some systems stay silent; what a metric makes of that is part of what is measured.
                empty="score",
            )
        except BadRow as error:
            problems[key] = error.problem
            continue
        exchanges.append(exchange)
    return exchanges, problems


#: Rows per chunk: large enough for the metric to sort by length, small enough to lose little when killed.
CHUNK = {"exchange": 2048, "dialogue": 96}

#: After so many failing rows and no success the metric is given up, rather than called once for every row.
_HOPELESS = 32

#: Told how many rows were done.
Advance = Callable[[int], None]


class OtherRows(NotApplicable):
    """A file of scores is about other benchmarks, which is no fault."""


class MetricFailed(RuntimeError):
    """A metric gives no usable values on a benchmark, so that going on would be a waste."""


def values_of(
    source: ValueSource,
    info: BenchmarkInfo,
    dataset: Dataset,
    folder: Path | None,
    advance: Advance = lambda done: None,
) -> Values:
    """The values of a source on the rows of a benchmark, from the cache where they are there."""
    if source.metric is None:
        return _from_table(source, info, dataset, advance)
    job = job_of(source.metric, info, dataset)
    stored = None
    if folder is not None and source.cacheable:
        columns = dataset.column_names
        # Named only where it is so, because earlier runs kept theirs without it.
        beyond_the_usual = {
            "aspects": ",".join(source.aspects_at(Level.DIALOGUE if job.kind == "dialogue" else Level.TURN)),
            "inputs": inputs_in_words(facts="facts" in columns, following="following" in columns),
        }
        header = {
            "metric": source.name,
            "signature": source.signature,
            "benchmark": info.name,
            "revision": info.revision,
            "kind": job.kind,
            "ids": rows_digest([*job.all_ids, *job.rows]),
            **{name: text for name, text in beyond_the_usual.items() if text},
        }
        stored = StoredValues(folder, header)
        if (known := stored.read()) is not None:
            advance(len(job.all_ids))
            return known
    if source.only_cached:
        raise NotApplicable(f"{source.name} has no values for {info.name} from an earlier run")
    advance(len(job.problems))
    parts = _together(job, advance) if job.kind == "systems" else _chunks(job, stored, advance)
    values = merged([Values({}, job.problems), *parts])
    # Where a row may have a value another time, what is kept is not the last word.
    if stored is not None and not values.passing:
        stored.finish(job.all_ids, values)
    return values


def _from_table(source: ValueSource, info: BenchmarkInfo, dataset: Dataset, advance: Advance) -> Values:
    ids = list(dataset["id"][:])
    wanted = {key for key in ids if key in source.table}
    if not wanted:
        raise OtherRows(f"its scores match no row of {info.name}")
    advance(len(ids))
    values = {key: source.table[key] for key in ids if key in wanted and math.isfinite(source.table[key])}
    problems = {
        key: "the score is missing" if key in wanted else "no row of this id" for key in ids if key not in values
    }
    return Values(values, problems)


def _chunks(job: Judgement, stored: StoredValues | None, advance: Advance) -> Iterator[Values]:
    size = CHUNK[job.kind]
    for number, start in enumerate(range(0, len(job.ids), size)):
        ids, items = job.ids[start : start + size], job.items[start : start + size]
        done = stored.read_chunk(number, ids) if stored is not None else None
        if done is None:
            done = _Chunk(job).judge(ids, items)
            if stored is not None and not done.passing:
                stored.write_chunk(number, done)
        advance(len(ids))
        yield done


def _together(job: Judgement, advance: Advance) -> Iterator[Values]:
    """All systems in one call, because they share a human side.

    Where that fails, the systems that fail alone are left out, and the others are judged together once more.
    """
    problems: dict[str, str] = {}
    try:
        scores = job.call(job.items, job.ids)
    except Exception as error:
        problems = {system: problem for system in job.ids if (problem := _trouble(job, system)) is not None}
        if not problems or len(problems) == len(job.ids):
            raise MetricFailed(_error_line(error)) from error
    kept = [system for system in job.ids if system not in problems]
    if problems:
        try:
            scores = job.call(kept, kept)
        except Exception as error:
            raise MetricFailed(_error_line(error)) from error
    advance(len(job.ids))
    yield merged([_values(scores, kept), Values({}, problems)])


def _trouble(job: Judgement, system: str) -> str | None:
    try:
        job.call([system], [system])
    except Exception as error:
        return _error_line(error)
    return None


class _Chunk:
    """Judges some rows; where the metric raises, halves them until those that make it fail stand alone."""

    def __init__(self, job: Judgement) -> None:
        self._call = job.call
        self._failures = 0
        self._succeeded = False

    def judge(self, ids: Sequence[str], items: Sequence[Any]) -> Values:
        try:
            scores = self._call(items, ids)
        except CannotGoOn as error:
            raise MetricFailed(str(error)) from error
        except Exception as error:
            problem = _error_line(error)
            if len(ids) > 1:
                half = len(ids) // 2
                return merged([self.judge(ids[:half], items[:half]), self.judge(ids[half:], items[half:])])
            self._failures += 1
            if not self._succeeded and self._failures >= _HOPELESS:
                raise MetricFailed(f"it failed on all of {self._failures} rows: {problem}") from error
            return Values({}, {ids[0]: problem})
        values = _values(scores, ids)
        self._succeeded = True
        return values


def _values(scores: Scores, ids: Sequence[str]) -> Values:
    """The values by id, those that are no numbers set aside."""
    by_id = {key: float(value) for key, value in zip(ids, scores.values, strict=True)}
    problems = {ids[place]: why for place, why in scores.problems.items()}
    odd = {key: problems.get(key, f"the value is {value}") for key, value in by_id.items() if not math.isfinite(value)}
    kept = {key: value for key, value in by_id.items() if key not in odd}
    aspects: dict[str, dict[str, float]] = {}
    for aspect, column in scores.aspects.items():
        known = (pair for pair in zip(ids, map(float, column), strict=True) if pair[0] in kept)
        aspects[aspect] = {key: value for key, value in known if math.isfinite(value)}
    took: dict[str, float] = {}
    if usage := scores.details.get("usage"):
        # What was asked once is paid for, in whichever run.
        took = {name: usage[name] + usage[f"kept_{name}"] for name in ("cost", "seconds")}
    signature = str(scores.signature) if took else ""
    return Values(kept, odd, scores.n_truncated, scores.n_empty, aspects, bool(scores.passing), took, signature)


def _error_line(error: BaseException) -> str:
    if isinstance(error, FunctionFailed) and error.__cause__ is not None:  # said row by row, so in its own words alone
        error = error.__cause__
    return error.problem if isinstance(error, BadRow) else f"{type(error).__name__}: {error}"
