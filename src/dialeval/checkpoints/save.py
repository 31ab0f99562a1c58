"""The files of a checkpoint folder, each of them whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from dialeval.io.files import parse_json, replace_file


def compact(file: Path) -> None:
    """The same JSON without its indentation, a third of a vocabulary's file."""
    if file.is_file():
        content = parse_json(file.read_text(encoding="utf-8"))
        short = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        replace_file(file, lambda path: path.write_text(short, encoding="utf-8"))


def save_adapter(adapted: nn.Module, folder: Path) -> None:
    """Save in PEFT's format, in float16: half the size, and `round_tuned` made it exact."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    state = get_peft_model_state_dict(adapted)
    half = {key: tensor.detach().cpu().to(torch.float16).contiguous() for key, tensor in state.items()}
    config: Any = adapted.peft_config["default"]  # type: ignore[index]
    kept, config.base_model_name_or_path = config.base_model_name_or_path, BASE_NAME_IN_CONFIG
    config.save_pretrained(str(folder))
    config.base_model_name_or_path = kept
    replace_file(folder / "adapter_model.safetensors", lambda path: save_file(half, path))


#: PEFT would write the folder from which the base was loaded; the base is named in config.json.
BASE_NAME_IN_CONFIG = None
