"""What FBD and PRD stand on: how normal the features of people's replies are, and how both see replies get worse.

Replies of people are held against themselves with a growing share of them spoilt in one of four ways, those that the
authors' code has: FBD should grow from 0 and PRD fall from 1 at every step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from dialeval.agreement.prepare import open_benchmark
from dialeval.core.exchange import Exchange
from dialeval.papers.fbd import Fbd
from dialeval.papers.prd import Prd
from dialeval.robustness.attacks import ATTACKS, Pool
from reproduce.feature_statistics import normality

#: What the authors' code does to replies, and the attack that does it here.
SPOILT = {"noise": "noise", "mismatch": "random_reply", "permutation": "jumble", "repetition": "generic_reply"}
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Normal:
    """Shapiro-Wilk's test of the features of people's replies: one encoder, one corpus."""

    encoder: str
    corpus: str
    n: int
    w_mean: float
    w_std: float
    share_p_below_05: float
    pooled_mean: float
    pooled_std: float


@dataclass(frozen=True)
class Curve:
    """A metric's values along `SHARES`, and how many of the replies could be spoilt."""

    metric: str
    encoder: str
    corpus: str
    change: str
    n: int
    spoilt: int
    values: tuple[float, ...]

    @property
    def worse_steps(self) -> int:
        """Steps at which the value says that the replies got worse."""
        sign = -1 if self.metric == "prd" else 1
        return sum(sign * (after - before) > 0 for before, after in pairwise(self.values))


def replies_of_people(metric: Fbd, corpus: str, mirror: str | None = None) -> list[Exchange]:
    """What FBD takes for the human side of a benchmark: the references, once for each query."""
    rows = open_benchmark(corpus, mirror).dataset
    exchanges = [
        Exchange(tuple(row["context"]), row["response"], tuple(row["references"] or ()), system=row["system"])
        for row in rows
    ]
    asked = set(metric.encode(exchanges).rows_of_queries().tolist())
    return [pair for row, pair in metric.human_pairs(exchanges) if row in asked]


def spoil(replies: Sequence[Exchange], change: str, *, seed: int = 0) -> list[Exchange | None]:
    """Every reply made worse, None where the change has nothing to work on."""
    pool, attack = Pool(replies), ATTACKS[SPOILT[change]]
    return [attack.apply(one, pool, seed=seed) for one in replies]


def normal_features(metric: Fbd, encoder: str, corpus: str, replies: Sequence[Exchange]) -> Normal:
    """One cell of the table."""
    found = normality(metric.features.of(replies).rows).to_dict()
    kept = ("w_mean", "w_std", "share_p_below_05", "pooled_mean", "pooled_std")
    return Normal(encoder, corpus, len(replies), **{name: found[name] for name in kept})


def curves(
    encoder: str | None, name: str, corpus: str, replies: Sequence[Exchange], *, seed: int = 0
) -> Iterator[Curve]:
    """Both metrics under every change. Which replies are spoilt first is drawn by the seed; more contain fewer."""
    order = list(range(len(replies)))
    Random(seed).shuffle(order)
    for change in SPOILT:
        worse = spoil(replies, change, seed=seed)
        sets = []
        for share in SHARES:
            chosen = set(order[: round(share * len(order))])
            sets.append([other if row in chosen and (other := worse[row]) else replies[row] for row in order])
        for metric in (Fbd(encoder, resamples=0), Prd(encoder, resamples=0)):
            people = metric.features.of(sets[0])
            with warnings.catch_warnings():
                # Small sets inflate the value; all sets here are equally small.
                warnings.filterwarnings("ignore", message="fewer rows")
                values = tuple(float(metric.compare(people, metric.features.of(one)).value) for one in sets)
            spoilt = sum(one is not None for one in worse)
            yield Curve(metric.info.name, name, corpus, change, len(replies), spoilt, values)
