"""BERT+DNN (Ghazarian et al. 2019): maximum-pooled vectors of context and reply, and a perceptron of three layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Features
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.relevance import Relevance
from dialeval_baselines.vectors import VectorMetric, VectorNetwork, pick


class BertDnnNetwork(VectorNetwork):
    """Nothing but both vectors goes into the perceptron."""

    approach = "bert_dnn"

    def build_heads(self, width: int) -> None:
        """The perceptron."""
        hidden = int(self.config.architecture.get("hidden", 64))
        self.head = Relevance(width, rank=0, hidden=(hidden, hidden // 2))


class BertDnn(VectorMetric):
    """The probability that a reply is that of its context rather than another one."""

    info = MetricInfo(
        name="bert_dnn",
        title="BERT+DNN",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="probability of a true reply, by a perceptron on maximum-pooled token vectors of context and reply",
        citation="Ghazarian et al. 2019, Better Automatic Evaluation of Open-Domain Dialogue Systems with "
        "Contextualized Embeddings",
    )
    network_class = BertDnnNetwork

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """The maxima."""
        contexts, replies, cut = self.both(exchanges, progress=progress)
        return (pick(contexts, "max"), pick(replies, "max")), cut
