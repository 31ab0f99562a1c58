"""The BERT regressor (Shimanaka et al. 2019): a reply and a reference read together, fitted to ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Vector
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.pairs import PairMetric


class BertRegressor(PairMetric):
    """How good a reply is beside a reference, from zero to one; the mean over several references."""

    info = MetricInfo(
        name="bert_regressor",
        title="BERT regressor",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="rating of a reply that is read beside a reference, brought to 0 to 1",
        needs=frozenset({"references"}),
        citation="Shimanaka et al. 2019, Machine Translation Evaluation with BERT Regressor",
    )
    head_name = "rating"

    def view(self, exchange: Exchange) -> Exchange:
        """A reference in the context's place."""
        return Exchange(context=exchange.references[:1], response=exchange.response)

    def outputs(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Vector, NDArray[np.bool_]]:
        """Every reference by itself, then the mean of the logits."""
        beside = [replace(exchange, references=(text,)) for exchange in exchanges for text in exchange.references]
        outputs, cut = super().outputs(beside, progress=progress)
        sizes = np.array([len(exchange.references) for exchange in exchanges])
        starts = np.cumsum(sizes) - sizes
        return np.add.reduceat(outputs, starts) / sizes, np.logical_or.reduceat(cut, starts)
