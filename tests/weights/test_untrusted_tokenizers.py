"""Foreign tokenizers and base encoders: whatever they hold, one sentence, no crash, no memory, no random number."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_untrusted import changed, refused

from density_networks import make_network
from dialeval.approaches.density import Density
from dialeval.weights.find import WEIGHTS, CheckpointError
from dialeval.weights.loading import empty_encoder, load_encoder
from dialeval.weights.tokens import MAX_BYTES, check_tokenizer

pytestmark = pytest.mark.slow

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def folder(tiny_encoder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))


def with_part(key: str, part: Any) -> Change:
    return lambda raw: raw.__setitem__(key, part)


def with_model(**fields: Any) -> Change:
    return lambda raw: raw["model"].update(fields)


def words(count: int) -> dict[str, int]:
    return {"[UNK]": 0, **{f"w{number}": number for number in range(1, count)}}


REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 16}
HARMFUL: list[tuple[Change, str]] = [
    (with_part("normalizer", {"type": "Precompiled", "precompiled_charsmap": "A" * 2**22}), "normalizer Precompiled"),
    (with_part("normalizer", {"type": "Precompiled", "precompiled_charsmap": "no base64 at all"}), "no usable"),
    (
        with_part(
            "normalizer",
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\xff\xff\xff\x7f" * 9).decode()},
        ),
        "no usable",
    ),
    (with_part("normalizer", {"type": "Sequence", "normalizers": [REPLACE] * 8}), "times as long"),
    (with_part("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 1000}), "nested too deeply"),
    (with_part("normalizer", {"type": "Prepend", "prepend": "x" * 50_000_000}), "normalizer Prepend"),
    (with_part("normalizer", {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}), "normalizer Replace"),
    (with_part("normalizer", {"type": "Replace", "pattern": {"String": ""}, "content": "x"}), "normalizer Replace"),
    (with_part("normalizer", {"type": "Unheard"}), "a part 'Unheard'"),
    (with_part("normalizer", 7), "no object"),
    (with_part("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(x|xx)*y"}, "behavior": "Isolated"}), "Split"),
    (
        with_part("pre_tokenizer", {"type": "Metaspace", "replacement": "▁" * 100, "add_prefix_space": True}),
        "Metaspace",
    ),
    (with_part("padding", {"strategy": {"Fixed": 2**40}, "pad_id": 0}), "its padding"),
    (with_part("truncation", {"max_length": 2**50, "strategy": "LongestFirst", "stride": 0}), "its truncation"),
    (with_part("added_tokens", [{"id": number, "content": f"t{number}"} for number in range(5000)]), "added tokens"),
    (with_part("added_tokens", [{"id": 2**31, "content": "far"}]), "outside its vocabulary"),
    (with_part("model", {"type": "Unheard", "vocab": {}}), "its model"),
    (with_model(unk_token="nowhere"), "unknown words"),
    (with_model(vocab={}), "its vocabulary"),
    (with_model(vocab={"[UNK]": 0, "hello": 2**40}), "outside its vocabulary"),
    (with_model(vocab={"[UNK]": 0, "hello": -1}), "outside its vocabulary"),
    (with_model(vocab={"[UNK]": 0, "x" * 5000: 1}), "no text of up to"),
    (with_model(vocab=words(2**21 + 1)), "its vocabulary is not one of up to"),
    (with_part("model", {"type": "BPE", "vocab": words(10), "merges": [], "dropout": 0.5}), "by chance"),
    (with_part("model", {"type": "BPE", "vocab": words(10), "merges": ["q q"]}), "no usable"),
    (with_part("model", {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}), "unknown words"),
    (with_part("model", {"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0}), "its vocabulary"),
    (with_part("post_processor", {"type": "TemplateProcessing", "single": [{}] * 99, "pair": []}), "post_processor"),
]


@pytest.mark.parametrize(("change", "message"), HARMFUL)
def test_what_no_encoder_s_tokenizer_has(change: Change, message: str, folder: Path) -> None:
    path = folder / "tokenizer.json"
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    assert message in refused(lambda: check_tokenizer(folder))


def test_what_is_too_large_is_not_read(folder: Path) -> None:
    with (folder / "tokenizer.json").open("r+b") as stream:
        stream.truncate(10 * MAX_BYTES)
    assert "more than any tokenizer" in refused(lambda: check_tokenizer(folder))


def test_what_only_a_child_process_can_tell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that passes the list and panics while it is built ends the child, and the parent with one sentence."""
    from dialeval.weights import tokens

    monkeypatch.setattr(tokens, "_check_parts", lambda raw, path: None)
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["normalizer"] = {"type": "Prepend", "prepend": "x " * 50_000}
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    assert "no usable tokenizer" in refused(lambda: check_tokenizer(folder))


def test_the_tokenizers_of_those_that_ship_pass() -> None:
    for found in sorted(WEIGHTS.glob("*-minilm")):
        check_tokenizer(found)


def test_a_checkpoint_s_own_tokenizer_is_looked_at(tiny_encoder: Path, tmp_path: Path) -> None:
    make_network(tiny_encoder).save_pretrained(tmp_path / "checkpoint")
    changed(tmp_path / "checkpoint" / "tokenizer.json", "normalizer", to={"type": "Prepend", "prepend": "x" * 1000})
    assert "normalizer Prepend" in refused(lambda: Density(tmp_path / "checkpoint"))


# --- base encoders ----------------------------------------------------------------------------------


def test_a_tensor_that_is_missing_is_never_drawn_by_chance(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    gone = next(key for key in weights if "attention" in key)
    # As many numbers as before, so that only their names tell.
    weights["something.else"] = weights.pop(gone)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    shown = refused(lambda: load_encoder(folder, 10))
    assert "lacks 1 of its encoder's tensors" in shown


def test_an_encoder_with_one_tensor(folder: Path) -> None:
    save_file({"embeddings.word_embeddings.weight": torch.zeros(2, 2)}, folder / "model.safetensors")
    assert "weights in config.json and holds 4" in refused(lambda: load_encoder(folder, 10))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("vocab_size", 2**24, "asks for"),
        ("hidden_size", 2**20, "asks for"),
        ("intermediate_size", 2**24, "asks for"),
        ("num_hidden_layers", 500, "asks for"),
        ("num_hidden_layers", 513, "which no encoder has"),
        ("vocab_size", 2**40, "which no encoder has"),
        ("model_type", "mixtral", "is of the kind 'mixtral'"),
        ("model_type", ["bert"], "is of the kind"),
    ],
)
def test_sizes_are_computed_before_anything_is_allocated(key: str, value: Any, message: str, folder: Path) -> None:
    changed(folder / "config.json", key, to=value)
    assert message in refused(lambda: load_encoder(folder, 10))
    shutil.copy(folder / "config.json", folder / "encoder.json")
    if message != "asks for":  # without weights beside it, only what no encoder has can be told
        assert message in refused(lambda: empty_encoder(folder / "encoder.json"))


def test_a_link_out_of_the_encoder_s_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text("{}")
    (folder / "more.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CheckpointError, match="leaves the checkpoint's folder"):
        load_encoder(folder, 10)


@pytest.mark.encoder
def test_the_released_encoder_holds_whole_numbers_beside_its_weights() -> None:
    """The positions' ids, which are no weights and no reason to refuse it."""
    from dialeval.engine.formatting import PairFormat
    from dialeval.weights.find import find_encoder
    from dialeval.weights.loading import load_encoder, load_tokenizer

    folder = find_encoder().folder
    encoder = load_encoder(folder, len(load_tokenizer(folder, PairFormat())))
    assert sum(parameter.numel() for parameter in encoder.parameters()) > 20_000_000
