"""Checkpoints of every approach over the tiny encoder: untrained, but whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.encoders.layout import PairFormat
from dialeval.judge.metric import ASPECTS, HEADS
from dialeval.papers import network_class
from dialeval.papers.learned import quantile_curves

#: What the tiny encoder is called on the Hub of the tests.
ENCODER_ID = "someone/tiny-encoder"
KEYS = ("mahalanobis", "native", "full", "turn.overall", *(f"turn.{aspect}" for aspect in ASPECTS))


def small_checkpoint(approach: str, encoder: Path, folder: Path, heads: Sequence[str] = HEADS[:8]) -> Path:
    """Save one; its config names the encoder's folder."""
    torch.manual_seed(5)
    curves = quantile_curves(np.linspace(-9, 5, 50), np.linspace(-30, -5, 50))
    config = CheckpointConfig(
        approach,
        name=f"{approach}-tiny",
        encoder=EncoderSource(id=str(encoder)),
        layout=PairFormat(max_length=48),
        architecture={"heads": " ".join(heads)} if approach == "judge" else {},
        quantiles=dict.fromkeys(KEYS, curves),
    )
    network = network_class(approach).create(config, lora=LoraSettings(rank=4, alpha=8))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    network.round_tuned()
    network.save_pretrained(folder)
    return folder
