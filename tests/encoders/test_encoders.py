"""The seam for encoders: families give what transformers gives, our own BERT to the last bit, whole numbers nearly."""

import copy
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
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import AutoConfig, AutoModel, BertConfig, PreTrainedTokenizerFast, RobertaConfig

import dialeval
from dialeval import load
from dialeval.checkpoints.config import CheckpointConfig, LoraSettings, encoder_source
from dialeval.checkpoints.load import FAMILIES, load_encoder
from dialeval.core.exchange import Exchange
from dialeval.encoders import base, batching
from dialeval.encoders.base import first_token
from dialeval.encoders.batching import choose_precision
from dialeval.encoders.bert import BertEncoder, BertSettings
from dialeval.encoders.int8 import Product, run_in_int8, weights_together
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.papers.density import DensityNetwork
from dialeval.papers.feature_set import FrozenFeatures
from refusals import refused
from small_checkpoints import changed, small_checkpoint
from tiny_words import WORDS

SMALL = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}


def model(config: Any, attention: str = "sdpa") -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = AutoModel.from_config(config, attn_implementation=attention or None).eval()
    for name, parameter in made.named_parameters():
        if not name.endswith("LayerNorm.weight"):
            nn.init.normal_(parameter, std=0.3)
    return made


def batch(*lengths: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (len(lengths), max(lengths)), generator=generator)
    mask = torch.stack([(torch.arange(max(lengths)) < length).long() for length in lengths])
    return {"input_ids": ids.where(mask.bool(), 1), "attention_mask": mask}


#: Beside `SMALL`: what a family calls its sizes, or needs to be small.
OWN: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    "electra": {"embedding_size": 32},
    "deberta": {"pos_att_type": ["c2p", "p2c"], "relative_attention": True, "max_relative_positions": -1},
    "deberta-v2": {"pos_att_type": ["c2p", "p2c"], "relative_attention": True, "position_buckets": 8},
    "modernbert": {"pad_token_id": 1, "bos_token_id": 3, "eos_token_id": 4, "cls_token_id": 3, "sep_token_id": 4,
                   "reference_compile": False},
}  # fmt: skip


def config(family: str) -> Any:
    sizes = {**SMALL, "max_position_embeddings": 40, **OWN.get(family, {})}
    return AutoConfig.for_model(family, **({"pad_token_id": 1} | sizes))


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder of the family with a tokenizer, as a folder."""
    made: Path = tmp_path_factory.mktemp(request.param)
    model(config(request.param), "").save_pretrained(made)  # type: ignore[operator]
    words = ["<s>", "<pad>", "</s>", "[UNK]", "[unused0]", *"abcdefghijklmnopqrstuvwxyz.?"]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="[UNK]", cls_token="<s>", sep_token="</s>"
    )
    fast.save_pretrained(made)
    return made


def test_a_family_gives_transformers_states(folder: Path) -> None:
    theirs = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    ours = load_encoder(folder, 0).eval()
    given = batch(9, 4, 1)
    with torch.inference_mode():
        expected = theirs(**given).last_hidden_state
        seen = given["attention_mask"].bool()
        assert torch.allclose(base.states(ours, **given)[seen], expected[seen], atol=1e-5)
        assert torch.allclose(base.first_token(ours, **given), expected[:, 0], atol=1e-5)
    assert base.width(ours) == expected.shape[-1] == 32


def test_a_family_takes_its_longest_input_and_no_longer_one(folder: Path) -> None:
    encoder: Any = load_encoder(folder, 0).eval()
    longest = base.longest_input(encoder.config)
    with torch.inference_mode():
        assert torch.isfinite(base.first_token(encoder, **batch(longest))).all()
    layout = {"max_length": longest + 1}
    refused(ValueError, str(longest), lambda: made(folder, **layout).score(["a"], [["b"]]))


def made(folder: Path, **layout: Any) -> Any:
    settings = PairFormat(max_length=24, separator="[unused0]")
    network = DensityNetwork.create(
        CheckpointConfig("density", "small", encoder_source(str(folder), "lora"), settings), lora=LoraSettings(4, 4)
    )
    network.save_pretrained(folder / "checkpoint")
    return dialeval.load("density", checkpoint=folder / "checkpoint", **layout)


def test_a_checkpoint_on_a_family_is_saved_and_loaded(folder: Path) -> None:
    metric = made(folder)
    first = metric.score(["a b c", "d"], [["x y"], ["z", "w"]])
    again = dialeval.load("density", checkpoint=folder / "checkpoint").score(["a b c", "d"], [["x y"], ["z", "w"]])
    assert again.values.tolist() == first.values.tolist()


def test_a_separator_that_a_vocabulary_lacks_is_refused(folder: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    refused(ValueError, "unused7", lambda: PairTokenizer(tokenizer, PairFormat(separator="[unused7]")))
    layout = PairFormat(facts_budget=4, facts_separator="[unused7]")
    refused(ValueError, "unused7", lambda: PairTokenizer(tokenizer, layout))


def test_weights_of_another_encoder_are_refused() -> None:
    mpnet, bert = model(config("mpnet"), ""), model(config("bert"))
    refused(ValueError, "another", lambda: base.load_exactly(mpnet, base.tuned_state(bert), kept="embeddings."))
    base.load_exactly(bert, base.tuned_state(bert), kept="embeddings.")


def test_the_bias_by_distance_is_tuned_with_the_layers() -> None:
    encoder = model(config("mpnet"), "")
    base.freeze_embeddings(encoder)
    learns = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    assert "encoder.relative_attention_bias.weight" in learns & base.tuned_state(encoder).keys()
    assert not any(name.startswith("embeddings.") for name in learns)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_of_the_last_layer_only_the_first_token_is_computed(family: str) -> None:
    encoder: Any = model(config(family), "" if family == "mpnet" else "sdpa")
    rows: list[int] = []
    encoder.encoder.layer[-1].output.dense.register_forward_hook(lambda *seen: rows.append(seen[2].shape[1]))
    base.first_token(encoder, **batch(9, 4))
    base.states(encoder, **batch(9, 4))
    assert rows == [1, 9]


def test_dropout_changes_states_and_is_refused_where_it_is_not_known() -> None:
    torch.manual_seed(3)
    encoder = model(config("mpnet"), "")
    plain, dropped = (base.states(encoder, **batch(9), dropout=rate) for rate in (0.0, 0.5))
    assert not torch.allclose(plain, dropped)
    other: nn.Module = model(config("distilbert"))
    refused(ValueError, "distilbert", lambda: base.states(other, **batch(9), dropout=0.1))


def test_rows_of_an_encoder_without_segments_are_read_as_pairs(folder: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    pair = PairTokenizer(tokenizer, PairFormat(separator="[unused0]")).pairs([Exchange(("a", "b"), "c")])[0]
    assert pair.ids.tolist() == [0, 5, 4, 6, 2, 2, 7, 2]


def inputs() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(5, 40, (4, 12), generator=generator)
    mask, types = torch.ones_like(ids), torch.zeros_like(ids)
    mask[1, 7:], types[:, 6:] = 0, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


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
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "released"))
    tensors = {f"bert.{name}": tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**tensors, "cls.predictions.bias": torch.zeros(3)}, folder / "model.safetensors", {"format": "pt"})
    loaded = load_encoder(folder, 0)
    assert isinstance(loaded, BertEncoder)
    assert loaded.embeddings.word_embeddings.weight.dtype == torch.float32
    assert torch.equal(loaded.state_dict()["encoder.layer.0.output.dense.weight"],
                       tensors["bert.encoder.layer.0.output.dense.weight"].float())  # fmt: skip


# --- layers on whole numbers -----------------------------------------------------------------------

units = pytest.mark.skipif(not weights_together(), reason="this torch has no exact products of whole numbers here")


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
    changed(Path(other) / "config.json", "hidden_act", to="relu")
    plain = FrozenFeatures(str(other), pooling="mean", dtype="auto")
    assert (plain.made_with["dtype"], plain.encoder.same_widths) == ("float32", False)
    refused(ValueError, "int8", lambda: FrozenFeatures(str(other), pooling="mean", dtype="int8"))


def test_where_it_cannot_be_had_an_error_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(ValueError, "cuda", lambda: choose_precision("int8", torch.device("cuda")))
    monkeypatch.setattr(batching, "weights_together", lambda: 0)
    refused(ValueError, "float32", lambda: choose_precision("int8", torch.device("cpu")))


def test_auto_takes_int8_where_bfloat16_loses_which_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    for int8, bfloat16, expected in ((True, True, "bfloat16"), (True, False, "int8"), (False, False, "float32")):
        monkeypatch.setattr(batching, "has_fast_int8", lambda fast=int8: fast)
        monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device, gains=bfloat16: gains)
        assert choose_precision("auto", cpu) == expected
        assert bfloat16 or choose_precision("auto", torch.device("meta")) == "float32"
    for slower in ("bfloat16", "int8"):
        with pytest.warns(UserWarning, match=slower):
            assert choose_precision(slower, cpu) == slower
    monkeypatch.setattr(batching, "gains_by_bfloat16", lambda device: True)
    assert choose_precision("auto", cpu) == choose_precision("bfloat16", cpu) == "bfloat16"
    refused(ValueError, "'int8'", choose_precision, "float16", cpu)
