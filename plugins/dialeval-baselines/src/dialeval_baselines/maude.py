"""MAUDE (Sinha et al. 2020): how turns led up to a reply, by a recurrent network over vectors of whole turns.

Trained by noise contrast: true replies against replies of other dialogues and against their own words shuffled, dropped
or repeated. The original reduces its vectors by principal components; here a layer without bias does, learned with
the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Features, Perceptron
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.vectors import VectorMetric, VectorNetwork, pick

#: The last turns of a context that are read.
_TURNS = 8


class Transition(nn.Module):
    """An LSTM over turns, both ways; a perceptron reads its summary, the reply, their product and difference."""

    def __init__(self, width: int, size: int, hidden: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(width, size, bias=False)
        self.turns = nn.LSTM(size, size // 2, batch_first=True, bidirectional=True)
        self.perceptron = Perceptron(4 * size, hidden)

    def forward(self, turns: Tensor, count: Tensor, reply: Tensor) -> Tensor:
        """`[rows]`: logits, from `[rows, turns, width]`, how many of the turns there are, and `[rows, width]`."""
        packed = pack_padded_sequence(self.reduce(turns), count.cpu(), batch_first=True, enforce_sorted=False)
        _, (last, _) = self.turns(packed)
        before, reduced = torch.cat([last[0], last[1]], dim=-1), self.reduce(reply)
        known = torch.cat([before, reduced, before * reduced, before - reduced], dim=-1)
        return self.perceptron(known)  # type: ignore[no-any-return]


class MaudeNetwork(VectorNetwork):
    """Means of contextual vectors for each turn."""

    approach = "maude"

    def build_heads(self, width: int) -> None:
        """The recurrent network."""
        choices = self.config.architecture
        self.head = Transition(width, int(choices.get("size", 64)), int(choices.get("hidden", 64)))


class Maude(VectorMetric):
    """The probability that the turns before it lead to this reply."""

    info = MetricInfo(
        name="maude",
        title="MAUDE",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="probability of a true reply, by a recurrent network over vectors of the turns that led to it",
        citation="Sinha et al. 2020, Learning an Unreferenced Metric for Online Dialogue Evaluation",
    )
    network_class = MaudeNetwork

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """Vectors of the last turns, their number, and the reply's."""
        # A reply without context follows one empty turn.
        contexts = [exchange.context[-_TURNS:] or ("",) for exchange in exchanges]
        texts = [*((turn,) for turns in contexts for turn in turns), *((exchange.response,) for exchange in exchanges)]
        rows, cut = self.encode(texts, progress=progress)
        vectors, count = pick(rows, "mean"), [len(turns) for turns in contexts]
        ends = np.cumsum(count)
        laid = torch.zeros(len(exchanges), _TURNS, vectors.shape[1])
        was_cut = np.array([len(exchange.context) > _TURNS for exchange in exchanges])
        for row, (end, size) in enumerate(zip(ends, count, strict=True)):
            laid[row, :size] = vectors[end - size : end]
            was_cut[row] |= cut[end - size : end].any()
        n_turns = int(ends[-1])
        return (laid, torch.tensor(count), vectors[n_turns:]), was_cut | cut[n_turns:]
