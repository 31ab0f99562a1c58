"""RUBER (Tao et al. 2018): a referenced part without weights, an unreferenced part that is trained, and their blends.

The unreferenced part reads the words of context and reply with a bidirectional GRU over the input embeddings of the
base encoder; the referenced part compares the maxima and minima of the same word vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.core.exchange import Exchange
from dialeval.papers.heads import Features, TrainedHead, Vector
from dialeval.registry.interface import Judged, Level, MetricInfo
from dialeval_baselines.relevance import Relevance
from dialeval_baselines.vectors import VectorMetric, VectorNetwork, pooled

RuberPart = Literal["unreferenced", "referenced", "min", "max", "arithmetic", "geometric"]

#: Words of a text that the GRU reads, the last ones of a context and the first ones of a reply.
_LONGEST = 64


class TwoParts(TrainedHead):
    """An unreferenced part, a referenced one, or a blend of both.

    Papers bring the parts to one scale by their minimum and maximum over a data set. A row's value would then
    depend on other rows, so here the parts stay on fixed scales: a probability, and a cosine cut off at zero.
    """

    def __init__(self, checkpoint: Any = None, *, part: RuberPart = "unreferenced", **options: Any) -> None:
        if part not in get_args(RuberPart):
            raise ValueError(f"part is {part!r}; it is one of {', '.join(get_args(RuberPart))}")
        super().__init__(checkpoint, **options)
        self.part = part
        self.info = self.info_with(part=part)  # type: ignore[misc]

    @classmethod
    def info_with(cls, **options: Any) -> MetricInfo:
        """What looks at references needs them."""
        if options.get("part", "unreferenced") == "unreferenced":
            return cls.info
        return replace(cls.info, needs=cls.info.needs | {"references"})

    def likeness(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Vector:
        """Cosine with the nearest reference."""
        raise NotImplementedError

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One part, or both and their blend."""
        if self.part == "unreferenced":
            return super().judge(exchanges, progress=progress)
        referenced = np.clip(self.likeness(exchanges, progress=progress), 0.0, 1.0)
        outputs, cut = self.outputs(exchanges, progress=progress)
        both = {"referenced": referenced, "unreferenced": self.values_of(outputs)}
        return Judged(blend(both["unreferenced"], referenced, self.part), n_truncated=int(cut.sum()), details=both)

    def variant(self) -> Mapping[str, str]:
        """Which part."""
        return {"part": self.part}

    @property
    def quantile_key(self) -> str:
        """Held-out dialogues have no second reply to compare with, so only the unreferenced part has quantiles."""
        return "native" if self.part == "unreferenced" else self.part


def blend(unreferenced: Vector, referenced: Vector, part: RuberPart) -> Vector:
    """Both parts as one number."""
    if part == "min":
        return np.minimum(unreferenced, referenced)
    if part == "max":
        return np.maximum(unreferenced, referenced)
    if part == "arithmetic":
        return np.asarray((unreferenced + referenced) / 2)
    if part == "geometric":
        return np.asarray(np.sqrt(unreferenced * referenced))
    return referenced if part == "referenced" else unreferenced


class GatedRelevance(nn.Module):
    """A bidirectional GRU reads both texts; its last states go into the bilinear form and the perceptron."""

    def __init__(self, encoder: Any, *, width: int, size: int, layers: int, rank: int, hidden: Sequence[int]) -> None:
        super().__init__()
        # In a tuple, so that the encoder is neither trained nor saved with the head.
        self._encoder: Any = (encoder,)
        self.words = nn.GRU(width, size, num_layers=layers, batch_first=True, bidirectional=True)
        self.relevance = Relevance(2 * size, rank=rank, hidden=hidden)

    def forward(self, context: Tensor, context_length: Tensor, reply: Tensor, reply_length: Tensor) -> Tensor:
        """`[rows]`: logits, from ids of words and how many of them there are."""
        logits: Tensor = self.relevance(self.read(context, context_length), self.read(reply, reply_length))
        return logits

    def read(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """`[rows, 2 · size]`: the last state of either direction, of the last layer."""
        (encoder,) = self._encoder
        embedded = encoder.get_input_embeddings()(ids).float()
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, last = self.words(packed)
        return torch.cat([last[-2], last[-1]], dim=-1)


class RuberNetwork(VectorNetwork):
    """The base encoder gives its input embeddings only."""

    approach = "ruber"

    def build_heads(self, width: int) -> None:
        """The unreferenced part."""
        choices = self.config.architecture
        self.head = GatedRelevance(
            getattr(self, "encoder", None),
            width=width,
            size=int(choices.get("size", 32)),
            layers=int(choices.get("layers", 1)),
            rank=int(choices.get("rank", 16)),
            hidden=(int(choices.get("hidden", 64)),),
        )

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, 3 · width]`: pooled word vectors, for the referenced part."""
        encoder: Any = self.encoder
        return pooled(encoder.get_input_embeddings()(input_ids).float(), attention_mask)


class Ruber(TwoParts, VectorMetric):
    """Relatedness of a reply to its context, by itself or together with its likeness to a reference."""

    info = MetricInfo(
        name="ruber",
        title="RUBER",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="relatedness of reply and context by a GRU over word vectors, with `part` also likeness to a reference",
        citation="Tao et al. 2018, RUBER: An Unsupervised Method for Automatic Evaluation of Open-Domain "
        "Dialog Systems",
    )
    network_class = RuberNetwork

    def features(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Features, NDArray[np.bool_]]:
        """Ids of words and their number, of contexts and replies."""
        contexts, cut = self._words(exchanges, last=True)
        replies, cut_reply = self._words([Exchange((exchange.response,), "") for exchange in exchanges], last=False)
        return (*contexts, *replies), cut | cut_reply

    def likeness(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Vector:
        """Cosine of maximum and minimum word vectors."""
        replies, _ = self.encode([(exchange.response,) for exchange in exchanges], progress=progress)
        return self.best_of_references(exchanges, replies, progress=progress)

    def _words(self, exchanges: Sequence[Exchange], *, last: bool) -> tuple[tuple[Tensor, Tensor], NDArray[np.bool_]]:
        laid = self.encoder.tokenizer.contexts(exchanges)
        kept = [pair.ids[-_LONGEST:] if last else pair.ids[:_LONGEST] for pair in laid]
        # How far a text is padded changes nothing: the GRU stops where it ends.
        ids = torch.zeros((len(kept), _LONGEST), dtype=torch.long)
        for row, words in enumerate(kept):
            ids[row, : len(words)] = torch.from_numpy(words.astype(np.int64))
        cut = np.array([pair.cut or len(pair.ids) > _LONGEST for pair in laid])
        return (ids, torch.tensor([len(words) for words in kept])), cut
