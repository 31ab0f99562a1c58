"""What training of the shared encoder may begin from, and the mean of several of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import find_checkpoint
from dialeval.papers import network_class
from trunk_network import JUDGE_HEADS
from trunk_network import TRUNK_HEADS as HEADS


def start_weights(start: str) -> dict[str, Tensor]:
    """Layers of an encoder, and heads as their weights and bias in one row.

    From a file of `training/trunk.py` or of `training/aspects.py`, or a checkpoint of DENSITY (what is next), DEB (what
    is valid) or the judge (both, and more).
    """
    if start.endswith(".safetensors"):
        stored = {name: tensor.float() for name, tensor in load_file(start).items()}
        rows = torch.cat([stored.pop("head.weight"), stored.pop("head.bias")[:, None]], dim=1)
        return stored | {f"head.{head}": row for head, row in zip(HEADS, rows, strict=False)}
    if (Path(start) / "lora_a.npz").is_file():
        return adapter_of_files(Path(start))
    located = find_checkpoint(start, default=start)
    network = network_class(CheckpointConfig.read(located.folder).approach).from_pretrained(start)
    state = network.encoder.state_dict()
    layers = {f"encoder.{name}": tensor for name, tensor in state.items() if "embeddings" not in name}
    if network.approach == "density":
        return layers | {"head.next": torch.cat([network.head.weight[0], network.head.bias])}
    if network.approach == "judge":
        rows = torch.cat([network.heads.weight, network.heads.bias[:, None]], dim=1)
        return layers | {
            f"head.{trunk_name}": rows[network.head_names.index(head)]
            for head, trunk_name in JUDGE_HEADS.items()
            if head in network.head_names
        }
    rows = torch.cat([network.classifier.weight, network.classifier.bias[:, None]], dim=1)
    return layers | {"head.valid": rows[0] - rows[1]}


#: What the heads of an adapter in numpy's files are called here.
_HEADS_OF_FILES = (
    "next",
    "rated",
    "respectful",
    "faithful",
    "preferred",
    "empathetic",
    "truthful",
    "helps",
    "dialogue",
)
#: The linear layers that read one input share a factor there: by place, their names in MPNet.
_PARTS_OF_FILES = (
    ("attention.attn.q", "attention.attn.k", "attention.attn.v"), ("attention.attn.o",), ("intermediate.dense",),
    ("output.dense",),
)  # fmt: skip


def adapter_of_files(folder: Path) -> dict[str, Tensor]:
    """An adapter of MPNet and its heads from `lora_a.npz` and `lora_b.npz`, under the names that training has."""
    held = {
        name: torch.from_numpy(values).float()
        for part in ("lora_a", "lora_b")
        for name, values in np.load(folder / f"{part}.npz").items()
    }
    weights = {}
    for layer in range(1 + max(int(name.split(".")[1]) for name in held if name.startswith("layers."))):
        for place, names in enumerate(_PARTS_OF_FILES):
            down, up = held[f"layers.{layer}.{place}.A"], held[f"layers.{layer}.{place}.B"]
            for name, inward, outward in zip(names, down.chunk(len(names), dim=1), up, strict=True):
                path = f"encoder.base_model.model.encoder.layer.{layer}.{name}"
                weights[f"{path}.lora_A.default.weight"] = inward.T.contiguous()
                weights[f"{path}.lora_B.default.weight"] = outward.T.contiguous()
    rows = torch.cat([held["head.weight"], held["head.bias"][:, None]], dim=1)
    return weights | {f"head.{head}": row for head, row in zip(_HEADS_OF_FILES, rows, strict=True)}


def mean_weights(starts: Sequence[str]) -> dict[str, Tensor]:
    """The mean of the encoders, and of each head the mean of those that have it."""
    models = [start_weights(start) for start in starts]
    names = {name: None for model in models for name in model}
    return {name: torch.stack([model[name] for model in models if name in model]).mean(dim=0) for name in names}
