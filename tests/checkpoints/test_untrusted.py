"""Checkpoints that somebody else made, carelessly or worse: always our own sentence, before memory is taken."""

import json
import math
import os
import pickle
import random
import shutil
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dialeval.checkpoints.find import CheckpointError, find_checkpoint, find_encoder
from dialeval.checkpoints.network import TOKENIZER_FILES
from dialeval.checkpoints.untrusted import adapter_settings, check_files, tensor_shapes
from dialeval.io.files import atomic_file
from dialeval.papers.cmn import Cmn
from dialeval.papers.density import Density
from small_checkpoints import changed, small_checkpoint, small_network


@pytest.fixture(scope="module")
def sound(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "checkpoint"
    small_network("density", tiny_encoder).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """One that names no digest of its adapter, which whoever sends a file need not do."""
    copy = Path(shutil.copytree(sound, tmp_path / "checkpoint"))
    changed(copy / "config.json", "encoder", "layers", to=...)
    return copy


def refused(work: Callable[[], Any]) -> str:
    with pytest.raises(CheckpointError) as caught:
        work()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def each_of(values: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(place, one) for place, several in values.items() for one in several]


#: Values that a checkpoint's config must not have, by their place.
CONFIGS: dict[str, list[Any]] = {
    "approach": [["density"], "dense\nity", "unheard-of", ...],
    "format_version": [6, 10**30, "1", -1],
    "name": ["a\x1b[2J", "n" * 5000, "/etc/cron.d", "../../evil", ".docker", "~root", "a/b", "..", "a\\b", "C:evil"],
    "encoder": [..., []],
    "encoder.id": [7, "", "../../etc", "models/../../secret", "~root", "/no/such/folder", "/etc"],
    "encoder.revision": ["../../refs"],
    "encoder.sha256": ["0" * 63, 0, "0" * 64],
    "encoder.tuning": ["magic"],
    "encoder.trust_remote_code": [True],
    "layout": [..., "left"],
    "layout.max_length": ["128", 10**12, -1, 1, float("nan"), True],
    "layout.response_budget": [0],
    "layout.separator": [5, "x" * 1000, "\ud800"],
    "layout.truncation": ["middle"],
    "layout.tidy": ["yes"],
    "layout.unheard_of": [1],
    "architecture": [[1]],
    "architecture.bias": [None],
    "architecture.bank": [10**15],
    "architecture.latent": [-3],
    "quantiles": [3],
    "quantiles.mahalanobis": [[1, 2]],
    "quantiles.mahalanobis.human": [
        [1],
        ["a", "b"],
        [2, 1],
        [1, float("inf")],
        [1, float("nan"), 2],
        [0, True],
        [1, 10**400],
    ],
    "contaminated_by": ["fed", [1]],
    "training": ["long"],
    "versions": [None],
    "model_type": ["bert"],
}
#: Where the sentence speaks of what the value leads to.
ELSEWHERE = {"encoder.id": "", "encoder.sha256": "", "layout.separator": "", "model_type": ""}
SAID = {"approach": "density", "format_version": "format", **ELSEWHERE}


@pytest.mark.parametrize(("place", "value"), each_of(CONFIGS))
def test_a_config_is_checked_before_anything_is_read(folder: Path, place: str, value: Any) -> None:
    changed(folder / "config.json", *place.split("."), to=value)
    message = refused(lambda: Density(folder))
    assert SAID.get(place, place.rpartition(".")[2]) in message or place.partition(".")[0] in message


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"{}{}"])
def test_a_config_that_is_none(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    refused(lambda: Density(folder))


def header(size: int = 0, **tensors: tuple[str, list[int], list[int]]) -> bytes:
    """A file of tensors: of each its type, its shape, and where it begins and ends."""
    keys = ("dtype", "shape", "data_offsets")
    text = json.dumps({name: dict(zip(keys, one, strict=True)) for name, one in tensors.items()}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


WEIGHTS: dict[str, bytes] = {
    "empty": b"",
    "a byte": b"\0",
    "a header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "a header that is no JSON": struct.pack("<Q", 4) + b"nope",
    "a giant tensor without its bytes": header(mean=("F32", [2**40, 2**20], [0, 2**62])),
    "a shape that does not fit its bytes": header(4, mean=("F32", [32], [0, 4])),
    "a negative shape": header(4, mean=("F32", [-1], [0, 4])),
    "overlapping tensors": header(12, mean=("F32", [2], [0, 8]), precision=("F32", [2], [4, 12])),
    "an unknown type": header(4, mean=("X9", [1], [0, 4])),
    "integers": header(4, mean=("I32", [1], [0, 4])),
    "a pickle": pickle.dumps({"mean": [0.0]}),
    "a zip, as torch.save writes": b"PK\x03\x04" + bytes(100),
}


@pytest.mark.parametrize("name", ["model.safetensors", "adapter/adapter_model.safetensors"])
@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_that_are_none(folder: Path, case: str, name: str) -> None:
    (folder / name).write_bytes(WEIGHTS[case])
    refused(lambda: adapter_settings(folder / "adapter") if "/" in name else tensor_shapes(folder / name))


@pytest.mark.parametrize("name", ["model.safetensors", "adapter/adapter_model.safetensors"])
def test_weights_cut_at_any_byte(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    places = {0, 1, 7, 8, 9, len(whole) - 1, *random.Random(7).sample(range(len(whole)), 60)}
    for place in places:
        (folder / name).write_bytes(whole[:place])
        refused(lambda: tensor_shapes(folder / name))


def test_whole_numbers_stand_only_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"counts": np.ones(2, np.uint8), "weights": np.ones(3, np.float32)}, path)
    assert tensor_shapes(path, counts=["counts"]) == {"counts": (2,), "weights": (3,)}
    assert "counts" in refused(lambda: tensor_shapes(path))
    assert "weights" in refused(lambda: tensor_shapes(path, counts=["counts", "weights"]))


def test_weights_changed_at_any_byte_of_the_header(folder: Path) -> None:
    """What can still be read has other names, types or shapes, or is the same table spelt differently."""
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    expected = tensor_shapes(path)
    end = 8 + struct.unpack("<Q", whole[:8])[0]
    rng = random.Random(3)
    survived = 0
    for place in range(end):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :])
        try:
            survived += tensor_shapes(path) == expected
        except CheckpointError as error:
            problem = str(error)
            assert "\n" not in problem
    assert survived < end / 10


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["model.safetensors", "adapter/adapter_model.safetensors"])
def test_weights_that_are_no_numbers(folder: Path, name: str, poison: float) -> None:
    state = load_file(folder / name)
    next(iter(state.values())).flat[0] = poison
    save_file(state, folder / name)
    assert "no numbers" in refused(lambda: Density(folder))


def test_pickles_are_not_looked_at(folder: Path) -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(folder / "harmed"),)

    for good, bad in (
        ("model.safetensors", "pytorch_model.bin"),
        ("adapter/adapter_model.safetensors", "adapter/adapter_model.bin"),
    ):
        (folder / bad).write_bytes(pickle.dumps(Harm()))
        (folder / good).unlink()
        refused(lambda: Density(folder))
    assert not (folder / "harmed").exists()


ADAPTERS: dict[str, list[Any]] = {
    "peft_type": ["PREFIX_TUNING", None],
    "r": [10**9, 0, -4, "4", 5],
    "lora_alpha": ["x", float("nan")],
    "lora_dropout": [2.0],
    "bias": ["all"],
    "target_modules": ["(a+)+$", [], ["nowhere"], ["query"]],
    "modules_to_save": [["pooler"]],
    "use_dora": [True],
    "rank_pattern": [{"query": 10**9}],
    "layers_to_transform": [[0]],
}


@pytest.mark.parametrize(("key", "value"), each_of(ADAPTERS))
def test_an_adapter_is_plain_lora_or_refused(folder: Path, key: str, value: Any) -> None:
    changed(folder / "adapter" / "adapter_config.json", key, to=value)
    refused(lambda: Density(folder))


def test_an_adapter_imports_nothing_that_it_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harm.py").write_text("raise SystemExit('code was run')")
    monkeypatch.syspath_prepend(tmp_path)
    path = folder / "adapter" / "adapter_config.json"
    for key in ("megatron_core", "base_model_name_or_path", "revision"):
        changed(path, key, to="harm")
    changed(path, "auto_mapping", to={"base_model_class": "harm", "parent_library": "harm"})
    changed(path, "megatron_config", to={"a": 1})
    # Some releases of PEFT import what they are handed.
    assert not {"megatron_core", "megatron_config", "auto_mapping", "revision"} & adapter_settings(path.parent).keys()
    assert len(Density(folder).score(["i am fine"], [["how are you"]])) == 1


ENCODERS: dict[str, list[Any]] = {
    "model_type": ["unheard-of", ..., 3],
    "vocab_size": [10**12, 2**24, -5],
    "hidden_size": [10**9, "32", 33],
    "num_hidden_layers": [10**6, 3],
    "num_attention_heads": [0],
    "max_position_embeddings": [10**10],
    "hidden_act": ["os.system"],
}


@pytest.mark.parametrize(("key", "value"), each_of(ENCODERS))
def test_an_encoder_s_sizes_are_checked_before_memory_is_taken(
    tiny_encoder: Path, tmp_path: Path, key: str, value: Any
) -> None:
    small_network("density", tiny_encoder, "full").save_pretrained(tmp_path)
    changed(tmp_path / "encoder.json", key, to=value)
    refused(lambda: Density(tmp_path))


TOKENIZERS: list[tuple[str, bytes]] = [
    ("tokenizer.json", b""),
    ("tokenizer.json", b"{}"),
    ("tokenizer.json", b'{"model": {"type": "WordPiece", "vocab": 3}}'),
    ("tokenizer.json", b"[" * 100_000),
    ("tokenizer_config.json", b"nope"),
    ("tokenizer_config.json", b'{"auto_map": {"AutoTokenizer": ["harm.Harm", null]}, "tokenizer_class": "Harm"}'),
]


@pytest.mark.parametrize(("name", "content"), TOKENIZERS)
def test_a_tokenizer_that_is_none(folder: Path, name: str, content: bytes) -> None:
    (folder / "harm.py").write_text("raise SystemExit('code was run')")
    (folder / name).write_bytes(content)
    refused(lambda: Density(folder))


def test_an_encoder_without_a_tokenizer(tiny_encoder: Path, tmp_path: Path) -> None:
    """transformers would make one of nothing, to which every word is unknown: all replies would be alike."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tiny_encoder / name, tmp_path)
    network = small_network("density", tiny_encoder)
    network.save_pretrained(tmp_path / "checkpoint")
    for name in TOKENIZER_FILES:
        (tmp_path / "checkpoint" / name).unlink(missing_ok=True)
    changed(tmp_path / "checkpoint" / "config.json", "encoder", "id", to=str(tmp_path))
    assert "knows no word" in refused(lambda: Density(tmp_path / "checkpoint"))


def test_a_token_that_the_encoder_does_not_know(folder: Path, tiny_encoder: Path) -> None:
    raw = json.loads((tiny_encoder / "tokenizer.json").read_text())
    raw["model"]["vocab"]["hello"] = 900
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    assert "token 900" in refused(lambda: Density(folder))


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


def link(place: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / place
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.symlink_to(target)

    return make


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (link("model.safetensors", "/dev/zero"), "model.safetensors"),
        (link("model.safetensors", "../../elsewhere"), "model.safetensors"),
        (link("model.safetensors", "model.safetensors"), "model.safetensors"),
        (link("tokenizer.json", "/etc/hostname"), "tokenizer.json"),
        (link("adapter", "/tmp"), "adapter"),
        (link("adapter/adapter_config.json", "/etc/hostname"), "adapter_config.json"),
        (lambda folder: os.mkfifo(folder / "vocab.txt"), "vocab.txt"),
        (lambda folder: huge(folder / "tokenizer.json"), "tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
        (lambda folder: shutil.rmtree(folder / "adapter"), "adapter"),
        (lambda folder: save_file({"mean": np.zeros(7, np.float32)}, folder / "model.safetensors"), "mean"),
    ],
)
def test_nothing_outside_the_folder_is_read_and_nothing_is_missing(
    folder: Path, harm: Callable[[Path], Any], named: str
) -> None:
    harm(folder)
    assert named in refused(lambda: Density(folder))


def test_the_links_of_the_hub_s_cache_are_followed(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    snapshot = tmp_path / "snapshots" / "0123"
    for path in sound.rglob("*"):
        if path.is_file():
            place = snapshot / path.relative_to(sound)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / "blobs" / path.name)
            place.symlink_to(tmp_path / "blobs" / path.name)
    check_files(snapshot)
    (snapshot / "stray.json").symlink_to("/etc/hostname")
    assert "leaves" in refused(lambda: check_files(snapshot))


def test_a_note_of_the_hub_s_cache_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    place = tmp_path / "models--owner--name"
    (place / "snapshots").mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_bytes(b"\xff\xfe")
    assert "owner/name" in refused(lambda: find_encoder("owner/name"))


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "~nobody-here/x", "a b/c d", "owner/na..me", "--x/y"])
def test_names_that_nothing_has(name: str) -> None:
    refused(lambda: find_checkpoint(name, default="density-minilm"))
    refused(lambda: find_encoder(name))


def test_files_are_private_while_they_are_written(tmp_path: Path) -> None:
    path, hidden = tmp_path / "file", tmp_path / ".file.tmp"
    (tmp_path / "ours").write_text("kept")
    hidden.symlink_to(tmp_path / "ours")
    usual = stat.S_IMODE((tmp_path / "ours").stat().st_mode)
    with atomic_file(path, hidden):
        hidden.write_text("new")
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o600
    assert (path.read_text(), (tmp_path / "ours").read_text()) == ("new", "kept")
    assert stat.S_IMODE(path.stat().st_mode) == usual
    with suppress(KeyboardInterrupt), atomic_file(path, hidden):
        hidden.write_text("half")
        raise KeyboardInterrupt
    assert (path.read_text(), hidden.exists()) == ("new", False)


def test_what_is_refused_takes_no_memory(tiny_encoder: Path, tmp_path: Path) -> None:
    """The banks asked for would take two petabytes: they are compared with the file before there is a byte of them."""
    folder = small_checkpoint("cmn", tiny_encoder, tmp_path / "cmn")
    changed(folder / "config.json", "architecture", to={"bank": 2**24, "latent": 2**24})
    assert "shape" in refused(lambda: Cmn(folder))


# --- base encoders that somebody made to do harm: one sentence, or finite scores --------------------


Change = Callable[[Path], None]


def sizes(**values: Any) -> Change:
    return lambda folder: [changed(folder / "config.json", key, to=value) for key, value in values.items()][-1]


def weights(change: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> Change:
    def harm(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, body = change(json.loads(content[8 : 8 + length]), content[8 + length :])
        written = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(written)) + written + body)

    return harm


def filled(value: float) -> Change:
    return weights(lambda header, body: (header, np.full(len(body) // 4, value, np.float32).tobytes()))


#: name -> what is done to the encoder's folder, and whether it has to be refused.
HARMS: dict[str, tuple[Change, bool]] = {
    "five heads": (sizes(num_attention_heads=5), True),
    "minus four heads": (sizes(num_attention_heads=-4), True),
    "no positions": (sizes(max_position_embeddings=0), True),
    "as many layers as may be": (sizes(num_hidden_layers=512), True),
    "an epsilon that is none": (sizes(layer_norm_eps=math.nan), True),
    "an epsilon below nothing": (sizes(layer_norm_eps=-1.0), True),
    "an activation of the system": (sizes(hidden_act="__import__('os')"), True),
    "weights for another library": (sizes(quantization_config={"quant_method": "gptq", "bits": 4}), True),
    "code of its own": (sizes(auto_map={"AutoModel": "evil.Model"}), False),
    "another type": (sizes(dtype="int3", torch_dtype="complex128"), False),
    "heads that are cut off": (sizes(pruned_heads={"0": [0, 1, 2, 3]}), False),
    "a header of lists": (weights(lambda header, body: (b'{"a":' + b"[" * 100_000, body)), True),
    "a long header": (weights(lambda header, body: (json.dumps(header).encode() + b" " * 90_000_000, body)), False),
    "weights that are no numbers": (filled(math.nan), True),
    "weights without end": (filled(math.inf), True),
    "weights at the end": (filled(3e38), True),
    "weights of nothing": (filled(0.0), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMS)
def test_harm(name: str, sound: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    harm, is_refused = HARMS[name]
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    checkpoint = Path(shutil.copytree(sound, tmp_path / "checkpoint"))
    harm(base)
    changed(checkpoint / "config.json", "encoder", "id", to=str(base))
    changed(checkpoint / "config.json", "encoder", "sha256", to=None)
    responses, contexts = ["Hello there, how are you?", "a b c" * 50], [["hi"], ["what do you", "like to eat?"]]
    if is_refused:
        with pytest.raises((CheckpointError, ValueError)) as told:
            Density(checkpoint).score(responses, contexts)
        assert str(told.value).strip()
    else:
        assert np.isfinite(Density(checkpoint).score(responses, contexts).values).all()
