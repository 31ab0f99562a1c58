"""Pairs of a true reply and an attacked one, made here or brought along by a benchmark."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dialeval.exchange import Exchange
from dialeval.robustness.attacks import Attack, Pool

if TYPE_CHECKING:
    from dialeval.benchmarks import Benchmark


@dataclass(frozen=True)
class Pair:
    """A true reply and an attacked one. `domain` tells corpora of one set apart.

    `plain` is the attacked reply without what it says to steer a judge, `neutral` with a sentence in its place that
    asks for nothing.
    """

    attack: str
    harmful: bool
    true: Exchange
    attacked: Exchange
    domain: str | None = None
    plain: Exchange | None = None
    neutral: Exchange | None = None

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All of them."""
        return tuple(one for one in (self.true, self.attacked, self.plain, self.neutral) if one is not None)


def attacked_pairs(
    exchanges: Sequence[Exchange], attacks: Iterable[Attack], *, seed: int = 0
) -> tuple[list[Pair], dict[str, int]]:
    """Pairs of every reply with every attack, and for each attack how many replies it could not change."""
    pool = Pool(exchanges)
    pairs: list[Pair] = []
    untouched: dict[str, int] = {}
    for attack in attacks:
        untouched[attack.name] = 0
        for exchange in exchanges:
            # A reference that is the reply itself would settle the matter for metrics that compare with it.
            true = without_itself(exchange)
            changed = attack.apply(true, pool, seed=seed)
            if changed is None:
                untouched[attack.name] += 1
            else:
                plain = attack.without_change(true, pool, seed=seed)
                neutral = attack.with_neutral_change(true, pool, seed=seed)
                pairs.append(Pair(attack.name, attack.harmful, true, changed, plain=plain, neutral=neutral))
    return pairs, untouched


def benchmark_pairs(benchmark: Benchmark) -> list[Pair]:
    """The pairs of a benchmark that holds true replies beside attacked ones."""
    pairs = []
    for row in benchmark.dataset:
        true = without_itself(
            Exchange(
                context=tuple(row["context"]),
                response=row["response"],
                references=tuple(row["references"] or ()),
                facts=tuple(row["facts"] or ()),
            )
        )
        context = tuple(row["adversarial_context"] or ()) or true.context
        attacked = replace(true, context=context, response=row["adversarial_response"])
        pairs.append(Pair(row["attack"], bool(row["harmful"]), true, attacked, row["domain"]))
    return pairs


def without_itself(exchange: Exchange) -> Exchange:
    """The exchange without references that equal its own reply."""
    said = exchange.response.split()
    return replace(exchange, references=tuple(text for text in exchange.references if text.split() != said))


def key_of(exchange: Exchange) -> str:
    """A digest of everything that a metric may look at: equal exchanges are scored once."""
    parts = (exchange.context, (exchange.response,), exchange.references, exchange.facts)
    text = "\1".join("\0".join(part) for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
