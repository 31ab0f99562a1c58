"""Do scores mean what they say? Human percentiles and probabilities on dialogues that nobody trained on.

A human percentile promises that a share p of people's replies scores below p. A probability promises
that of the replies called 0.7 seven in ten are right. Both are checked corpus by corpus: true next
turns of held-out dialogues, and beside each a random turn of the same corpus as the wrong reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.batches import CandidateSet
from corpora.dialogues import read_corpus
from corpora.negatives import NegativeCounts
from dialeval.benchmarks import Benchmark
from dialeval.core.exchange import Exchange
from dialeval.papers.deb import ReliabilityBin, expected_calibration_error, reliability
from dialeval.papers.learned import LearnedMetric
from dialeval.registry.metric import Metric
from dialeval.statistics.bootstrap import Interval, bootstrap, interval, mean_of, number_groups
from dialeval.statistics.correlation import Floats

#: Of this share of samples that are calibrated the largest gap stays below `Percentiles.by_chance` (Kolmogorov).
_KOLMOGOROV_95 = 1.358
GRID: Floats = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class LabelledReplies:
    """Replies, which of them are right, and which dialogue or context each belongs to."""

    name: str
    exchanges: Sequence[Exchange]
    valid: NDArray[np.bool_]
    groups: NDArray[np.intp]


@dataclass(frozen=True)
class Percentiles:
    """How the percentiles of people's replies spread; if the promise holds, evenly from 0 to 1."""

    n: int
    mean: float
    interval: Interval
    #: The greatest distance between a percentile and the share of replies below it.
    gap: float
    by_chance: float
    mean_of_wrong: float
    #: Share of people's replies at or below each point of `GRID`.
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Probabilities:
    """What became of replies, by the probability that they were given."""

    n: int
    mean_promise: float
    share_valid: float
    error: float
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True)
class Calibration:
    """One metric on one sample."""

    metric: str
    sample: str
    signature: str
    percentiles: Percentiles
    probabilities: Probabilities | None

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, as JSON wants them."""
        return asdict(self)


def dialogue_sample(root: Path, name: str, split: str, *, pairs: int, seed: int = 0) -> LabelledReplies:
    """So many turns of a corpus' dialogues, each with one random turn of the corpus in its place."""
    found = CandidateSet(read_corpus(root, name, split), NegativeCounts(random=1), seed=seed)
    chosen = np.random.default_rng(seed).permutation(len(found))[:pairs]
    candidates = [found.get(int(index)) for index in sorted(chosen.tolist())]
    exchanges = [exchange for one in candidates for exchange in one.exchanges()]
    dialogues = [found.turns[int(index)][0] for index in sorted(chosen.tolist()) for _ in range(2)]
    kept = [number for number, exchange in enumerate(exchanges) if not exchange.is_empty]
    return LabelledReplies(
        f"{name}:{split}",
        [exchanges[number] for number in kept],
        np.array([number % 2 == 0 for number in kept]),
        number_groups([dialogues[number] for number in kept]),
    )


def benchmark_sample(benchmark: Benchmark | list[Exchange]) -> LabelledReplies:
    """The replies of a labelled benchmark."""
    if isinstance(benchmark, list) or benchmark.info.kind != "labels":
        name = "this file" if isinstance(benchmark, list) else benchmark.info.name
        raise ValueError(f"{name} does not label replies as right or wrong; dailydialogpp_test does")
    rows = benchmark.dataset
    exchanges = [
        Exchange(tuple(one), reply) for one, reply in zip(rows["context"][:], rows["response"][:], strict=True)
    ]
    kept = [number for number, exchange in enumerate(exchanges) if not exchange.is_empty]
    labels = np.asarray(rows["label"][:])
    return LabelledReplies(
        benchmark.info.name,
        [exchanges[number] for number in kept],
        labels[kept] == 1,
        number_groups([exchanges[number].context for number in kept]),
    )


def calibrations(
    metrics: Mapping[str, Metric], samples: Sequence[LabelledReplies], *, resamples: int = 10_000, seed: int = 0
) -> list[Calibration]:
    """Every metric on every sample."""
    for name, metric in metrics.items():
        if "human_percentile" not in metric.scales:
            raise ValueError(f"{name} has no human percentiles; of the metrics those trained here have")
    return [
        _calibration(name, metric, sample, resamples=resamples, seed=seed)
        for sample in samples
        for name, metric in metrics.items()
    ]


def _calibration(name: str, metric: Metric, sample: LabelledReplies, *, resamples: int, seed: int) -> Calibration:
    scores = metric.score_exchanges(sample.exchanges, progress=True)
    shares = metric.rescale(np.asarray(scores.values, dtype=np.float64), "human_percentile")
    promised = None
    if isinstance(metric, LearnedMetric) and metric.is_probability:
        promised = probabilities(np.asarray(scores.values, dtype=np.float64), sample.valid)
    spread = percentiles(shares, sample.valid, sample.groups, resamples=resamples, seed=seed)
    return Calibration(name, sample.name, str(scores.signature), spread, promised)


def percentiles(
    shares: Floats, valid: NDArray[np.bool_], groups: NDArray[np.intp], *, resamples: int = 10_000, seed: int = 0
) -> Percentiles:
    """How evenly the percentiles of the right replies spread, and where those of the wrong ones lie."""
    if not valid.any():
        raise ValueError("there is no right reply, so the percentiles of people's replies cannot be checked")
    people, owners = np.sort(shares[valid]), number_groups(groups[valid].tolist())
    count = int(owners.max()) + 1
    drawn = bootstrap({"mean": mean_of(shares[valid], owners, count)}, count, resamples=resamples, seed=seed)
    steps = np.arange(len(people) + 1) / len(people)
    # The distance is largest just before or just after a step of the observed share.
    gap = max(np.abs(people - steps[1:]).max(), np.abs(people - steps[:-1]).max())
    return Percentiles(
        n=len(people),
        mean=float(people.mean()),
        interval=interval(drawn["mean"]),
        gap=float(gap),
        by_chance=float(_KOLMOGOROV_95 / np.sqrt(len(people))),
        mean_of_wrong=float(shares[~valid].mean()) if (~valid).any() else float("nan"),
        curve=tuple(float(share) for share in np.searchsorted(people, GRID, side="right") / len(people)),
    )


def probabilities(values: Floats, valid: NDArray[np.bool_]) -> Probabilities:
    """Promise against outcome in ten bins."""
    bins = reliability(values, valid)
    return Probabilities(
        len(values), float(values.mean()), float(valid.mean()), expected_calibration_error(bins), tuple(bins)
    )
