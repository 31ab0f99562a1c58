"""Which pairs are trained on in which order: shares of corpora, length buckets, processes, resumption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from corpora.dialogues import BadCorpus, CorpusDialogue
from corpora.negatives import NegativeCounts, NegativeSampler
from dialeval.core.exchange import Exchange

T = TypeVar("T")
#: Batches sorted together by length: little padding, and still a random order.
_BUCKET_BATCHES = 32


@dataclass(frozen=True)
class Candidates:
    """One context with its true reply first."""

    exchange: Exchange
    responses: tuple[str, ...]

    def exchanges(self) -> list[Exchange]:
        """Every candidate as an exchange of its own."""
        context, facts = self.exchange.context, self.exchange.facts
        return [Exchange(context=context, response=response, facts=facts) for response in self.responses]


class CandidateSource(Protocol):
    """What batches are drawn from."""

    def __len__(self) -> int: ...

    def get(self, index: int, epoch: int = 0) -> Candidates:
        """One context with candidates, other ones in another epoch."""

    def length(self, index: int) -> int:
        """Characters, to sort by."""


class CandidateSet:
    """Every prefix of every dialogue of one corpus as a context with candidates."""

    def __init__(
        self,
        dialogues: Sequence[CorpusDialogue],
        negatives: NegativeCounts,
        *,
        seed: int,
        fact_share: float = 1.0,
    ) -> None:
        self.dialogues = dialogues
        self.turns = [(row, turn) for row, dialogue in enumerate(dialogues) for turn in range(1, len(dialogue.turns))]
        self.sampler = NegativeSampler(dialogues, negatives)
        self.seed = seed
        #: For how many of the contexts what is known of the speaker is given.
        self.fact_share = fact_share

    def __len__(self) -> int:
        return len(self.turns)

    def get(self, index: int, epoch: int = 0) -> Candidates:
        """Candidates of one pair; another `epoch` draws other negatives."""
        number, turn = self.turns[index]
        dialogue = self.dialogues[number]
        rng = np.random.default_rng([self.seed, epoch, index])
        exchange = dialogue.exchange(turn)
        if exchange.facts and self.fact_share < 1 and rng.random() >= self.fact_share:
            exchange = replace(exchange, facts=())
        return Candidates(exchange, (exchange.response, *self.sampler.draw(dialogue, turn, rng)))

    def length(self, index: int) -> int:
        """Characters of the pair, cheap to know and close enough to tokens for bucketing."""
        number, turn = self.turns[index]
        return sum(len(text) for text in self.dialogues[number].turns[: turn + 1])


def mixed_batches(
    sets: Sequence[CandidateSource],
    shares: Sequence[float],
    *,
    batch_contexts: int,
    seed: int,
    longest: int = 400,
    resample: bool = True,
) -> Iterator[list[Candidates]]:
    """An endless, seeded stream of batches in which corpus `i` has `shares[i]` of the batches.

    Each batch comes from one corpus. A corpus that runs out starts over; with `resample` its
    negatives are then drawn anew. Contexts longer than `longest` characters count as that long
    when batches are sorted, because the encoder cuts them.
    """
    streams = [
        _batches_of(corpus, batch_contexts, seed=seed + 1000 * number, longest=longest, resample=resample)
        for number, corpus in enumerate(sets)
    ]
    return in_shares(streams, shares, seed)


def in_shares(streams: Sequence[Iterator[T]], shares: Sequence[float], seed: int) -> Iterator[T]:
    """One of several streams at a time, drawn by their shares."""
    weights = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    rng = np.random.default_rng([seed, 77])
    while True:
        yield next(streams[int(rng.choice(len(streams), p=weights))])


def bucketed(
    order: NDArray[np.int64], size: int, length: Callable[[int], float], rng: np.random.Generator
) -> Iterator[list[int]]:
    """Batches of neighbours in length, in random order; an incomplete one is left out."""
    for start in range(0, len(order), size * _BUCKET_BATCHES):
        bucket = sorted(order[start : start + size * _BUCKET_BATCHES].tolist(), key=length)
        batches = [bucket[begin : begin + size] for begin in range(0, len(bucket), size)]
        rng.shuffle(batches)
        yield from (batch for batch in batches if len(batch) == size)


def _batches_of(
    corpus: CandidateSource, size: int, *, seed: int, longest: int, resample: bool
) -> Iterator[list[Candidates]]:
    if len(corpus) < size:
        raise BadCorpus(f"a corpus of {len(corpus)} pairs cannot fill a batch of {size} contexts")
    for epoch in count():
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(corpus))
        for batch in bucketed(order, size, lambda index: min(longest, corpus.length(index)), rng):
            yield [corpus.get(index, epoch if resample else 0) for index in batch]
