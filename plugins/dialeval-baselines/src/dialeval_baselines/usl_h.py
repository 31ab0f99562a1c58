"""USL-H (Phy et al. 2020): is a reply understandable, sensible, likable? Each counts as far as those before it hold.

Understandable is whether the reply is a whole utterance rather than one with its words shuffled, dropped or repeated;
sensible, whether it is the next one; likable, how likely its words are, between the quartiles of people's replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Vector
from dialeval.registry.interface import Judged, Level, MetricInfo
from dialeval_baselines.pairs import PairMetric
from dialeval_baselines.usr_mlm import UsrMlm

Composition = Literal["hierarchical", "weighted"]
#: What understandable, sensible and likable are worth.
WEIGHTS = (0.33, 0.33, 0.34)

_CITATION = (
    "Phy et al. 2020, Deconstruct to Reconstruct a Configurable Evaluation Metric for Open-Domain Dialogue Systems"
)


class ValidUtterance(PairMetric):
    """The probability that a reply, seen alone, is a whole utterance."""

    info = MetricInfo(
        name="valid_utterance",
        title="Valid utterance (part of USL-H)",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="probability that the reply is a whole utterance, its context left aside",
        citation=_CITATION,
    )
    head_name = "valid"

    def view(self, exchange: Exchange) -> Exchange:
        """The reply alone."""
        return without_context(exchange)


def without_context(exchange: Exchange) -> Exchange:
    """The reply as if nothing had been said before."""
    return Exchange(context=(), response=exchange.response)


class UslH(PairMetric):
    """The three parts and their composition: the paper's `hierarchical` one, or `weighted` as in its released code."""

    info = MetricInfo(
        name="usl_h",
        title="USL-H",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="understandable, sensible and likable, each counting as far as those before it hold",
        citation=_CITATION,
        aspects=("understandable", "sensible", "likable"),
    )
    head_name = "next"

    def __init__(self, checkpoint: Any = None, *, composition: Composition = "hierarchical", **options: Any) -> None:
        if composition not in get_args(Composition):
            raise ValueError(f"composition is {composition!r}; it is one of {', '.join(get_args(Composition))}")
        super().__init__(checkpoint, **options)
        self.composition = composition
        self._words = UsrMlm(self.network)

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Three values of a reply, then one."""
        alone = [without_context(exchange) for exchange in exchanges]
        outputs, cut = self.outputs(exchanges, progress=progress)
        sensible = self.values_of(outputs)
        read_alone, _ = self.features(alone, progress=progress)
        understandable = self.values_of(self.outputs_of(read_alone, self.network.valid))
        low, high = self.network.get_buffer("likelihood").double().cpu().numpy()
        likelihood = self._words.judge(alone, progress=progress).values
        # A reply without a token has no likelihood, and nothing in it is likable.
        likable = np.nan_to_num(np.clip((likelihood - low) / (high - low), 0.0, 1.0), nan=0.0)
        value = composed(understandable, sensible, likable, self.composition)
        aspects = {"understandable": understandable, "sensible": sensible, "likable": likable}
        return Judged(value, n_truncated=int(cut.sum()), aspects=aspects)

    def variant(self) -> Mapping[str, str]:
        """How the parts are put together."""
        return {"composition": self.composition}

    @property
    def quantile_key(self) -> str:
        """Of its parts only the heads were measured on people's replies."""
        return "usl_h"


def composed(understandable: Vector, sensible: Vector, likable: Vector, composition: Composition) -> Vector:
    """One value of three; the paper lets sensible and likable count as far as the reply is understandable."""
    first, second, third = WEIGHTS
    if composition == "weighted":
        return first * understandable + second * sensible + third * sensible * likable
    return understandable * (first + sensible * (second + third * likable))
