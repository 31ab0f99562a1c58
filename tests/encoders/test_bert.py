"""The encoder that scores has the numbers of transformers' own, and whatever it is not made for goes there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import dialeval
from dialeval.checkpoints.load import load_encoder
from dialeval.encoders.bert import BertEncoder
from dialeval.papers.deb import DebNetwork
from small_checkpoints import small_checkpoint


def inputs() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(5, 40, (4, 12), generator=generator)
    mask, types = torch.ones_like(ids), torch.zeros_like(ids)
    mask[1, 7:], types[:, 6:] = 0, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def copied(encoder: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(encoder, folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.mark.parametrize("padded", [True, False])
def test_features_are_those_of_transformers_to_the_last_bit(tiny_encoder: Path, padded: bool) -> None:
    ours, theirs = load_encoder(tiny_encoder, 0).eval(), load_encoder(tiny_encoder, 0, trainable=True).eval()
    assert isinstance(ours, BertEncoder)
    assert not isinstance(theirs, BertEncoder)
    given = inputs()
    if not padded:
        given["attention_mask"] = torch.ones_like(given["attention_mask"])
    with torch.inference_mode():
        assert torch.equal(ours(**given).last_hidden_state, theirs(**given).last_hidden_state)


def test_a_release_with_heads_has_the_encoders_name_before_its_tensors(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = copied(tiny_encoder, tmp_path / "released")
    tensors = {f"bert.{name}": tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**tensors, "cls.predictions.bias": torch.zeros(3)}, folder / "model.safetensors", {"format": "pt"})
    loaded = load_encoder(folder, 0)
    assert isinstance(loaded, BertEncoder)
    assert loaded.embeddings.word_embeddings.weight.dtype == torch.float32
    assert torch.equal(loaded.state_dict()["encoder.layer.0.output.dense.weight"],
                       tensors["bert.encoder.layer.0.output.dense.weight"].float())  # fmt: skip


def test_a_merged_checkpoint_writes_its_configuration_for_transformers(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig

    folder = small_checkpoint("deb", tiny_encoder, tmp_path / "deb")
    DebNetwork.from_pretrained(folder, device="cpu").save_pretrained(tmp_path / "merged", merged=True)
    written, base = json.loads((tmp_path / "merged/encoder.json").read_text()), AutoConfig.from_pretrained(tiny_encoder)
    assert AutoConfig.for_model(**written).to_dict()["hidden_size"] == base.hidden_size
    rows: dict[str, Any] = {"responses": ["no thank you"], "contexts": [["hello"]]}
    metrics = [dialeval.load("deb", checkpoint=one) for one in (folder, tmp_path / "merged")]
    assert metrics[1].score(**rows).values == pytest.approx(metrics[0].score(**rows).values, abs=1e-6)
