"""BERT-RUBER (Ghazarian et al. 2019): RUBER on contextual vectors, which take the place of word vectors and GRUs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Features, Vector
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.relevance import Relevance
from dialeval_baselines.ruber import TwoParts
from dialeval_baselines.vectors import VectorMetric, VectorNetwork, pick


class BertRuberNetwork(VectorNetwork):
    """Pooled vectors of context and reply, their bilinear form, a perceptron."""

    approach = "bert_ruber"

    def build_heads(self, width: int) -> None:
        """The unreferenced part; the referenced one has no weights."""
        choices = self.config.architecture
        self.head = Relevance(width, rank=int(choices.get("rank", 16)), hidden=(int(choices.get("hidden", 64)),))


class BertRuber(TwoParts, VectorMetric):
    """Relatedness of a reply to its context, by itself or together with its likeness to a reference.

    `architecture` chooses how tokens are pooled for the context's side: `max` or `mean`.
    """

    info = MetricInfo(
        name="bert_ruber",
        title="BERT-RUBER",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="relatedness of reply and context by pooled contextual vectors; `part` adds likeness to a reference",
        citation="Ghazarian et al. 2019, Better Automatic Evaluation of Open-Domain Dialogue Systems with "
        "Contextualized Embeddings",
    )
    network_class = BertRuberNetwork

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """Pooled as the checkpoint says."""
        contexts, replies, cut = self.both(exchanges, progress=progress)
        pooling = str(self.network.config.architecture.get("pooling", "max"))
        return (pick(contexts, pooling), pick(replies, pooling)), cut

    def likeness(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Vector:
        """Cosine of maximum and minimum vectors of contextual tokens."""
        replies, _ = self.encode([(exchange.response,) for exchange in exchanges], progress=progress)
        return self.best_of_references(exchanges, replies, progress=progress)
