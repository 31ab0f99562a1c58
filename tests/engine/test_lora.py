"""Adapters in one pass have PEFT's values and gradients, and whatever they are not made for is left to PEFT."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dialeval.engine.lora import quicken_adapters
from dialeval.weights.config import LoraSettings
from dialeval.weights.loading import load_encoder, with_lora


def adapted(encoder: Path, **settings: Any) -> nn.Module:
    torch.manual_seed(1)
    made = with_lora(load_encoder(encoder, 0, trainable=True), LoraSettings(rank=4, alpha=8, **settings))
    for name, parameter in made.named_parameters():
        if "lora_B" in name:  # begin where training would be after a while, not at nothing
            nn.init.normal_(parameter, std=0.1)
    return made.eval()  # the encoder of the tests has dropout of its own


def features_and_gradients(encoder: nn.Module, *, bfloat16: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
    ids = torch.randint(5, 40, (3, 11), generator=torch.Generator().manual_seed(2))
    for parameter in encoder.parameters():
        parameter.grad = None
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        states = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.float()
    (states[:, 0].tanh() * torch.linspace(-1, 1, states.shape[-1])).sum().backward()
    found = {name: one.grad for name, one in encoder.named_parameters() if one.grad is not None}
    return states.detach(), found


def test_values_and_gradients_are_pefts(tiny_encoder: Path) -> None:
    plain = adapted(tiny_encoder)
    quick = copy.deepcopy(plain)
    assert quicken_adapters(quick) == 6 * plain.config.num_hidden_layers  # type: ignore[union-attr, operator]
    states, gradients = features_and_gradients(plain)
    again, their = features_and_gradients(quick)
    torch.testing.assert_close(again, states, atol=1e-5, rtol=1e-5)
    assert gradients.keys() == their.keys()
    assert all("lora_" in name for name in gradients)
    for name, gradient in gradients.items():
        torch.testing.assert_close(their[name], gradient, atol=1e-5, rtol=1e-4)


def test_weights_are_saved_and_merged_as_before(tiny_encoder: Path) -> None:
    plain: Any = adapted(tiny_encoder)
    quick: Any = copy.deepcopy(plain)
    quicken_adapters(quick)
    assert quick.state_dict().keys() == plain.state_dict().keys()
    merged, expected = quick.merge_and_unload(), plain.merge_and_unload()
    assert all(torch.equal(one, two) for one, two in zip(merged.parameters(), expected.parameters(), strict=True))


@pytest.mark.parametrize("change", ["dropout", "dora", "trainable", "second"])
def test_other_adapters_stay_as_they_are(tiny_encoder: Path, change: str) -> None:
    made: Any = adapted(tiny_encoder, dropout=0.1) if change == "dropout" else adapted(tiny_encoder)
    if change == "dora":
        from peft import LoraConfig, get_peft_model

        base = load_encoder(tiny_encoder, 0, trainable=True)
        made = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", use_dora=True))
    if change == "trainable":
        made.requires_grad_(True)
    if change == "second":
        made.add_adapter("other", made.peft_config["default"])
    assert quicken_adapters(made) == 0
