"""deltaBLEU: BLEU against references that carry a weight, negative for replies judged bad.

No maintained package computes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dialeval.baselines.reference import ReferenceMetric, Values
from dialeval.baselines.words import split_words
from dialeval.core.exchange import BadRow, Exchange


def delta_bleu(
    candidate: Sequence[str], references: Sequence[Sequence[str]], weights: Sequence[float], *, order: int
) -> float:
    """deltaBLEU of one tokenised candidate: 0 as soon as one order's weighted precision is not positive."""
    logarithms = 0.0
    for n in range(1, order + 1):
        precision = weighted_precision(candidate, references, weights, n)
        if precision <= 0:
            return 0.0
        logarithms += math.log(precision) / order
    closest = min((len(reference) for reference in references), key=lambda size: (abs(size - len(candidate)), size))
    return math.exp(logarithms + min(0.0, 1 - closest / len(candidate)))


def weighted_precision(
    candidate: Sequence[str], references: Sequence[Sequence[str]], weights: Sequence[float], n: int
) -> float:
    """The weighted clipped precision of one order; negative when bad replies outweigh good ones."""
    counts = _ngrams(candidate, n)
    if not counts:
        return 0.0
    of_references = [_ngrams(reference, n) for reference in references]
    matched = 0.0
    for gram, count in counts.items():
        gains = [
            weight * min(count, known[gram])
            for weight, known in zip(weights, of_references, strict=True)
            if known[gram]
        ]
        matched += max(gains, default=0.0)
    return matched / (max(weights) * sum(counts.values()))


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))


class DeltaBleu(ReferenceMetric):
    """Sentence deltaBLEU. `weights` gives the weight of each reference by its place in the row.

    With two good and two bad replies: `weights=(1, 1, -1, -1)`, or as text `"1,1,-1,-1"`. Without
    weights every reference counts 1. Not smoothed, so the default stops at two words.
    """

    default_aggregation = "standard"
    has_own_rule = True
    info = ReferenceMetric.declared(
        "deltableu",
        "deltaBLEU",
        "overlap of n-grams with references that are weighted by how good they are",
        "Galley et al. 2015, deltaBLEU: A Discriminative Metric for Generation Tasks",
    )

    def __init__(self, *, weights: Sequence[float] | str | None = None, order: int = 2) -> None:
        super().__init__()
        if order < 1:
            raise ValueError(f"order is {order}; it must be at least 1")
        self.weights = None if weights is None else _checked_weights(weights)
        self.order = order

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """DeltaBLEU of each candidate."""
        values = []
        for candidate, texts in zip(candidates, references, strict=True):
            weights = self.weights or (1.0,) * len(texts)
            split = [split_words(text) for text in texts]
            values.append(delta_bleu(split_words(candidate), split, weights, order=self.order))
        return np.array(values)

    def check_needs(self, exchanges: Sequence[Exchange]) -> None:
        """Every row needs as many references as there are weights."""
        super().check_needs(exchanges)
        for row, exchange in enumerate(exchanges):
            if self.weights is not None and len(exchange.references) != len(self.weights):
                raise BadRow(
                    row, f"has {len(exchange.references)} references for {len(self.weights)} weights; give one each"
                )

    def options(self) -> Mapping[str, str]:
        """Order, weights and words."""
        return {
            "n": str(self.order),
            "weights": "1" if self.weights is None else ",".join(f"{weight:g}" for weight in self.weights),
            "words": "treebank",
            "case": "lower",
        }


def _checked_weights(weights: Sequence[float] | str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(weight) for weight in (weights.split(",") if isinstance(weights, str) else weights))
    except ValueError:
        numbers = ()
    if not all(map(math.isfinite, numbers)) or max(numbers, default=0) <= 0:
        raise ValueError(f"weights are {weights!r}; give one finite number per reference, at least one positive")
    return numbers
