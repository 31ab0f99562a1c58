"""ADEM's form (Lowe et al. 2017): a reply's vector beside those of its context and a reference, fitted to ratings.

The original's vectors come from a hierarchical recurrent encoder trained on Twitter; here they are means of contextual
token vectors. As there, they are reduced by principal components before two matrices compare them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.checkpoints.network import unit_matrix
from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Features, Vector
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.vectors import VectorMetric, VectorNetwork, pick


class Bilinear(nn.Module):
    """(cᵀ M r̂ + rᵀ N r̂ - α) / β, with M and N beginning as the identity."""

    def __init__(self, width: int, components: int) -> None:
        super().__init__()
        self.centre: Tensor
        self.axes: Tensor
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("axes", unit_matrix(width, components))
        self.of_context = nn.Parameter(unit_matrix(components))
        self.of_reference = nn.Parameter(unit_matrix(components))
        self.offset = nn.Parameter(torch.zeros(()))
        self.scale = nn.Parameter(torch.ones(()))

    def prepare(self, context: Tensor, reply: Tensor, reference: Tensor) -> None:
        """Principal components of the training vectors, scaled so that a typical product is about one."""
        known = torch.cat([context, reply, reference])
        self.centre.copy_(known.mean(dim=0))
        _, spread, axes = torch.pca_lowrank(known - self.centre, q=self.axes.shape[1], center=False)
        self.axes.copy_(axes / (spread.square().sum() / len(known)).sqrt())

    def forward(self, context: Tensor, reply: Tensor, reference: Tensor) -> Tensor:
        """`[rows]`: ratings."""
        c, r_hat, r = ((vectors - self.centre) @ self.axes for vectors in (context, reply, reference))
        likeness = ((c @ self.of_context + r @ self.of_reference) * r_hat).sum(dim=-1)
        return (likeness - self.offset) / self.scale


class AdemNetwork(VectorNetwork):
    """Vectors, principal components, two matrices."""

    approach = "adem"

    def build_heads(self, width: int) -> None:
        """Matrices over so many components."""
        self.head = Bilinear(width, int(self.config.architecture.get("components", 50)))


class Adem(VectorMetric):
    """A rating from one to five; beyond where the form leads there."""

    info = MetricInfo(
        name="adem",
        title="ADEM",
        level=Level.TURN,
        higher_is_better=True,
        range=(float("-inf"), float("inf")),
        summary="rating from 1 to 5 that two bilinear forms give to a reply beside its context and a reference",
        needs=frozenset({"contexts", "references"}),
        citation="Lowe et al. 2017, Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses",
    )
    network_class = AdemNetwork
    is_rating = True

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """Means; of several references the mean of their means."""
        contexts, replies, cut = self.both(exchanges, progress=progress)
        known, _ = self.encode([(text,) for exchange in exchanges for text in exchange.references], progress=progress)
        sizes = torch.tensor([len(exchange.references) for exchange in exchanges])
        owners = torch.repeat_interleave(torch.arange(len(exchanges)), sizes)
        references = torch.zeros_like(replies).index_add_(0, owners, known) / sizes[:, None]
        return tuple(pick(rows, "mean") for rows in (contexts, replies, references)), cut

    def values_of(self, rows: NDArray[np.floating]) -> Vector:
        """The rating as it is."""
        return np.asarray(rows, dtype=np.float64)
