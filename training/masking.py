"""Masked words beside next responses: the two-task model of DEB and the collator that hides words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common import Recipe
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import collate
from dialeval.papers.deb import DebNetwork, MaskedWordHead, Masking, mask_words, word_continuations
from stages import Collator


class TwoTasks(nn.Module):
    """The network, and beside it a head for masked words where a stage gives them a weight."""

    def __init__(self, network: DebNetwork, weight: float, original: Path | None = None) -> None:
        super().__init__()
        self.network = network
        encoder: Any = network.encoder
        embeddings = encoder.get_input_embeddings().weight
        self.words = MaskedWordHead(embeddings.shape[1], len(embeddings)) if weight else None
        if original is not None:
            network.load_original_head(original, self.words)

    def forward(self, masked: Tensor, **tensors: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits of "valid" and "not valid", and of the vocabulary where `masked` is set."""
        hidden = self.network.hidden(**tensors)
        logits = self.network.rows(hidden[:, 0])[:, -2:]
        if self.words is None:
            return logits, None
        encoder: Any = self.network.encoder
        return logits, self.words(hidden[masked], encoder.get_input_embeddings().weight)


class MaskingCollator(Collator):
    """Token tensors in which words are hidden, and the words."""

    def __init__(self, network: DebNetwork, recipe: Recipe) -> None:
        super().__init__(network, recipe["training"]["max_length"])
        tokenizer = network.tokenizer
        self.continuations = word_continuations(tokenizer)
        separator = tokenizer.convert_tokens_to_ids(network.config.layout.separator)
        self.fixed_ids = np.array([*tokenizer.all_special_ids, separator])
        self.mask_id = tokenizer.mask_token_id
        self.masking = Masking(**recipe["masking"])
        self.seed = recipe["seed"]

    def masked(self, exchanges: list[Exchange], number: int, *, hide: bool) -> tuple[dict[str, Tensor], Tensor]:
        """Batch `number` is masked in the same way whenever and wherever it is read."""
        rng = np.random.default_rng([self.seed, 15, number])
        pairs = self.tokenizer.pairs(exchanges)
        places = [np.zeros(0, dtype=np.intp) for _ in pairs]
        words = [pair.ids[:0] for pair in pairs]
        for row, pair in enumerate(pairs if hide else ()):
            fixed = np.isin(pair.ids, self.fixed_ids)
            ids, places[row] = mask_words(pair.ids, fixed, self.continuations, self.mask_id, rng, self.masking)
            words[row] = pair.ids[places[row]]
            pairs[row] = replace(pair, ids=ids.astype(np.int32))
        tensors = collate(pairs, self.tokenizer.pad_id, segment_ids=self.segment_ids)
        tensors["masked"] = torch.zeros_like(tensors["input_ids"], dtype=torch.bool)
        for row, positions in enumerate(places):
            tensors["masked"][row, torch.from_numpy(positions)] = True
        return tensors, torch.from_numpy(np.concatenate(words).astype(np.int64))
