"""Which noise CMN draws for what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cmn_networks import make_network
from dialeval.approaches.cmn import Cmn

SAMPLES = 4000


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cmn-rules") / "checkpoint"
    make_network(tiny_encoder).save_pretrained(place)
    return place


def test_noise_belongs_to_a_text_and_its_role(folder: Path) -> None:
    metric = Cmn(folder, device="cpu", samples=SAMPLES)
    keys = np.array([b"one", b"two"], dtype=object)
    drawn = {role: metric._noise(role, keys).numpy() for role in ("reply", "partner", "negative")}
    columns = np.concatenate([noise.reshape(2, -1) for noise in drawn.values()])
    assert np.abs(np.corrcoef(columns) - np.eye(6)).max() < 0.05
    assert columns.mean(axis=1) == pytest.approx(np.zeros(6), abs=0.05)
    assert columns.std(axis=1) == pytest.approx(np.ones(6), abs=0.05)
    again = metric._noise("reply", keys[::-1]).numpy()
    assert np.array_equal(again[::-1], drawn["reply"])
