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

from density_networks import make_network
from dialeval.approaches.density import Density
from dialeval.weights.find import CheckpointError

pytestmark = pytest.mark.slow

Harm = Callable[[Path], None]


def in_json(name: str, change: Callable[[dict[str, Any]], Any]) -> Harm:
    def harm(folder: Path) -> None:
        raw = json.loads((folder / name).read_text())
        change(raw)
        (folder / name).write_text(json.dumps(raw))

    return harm


def tokenizer(**parts: Any) -> Harm:
    return in_json("tokenizer.json", lambda raw: raw.update(parts))


def model(**parts: Any) -> Harm:
    return in_json("tokenizer.json", lambda raw: raw["model"].update(parts))


def settings(**values: Any) -> Harm:
    return in_json("tokenizer_config.json", lambda raw: raw.update(values))


def encoder(**values: Any) -> Harm:
    return in_json("config.json", lambda raw: raw.update(values))


def added(number: Any, content: str, **more: Any) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": number, "content": content, **flags, **more}


def vocabulary(change: Callable[[str, int, int], Any]) -> Harm:
    def replaced(raw: dict[str, Any]) -> None:
        known = raw["model"]["vocab"]
        raw["model"]["vocab"] = {word: change(word, number, len(known)) for word, number in known.items()}

    return in_json("tokenizer.json", replaced)


def unigram(score: float) -> Harm:
    def replaced(raw: dict[str, Any]) -> None:
        raw["model"] = {"type": "Unigram", "vocab": [[word, score] for word in raw["model"]["vocab"]], "unk_id": 2}

    return in_json("tokenizer.json", replaced)


def bpe(**parts: Any) -> Harm:
    def replaced(raw: dict[str, Any]) -> None:
        raw["model"] = {"type": "BPE", "vocab": raw["model"]["vocab"], "merges": [], **parts}

    return in_json("tokenizer.json", replaced)


def weights(change: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> Harm:
    def harm(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, body = change(json.loads(content[8 : 8 + length]), content[8 + length :])
        written = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(written)) + written + body)

    return harm


def first_tensor(**values: Any) -> Harm:
    def change(header: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        name = next(key for key in header if key != "__metadata__")
        return {**header, name: {**header[name], **values}}, body

    return weights(change)


def filled(value: float) -> Harm:
    return weights(lambda header, body: (header, np.full(len(body) // 4, value, np.float32).tobytes()))


def template(single: list[Any], ids: list[int]) -> dict[str, Any]:
    special = {"[CLS]": {"id": "[CLS]", "ids": ids, "tokens": ["[CLS]"] * len(ids)}}
    both = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 9}}]
    return {
        "type": "TemplateProcessing", "single": single, "pair": both if single else [], "special_tokens": special
    }  # fmt: skip


SPLIT = {"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": True}
CLS = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
#: name -> what is done to the encoder's folder (and the checkpoint's tokenizer), and whether it has to be refused.
HARMS: dict[str, tuple[Harm, bool]] = {
    "a space is a token": (tokenizer(added_tokens=[added(5, " ", special=True)]), False),
    "every letter is one token": (tokenizer(added_tokens=[added(3, one) for one in "abcdefghijk"]), False),
    "added tokens share a number": (tokenizer(added_tokens=[added(5, "x"), added(5, "y")]), False),
    "half a character": (tokenizer(added_tokens=[added(5, "\ud800")]), True),
    "a number with a point": (tokenizer(added_tokens=[added(3.0, "q")]), True),
    "a number as a text": (tokenizer(added_tokens=[added("3", "q")]), True),
    "blanks are erased": (
        tokenizer(normalizer={"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": ""}),
        False,
    ),
    "settings of another kind": (tokenizer(normalizer={"type": "BertNormalizer", "lowercase": 1e9}), True),
    "a template without the texts": (tokenizer(post_processor=template([], [3])), True),
    "a template of many numbers": (tokenizer(post_processor=template(CLS, [1] * 100_000)), True),
    "no positions for what is cut": (
        tokenizer(truncation={"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 60_000}),
        True,
    ),
    "padded to nearly anything": (
        tokenizer(
            padding={
                "strategy": {"Fixed": 60_000},
                "direction": "Left",
                "pad_to_multiple_of": 65_000,
                "pad_id": 65_000,
                "pad_type_id": 65_000,
                "pad_token": "x",
            }
        ),
        False,
    ),
    "sixteen splits": (tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [SPLIT] * 16}), False),
    "nothing for a blank": (
        tokenizer(pre_tokenizer={"type": "Metaspace", "replacement": "", "prepend_scheme": "never"}),
        True,
    ),
    "merges without end": (bpe(merges=[["h", "e"]] * 300_000, unk_token="[UNK]"), True),
    "merges of numbers": (bpe(merges=[[1, 2]]), True),
    "a cache without end": (bpe(cache_capacity=2**62, byte_fallback=True), False),
    "scores that are no numbers": (unigram(math.nan), True),
    "scores without end": (unigram(-math.inf), True),
    "scores at the end": (unigram(1e308), False),
    "numbers with a point": (vocabulary(lambda word, number, count: float(number)), True),
    "one number for all": (vocabulary(lambda word, number, count: 2), True),
    "numbers the other way round": (vocabulary(lambda word, number, count: count - 1 - number), False),
    "words of no letters": (model(max_input_chars_per_word=0), False),
    "a length in words": (settings(model_max_length="many"), False),
    "a class of the system": (settings(tokenizer_class="os.system"), False),
    "a padding that is a list": (settings(pad_token=[1, 2]), True),
    "a token far away": (settings(added_tokens_decoder={"1000000": {"content": "far", "special": True}}), False),
    "tokens that are none": (settings(added_tokens_decoder={"x": 3}), True),
    "five heads": (encoder(num_attention_heads=5), True),
    "minus four heads": (encoder(num_attention_heads=-4), True),
    "no heads": (encoder(num_attention_heads=0), True),
    "no positions": (encoder(max_position_embeddings=0), True),
    "a width of a thousand million": (encoder(hidden_size=10**9), True),
    "as many layers as may be": (encoder(num_hidden_layers=512), True),
    "an epsilon that is none": (encoder(layer_norm_eps=math.nan), True),
    "an epsilon below nothing": (encoder(layer_norm_eps=-1.0), True),
    "an activation of the system": (encoder(hidden_act="__import__('os')"), True),
    "weights for another library": (encoder(quantization_config={"quant_method": "gptq", "bits": 4}), True),
    "code of its own": (encoder(auto_map={"AutoModel": "evil.Model"}), False),
    "another type": (encoder(dtype="int3", torch_dtype="complex128"), False),
    "heads that are cut off": (encoder(pruned_heads={"0": [0, 1, 2, 3]}), False),
    "offsets in each other": (first_tensor(data_offsets=[0, 4]), True),
    "offsets below nothing": (first_tensor(data_offsets=[-4, 0]), True),
    "a shape without end": (first_tensor(shape=[2**40, 2**40]), True),
    "whole numbers": (first_tensor(dtype="I64"), True),
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
    make_network(tiny_encoder).save_pretrained(checkpoint)
    shutil.copytree(tiny_encoder, base)
    harm(base)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / file, checkpoint / file)
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
