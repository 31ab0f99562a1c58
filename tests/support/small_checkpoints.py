"""Networks and checkpoints of every approach over the tiny encoder, and rows for them: untrained, but whole."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import collate
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.judge.network import HEADS
from dialeval.judge.rule import ASPECTS
from dialeval.papers import network_class
from dialeval.papers.learned import quantile_curves

#: What the tiny encoder is called on the Hub of the tests.
ENCODER_ID = "someone/tiny-encoder"
KEYS = ("mahalanobis", "native", "full", "turn.overall", *(f"turn.{aspect}" for aspect in ASPECTS))
ROWS = {"responses": ["i am fine thanks", "fish and chips"], "contexts": [["hello there", "how are you"], ["hello"]]}
TEXTS = [
    Exchange(("hello there", "how are you"), "i am fine thanks"),
    Exchange(("what do you like to eat",), "fish and chips please"),
    Exchange(("shall we go for a walk", "yes please", "the weather is nice"), "see you tomorrow then"),
]


def small_network(
    approach: str,
    encoder: Path,
    tuning: Any = "lora",
    name: str = "tiny",
    heads: Sequence[str] = HEADS[:8],
    architecture: Mapping[str, Any] | None = None,
) -> Any:
    """A network whose config names the encoder's folder."""
    torch.manual_seed(5)
    curves = quantile_curves(np.linspace(-9, 5, 50), np.linspace(-30, -5, 50))
    config = CheckpointConfig(
        approach,
        name=name,
        encoder=EncoderSource(id=str(encoder), tuning=tuning),
        layout=PairFormat(max_length=48),
        architecture={"heads": " ".join(heads)} if approach == "judge" else architecture or {},
        quantiles=dict.fromkeys(KEYS, curves),
    )
    network = network_class(approach).create(config, lora=LoraSettings(rank=4, alpha=8) if tuning == "lora" else None)
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            if "lora_B" in key:
                parameter.normal_(std=0.05)
    network.round_tuned()
    return network.eval()


def tensors(network: Any, exchanges: Sequence[Exchange] = TEXTS) -> dict[str, torch.Tensor]:
    """Some pairs as the network reads them."""
    layout = network.config.layout
    return collate(PairTokenizer(network.tokenizer, layout).pairs(exchanges), 0, segment_ids=layout.segment_ids)


def small_checkpoint(approach: str, encoder: Path, folder: Path, heads: Sequence[str] = HEADS[:8]) -> Path:
    small_network(approach, encoder, name=f"{approach}-tiny", heads=heads).save_pretrained(folder)
    return folder


def changed(path: Path, *keys: str, to: Any) -> None:
    """Change one value of a JSON file; `...` removes it."""
    inner = raw = json.loads(path.read_text())
    *above, last = keys
    for key in above:
        inner = inner[key]
    inner[last] = to
    if to is ...:
        del inner[last]
    path.write_text(json.dumps(raw))
