"""Vectors of single texts from the base encoder as it is, which several baselines put heads on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dialeval.checkpoints.network import Network
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import states
from dialeval.encoders.batching import PairEncoder
from dialeval.papers.heads import TrainedHead
from dialeval_baselines import SHIPPED

#: How tokens become one vector, in the order in which a row holds them.
POOLINGS = ("max", "min", "mean")


class VectorNetwork(Network):
    """A fixed encoder; a row is the maximum, the minimum and the mean of a text's token vectors."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, 3 · width]`."""
        return pooled(states(self.encoder, input_ids, attention_mask, token_type_ids).float(), attention_mask)

    @classmethod
    def default_checkpoint(cls) -> str:
        """The one in the package."""
        return str(SHIPPED / f"{cls.approach}-minilm")


def pooled(tokens: Tensor, mask: Tensor) -> Tensor:
    """`[batch, 3 · width]` of `[batch, length, width]`; padding counts nowhere, and no token at all gives zeros."""
    real = mask[..., None].bool()
    highest = tokens.masked_fill(~real, -torch.inf).amax(dim=1)
    lowest = tokens.masked_fill(~real, torch.inf).amin(dim=1)
    mean = (tokens * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return torch.cat([highest, lowest, mean], dim=-1).nan_to_num(posinf=0.0, neginf=0.0)


def pick(rows: Tensor, *poolings: str) -> Tensor:
    """Some of the poolings side by side."""
    parts = dict(zip(POOLINGS, rows.chunk(len(POOLINGS), dim=-1), strict=True))
    return torch.cat([parts[name] for name in poolings], dim=-1)


class VectorMetric(TrainedHead):
    """A metric that reads each text by itself."""

    pair_encoders = ()

    def __init__(self, checkpoint: Any = None, **options: Any) -> None:
        super().__init__(checkpoint, **options)
        self.encoder = PairEncoder(
            self.network,
            self.encoder.tokenizer,
            segment="context",
            batch_tokens=self.encoder.batch_tokens,
            same_widths=self.encoder.same_widths,
        )

    def encode(self, texts: Sequence[tuple[str, ...]], *, progress: bool = False) -> tuple[Tensor, NDArray[np.bool_]]:
        """A row for each text, which may be several turns, and whether it was cut."""
        encoded = self.encoder.encode([Exchange(context=turns, response="") for turns in texts], progress=progress)
        return torch.from_numpy(encoded.rows), encoded.cut

    def both(
        self, exchanges: Sequence[Exchange], *, progress: bool = False
    ) -> tuple[Tensor, Tensor, NDArray[np.bool_]]:
        """Rows of contexts and of replies, and where either was cut."""
        texts = [*(exchange.context for exchange in exchanges), *((exchange.response,) for exchange in exchanges)]
        rows, cut = self.encode(texts, progress=progress)
        middle = len(exchanges)
        return rows[:middle], rows[middle:], cut[:middle] | cut[middle:]

    def best_of_references(
        self, exchanges: Sequence[Exchange], replies: Tensor, *, progress: bool = False
    ) -> NDArray[np.float64]:
        """Cosine of maximum and minimum vectors, the highest over the references of a row."""
        owners = np.repeat(np.arange(len(exchanges)), [len(exchange.references) for exchange in exchanges])
        known, _ = self.encode([(text,) for exchange in exchanges for text in exchange.references], progress=progress)
        vectors = pick(replies, "max", "min")[torch.from_numpy(owners)]
        cosines = torch.cosine_similarity(vectors, pick(known, "max", "min"), dim=-1).double().numpy()
        best = np.full(len(exchanges), -np.inf)
        np.maximum.at(best, owners, cosines)
        return best
