"""What dialeval asks of an encoder, whichever of transformers' models it is: states, sizes, what is tuned.

Width, longest input, segments and separators come from the model and its tokenizer; nothing here knows a number of one
encoder. Models whose layers are built as BERT's (BERT, RoBERTa and its kin, MPNet) are run layer by layer, with fused
attention and, of the last layer, the first token alone: that is all that most metrics read. Any other model runs as
transformers has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: Families that number positions from behind the padding token, and so have fewer than they declare.
_SHIFTED = frozenset(("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "roberta-prelayernorm"))
#: Where the layers of a family keep their parts: query, key, value, output and norm of attention.
_BERT = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
         "attention.output.LayerNorm")  # fmt: skip
_MPNET = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm")
_ATTENTION: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bert", "roberta", "camembert", "xlm-roberta"), _BERT), "mpnet": _MPNET
}  # fmt: skip
#: The halves of the feed-forward part, the same in all of them.
_FORWARD = ("intermediate.dense", "output.dense", "output.LayerNorm")
#: What is added to the attention of a padded position beside a bias.
_UNSEEN = -30_000.0


def plain(encoder: Any) -> Any:
    """The model itself, without the wrapper of an adapter."""
    return encoder.get_base_model() if hasattr(encoder, "get_base_model") else encoder


def width(encoder: Any) -> int:
    """Numbers of one state."""
    return int(plain(encoder).config.hidden_size)


def longest_input(config: Any) -> int:
    """Tokens that an encoder has positions for; those of RoBERTa's kind count from behind their padding token."""
    positions = int(getattr(config, "max_position_embeddings", None) or 512)
    shift = int(getattr(config, "pad_token_id", None) or 0) + 1 if str(config.model_type) in _SHIFTED else 0
    return positions - shift


def takes_segments(encoder: Any) -> bool:
    """Whether an encoder tells a context from a reply by token types."""
    return int(getattr(plain(encoder).config, "type_vocab_size", None) or 0) > 1


def freeze_embeddings(encoder: Any) -> None:
    """Leave the table of words, the positions and their norm as they are; a bias of attention is part of the layers."""
    plain(encoder).embeddings.requires_grad_(False)


def tuned_state(encoder: nn.Module) -> dict[str, Tensor]:
    """All tensors of an encoder but its embeddings."""
    return {name: tensor for name, tensor in encoder.state_dict().items() if not name.startswith("embeddings.")}


def load_exactly(module: nn.Module, state: Mapping[str, Tensor], *, kept: str | tuple[str, ...] = ()) -> None:
    """Load a state that has every tensor of a module but those whose names begin with `kept`, and no other."""
    asked = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    wanted = {name: shape for name, shape in asked.items() if not (kept and name.startswith(kept))}
    held = {name: tuple(tensor.shape) for name, tensor in state.items()}
    if held != wanted:
        wrong = sorted(name for name in held.keys() | wanted.keys() if held.get(name) != wanted.get(name))
        raise ValueError(f"these weights are of another network: {len(wrong)} tensors differ, {wrong[0]} for example")
    module.load_state_dict({**module.state_dict(), **state})


# --- layers built as BERT's ------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The parts of one layer, whatever its family calls them."""

    heads: int
    query: nn.Module
    key: nn.Module
    value: nn.Module
    output: nn.Module
    norm: nn.Module
    up: nn.Module
    down: nn.Module
    last_norm: nn.Module

    def __call__(self, states: Tensor, asking: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
        """The new states of the tokens that ask, which look at all `states`."""
        query, key, value = (
            part(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, tokens in ((self.query, asking), (self.key, states), (self.value, states))
        )
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        mixed = self.output(seen.transpose(1, 2).flatten(-2))
        attended = self.norm(F.dropout(mixed, dropout) + asking)
        result: Tensor = self.last_norm(F.dropout(self.down(F.gelu(self.up(attended))), dropout) + attended)
        return result


def plain_layers(encoder: Any) -> list[Layer]:
    """The layers of an encoder that is built as BERT, RoBERTa or MPNet are; none of any other."""
    model = plain(encoder)
    config = model.config
    names = _ATTENTION.get(str(config.model_type))
    ordinary = getattr(config, "hidden_act", None) == "gelu" and not getattr(config, "is_decoder", False)
    absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
    if names is None or not ordinary or not absolute:
        return []
    heads = int(config.num_attention_heads)
    parts = (*names, *_FORWARD)
    return [Layer(heads, *[layer.get_submodule(name) for name in parts]) for layer in model.encoder.layer]


def states(
    encoder: Any,
    input_ids: Tensor,
    attention_mask: Tensor,
    token_type_ids: Tensor | None = None,
    *,
    first_only: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """`[batch, length, width]`, or `[batch, 1, width]` where only the first token is asked for.

    Dropout is that of BERT but for the embeddings: in attention, and before both sums of a layer.
    """
    model = plain(encoder)
    segments = {"token_type_ids": token_type_ids} if takes_segments(encoder) and token_type_ids is not None else {}
    layers = getattr(model, "quick_layers", None) or plain_layers(encoder)
    if not layers:
        if dropout:
            raise ValueError(f"dropout is not known for encoders of the kind {model.config.model_type}")
        whole: Tensor = encoder(input_ids=input_ids, attention_mask=attention_mask, **segments).last_hidden_state
        return whole[:, :1] if first_only else whole
    hidden: Tensor = model.embeddings(input_ids=input_ids, **segments)
    mask = attention_of(model, hidden, attention_mask)
    for layer in layers[:-1]:
        hidden = layer(hidden, hidden, mask, dropout)
    if not first_only:
        return layers[-1](hidden, hidden, mask, dropout)
    return layers[-1](hidden, hidden[:, :1], None if mask is None else mask[:, :, :1], dropout)


def attention_of(model: Any, hidden: Tensor, real: Tensor) -> Tensor | None:
    """`[batch, heads or 1, length, length]`: which tokens are looked at, or what is added where the model has a bias by
    distance; None where there is neither padding nor bias, as attention is faster without.
    """
    bias: Tensor | None = None
    if hasattr(model.encoder, "compute_position_bias"):
        bias = model.encoder.compute_position_bias(hidden[:1]).to(hidden.dtype)
    traced = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined, no-untyped-call]
    if not traced and bool(real.all()):
        return None if bias is None else bias.expand(len(hidden), -1, -1, -1)
    if bias is None:
        return real.bool()[:, None, None].expand(-1, 1, real.shape[1], -1)
    return bias + torch.zeros_like(real, dtype=hidden.dtype).masked_fill(real == 0, _UNSEEN)[:, None, None]


def first_token(
    encoder: Any, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
) -> Tensor:
    """`[batch, width]` in float32: the first token of the last layer."""
    return states(encoder, input_ids, attention_mask, token_type_ids, first_only=True)[:, 0].float()
