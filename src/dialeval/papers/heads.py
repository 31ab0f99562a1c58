"""Metrics whose encoder is fixed: it turns texts into features once, and a small trained head judges these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.core.exchange import Exchange
from dialeval.papers.learned import PairMetric
from dialeval.registry.interface import Judged

Vector = NDArray[np.float64]
#: What a head reads: tensors with one entry for each exchange.
Features = tuple[Tensor, ...]

#: Rows that a head judges at once.
_BLOCK = 4096


class TrainedHead(PairMetric):
    """A head on fixed features; what it puts out is a logit unless the metric says otherwise."""

    #: Where the network keeps the head.
    head_name: ClassVar[str] = "head"
    #: Whether the head puts out a rating from one to five instead of a logit.
    is_rating: ClassVar[bool] = False

    @property
    def head(self) -> nn.Module:
        """What is trained."""
        return self.network.get_submodule(self.head_name)

    @abstractmethod
    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """What the head reads of every exchange, and which of them were cut."""

    def outputs(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Vector, NDArray[np.bool_]]:
        """What the head says of every exchange, and which of them were cut."""
        features, cut = self.features(exchanges, progress=progress)
        return self.outputs_of(features), cut

    def outputs_of(self, features: Features, head: nn.Module | None = None) -> Vector:
        """What the head says of features, block by block; another head of the same network if one is given."""
        head = head or self.head
        device = next(head.parameters()).device
        edges = [*range(0, len(features[0]), _BLOCK), len(features[0])]
        with torch.inference_mode():
            blocks = [head(*(feature[start:end].to(device) for feature in features)) for start, end in pairwise(edges)]
        outputs: Vector = torch.cat(blocks).cpu().numpy().astype(np.float64)
        return outputs

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Features, head, scoring rule."""
        outputs, cut = self.outputs(exchanges, progress=progress)
        return Judged(self.values_of(outputs), n_truncated=int(cut.sum()))

    def values_of(self, rows: NDArray[np.floating]) -> Vector:
        """The probability behind a logit."""
        from scipy.special import expit

        probability: Vector = expit(np.asarray(rows, dtype=np.float64))
        return probability


class Perceptron(nn.Sequential):
    """Layers with tanh between them, and one number at the end."""

    def __init__(self, *widths: int) -> None:
        layers: list[nn.Module] = []
        for width, following in pairwise(widths):
            layers += [nn.Linear(width, following), nn.Tanh()]
        super().__init__(*layers, nn.Linear(widths[-1], 1))

    def forward(self, inputs: Tensor) -> Tensor:
        """`[rows]`: one number for each."""
        outputs: Tensor = super().forward(inputs)  # type: ignore[no-untyped-call]
        return outputs.squeeze(-1)
