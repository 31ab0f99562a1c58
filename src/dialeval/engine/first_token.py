"""Scoring reads the first token of the last layer, so the others need not be computed there.

In that layer every token still gives a key and a value, but only the first one asks, and only it goes
through the feed-forward part. The result is the same up to rounding; of an encoder of six layers about
a seventh of the work is spared.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


def compute_first_token_only(encoder: nn.Module) -> bool:
    """From now on this encoder's last hidden state holds the first token alone; tells whether that could be done.

    Encoders of the BERT and RoBERTa kind with fused attention can; every other one stays as it is. No
    weight is touched, so that the encoder is saved and copied as before.
    """
    layers = known_layers(encoder)
    shortened = _shortened().get(type(layers[-1])) if layers else None
    if shortened is None:
        return False
    layers[-1].__class__ = shortened
    return True


def known_layers(encoder: nn.Module) -> list[Any]:
    """The layers of an encoder of the BERT kind with fused attention; none of any other."""
    layers: Any = getattr(getattr(encoder, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList):
        return []
    config: Any = encoder.config
    return [] if config._attn_implementation != "sdpa" or config.is_decoder else list(layers)


@cache
def _shortened() -> dict[type[nn.Module], type[nn.Module]]:
    """A layer that computes the first token only, for each kind of layer that is known to allow it."""
    from transformers.models.bert.modeling_bert import BertLayer
    from transformers.models.roberta.modeling_roberta import RobertaLayer

    return {
        kind: type(f"FirstToken{kind.__name__}", (kind,), {"forward": _forward}) for kind in (BertLayer, RobertaLayer)
    }


def _forward(layer: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
    attention = layer.attention.self

    def heads(states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], attention.num_attention_heads, -1).transpose(1, 2)

    first = hidden_states[:, :1]
    seen: Tensor = scaled_dot_product_attention(
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
