"""Layers on whole numbers say nearly what plain ones say, and the same of a row in any company."""

import copy
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, RobertaConfig

from dialeval import load
from dialeval.core.exchange import Exchange
from dialeval.encoders import batching
from dialeval.encoders.base import first_token
from dialeval.encoders.batching import choose_precision
from dialeval.encoders.bert import BertEncoder, BertSettings
from dialeval.encoders.int8 import Product, run_in_int8, weights_together
from dialeval.papers.feature_set import FrozenFeatures
from refusals import refused
from small_checkpoints import small_checkpoint
from small_encoders import SMALL, batch, model

units = pytest.mark.skipif(not weights_together(), reason="this torch has no exact products of whole numbers here")
WORDS = "hello there i am fine how are you today what do like to eat".split()


def rows(count: int) -> list[Exchange]:
    rng = random.Random(3)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 14)))

    return [Exchange(tuple(text() for _ in range(rng.randint(1, 3))), text()) for _ in range(count)]


def states(encoder: nn.Module, *lengths: int) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = encoder(**batch(*lengths)).last_hidden_state
    return found


def bert() -> BertEncoder:
    theirs: Any = model(BertConfig(**SMALL))
    settings = BertSettings.of({**theirs.config.to_dict()})
    assert settings is not None
    made = BertEncoder(settings)
    made.load_state_dict({name: theirs.state_dict()[name] for name in made.state_dict()})
    return made.eval()


@units
@pytest.mark.parametrize("lengths", [(9, 4, 1), (7, 7), (1,)], ids=["padded", "full", "one token"])
def test_states_are_near_those_of_plain_layers(lengths: tuple[int, ...]) -> None:
    plain, quick = bert(), bert()
    assert run_in_int8(quick, batch(8, 8))
    expected, found = states(plain, *lengths), states(quick, *lengths)
    seen = batch(*lengths)["attention_mask"].bool()
    assert torch.cosine_similarity(found[seen], expected[seen]).min() > 0.995
    assert not torch.equal(found[seen], expected[seen])
    with torch.inference_mode():
        firsts = [first_token(encoder, **batch(*lengths)) for encoder in (plain, quick)]
    assert torch.cosine_similarity(*firsts).min() > 0.995


@units
def test_rows_of_whole_numbers_times_whole_weights_are_exact() -> None:
    linear = nn.Linear(96, 48)
    generator = torch.Generator().manual_seed(0)
    whole = torch.randint(-127, 128, (48, 96), generator=generator)
    whole[:, 0] = 127
    whole[:, 1 :: weights_together()] = 0
    linear.weight.data = whole / 64
    inputs = torch.randint(-127, 128, (40, 96), generator=generator)
    inputs[:, 1] = -127
    expected = (inputs.double() / 4) @ (whole.double() / 64).T + linear.bias.double()
    found = Product.of([linear])(inputs / 4)
    assert torch.allclose(found.double(), expected, rtol=1e-6, atol=1e-4)
    with_large = Product.of([linear], torch.tensor([0, 5]))(inputs / 4)
    assert torch.allclose(with_large.double(), expected, rtol=1e-2, atol=8.0)


#: In a process of its own, since oneDNN asks once which units it may use.
_LARGEST = """
import torch
from torch import nn
from dialeval.encoders.int8 import Product, weights_together

linear = nn.Linear(384, 48)
nn.init.normal_(linear.weight, generator=torch.Generator().manual_seed(0))
linear.weight.data[0] = 1.0
inputs = torch.cat([torch.ones(40, 384), -torch.ones(40, 384)])
with torch.inference_mode():
    apart = (Product.of([linear])(inputs) - linear(inputs)).abs().max() / linear(inputs).abs().max()
print(weights_together(), float(apart))
"""


@units
@pytest.mark.parametrize("instructions", ["AVX2", "ALL"])
def test_the_largest_products_do_not_overflow_with_or_without_vnni_units(instructions: str) -> None:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    done = subprocess.run([sys.executable, "-c", _LARGEST], env=environment, capture_output=True, text=True, check=True)
    together, apart = done.stdout.split()
    assert int(together) in ((2,) if instructions == "AVX2" else (1, 2))
    assert float(apart) < 0.01


@units
def test_copies_begin_without() -> None:
    quick = bert()
    run_in_int8(quick, batch(8, 8))
    again = copy.deepcopy(quick)
    assert again.quick_layers is None
    assert again.state_dict().keys() == bert().state_dict().keys()
    assert torch.equal(states(again, 5, 3), states(bert(), 5, 3))


@pytest.mark.parametrize(
    "other", [model(BertConfig(**SMALL)), model(RobertaConfig(**SMALL)), nn.Linear(2, 2)],
    ids=["transformers' own", "another kind", "no encoder"],
)  # fmt: skip
def test_what_is_not_known_to_allow_it_is_left_alone(other: nn.Module) -> None:
    assert not run_in_int8(other, batch(8, 8))


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    usual = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(usual)


@pytest.mark.slow
@units
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", ["density", "judge"])
def test_features_of_a_row_are_the_same_to_the_last_bit_in_any_company(
    name: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    metric: Any = load(name, checkpoint=small_checkpoint(name, tiny_encoder, tmp_path / name), dtype="int8")
    width = metric.network.encoder.config.hidden_size
    given, seen = rows(40), metric.encoder.network

    def features(some: list[Exchange], budget: int) -> list[np.ndarray[Any, Any]]:
        found: list[np.ndarray[Any, Any]] = []
        handle = seen.register_forward_hook(lambda *message: found.append(message[2].numpy()))
        metric.encoder.batch_tokens, metric.encoder.deduplicate = budget, False
        metric.encoder.encode(some)
        handle.remove()
        # The engine takes rows by their length, the longest first.
        pairs = metric.encoder.tokenizer.pairs(some)
        order = sorted(range(len(some)), key=lambda row: -len(pairs[row].key))
        placed = np.concatenate(found)
        back = np.empty((len(some), width), np.float32)
        back[order] = placed
        return list(back)

    together = features(given, 2048)
    shuffled = list(range(len(given)))
    random.Random(1).shuffle(shuffled)
    mixed = features([given[row] for row in shuffled], 200)
    assert all(np.array_equal(together[row], value) for row, value in zip(shuffled, mixed, strict=True))
    assert all(np.array_equal(together[row], features([given[row]], 2048)[0]) for row in range(0, 40, 8))


@units
def test_auto_falls_back_where_the_layers_are_of_another_kind(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: False)
    known = FrozenFeatures(str(tiny_encoder), pooling="mean", dtype="auto")
    assert (known.made_with["dtype"], known.encoder.same_widths) == ("int8", True)
    other = shutil.copytree(tiny_encoder, tmp_path / "relu")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    plain = FrozenFeatures(str(other), pooling="mean", dtype="auto")
    assert (plain.made_with["dtype"], plain.encoder.same_widths) == ("float32", False)
    refused(ValueError, "int8", lambda: FrozenFeatures(str(other), pooling="mean", dtype="int8"))


def test_where_it_cannot_be_had_an_error_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(ValueError, "cuda", lambda: choose_precision("int8", torch.device("cuda")))
    monkeypatch.setattr(batching, "weights_together", lambda: 0)
    refused(ValueError, "float32", lambda: choose_precision("int8", torch.device("cpu")))


def test_auto_takes_int8_where_bfloat16_loses_which_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(batching, "has_fast_int8", lambda: True)
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: False)
    assert choose_precision("auto", cpu) == "int8"
    assert choose_precision("auto", torch.device("meta")) == "float32"
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: True)
    assert choose_precision("auto", cpu) == "bfloat16"
    monkeypatch.setattr(batching, "has_fast_int8", lambda: False)
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: False)
    assert choose_precision("auto", cpu) == "float32"
    for slower in ("bfloat16", "int8"):
        with pytest.warns(UserWarning, match=slower):
            assert choose_precision(slower, cpu) == slower
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: True)
    assert choose_precision("auto", cpu) == choose_precision("bfloat16", cpu) == "bfloat16"
    refused(ValueError, "'int8'", choose_precision, "float16", cpu)
