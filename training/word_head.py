"""The head for masked words of the papers' baselines: trained on hidden states of an encoder that stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from common import Run
from dialeval.core.exchange import Exchange
from masking import MaskingCollator
from trainer import fit_head

_BATCH = 32


def train_words(
    network: Any, run: Run, exchanges: Sequence[Exchange], held_out: Sequence[Exchange]
) -> dict[str, float]:
    """Train `network.words`; every second exchange is read without its context, as USL-H reads replies."""
    settings, recipe = run.recipe["words"], run.recipe
    collator = MaskingCollator(network, recipe)
    states, words = masked_states(network, collator, alternating(exchanges))
    known, truth = masked_states(network, collator, alternating(held_out))
    table = network.encoder.get_input_embeddings().weight.detach().float()
    module = network.words.requires_grad_(True)
    # What a word's logit begins from: how often it was hidden.
    counts = torch.bincount(words, minlength=len(table)).float() + 0.1
    module.bias.data.copy_((counts / counts.sum()).log())
    module.transform.weight.data.copy_(torch.eye(len(module.transform.weight)))
    order = np.random.default_rng(recipe["seed"])
    draws = (torch.from_numpy(order.integers(len(words), size=settings["batch_size"])) for _ in count())
    fitting = {"weight_decay": 0.01, "clip": 1.0, **settings}
    for step, progress in fit_head(
        module, fitting, draws, lambda chosen: F.cross_entropy(module(states[chosen], table), words[chosen])
    ):
        run.step += 1
        if step % settings["log_every"] == 0 or step == settings["steps"]:
            run.log("train", loss_words=progress["loss"], learning_rate=progress["learning_rate"])
    module.requires_grad_(False)
    with torch.no_grad():
        logits = torch.cat([module(part, table) for part in torch.split(known, 2048)])
    figures = {
        "perplexity": float(F.cross_entropy(logits, truth).exp()),
        "word_accuracy": float((logits.argmax(dim=1) == truth).float().mean()),
    }
    run.log("validation", **figures, kept=1)
    run.best_step = run.step
    return figures


def alternating(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges, every second one without its context."""
    return [row if number % 2 else replace(row, context=(), facts=()) for number, row in enumerate(exchanges)]


@torch.no_grad()
def masked_states(
    network: Any, collator: MaskingCollator, exchanges: Sequence[Exchange]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states where words were hidden, and these words."""
    # Neighbours of like length spare padding.
    ordered = sorted(exchanges, key=lambda exchange: sum(map(len, exchange.context)) + len(exchange.response))
    states, words = [], []
    for start in range(0, len(ordered), _BATCH):
        tensors, hidden_words = collator.masked(ordered[start : start + _BATCH], start, hide=True)
        masked = tensors.pop("masked")
        states.append(network.hidden(**tensors)[masked])
        words.append(hidden_words)
    return torch.cat(states), torch.cat(words)
