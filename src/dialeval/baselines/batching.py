"""Batches of similar length for language models, whose output is as wide as their vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dialeval.baselines.models import readable_tokens

#: Padded tokens in one batch. A vocabulary of 50,000 makes this 200 MB of logits.
DEFAULT_BATCH_TOKENS = 1024
#: Longest input by default; models that can take more are rarely worth it for one reply.
LONGEST = 1024


def token_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Row numbers in batches, longest first, so that a lack of memory shows at once. Every row is in one batch."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def input_limit(config: Any, tokenizer: Any, asked: int | None) -> int:
    """How many tokens a model reads: what was asked for, at most what it can take."""
    able = readable_tokens(config, tokenizer)
    if asked is None:
        return min(able, LONGEST)
    if not 8 <= asked <= able:
        raise ValueError(f"max_length is {asked}; this model takes 8 to {able} tokens")
    return asked
