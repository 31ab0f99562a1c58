"""A CMN network over a tiny encoder, and pairs for it."""

from pathlib import Path

import numpy as np
import torch

from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.encoders.layout import PairFormat
from dialeval.papers.cmn_network import CmnNetwork
from dialeval.papers.learned import quantile_curves

RESPONSES = ["i am fine thanks", "fish and chips", "no thank you", "see you then bye", "the weather is nice today"]

CONTEXTS = [["hello there", "how are you"], ["what do you like to eat"], ["shall we go"], ["next week"], ["hello"]]

REFERENCES = [["fine thanks", "i am sorry"], ["i like fish"], ["yes please"], ["bye"], ["hello there", "hello", "yes"]]

LATENT, BANK = 4, 6


def make_network(encoder: Path, **architecture: int) -> CmnNetwork:
    torch.manual_seed(3)
    config = CheckpointConfig(
        approach="cmn",
        name="tiny",
        encoder=EncoderSource(id=str(encoder)),
        layout=PairFormat(max_length=32, separator="[unused0]", segment_ids=True),
        architecture={"latent": LATENT, "bank": BANK} | architecture,
        quantiles={"full": quantile_curves(np.linspace(-1, 3, 50), np.linspace(-3, 1, 50))},
    )
    network = CmnNetwork.create(config, lora=LoraSettings(rank=4, alpha=8))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.2)
            if name.startswith("to_p"):
                parameter.normal_(std=0.4)
    network.set_bank(*np.random.default_rng(0).normal(size=(2, BANK, 2 * LATENT)))
    network.round_tuned()
    return network.eval()
