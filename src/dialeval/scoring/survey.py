"""A look through rows before a model is loaded: what the metrics of systems must know of all shards.

Surveys of shards add up. They hold counts, digests and, for metrics that cluster, a bounded sample.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from dialeval.approaches.feature_set import digest
from dialeval.exchange import Exchange

#: Pairs of each side of a comparison from which clusters are found; smaller sets are taken whole.
SAMPLE = 10_000

_BITS = 2**64


@dataclass
class PairSample:
    """The pairs with the smallest digests: whatever the order and the shards, the same ones."""

    limit: int = SAMPLE
    #: A heap of (negated digest, pair), so that the largest digest is on top.
    heap: list[tuple[int, tuple[tuple[str, ...], str]]] = field(default_factory=list)

    def add(self, pair: Exchange) -> None:
        """Offer one pair of context and reply."""
        self._push((-digest([*pair.context, pair.response]), (pair.context, pair.response)))

    def merge(self, other: PairSample) -> None:
        """Add the sample of another shard."""
        for entry in other.heap:
            self._push(entry)

    def pairs(self) -> list[Exchange]:
        """The sample in the order of its digests."""
        return [Exchange(context, reply) for _, (context, reply) in sorted(self.heap, reverse=True)]

    def _push(self, entry: tuple[int, tuple[tuple[str, ...], str]]) -> None:
        if len(self.heap) < self.limit:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)


@dataclass
class OfSystem:
    """How many rows a system has, which queries they answer, and samples of both sides."""

    rows: int = 0
    #: A sum of digests: equal for equal multisets of (context, references), in any order.
    queries: int = 0
    replies: PairSample = field(default_factory=PairSample)
    human: PairSample = field(default_factory=PairSample)

    def merge(self, other: OfSystem) -> None:
        """Add what another shard knows of the same system."""
        self.rows += other.rows
        self.queries = (self.queries + other.queries) % _BITS
        self.replies.merge(other.replies)
        self.human.merge(other.human)


@dataclass
class Survey:
    """What is known of all rows, by system in the order of first occurrence."""

    systems: dict[str | None, OfSystem] = field(default_factory=dict)

    def add(self, exchanges: Sequence[Exchange], human: Iterable[tuple[int, Exchange]] = (), *, sample: bool) -> None:
        """Look at some rows; `human` are their references as pairs, each with the number of its row."""
        for exchange in exchanges:
            known = self.systems.setdefault(exchange.system, OfSystem())
            known.rows += 1
            query = digest([str(len(exchange.context)), *exchange.context, *exchange.references])
            known.queries = (known.queries + query) % _BITS
            if sample:
                known.replies.add(Exchange(exchange.context, exchange.response))
        for row, pair in human:
            self.systems[exchanges[row].system].human.add(pair)

    def merge(self, other: Survey) -> Self:
        """Add the survey of another shard."""
        for name, known in other.systems.items():
            self.systems.setdefault(name, OfSystem()).merge(known)
        return self

    def check(self, metrics: Iterable[str], *, human_is_given: bool) -> None:
        """Refuse what shards cannot compare, before any time is spent."""
        names = ", ".join(metrics)
        if None in self.systems and len(self.systems) > 1:
            raise ValueError(
                f"{names}: {self.systems[None].rows} rows name no system while others do; name it, or leave systems out"
            )
        if not human_is_given and len({(known.rows, known.queries) for known in self.systems.values()}) > 1:
            counts = ", ".join(f"{name} {known.rows}" for name, known in self.systems.items())
            raise ValueError(
                f"{names}: the systems do not answer the same queries ({counts} rows), so shards cannot tell which "
                "references count once; score in one process, score the systems one by one, or load with reference="
            )
