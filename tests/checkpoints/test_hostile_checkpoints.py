"""Checkpoints and base encoders that somebody made to do harm: one sentence, or finite scores, in bounded memory."""

from __future__ import annotations

import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.checkpoints.find import CheckpointError
from dialeval.papers.density import Density
from small_checkpoints import small_network

pytestmark = pytest.mark.slow

Harm = Callable[[Path], None]


def in_json(name: str, change: Callable[[dict[str, Any]], Any]) -> Harm:
    def harm(folder: Path) -> None:
        raw = json.loads((folder / name).read_text())
        change(raw)
        (folder / name).write_text(json.dumps(raw))

    return harm


def encoder(**values: Any) -> Harm:
    return in_json("config.json", lambda raw: raw.update(values))


def weights(change: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> Harm:
    def harm(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, body = change(json.loads(content[8 : 8 + length]), content[8 + length :])
        written = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(written)) + written + body)

    return harm


def filled(value: float) -> Harm:
    return weights(lambda header, body: (header, np.full(len(body) // 4, value, np.float32).tobytes()))


#: name -> what is done to the encoder's folder, and whether it has to be refused.
HARMS: dict[str, tuple[Harm, bool]] = {
    "five heads": (encoder(num_attention_heads=5), True),
    "minus four heads": (encoder(num_attention_heads=-4), True),
    "no positions": (encoder(max_position_embeddings=0), True),
    "as many layers as may be": (encoder(num_hidden_layers=512), True),
    "an epsilon that is none": (encoder(layer_norm_eps=math.nan), True),
    "an epsilon below nothing": (encoder(layer_norm_eps=-1.0), True),
    "an activation of the system": (encoder(hidden_act="__import__('os')"), True),
    "weights for another library": (encoder(quantization_config={"quant_method": "gptq", "bits": 4}), True),
    "code of its own": (encoder(auto_map={"AutoModel": "evil.Model"}), False),
    "another type": (encoder(dtype="int3", torch_dtype="complex128"), False),
    "heads that are cut off": (encoder(pruned_heads={"0": [0, 1, 2, 3]}), False),
    "a header of lists": (weights(lambda header, body: (b'{"a":' + b"[" * 100_000, body)), True),
    "a long header": (weights(lambda header, body: (json.dumps(header).encode() + b" " * 90_000_000, body)), False),
    "weights that are no numbers": (filled(math.nan), True),
    "weights without end": (filled(math.inf), True),
    "weights at the end": (filled(3e38), True),
    "weights of nothing": (filled(0.0), False),
}


@pytest.mark.parametrize("name", HARMS)
def test_harm(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    harm, is_refused = HARMS[name]
    base, checkpoint = tmp_path / "base", tmp_path / "checkpoint"
    small_network("density", tiny_encoder).save_pretrained(checkpoint)
    shutil.copytree(tiny_encoder, base)
    harm(base)
    in_json("config.json", lambda raw: raw["encoder"].update(id=str(base), sha256=None))(checkpoint)
    responses, contexts = ["Hello there, how are you?", "a b c" * 50], [["hi"], ["what do you", "like to eat?"]]

    def score() -> Any:
        return Density(checkpoint).score(responses, contexts).values

    if is_refused:
        with pytest.raises((CheckpointError, ValueError)) as told:
            score()
        assert str(told.value).strip()
    else:
        assert all(value is not None and math.isfinite(value) for value in score())
