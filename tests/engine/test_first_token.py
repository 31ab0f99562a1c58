"""The short last layer says of the first token what the whole one says."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, DistilBertConfig, RobertaConfig

from dialeval import load
from dialeval.approaches.density import DensityNetwork
from dialeval.approaches.frozen_features import FrozenFeatures
from dialeval.engine.bert import compute_first_token_only
from dialeval.exchange import Exchange
from small_checkpoints import small_checkpoint
from small_encoders import SMALL, batch, model


@pytest.mark.parametrize("config", [BertConfig(**SMALL), RobertaConfig(**SMALL)], ids=["bert", "roberta"])
@pytest.mark.parametrize("lengths", [(9, 4, 1), (7, 7)], ids=["padded", "full"])
def test_the_first_token_is_the_same(config: Any, lengths: tuple[int, ...]) -> None:
    whole = model(config)
    short = copy.deepcopy(whole)
    assert compute_first_token_only(short)
    with torch.inference_mode():
        expected, found = (one(**batch(*lengths)).last_hidden_state for one in (whole, short))
    assert found.shape == (len(lengths), 1, 32)
    assert torch.allclose(found[:, 0], expected[:, 0], atol=1e-5)
    assert not torch.allclose(found[:, 0], expected[:, 1 % expected.shape[1]], atol=0.01)
    # A copy computes with its own weights.
    other = copy.deepcopy(short)
    with torch.no_grad():
        other.encoder.layer[-1].output.LayerNorm.bias.add_(1.0)
    with torch.inference_mode():
        assert torch.allclose(short(**batch(*lengths)).last_hidden_state, found)
        assert not torch.allclose(other(**batch(*lengths)).last_hidden_state, found)


@pytest.mark.parametrize(
    "other",
    [
        model(DistilBertConfig(vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
        model(BertConfig(**SMALL), "eager"),
        nn.Linear(2, 2),
    ],
    ids=["another kind", "attention that is not fused", "no encoder"],
)
def test_what_is_not_known_to_allow_it_is_left_alone(other: nn.Module) -> None:
    assert not compute_first_token_only(other)
    assert not any("forward" in vars(module) for module in other.modules())


def test_metrics_compute_no_more_than_they_read(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = small_checkpoint("density", tiny_encoder, tmp_path / "density")
    exchange = Exchange(("hello there", "how are you"), "i am fine")
    metric = load("density", checkpoint=folder)
    tokens = metric.encoder.tokenizer.pairs([exchange])[0]
    ids = torch.from_numpy(tokens.ids.astype("int64"))[None]
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    assert metric.network.encoder(**inputs).last_hidden_state.shape[1] == 1
    whole = DensityNetwork.from_pretrained(folder)
    assert whole.encoder(**inputs).last_hidden_state.shape[1] == ids.shape[1]
    assert torch.allclose(metric.network(**inputs), whole(**inputs), atol=1e-5)
    states = FrozenFeatures(tiny_encoder, pooling="mean").encoder.network.encoder(**inputs).last_hidden_state
    assert states.shape[1] == ids.shape[1]
