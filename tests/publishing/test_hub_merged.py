"""One full model instead of an adapter: it scores the same, and needs no base encoder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from density_networks import ROWS, make_network
from dialeval.approaches.density import Density, DensityNetwork
from dialeval.weights import network as networks
from dialeval.weights.find import CheckpointError


@pytest.fixture(scope="module")
def folders(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An adapter, and what was merged from it; both from the same network."""
    home = tmp_path_factory.mktemp("merged")
    make_network(tiny_encoder).save_pretrained(home / "adapter", card="# A card\n")
    DensityNetwork.from_pretrained(home / "adapter").save_pretrained(home / "full", merged=True, card="# Full\n")
    return home / "adapter", home / "full"


def test_it_scores_the_same_without_its_base(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, full = folders
    before = Density(adapter).score(**ROWS)
    monkeypatch.setattr(networks, "find_encoder", lambda *given, **named: pytest.fail("the base was looked for"))
    after = Density(full).score(**ROWS)
    assert np.allclose(after.values, before.values, atol=1e-5)
    assert after.signature["checkpoint"].startswith("tiny-merged@")
    assert not (full / "adapter").exists()
    assert (full / "README.md").read_text() == "# Full\n"
    assert json.loads((full / "config.json").read_text())["encoder"]["tuning"] == "full"


def test_a_token_that_was_added_is_in_it(tiny_encoder: Path, tmp_path: Path) -> None:
    make_network(tiny_encoder, separator="[SEPT]").save_pretrained(tmp_path / "full", merged=True)
    assert "[SEPT]" in Density(tmp_path / "full").network.tokenizer.get_vocab()


def test_it_names_no_folder_of_this_machine(folders: tuple[Path, Path]) -> None:
    assert "/" not in (folders[1] / "encoder.json").read_text()


def test_a_network_in_training_is_left_as_it_is(folders: tuple[Path, Path], tmp_path: Path) -> None:
    network = DensityNetwork.from_pretrained(folders[0], trainable=True)
    network.save_pretrained(tmp_path / "full", merged=True)
    network.save_pretrained(tmp_path / "adapter")
    assert any("lora_" in name for name, _ in network.named_parameters())
    ours, theirs = (path / "model.safetensors" for path in (tmp_path / "full", folders[1]))
    assert ours.read_bytes() == theirs.read_bytes()
    adapters = (path / "adapter" / "adapter_model.safetensors" for path in (tmp_path / "adapter", folders[0]))
    assert len({path.read_bytes() for path in adapters}) == 1


def test_weights_that_are_missing_are_not_replaced_by_arbitrary_ones(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(folders[1], tmp_path / "full")
    path = tmp_path / "full" / "model.safetensors"
    state = load_file(path)
    del state["encoder.encoder.layer.0.attention.self.query.weight"]
    save_file(state, path)
    with pytest.raises(CheckpointError, match=r"query\.weight differ in shape"):
        Density(tmp_path / "full")


def test_a_damaged_encoder_configuration(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[1], tmp_path / "full")
    (tmp_path / "full" / "encoder.json").write_text('{"model_type": "no such model"}')
    with pytest.raises(
        CheckpointError, match=r"encoder\.json is of the kind 'no such model'; encoders are albert, bert"
    ):
        Density(tmp_path / "full")


def test_it_is_float32_throughout(folders: tuple[Path, Path]) -> None:
    from safetensors.torch import load_file

    state = load_file(folders[1] / "model.safetensors")
    assert all(tensor.dtype is torch.float32 for name, tensor in state.items() if name.startswith("encoder."))
