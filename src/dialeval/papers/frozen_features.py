"""Frozen features of (context, reply) pairs, for metrics that compare sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.checkpoints.catalogue import checkpoint_named
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import BASE_ENCODER, find_checkpoint, find_encoder, weights_digest
from dialeval.checkpoints.load import load_encoder, load_tokenizer
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import longest_input, states
from dialeval.encoders.batching import PairEncoder, choose_device, choose_precision, speed_up, weights_dtype
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.io.files import parse_json
from dialeval.papers import network_class
from dialeval.papers.feature_set import FeatureSet, digest

Pooling = Literal["cls", "mean"]

#: Tokens of a pair unless more or fewer are asked for; what the papers' encoders read.
_MAX_LENGTH = 512


class FeatureNetwork(nn.Module):
    """An encoder whose row of numbers is the last layer's first token, or the mean over all tokens."""

    def __init__(self, encoder: nn.Module, pooling: Pooling, *, segment_ids: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.segment_ids = segment_ids

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, width]`; neither a pooler nor a normalisation stands behind the last layer."""
        first_only = self.pooling == "cls"
        hidden = states(self.encoder, input_ids, attention_mask, token_type_ids, first_only=first_only)
        if first_only:
            return hidden[:, 0]
        mask = attention_mask[..., None].float()
        return (hidden.float() * mask).sum(dim=1) / mask.sum(dim=1)


class FrozenFeatures:
    """Turns pairs of context and reply into features by an encoder as it is: a pretrained one, or a checkpoint's."""

    _loaded: ClassVar[WeakValueDictionary[tuple[str, ...], FrozenFeatures]] = WeakValueDictionary()

    def __init__(
        self,
        encoder: str | Path | None = None,
        *,
        revision: str | None = None,
        pooling: Pooling = "cls",
        max_length: int | None = None,
        tidy: bool = True,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        batch_tokens: int | None = None,
    ) -> None:
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling is {pooling!r}; it is 'cls' or 'mean'")
        place = choose_device(device)
        precision = choose_precision(dtype, place)
        name = BASE_ENCODER if encoder is None else str(encoder)
        listed = checkpoint_named(name) is not None
        located = find_checkpoint(name, default=name) if listed else find_encoder(name, revision=revision)
        is_ours = _model_type(located.folder) == "dialeval"
        model, tokenizer, layout = (_tuned if is_ours else _plain)(located.folder)
        config = CheckpointConfig.read(located.folder) if is_ours else None
        #: Benchmarks that a trained checkpoint learned from.
        self.contaminated_by = frozenset(config.contaminated_by if config else ())
        longest = longest_input(model.config)
        if max_length is not None and max_length > longest:
            raise ValueError(f"max_length is {max_length}; this encoder reads at most {longest} tokens")
        layout = replace(layout, max_length=max_length or min(layout.max_length, longest), tidy=tidy)
        pairs = PairTokenizer(tokenizer, layout)
        precision = speed_up([model], precision, pairs, asked=dtype)
        network = FeatureNetwork(model, pooling, segment_ids=layout.segment_ids).requires_grad_(False)
        network.to(place, weights_dtype(precision))
        self.encoder = PairEncoder(
            network,
            pairs,
            batch_tokens=batch_tokens,
            same_widths=precision == "int8",
        )
        # A run's weights lie in a folder that is called `checkpoint`, whatever they are.
        own_name = (config.name if config else "") or located.folder.name
        self.name = own_name if located.origin == "folder" else name
        #: What must be equal for two sets of features to be comparable.
        self.made_with = {
            "weights": weights_digest(located.folder, config.encoder.layers if config else None)[:12],
            "pooling": pooling,
            "max_length": str(layout.max_length),
            "segments": str(layout.segment_ids).lower(),
            "tidy": str(layout.tidy).lower(),
            **({} if layout.turns is None else {"turns": str(layout.turns)}),
            "dtype": precision,
        }

    @classmethod
    def shared(cls, encoder: str | Path | None = None, **options: Any) -> FrozenFeatures:
        """The same, loaded once for all metrics that use it; a pair that two of them need is encoded once."""
        key = (str(encoder), *(f"{name}={options[name]}" for name in sorted(options)))
        loaded = cls._loaded.get(key)
        if loaded is None:
            loaded = cls._loaded[key] = cls(encoder, **options)
        return loaded

    def of(self, pairs: Sequence[Exchange], *, progress: bool = False) -> FeatureSet:
        """Features of all pairs, in their order."""
        encoded = self.encoder.encode(pairs, progress=progress)
        texts = [digest([*pair.context, pair.response]) for pair in pairs]
        contexts = [digest(pair.context) for pair in pairs]
        return FeatureSet(encoded.rows, np.array(texts, np.uint64), np.array(contexts, np.uint64), encoded.cut)

    def stream(self, pairs: Iterable[Exchange]) -> Iterator[NDArray[np.float32]]:
        """Block after block of features, for more pairs than fit into memory."""
        for encoded in self.encoder.stream_chunks(pairs):
            yield encoded.rows


def _plain(folder: Path) -> tuple[Any, Any, PairFormat]:
    """A pretrained encoder, its tokenizer, and pairs as BERT reads them."""
    tokenizer = load_tokenizer(folder, PairFormat())
    model: Any = load_encoder(folder, len(tokenizer))
    segments = (getattr(model.config, "type_vocab_size", 0) or 0) > 1
    return model, tokenizer, PairFormat(max_length=_MAX_LENGTH, segment_ids=segments)


def _tuned(folder: Path) -> tuple[Any, Any, PairFormat]:
    """The encoder of a trained checkpoint, its adapter merged, and pairs as it learned to read them."""
    approach = CheckpointConfig.read(folder).approach
    network = network_class(approach).from_pretrained(folder, device="cpu")
    return getattr(network, network.encoders[0]), network.tokenizer, network.config.layout


def _model_type(folder: Path) -> Any:
    return parse_json((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
