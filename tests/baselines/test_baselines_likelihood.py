"""Likelihood baselines, on tiny models with random weights, against one-at-a-time computation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import dialeval
from dialeval.baselines.likelihood import CausalLikelihood, FollowUpLikelihood, MaskedLikelihood, read_follow_ups
from dialeval.baselines.words import MissingResource
from refusals import refused
from small_resources import WORDS, write_causal_model, write_masked_model

CONTEXTS = [["how are you?"], ["how are you?", "fine thanks and you?"], ["what do you like?"]]
RESPONSES = ["i am fine", "not bad!", "i like tea and coffee and tea and coffee ."]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small are slower on several threads, above all where other programs run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_masked_model(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_causal_model(tmp_path_factory.mktemp("causal"))


def ids_of(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.replace("?", " ?").replace("!", " !").split()]


def plain_masked(folder: Path, context: list[str], response: str) -> list[float]:
    from transformers import BertForMaskedLM

    model = BertForMaskedLM.from_pretrained(folder).eval()
    first, second = ids_of(" ".join(context)), ids_of(response)
    ids = [WORDS.index("[CLS]"), *first, WORDS.index("[SEP]"), *second, WORDS.index("[SEP]")]
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    found = []
    for spot in range(len(first) + 2, len(ids) - 1):
        changed = [*ids[:spot], WORDS.index("[MASK]"), *ids[spot + 1 :]]
        with torch.no_grad():
            logits = model(torch.tensor([changed]), token_type_ids=torch.tensor([types])).logits[0, spot]
        found.append(float(logits.double().log_softmax(0)[ids[spot]]))
    return found


def plain_causal(folder: Path, ids: list[int], start: int) -> float:
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().log_softmax(1)
    return float(np.mean([logits[spot - 1, ids[spot]] for spot in range(start, len(ids))]))


def conversation(turns: list[str]) -> list[int]:
    return [token for turn in turns for token in (*ids_of(turn), 0)]


def test_masked_likelihood_is_the_mean_over_masked_tokens(masked: Path) -> None:
    each = [plain_masked(masked, *row) for row in zip(CONTEXTS, RESPONSES, strict=True)]
    mean = MaskedLikelihood(model=str(masked), device="cpu").score(RESPONSES, CONTEXTS)
    assert mean.values == pytest.approx([np.mean(row) for row in each], abs=1e-5)
    alone = MaskedLikelihood(model=str(masked), device="cpu", batch_tokens=1).score(RESPONSES, CONTEXTS)
    assert alone.values == pytest.approx(mean.values, abs=1e-5)
    assert len(each[2]) == 10
    assert mean.signature["reduce"] == "mean"


def test_causal_likelihood_is_the_mean_over_the_reply(causal: Path) -> None:
    metric = CausalLikelihood(model=str(causal), device="cpu")
    scores = metric.score(RESPONSES, CONTEXTS)
    expected = []
    for context, response in zip(CONTEXTS, RESPONSES, strict=True):
        head = conversation(context)
        expected.append(plain_causal(causal, head + ids_of(response), len(head)))
    assert scores.values == pytest.approx(expected, abs=1e-5)
    assert (scores.values < 0).all()


@pytest.mark.parametrize("make", [MaskedLikelihood, CausalLikelihood, FollowUpLikelihood])
@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
@pytest.mark.slow
def test_batches_order_and_repeats_change_nothing(
    masked: Path, causal: Path, make: type[dialeval.registry.interface.Metric], batch_tokens: int
) -> None:
    folder = masked if make is MaskedLikelihood else causal
    metric = make(model=str(folder), device="cpu", batch_tokens=batch_tokens)
    forward = metric.score(RESPONSES, CONTEXTS).values
    alone = [metric.score([r], [c]).values[0] for r, c in zip(RESPONSES, CONTEXTS, strict=True)]
    backward = metric.score(RESPONSES[::-1] * 2, CONTEXTS[::-1] * 2).values
    assert forward == pytest.approx(alone, abs=1e-5)
    assert backward == pytest.approx([*alone[::-1], *alone[::-1]], abs=1e-5)


def test_long_contexts_lose_their_beginning_and_are_counted(masked: Path, causal: Path) -> None:
    long = ["how are you? " * 30, "what do you like?"]
    for metric in (
        MaskedLikelihood(model=str(masked), device="cpu"),
        CausalLikelihood(model=str(causal), device="cpu"),
    ):
        scores = metric.score(["i like tea"] * 2, [long, long[1:]])
        assert scores.n_truncated == 1
        assert np.isfinite(scores.values).all()
        assert scores.values[0] != scores.values[1]
        endless = metric.score(["tea " * 500], [["how are you?"]])
        assert endless.n_truncated == 1
        assert np.isfinite(endless.values).all()


def test_a_cut_context_keeps_its_end(causal: Path) -> None:
    context = ["how are you? " * 30, "what do you like?"]
    kept = conversation(context)[-(40 - 3) :]
    scores = CausalLikelihood(model=str(causal), device="cpu").score(["i like tea"], [context])
    assert scores.values[0] == pytest.approx(plain_causal(causal, kept + ids_of("i like tea"), 37), abs=1e-5)


def test_special_tokens_in_a_text_stay_text(causal: Path) -> None:
    metric = CausalLikelihood(model=str(causal), device="cpu")
    two_turns = metric.score(["fine"], [["how", "are"]]).values[0]
    smuggled = metric.score(["fine"], [["how <end> are"]]).values[0]
    assert smuggled != pytest.approx(two_turns, abs=1e-4)


def test_fed_is_complaint_minus_praise(causal: Path, tmp_path: Path) -> None:
    lists = {
        "good": {"positive": ["i like you !", "thanks"], "negative": ["not bad ?"]},
        "odd": {"negative": ["what ?"]},
    }
    path = tmp_path / "follow.json"
    path.write_text(json.dumps(lists))
    metric = FollowUpLikelihood(model=str(causal), follow_ups=path, device="cpu")
    scores = metric.score(["i am fine"], [["how are you?"]])
    head = conversation(["how are you?", "i am fine"])

    def nll(text: str) -> float:
        return -plain_causal(causal, head + ids_of(text), 1)

    good = nll("not bad ?") - (nll("i like you !") + nll("thanks")) / 2
    assert scores.values[0] == pytest.approx((good + nll("what ?")) / 2, abs=1e-5)
    assert scores.details["qualities"]["good"][0] == pytest.approx(good, abs=1e-5)
    json.loads(scores.to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "not JSON"),
        ("{}", "no qualities"),
        ('{"a": {}}', "'a'"),
        ('{"a": {"good": ["x"]}}', "'positive' and 'negative'"),
        ('{"a": {"positive": "x"}}', "list of sentences"),
        ('{"a": {"positive": [" "]}}', "list of sentences"),
        ('{"a": {"positive": []}}', "no follow-ups"),
    ],
)
def test_wrong_lists_of_follow_ups_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "follow.json"
    path.write_text(text)
    refused(ValueError, message, read_follow_ups, path)


def test_without_a_model_it_says_which_to_give(masked: Path) -> None:
    for name, example in [("mlm_likelihood", "bert-base-uncased"), ("lm_likelihood", "gpt2"), ("fed", "DialoGPT")]:
        assert name in refused(MissingResource, example, dialeval.load, name)


def test_a_model_without_the_head_is_refused(tmp_path: Path, masked: Path) -> None:
    from transformers import AutoTokenizer, BertModel

    BertModel.from_pretrained(masked).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(masked).save_pretrained(tmp_path)
    refused(MissingResource, "head", lambda: MaskedLikelihood(model=str(tmp_path), device="cpu"))


def test_wrong_options(masked: Path, causal: Path) -> None:
    refused(ValueError, "8 to 40", lambda: CausalLikelihood(model=str(causal), max_length=41))
