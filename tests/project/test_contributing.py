"""A learned metric that is added as CONTRIBUTING says is known wherever metrics of our own are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.approaches import network_class
from dialeval.card import render_card
from dialeval.registry import REGISTRY
from dialeval.weights.config import CheckpointConfig, EncoderSource

SOURCE = """
import numpy as np
from torch import nn
from dialeval.approaches.learned import LearnedMetric
from dialeval.metric import Level, MetricInfo
from dialeval.weights.network import Network


class ToyNetwork(Network):
    approach = "toy"

    def build_heads(self, width):
        self.head = nn.Linear(width, 1)

    def rows(self, first):
        return self.head(first)


class Toy(LearnedMetric):
    network_class = ToyNetwork
    info = MetricInfo("toy", "Toy", Level.TURN, True, (0.0, 1.0), "How much of a toy a reply is.")

    def values_of(self, rows):
        return 1 / (1 + np.exp(-rows[:, 0].astype(np.float64)))
"""


def test_a_learned_metric_needs_a_file_and_a_line(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_metric.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("dialeval.registry.REGISTRY", dict(REGISTRY))
    dialeval.register("toy", "toy_metric:Toy")
    found = network_class("toy")
    assert found is sys.modules["toy_metric"].ToyNetwork
    config = CheckpointConfig("toy", name="toy-tiny", encoder=EncoderSource(id=str(tiny_encoder), tuning="frozen"))
    found.create(config).save_pretrained(tmp_path / "toy-tiny", card=render_card(config))
    assert "How much of a toy a reply is." in (tmp_path / "toy-tiny" / "README.md").read_text("utf-8")
    scores = dialeval.load("toy", checkpoint=tmp_path / "toy-tiny").score(["Fine."], [["How are you?"]])
    assert np.isfinite(scores.values).all()
    assert scores.signature["checkpoint"].startswith("toy-tiny@")


@pytest.mark.parametrize("approach", ["bleu2", "python:os:system", "nothing"])
def test_a_checkpoint_names_no_code(approach: str) -> None:
    with pytest.raises(ValueError, match=approach):
        network_class(approach)
