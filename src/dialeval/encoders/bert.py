"""BERT's encoder for scoring: transformers' numbers, without its import, which takes longer than all else at a start.

Modules and parameters have the names that they have in transformers, so that weights and adapters fit either one.
Training, other families of encoders and unusual settings use transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from dialeval.encoders.base import states

#: What a configuration may say beside sizes for its encoder to be the ordinary one, with what it is if nothing is said.
_ORDINARY: Mapping[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "quantization_config": None,
}


@dataclass(frozen=True)
class BertSettings:
    """Sizes of an encoder; what its file does not say is as in the first BERT."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    #: All that the file says, to be written as it was read.
    raw: Mapping[str, Any] = field(default_factory=dict)

    model_type = "bert"
    hidden_act = "gelu"
    is_decoder = False

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self | None:
        """The settings of a `config.json`; None if it asks for anything else than an ordinary BERT."""
        if "model_type" not in raw or any(raw.get(name, usual) != usual for name, usual in _ORDINARY.items()):
            return None
        sizes = {size.name: raw.get(size.name, size.default) for size in fields(cls) if size.name != "raw"}
        epsilon = sizes["layer_norm_eps"]
        whole = [size for name, size in sizes.items() if name != "layer_norm_eps"]
        if not all(type(size) is int and size > 0 for size in whole) or not isinstance(epsilon, float):
            return None
        if sizes["hidden_size"] % sizes["num_attention_heads"]:
            return None
        return cls(**sizes, raw=dict(raw))

    def to_json_file(self, path: str | Path) -> None:
        """As transformers' configurations do."""
        sizes = {size.name: getattr(self, size.name) for size in fields(self) if size.name != "raw"}
        Path(path).write_text(json.dumps({**self.raw, **sizes}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


class BertOutput(NamedTuple):
    """`[batch, length, width]`."""

    last_hidden_state: Tensor


class BertEncoder(nn.Module):
    """Embeddings and layers, without a pooler."""

    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        self.config = settings
        self.embeddings = _Embeddings(settings)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer(settings) for _ in range(settings.num_hidden_layers))
        #: What computes in place of the layers, see `dialeval.encoders.int8`; copies begin without.
        self.quick_layers: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "quick_layers": None}

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> BertOutput:
        """Where `attention_mask` is 0 nothing is looked at."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return BertOutput(states(self, input_ids, mask, token_type_ids))

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of words."""
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, table: nn.Embedding) -> None:
        """Take another table."""
        self.embeddings.word_embeddings = table

    def resize_token_embeddings(self, count: int, **_: Any) -> None:
        """A table of so many rows; what the new ones hold is left to the caller."""
        known = self.get_input_embeddings().weight
        table = _table(count, known.shape[1]).to(known.device, known.dtype)
        kept = min(count, len(known))
        table.weight.data[:kept] = known.data[:kept]
        self.set_input_embeddings(table)


def _table(rows: int, width: int) -> nn.Embedding:
    """One to be filled: drawing numbers for one without memory has torch import its compiler, a second's work."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))


class _Embeddings(nn.Module):
    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        width = settings.hidden_size
        self.word_embeddings = _table(settings.vocab_size, width)
        self.position_embeddings = _table(settings.max_position_embeddings, width)
        self.token_type_embeddings = _table(settings.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=settings.layer_norm_eps)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        words = self.word_embeddings(input_ids) + self.token_type_embeddings(types) + self.position_embeddings(places)
        normed: Tensor = self.LayerNorm(words)
        return normed


class _Layer(nn.Module):
    """Attention and feed-forward part; `dialeval.encoders.base` computes them."""

    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        width, inner, epsilon = settings.hidden_size, settings.intermediate_size, settings.layer_norm_eps
        attention = {"query": nn.Linear(width, width), "key": nn.Linear(width, width), "value": nn.Linear(width, width)}
        self.attention = _parts(self=_parts(**attention), output=_residual(width, width, epsilon))
        self.intermediate = _parts(dense=nn.Linear(width, inner))
        self.output = _residual(inner, width, epsilon)


def _parts(**modules: nn.Module) -> nn.Module:
    """Modules under the names that transformers has for them."""
    parent = nn.Module()
    for name, module in modules.items():
        parent.add_module(name, module)
    return parent


def _residual(inward: int, width: int, epsilon: float) -> nn.Module:
    return _parts(dense=nn.Linear(inward, width), LayerNorm=nn.LayerNorm(width, eps=epsilon))
