"""A head that weighs a context against a reply, as RUBER does."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dialeval.papers.heads import Perceptron


class Relevance(nn.Module):
    """How well a reply goes with its context, from a vector of each: both and a bilinear form go through a perceptron.

    The bilinear form is of low rank, which keeps the head small; with `rank=0` there is none.
    """

    def __init__(self, width: int, *, rank: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.left = nn.Linear(width, rank, bias=False) if rank else None
        self.right = nn.Linear(width, rank, bias=False) if rank else None
        self.perceptron = Perceptron(2 * width + (rank > 0), *hidden)

    def forward(self, context: Tensor, reply: Tensor) -> Tensor:
        """`[rows]`: logits."""
        known = [context, reply]
        if self.left is not None and self.right is not None:
            known.append((self.left(context) * self.right(reply)).sum(dim=-1, keepdim=True))
        return self.perceptron(torch.cat(known, dim=-1))  # type: ignore[no-any-return]
