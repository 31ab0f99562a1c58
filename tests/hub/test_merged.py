"""One full model instead of an adapter or layers: it scores the same, and needs no base encoder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from dialeval.checkpoints.find import LAYERS, CheckpointError
from dialeval.papers.density import Density, DensityNetwork
from refusals import refused
from small_checkpoints import ROWS, small_network


@pytest.fixture(scope="module", params=["lora", "layers"])
def folders(
    request: pytest.FixtureRequest, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A tuned network, and what was merged from it; both from the same network."""
    home = tmp_path_factory.mktemp("merged")
    small_network("density", tiny_encoder, request.param).save_pretrained(home / "adapter", card="# A card\n")
    DensityNetwork.from_pretrained(home / "adapter").save_pretrained(home / "full", merged=True, card="# Full\n")
    return home / "adapter", home / "full"


def test_it_scores_the_same_in_float32(folders: tuple[Path, Path]) -> None:
    adapter, full = folders
    after = Density(full).score(**ROWS)
    assert after.values == pytest.approx(Density(adapter).score(**ROWS).values, abs=1e-5)
    assert after.signature["checkpoint"].startswith("tiny-merged@")
    assert not any((full / part).exists() for part in ("adapter", LAYERS))
    assert (full / "README.md").read_text() == "# Full\n"
    described = AutoConfig.for_model(**json.loads((full / "encoder.json").read_text()))
    assert described.hidden_size == Density(full).network.encoder.config.hidden_size
    state = load_file(full / "model.safetensors")
    assert all(tensor.dtype is torch.float32 for name, tensor in state.items() if name.startswith("encoder."))


def test_missing_weights_and_damaged_configurations_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[1], tmp_path / "full")
    path = tmp_path / "full" / "model.safetensors"
    state = load_file(path)
    del state["encoder.encoder.layer.0.attention.self.query.weight"]
    save_file(state, path)
    refused(CheckpointError, "query.weight", Density, tmp_path / "full")
    (tmp_path / "full" / "encoder.json").write_text('{"model_type": "no such model"}')
    refused(CheckpointError, "encoder.json", Density, tmp_path / "full")
