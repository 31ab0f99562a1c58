"""BERT's encoder for scoring: transformers' numbers, without its import, which takes longer than all else at a start.

Modules and parameters have the names that they have in transformers, so that weights and adapters fit either one.
Training, other families of encoders and unusual settings use transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
    _attn_implementation = "sdpa"

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self | None:
        """The settings of a `config.json`; None if it asks for anything else than an ordinary BERT."""
        if "model_type" not in raw or any(raw.get(name, usual) != usual for name, usual in _ORDINARY.items()):
            return None
        sizes = {one.name: raw.get(one.name, one.default) for one in fields(cls) if one.name != "raw"}
        epsilon = sizes["layer_norm_eps"]
        whole = [size for name, size in sizes.items() if name != "layer_norm_eps"]
        if not all(type(size) is int and size > 0 for size in whole) or not isinstance(epsilon, float):
            return None
        if sizes["hidden_size"] % sizes["num_attention_heads"]:
            return None
        return cls(**sizes, raw=dict(raw))

    def to_json_file(self, path: str | Path) -> None:
        """As transformers' configurations do."""
        sizes = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "raw"}
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
        self.encoder.layer = nn.ModuleList(BertLayer(settings) for _ in range(settings.num_hidden_layers))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> BertOutput:
        """Where `attention_mask` is 0 nothing is looked at."""
        states = self.embeddings(input_ids, token_type_ids)
        mask = None if attention_mask is None else _mask(attention_mask)
        for layer in self.encoder.layer:  # type: ignore[union-attr]
            states = layer(states, mask)
        return BertOutput(states)

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


def _mask(real: Tensor) -> Tensor | None:
    """`[batch, 1, length, length]`; None where there is no padding, as attention is faster without a mask."""
    traced = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined, no-untyped-call]
    if not traced and bool(real.all()):
        return None
    batch, length = real.shape
    return real.bool()[:, None, None].expand(batch, 1, length, length)


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

    def forward(self, ids: Tensor, types: Tensor | None) -> Tensor:
        types = torch.zeros_like(ids) if types is None else types
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        words = self.word_embeddings(ids) + self.token_type_embeddings(types) + self.position_embeddings(places)
        normed: Tensor = self.LayerNorm(words)
        return normed


class BertLayer(nn.Module):
    """Attention and feed-forward part, each with its residual."""

    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        width, inner = settings.hidden_size, settings.intermediate_size
        self.attention = nn.Module()
        self.attention.self = _Heads(settings)
        self.attention.output = _Residual(width, width, settings)
        self.intermediate = _Raised(width, inner)
        self.output = _Residual(inner, width, settings)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        """`[batch, length, width]`, as what comes in."""
        seen = self.attention.self(hidden_states, attention_mask)  # type: ignore[operator]
        attended = self.attention.output(seen, hidden_states)  # type: ignore[operator]
        state: Tensor = self.output(self.intermediate(attended), attended)
        return state


class _Heads(nn.Module):
    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        width = settings.hidden_size
        self.num_attention_heads = settings.num_attention_heads
        self.scaling = (width // settings.num_attention_heads) ** -0.5
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = states.shape
        query, key, value = (
            part(states).view(batch, length, self.num_attention_heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=self.scaling)
        return seen.transpose(1, 2).reshape(batch, length, width)


class _Raised(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, inner)

    def forward(self, states: Tensor) -> Tensor:
        return F.gelu(self.dense(states))


class _Residual(nn.Module):
    def __init__(self, inward: int, width: int, settings: BertSettings) -> None:
        super().__init__()
        self.dense = nn.Linear(inward, width)
        self.LayerNorm = nn.LayerNorm(width, eps=settings.layer_norm_eps)

    def forward(self, states: Tensor, residual: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dense(states) + residual)
        return normed


# --- the first token alone -------------------------------------------------------------------------

#: Module and name, so that nobody imports them who has none.
_OF_TRANSFORMERS = frozenset(
    (f"transformers.models.{family.lower()}.modeling_{family.lower()}", f"{family}Layer")
    for family in ("Bert", "Roberta")
)


def compute_first_token_only(encoder: nn.Module) -> bool:
    """From now on this encoder's last hidden state holds the first token alone; returns whether that could be done.

    Scoring reads nothing else. Every token still gives a key and a value, but only the first one asks, and only it goes
    through the feed-forward part: of six layers about a seventh of the work is spared. Encoders of the BERT and RoBERTa
    kind with fused attention can; every other one stays as it is. No weight is touched, so that the encoder is saved as
    before.
    """
    layers = known_layers(encoder)
    if not layers:
        return False
    run_with(layers[-1], _first_token_only)
    return True


def known_layers(encoder: nn.Module) -> list[Any]:
    """The layers of an encoder that are built as BERT's, with fused attention; none of any other."""
    layers: Any = getattr(getattr(encoder, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList) or not all(map(_is_known, layers)):
        return []
    config: Any = encoder.config
    return [] if config._attn_implementation != "sdpa" or config.is_decoder else list(layers)


def _is_known(layer: nn.Module) -> bool:
    """Our own, and those of transformers' BERT and RoBERTa."""
    kind = type(layer)
    return kind is BertLayer or (kind.__module__, kind.__name__) in _OF_TRANSFORMERS


def run_with(layer: Any, forward: Callable[..., Tensor]) -> None:
    """Have a layer compute in another way, a function of the layer and of what its own way takes."""
    layer.forward = partial(forward, layer)


def gives_first_token_only(layer: Any) -> bool:
    """Whether `compute_first_token_only` changed this layer."""
    return getattr(layer.forward, "func", None) is _first_token_only


def _first_token_only(
    layer: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
) -> Tensor:
    attention = layer.attention.self

    def heads(states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], attention.num_attention_heads, -1).transpose(1, 2)

    first = hidden_states[:, :1]
    seen: Tensor = F.scaled_dot_product_attention(
        heads(attention.query(first)),
        heads(attention.key(hidden_states)),
        heads(attention.value(hidden_states)),
        # One row of the mask for each token that asks.
        attn_mask=None if attention_mask is None else attention_mask[:, :, :1],
        scale=attention.scaling,
    )
    attended = layer.attention.output(seen.transpose(1, 2).flatten(2), first)
    state: Tensor = layer.output(layer.intermediate(attended), attended)
    return state
