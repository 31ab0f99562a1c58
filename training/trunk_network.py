"""The encoder that every metric shares, and the heads that it is trained with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel

from dialeval.checkpoints.config import LoraSettings
from dialeval.checkpoints.load import with_lora
from dialeval.encoders.base import freeze_embeddings, states, width

#: What the encoder learns in `training/aspects.py`, one head each. The last five are the large encoder's alone.
TRUNK_HEADS = (
    "next", "rated", "valid", "fluent", "faithful", "consistent", "respectful",
    "preferred", "empathetic", "truthful", "helps", "dialogue",
)  # fmt: skip
#: Heads of the judge that it keeps from there, and what they are called there. Those for faults are fitted anew.
JUDGE_HEADS = {
    "next": "next", "follows": "rated", "valid": "valid", "preferred": "preferred", "respectful": "respectful",
    "faithful": "faithful", "whole": "dialogue",
}  # fmt: skip


class Trunk(nn.Module):
    """An encoder, and on its first token one number, how well the reply follows, or one for each of several heads.

    All layers are tuned, or adapters beside them; the embeddings stay as they are.
    """

    def __init__(self, encoder: Path, heads: int = 1, lora: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.encoder: Any = AutoModel.from_pretrained(
            encoder, add_pooling_layer=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        if lora is None:
            freeze_embeddings(self.encoder)
        else:
            self.encoder = with_lora(self.encoder, LoraSettings(**lora))
        self.head = nn.Linear(width(self.encoder), heads)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, dropout: float = 0.0
    ) -> Tensor:
        """`[batch]` logits in float32, `[batch, heads]` where there are several."""
        read = states(self.encoder, input_ids, attention_mask, token_type_ids, first_only=True, dropout=dropout)
        logits: Tensor = self.head(read[:, 0])
        return logits.float().squeeze(-1)


def next_reply_loss(logits: Tensor, binary_weight: float) -> Tensor:
    """`[contexts]`: cross-entropy over the candidates, the true one first, and a little of the binary loss."""
    truth = F.one_hot(logits.new_zeros(len(logits)).long(), logits.shape[1]).to(logits.dtype)
    choice = F.cross_entropy(logits, truth, reduction="none")
    return choice + binary_weight * F.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
