"""Checkpoints of every approach over the tiny encoder: untrained, but whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from dialeval.approaches import network_class
from dialeval.checkpoints import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.formatting import PairFormat
from dialeval.learned import quantile_curves

ENCODER_ID = "someone/tiny-encoder"
KEYS = ("mahalanobis", "native", "full")


def small_checkpoint(approach: str, encoder: Path, folder: Path, *, encoder_id: str | None = None) -> Path:
    """Save one; with `encoder_id` its config names the base encoder as on a Hub."""
    torch.manual_seed(5)
    curves = quantile_curves(np.linspace(-9, 5, 50), np.linspace(-30, -5, 50))
    config = CheckpointConfig(
        approach,
        name=f"{approach}-tiny",
        encoder=EncoderSource(id=str(encoder)),
        layout=PairFormat(max_length=48),
        quantiles=dict.fromkeys(KEYS, curves),
    )
    network = network_class(approach).create(config, lora=LoraSettings(rank=4, alpha=8))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    network.round_adapters()
    network.save_pretrained(folder)
    if encoder_id is not None:
        raw = json.loads((folder / "config.json").read_text())
        raw["encoder"]["id"] = encoder_id
        (folder / "config.json").write_text(json.dumps(raw))
    return folder
