"""The seam for encoders: families give transformers' states, and our own BERT does to the last bit."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

import dialeval
from dialeval.checkpoints.config import CheckpointConfig, LoraSettings, encoder_source
from dialeval.checkpoints.load import FAMILIES, load_encoder
from dialeval.core.exchange import Exchange
from dialeval.encoders import base
from dialeval.encoders.bert import BertEncoder
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.papers.density import DensityNetwork
from refusals import refused
from small_encoders import SMALL, batch, model

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
