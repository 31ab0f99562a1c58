"""Networks and checkpoints of every approach over the tiny encoder, and rows for them: untrained, but whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.encoders.layout import PairFormat
from dialeval.judge.network import HEADS
from dialeval.judge.rule import ASPECTS
from dialeval.papers import network_class
from dialeval.papers.learned import quantile_curves

#: What the tiny encoder is called on the Hub of the tests.
ENCODER_ID = "someone/tiny-encoder"
KEYS = ("mahalanobis", "native", "full", "turn.overall", *(f"turn.{aspect}" for aspect in ASPECTS))
ROWS = {"responses": ["i am fine thanks", "fish and chips"], "contexts": [["hello there", "how are you"], ["hello"]]}


def small_network(
    approach: str, encoder: Path, tuning: Any = "lora", name: str = "tiny", heads: Sequence[str] = HEADS[:8]
) -> Any:
    """A network whose config names the encoder's folder."""
    torch.manual_seed(5)
    curves = quantile_curves(np.linspace(-9, 5, 50), np.linspace(-30, -5, 50))
    config = CheckpointConfig(
        approach,
        name=name,
        encoder=EncoderSource(id=str(encoder), tuning=tuning),
        layout=PairFormat(max_length=48),
        architecture={"heads": " ".join(heads)} if approach == "judge" else {},
        quantiles=dict.fromkeys(KEYS, curves),
    )
    network = network_class(approach).create(config, lora=LoraSettings(rank=4, alpha=8) if tuning == "lora" else None)
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            if "lora_B" in key:
                parameter.normal_(std=0.05)
    network.round_tuned()
    return network.eval()


def small_checkpoint(approach: str, encoder: Path, folder: Path, heads: Sequence[str] = HEADS[:8]) -> Path:
    """A folder with one."""
    small_network(approach, encoder, name=f"{approach}-tiny", heads=heads).save_pretrained(folder)
    return folder
