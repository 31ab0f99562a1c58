"""The encoder that every metric shares, and the head that it is trained with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel

#: What the encoder learns in `training/aspects.py`, one head each.
TRUNK_HEADS = ("next", "rated", "valid", "fluent", "faithful", "consistent", "respectful")
#: Heads of the judge that it keeps from there, and what they are called there. Those for faults are fitted anew.
JUDGE_HEADS = {"next": "next", "follows": "rated", "valid": "valid"}


class Trunk(nn.Module):
    """The encoder, and on its first token one number, how well the reply follows, or one for each of several heads."""

    def __init__(self, encoder: Path, heads: int = 1) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(
            encoder, add_pooling_layer=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        self.encoder.embeddings.requires_grad_(False)
        self.head = nn.Linear(self.encoder.config.hidden_size, heads)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, dropout: float = 0.0
    ) -> Tensor:
        """`[batch]` logits in float32, `[batch, heads]` where there are several. Dropout is that of BERT but for the
        embeddings, which stay as they are: in attention, and before both sums of a layer.
        """
        hidden = self.encoder.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        unseen = torch.zeros_like(attention_mask, dtype=hidden.dtype).masked_fill(attention_mask == 0, -1e4)
        *layers, last = self.encoder.encoder.layer
        for layer in layers:
            hidden = through_layer(layer, hidden, hidden, unseen[:, None, None], dropout)
        # Of the last layer only the first token is looked at, so only that one is computed.
        first = through_layer(last, hidden, hidden[:, :1], unseen[:, None, None], dropout)[:, 0]
        logits: Tensor = self.head(first)
        return logits.float().squeeze(-1)


def through_layer(layer: Any, hidden: Tensor, queries: Tensor, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """One layer of BERT for the positions in `queries`; on a CPU in plain products, since torch's fused attention takes
    four times as long there in bfloat16 (and is meant for longer texts than ours).
    """
    attention, heads = layer.attention, layer.attention.self.num_attention_heads
    query, key, value = (
        linear(states).unflatten(-1, (heads, -1)).transpose(1, 2)
        for linear, states in (
            (attention.self.query, queries), (attention.self.key, hidden), (attention.self.value, hidden)
        )
    )  # fmt: skip
    if hidden.is_cuda:
        seen_by_heads = F.scaled_dot_product_attention(query, key, value, mask, dropout)
    else:
        shares = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + mask).softmax(dim=-1)
        seen_by_heads = F.dropout(shares, dropout) @ value
    mixed = attention.output.dense(seen_by_heads.transpose(1, 2).flatten(-2))
    seen = attention.output.LayerNorm(F.dropout(mixed, dropout) + queries)
    deeper = F.dropout(layer.output.dense(layer.intermediate(seen)), dropout)
    result: Tensor = layer.output.LayerNorm(deeper + seen)
    return result


def next_reply_loss(logits: Tensor, binary_weight: float) -> Tensor:
    """`[contexts]`: cross-entropy over the candidates, the true one first, and a little of the binary loss."""
    truth = torch.zeros_like(logits)
    truth[:, 0] = 1
    choice = F.cross_entropy(logits, truth, reduction="none")
    return choice + binary_weight * F.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
