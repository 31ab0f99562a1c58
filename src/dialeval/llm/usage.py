"""What a scoring took: calls, tokens, money and time, asked now or kept from earlier."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from dialeval.llm.answers import Answer
from dialeval.llm.runner import Asked, Nothing


@dataclass(frozen=True)
class Usage:
    """Sums over questions. `kept_…` is what answers cost that an earlier run had paid for."""

    questions: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    kept: int = 0
    kept_cost: float = 0.0
    kept_seconds: float = 0.0
    refusals: int = 0
    unanswered: int = 0
    #: Answers whose tokens the server did not count; they are estimated.
    estimated: int = 0

    def __add__(self, other: Usage) -> Usage:
        names = [one.name for one in dataclasses.fields(Usage)]
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def to_dict(self) -> dict[str, float]:
        """Plain numbers by name."""
        return dataclasses.asdict(self)


def usage_of(asked: Iterable[Asked]) -> Usage:
    """The sums; an answer that stands at several rows counts once."""
    total = Usage()
    for one in {id(one): one for one in asked}.values():
        total += _of_one(one)
    return total


def _of_one(asked: Asked) -> Usage:
    outcome = asked.outcome
    if isinstance(outcome, Nothing):
        spent = Usage(calls=outcome.calls, cost=outcome.cost, seconds=outcome.seconds)
        return spent + Usage(questions=1, unanswered=1)
    refused = int(outcome.refusal is not None)
    if asked.was_kept:
        return Usage(1, kept=1, kept_cost=outcome.cost, kept_seconds=outcome.seconds, refusals=refused)
    return Usage(
        questions=1,
        calls=outcome.calls,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        cost=outcome.cost,
        seconds=outcome.seconds,
        refusals=refused,
        estimated=int(not outcome.counted),
    )


def seen_in(asked: Iterable[Asked]) -> dict[str, str]:
    """What only the answers tell and a signature should: served models, fingerprints, what requests went without."""
    answers = [one.outcome for one in asked if isinstance(one.outcome, Answer)]
    parts = {
        "served": sorted({one.served for one in answers if one.served}),
        "fingerprint": sorted({one.fingerprint for one in answers if one.fingerprint}),
        "without": sorted({part for one in answers for part in one.without}),
    }
    return {name: "+".join(values) for name, values in parts.items() if values}
