"""An encoder that has learned to read pairs, as it is, with a head for each baseline that judges pairs."""

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
from dialeval.papers.deb import MaskedWordHead
from dialeval.papers.heads import Features, Perceptron, TrainedHead
from dialeval_baselines import SHIPPED


class PairsNetwork(Network):
    """The features of the first token, and heads for next replies, whole replies, ratings and masked words."""

    approach = "pairs"

    def build_heads(self, width: int) -> None:
        """One head per task; `vocabulary` is how many words the last of them guesses from."""
        choices = self.config.architecture
        hidden = int(choices.get("hidden", 32))
        self.next = Perceptron(width, hidden)
        self.valid = Perceptron(width, hidden)
        self.rating = Perceptron(width, hidden)
        self.words = MaskedWordHead(width, int(choices["vocabulary"]))
        #: Quartiles of the likelihood of people's replies.
        self.likelihood: Tensor
        self.register_buffer("likelihood", torch.tensor([-1.0, 0.0]))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, width]`."""
        first: Tensor = self.hidden(input_ids, attention_mask, token_type_ids)[:, 0]
        return first

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, length, width]`."""
        return states(self.encoder, input_ids, attention_mask, token_type_ids).float()

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.parameters()).device

    def guesses(self, states: Tensor) -> Tensor:
        """`[positions, vocabulary]`: logits for hidden states of masked positions."""
        encoder: Any = self.encoder
        logits: Tensor = self.words(states, encoder.get_input_embeddings().weight.float())
        return logits

    @classmethod
    def default_checkpoint(cls) -> str:
        """The one in the package."""
        return str(SHIPPED / "pairs-minilm")


class PairMetric(TrainedHead):
    """A head on the features of a pair; `view` says which pair is read."""

    network_class = PairsNetwork
    network: PairsNetwork

    def view(self, exchange: Exchange) -> Exchange:
        """The exchange as it is read."""
        return exchange

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """Those of the first token."""
        encoded = self.encoder.encode([self.view(exchange) for exchange in exchanges], progress=progress)
        return (torch.from_numpy(encoded.rows),), encoded.cut

    @property
    def quantile_key(self) -> str:
        """Several heads share a checkpoint."""
        return self.head_name
