"""What a metric is asked about a benchmark: rows, dialogues, or all systems at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from dialeval.exchange import BadRow, Exchange, check_exchange
from dialeval.metric import Level, Metric
from dialeval.scores import Scores

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks.base import BenchmarkInfo


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
        first = next(iter(problems.values()), "it has no rows")
        raise NotApplicable(f"no row of {info.name} can be judged ({first})")
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
    facts, speakers = (list(dataset[one][:]) if one in given else [[]] * len(dataset) for one in ("facts", "speakers"))
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
    without = {str(one.id): "it needs a reference and the row has none" for one in checked if not one.references}
    return [one for one in checked if one.references], {**problems, **without}


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
