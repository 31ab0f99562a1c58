"""What systems are compared on: replies, or whole conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from dialeval.exchange import Dialogue, Exchange
from dialeval.metric import Level, Metric
from dialeval.scores import Scores

Items = Sequence[Exchange] | Sequence[Dialogue]


def are_conversations(items: Items) -> TypeGuard[Sequence[Dialogue]]:
    """Whether whole conversations are compared."""
    return any(isinstance(one, Dialogue) for one in items)


def score_items(metric: Metric, items: Items, **options: Any) -> Scores:
    """Scores of replies or of whole conversations; metrics that compare sets are refused."""
    if metric.info.level is not Level.TURN:
        raise ValueError(
            f"{metric.info.name} judges a {metric.info.level}; a metric of single replies is needed here "
            "(`dialeval score` gives the value of each system)"
        )
    if not are_conversations(items):
        return metric.score_exchanges(list(items), **options)  # type: ignore[arg-type]
    return metric.score_dialogues(
        [one.turns for one in items], facts=[one.facts for one in items], speakers=[one.speakers for one in items],
        **options,
    )  # fmt: skip
