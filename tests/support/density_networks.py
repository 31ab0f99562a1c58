"""A DENSITY network over a tiny encoder, and rows for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.encoders.layout import PairFormat
from dialeval.papers.density import DensityNetwork
from dialeval.papers.learned import quantile_curves

ROWS = {"responses": ["i am fine thanks", "fish and chips"], "contexts": [["hello there", "how are you"], ["hello"]]}


def make_network(encoder: Path, tuning: str = "lora", separator: str = "[unused0]") -> DensityNetwork:
    torch.manual_seed(1)
    config = CheckpointConfig(
        approach="density",
        name="tiny",
        encoder=EncoderSource(id=str(encoder), tuning=tuning),  # type: ignore[arg-type]
        layout=PairFormat(max_length=32, separator=separator),
        quantiles={"mahalanobis": quantile_curves(np.linspace(-9, -1, 50), np.linspace(-30, -5, 50))},
    )
    network = DensityNetwork.create(config, lora=LoraSettings(rank=4, alpha=8) if tuning == "lora" else None)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    network.round_tuned()
    return network.eval()
