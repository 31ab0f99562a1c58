"""Small encoders of given kinds, and batches for them, to compare one way of computing with another."""

from typing import Any

import torch
from torch import nn
from transformers import AutoModel

SMALL = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}


def model(config: Any, attention: str = "sdpa") -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = AutoModel.from_config(config, attn_implementation=attention or None).eval()
    for name, parameter in made.named_parameters():
        if not name.endswith("LayerNorm.weight"):
            nn.init.normal_(parameter, std=0.3)
    return made


def batch(*lengths: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (len(lengths), max(lengths)), generator=generator)
    mask = torch.stack([(torch.arange(max(lengths)) < length).long() for length in lengths])
    return {"input_ids": ids.where(mask.bool(), 1), "attention_mask": mask}
