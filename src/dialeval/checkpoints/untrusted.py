"""What may stand in a checkpoint folder, checked before anything is allocated: a checkpoint is data.

Whoever made it may have been careless or worse. Links stay in the folder, sizes stay in bounds, settings have
their types, and of an adapter's settings only those of plain LoRA are read; nothing in them names code to import.
"""

from __future__ import annotations

import json
import math
import operator
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from dialeval.checkpoints.find import CheckpointError, first_line, parts_of

#: Tokenizers of a hundred languages come to some 35 MB of JSON; nothing else does.
MAX_JSON_BYTES = 2**28
#: No width, vocabulary or length of an encoder that exists comes near.
MAX_SIZE = 2**24
MAX_LAYERS = 512
MAX_RANK = 4096
#: A layout adds a separator or two, never a vocabulary.
MAX_NEW_TOKENS = 1024

#: It becomes the name of a folder and of a repository.
_NAME = re.compile(r"[^/\\:.~][^/\\:]{0,119}")
_REVISION = re.compile(r"(?:[\w\-/]|\.(?!\.)){1,255}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXTS = frozenset({".json", ".txt", ".model"})
_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_INTEGERS = frozenset({"I64", "I32", "I8", "U8", "BOOL"})
#: What would make an adapter something else than low-rank updates of linear layers.
_BEYOND_LORA = (
    "alpha_pattern fan_in_fan_out layer_replication layers_to_transform lora_bias modules_to_save rank_pattern "
    "target_parameters trainable_token_indices use_bdlora use_dora use_qalora"
).split()


def check_files(folder: Path) -> None:
    """Every file that may be read is a plain file, of a bounded size if it is read whole, and lies in the folder.

    Snapshots of the Hugging Face cache are links into the blobs of their own repository.
    """
    home = folder.resolve()
    allowed = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    for path in parts_of(folder):
        try:
            target = path.resolve(strict=True)
            status = target.stat()
        except (OSError, RuntimeError) as error:
            raise CheckpointError(f"{path} cannot be read ({first_line(error)}); fetch the checkpoint again") from None
        if not any(target.is_relative_to(place) for place in allowed):
            raise CheckpointError(f"{path} is a link that leaves the checkpoint's folder; put the file itself there")
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{path} is not a plain file; a checkpoint holds files only")
        if path.suffix in _TEXTS and status.st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path} has {status.st_size} bytes, more than any file of a checkpoint; remove it")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of one of the folder's files."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; the checkpoint is incomplete") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
    if not isinstance(raw, dict):
        raise CheckpointError(f"{path} is damaged: it holds a {type(raw).__name__}, not an object")
    return raw


def encoder_settings(path: Path) -> dict[str, Any]:
    """The configuration of an encoder, which asks for sizes that an encoder can have, and for no other library."""
    raw = read_json(path)
    if raw.get("quantization_config") is not None:
        raise CheckpointError(f"{path} is of quantised weights, which only libraries that it names could read")
    for key, value in raw.items():
        in_range = True
        if isinstance(value, float):
            in_range = 0 < value <= 1 if key.endswith("_eps") else math.isfinite(value)
        elif isinstance(value, int):
            is_size = key.startswith(("num_", "max_")) or key.endswith("_size")
            # -1 says "none" in configurations of DeBERTa.
            in_range = (-1 if is_size else -MAX_SIZE) <= value <= (MAX_LAYERS if "layer" in key else MAX_SIZE)
        if not in_range:
            raise CheckpointError(f"{path} is damaged: {key} is {shown(value)}, which is out of range")
    return raw


def tensor_shapes(
    path: Path, *, with_buffers: bool = False, counts: Collection[str] = ()
) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a weights file, from its header alone; only those of `counts` hold whole numbers.

    `with_buffers` passes over others: releases of BERT hold the positions' ids beside the weights.
    """
    shapes = {}
    try:
        with safe_open(path, framework="pt") as stored:
            for key in stored.keys():  # noqa: SIM118
                part = stored.get_slice(key)
                kind, whole = str(part.get_dtype()), key in counts
                if kind not in (_INTEGERS if whole else _FLOATS):
                    if with_buffers and kind in _INTEGERS:
                        continue
                    wanted = "whole" if whole else "floating-point"
                    raise CheckpointError(f"{path} is damaged: {key} holds {kind}, not {wanted} numbers")
                shapes[key] = tuple(part.get_shape())
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; pickled weights are not loaded") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
    return shapes


def adapter_settings(folder: Path) -> dict[str, Any]:
    """The arguments of a `LoraConfig`, checked against the shapes of the weights beside it."""
    path = folder / "adapter_config.json"
    raw = read_json(path)
    if raw.get("peft_type") != "LORA" or raw.get("bias", "none") != "none":
        raise CheckpointError(f"{path} describes another adapter than plain LoRA, which is the only kind that is read")
    if odd := [key for key in _BEYOND_LORA if raw.get(key)]:
        raise CheckpointError(f"{path} sets {odd[0]}; only plain LoRA is read")
    rank, alpha, dropout = raw.get("r"), raw.get("lora_alpha"), raw.get("lora_dropout", 0.0)
    modules = raw.get("target_modules")
    if not _is_int(rank, 1, MAX_RANK):
        raise CheckpointError(f"{path} is damaged: the rank is {shown(rank)}, not a number up to {MAX_RANK}")
    if not _is_number(alpha) or not _is_number(dropout) or not 0 <= dropout < 1:
        raise CheckpointError(f"{path} is damaged: lora_alpha and lora_dropout are not numbers in their range")
    if not isinstance(modules, list) or not modules or not all(isinstance(name, str) for name in modules):
        raise CheckpointError(f"{path} is damaged: target_modules is not a list of names")
    for key, shape in tensor_shapes(folder / "adapter_model.safetensors").items():
        side = 0 if "lora_A" in key else 1
        if len(shape) != 2 or shape[side] != rank:
            raise CheckpointError(f"{folder} does not fit together: {shown(key)} has shape {shape} at rank {rank}")
    plain = {"r": rank, "lora_alpha": alpha, "lora_dropout": dropout, "target_modules": modules}
    return plain | {"use_rslora": raw.get("use_rslora") is True}


def check_config(raw: Mapping[str, Any]) -> None:
    """The types and ranges of what `config.json` holds; raises `ValueError` or `KeyError`."""
    for key in ("approach", "name"):
        _require(_is_label(raw.get(key, "")), key, raw.get(key), "a short text")
    name = raw.get("name", "")
    _require(not name or bool(_NAME.fullmatch(name)), "name", name, "a plain name; it leads elsewhere")
    for key in ("encoder", "layout", "architecture", "quantiles", "training", "versions"):
        _require(isinstance(raw.get(key, {}), dict), key, raw.get(key), "an object")
    known = raw.get("contaminated_by", [])
    _require(isinstance(known, list) and all(map(_is_label, known)), "contaminated_by", known, "a list of names")
    for key, value in raw.get("architecture", {}).items():
        sound = isinstance(value, bool | str) or (_is_number(value) and 0 <= value <= MAX_SIZE)
        _require(sound, f"architecture.{key}", value, f"a choice, or a number up to {MAX_SIZE}")
    encoder = raw["encoder"]
    _require(_is_label(encoder["id"]) and bool(encoder["id"]), "encoder.id", encoder["id"], "a name")
    inside = not encoder["id"].startswith("~") and ".." not in re.split(r"[/\\]", encoder["id"])
    _require(inside, "encoder.id", encoder["id"], "the name of an encoder; it leads elsewhere")
    digest = (_SHA256, "a digest of 64 digits")
    for key, (pattern, kind) in {"revision": (_REVISION, "a revision"), "sha256": digest, "layers": digest}.items():
        value = encoder.get(key)
        _require(value is None or (isinstance(value, str) and bool(pattern.fullmatch(value))), key, value, kind)
    layout = raw["layout"]
    for key, lowest in (("max_length", 8), ("response_budget", 1), ("facts_budget", 0), ("turns", 1)):
        value = layout.get(key)
        _require(value is None or _is_int(value, lowest, MAX_SIZE), key, value, f"a number from {lowest}")
    for key in ("segment_ids", "tidy"):
        _require(isinstance(layout.get(key, True), bool), key, layout.get(key), "true or false")
    for key in ("separator", "facts_separator"):
        separator = layout.get(key, " ")
        _require(isinstance(separator, str) and len(separator) <= 100, key, separator, "a short text")
        separator.encode()
    for key, curves in raw.get("quantiles", {}).items():
        _require(isinstance(curves, dict), f"quantiles.{key}", curves, "an object")
        for side, curve in curves.items():
            sound = isinstance(curve, list) and 2 <= len(curve) <= 100_000 and set(map(type, curve)) <= {int, float}
            # Between two that are in bounds all are, but for what is no number, which differs from itself.
            sound = sound and all(map(operator.eq, curve, curve)) and curve == sorted(curve)
            sound = sound and _is_number(curve[0]) and _is_number(curve[-1])
            _require(sound, f"quantiles.{key}.{side}", curve, "a list of ascending numbers")


def _require(is_sound: bool, key: str, value: Any, what: str) -> None:
    if not is_sound:
        raise ValueError(f"{key} is {shown(value)}, not {what}")


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 1000 and value.isprintable()


def _is_int(value: Any, lowest: int, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MAX_SIZE if isinstance(value, int) else math.isfinite(value)


def shown(value: Any) -> str:
    """A value of somebody's file, for a message."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of many digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
