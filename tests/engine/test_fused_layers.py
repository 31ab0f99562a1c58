"""Fused layers say what plain ones say, and step aside where they must."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, RobertaConfig

from dialeval import load
from dialeval.approaches.frozen_features import FrozenFeatures
from dialeval.engine.speedups import fuse_layers
from small_checkpoints import small_checkpoint
from small_encoders import SMALL, batch, model

fusing = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch was built without oneDNN")


def states(encoder: nn.Module, *lengths: int) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = encoder(**batch(*lengths)).last_hidden_state
    return found


def count_packed(encoder: nn.Module) -> int:
    return sum("_packed" in layer.__dict__ for layer in encoder.encoder.layer)  # type: ignore[union-attr]


@fusing
@pytest.mark.parametrize("config", [BertConfig(**SMALL), RobertaConfig(**SMALL)], ids=["bert", "roberta"])
@pytest.mark.parametrize("lengths", [(9, 4, 1), (7, 7), (1,)], ids=["padded", "full", "one token"])
def test_states_are_those_of_plain_layers(config: Any, lengths: tuple[int, ...]) -> None:
    plain = model(config)
    fused = copy.deepcopy(plain)
    assert fuse_layers(fused)
    expected, found = states(plain, *lengths), states(fused, *lengths)
    assert count_packed(fused) == 3
    seen = batch(*lengths)["attention_mask"].bool()
    assert torch.allclose(found[seen], expected[seen], atol=1e-4)


@fusing
def test_weights_that_change_are_packed_anew() -> None:
    fused = model(BertConfig(**SMALL))
    fuse_layers(fused)
    before = states(fused, 5, 3)
    other = model(BertConfig(**SMALL))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.5)
    fused.load_state_dict(other.state_dict())
    assert not torch.allclose(states(fused, 5, 3), before, atol=1e-2)
    assert torch.allclose(states(fused, 5, 3), states(other, 5, 3), atol=1e-4)


@fusing
def test_gradients_and_other_precisions_take_the_plain_way() -> None:
    plain = model(BertConfig(**SMALL))
    fused = copy.deepcopy(plain)
    fuse_layers(fused)
    for one in (plain, fused):
        one(**batch(5, 3)).last_hidden_state.square().sum().backward()
    assert count_packed(fused) == 0
    gradients = [dict(one.named_parameters())["encoder.layer.0.output.dense.weight"].grad for one in (plain, fused)]
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert torch.equal(*gradients)
    assert torch.equal(states(fused.double(), 5, 3), states(plain.double(), 5, 3))
    assert count_packed(fused) == 0


@pytest.mark.parametrize(
    "other",
    [
        model(BertConfig(**SMALL, hidden_act="relu")),
        model(BertConfig(**SMALL), "eager"),
        nn.Linear(2, 2),
    ],
    ids=["another activation", "attention that is not fused", "no encoder"],
)
def test_what_is_not_known_to_allow_it_is_left_alone(other: nn.Module) -> None:
    kinds = [type(module) for module in other.modules()]
    assert not fuse_layers(other)
    assert [type(module) for module in other.modules()] == kinds


@fusing
def test_metrics_use_them(tiny_encoder: Path, tmp_path: Path) -> None:
    metric = load("density", checkpoint=small_checkpoint("density", tiny_encoder, tmp_path / "density"))
    metric.score(contexts=[["hello there"]], responses=["i am fine"])
    assert count_packed(metric.network.encoder) == len(metric.network.encoder.encoder.layer) - 1  # type: ignore[attr-defined]
    features = FrozenFeatures(str(tiny_encoder), pooling="mean").encoder.network
    assert all(type(layer).__name__ == "FusedBertLayer" for layer in features.encoder.encoder.layer)  # type: ignore[union-attr]
