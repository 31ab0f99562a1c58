"""DEB: losses, masking, calibration by hand-computed values; the network against BERT's own head."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from dialeval.papers.deb import (
    Deb,
    DebNetwork,
    MaskedWordHead,
    Masking,
    ReliabilityBin,
    expected_calibration_error,
    fit_shift,
    fit_temperature,
    mask_words,
    next_response_loss,
    reliability,
    valid_probability,
    word_continuations,
)
from dialeval.papers.learned import quantile_curves
from refusals import refused
from small_checkpoints import TEXTS, small_network, tensors


def network(folder: Path, *, pooled: bool = True, bias: bool = True) -> DebNetwork:
    return small_network("deb", folder, architecture={"pooled": pooled, "bias": bias})


def test_next_response_loss_takes_index_0_for_valid() -> None:
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    # log(1 + 1/e) for the right one, 1 more for the wrong one
    assert next_response_loss(logits, torch.tensor([True, False])).item() == pytest.approx(0.3132616875)
    assert next_response_loss(logits, torch.tensor([True, True])).item() == pytest.approx(0.8132616875)


SEQUENCES = st.lists(st.integers(0, 29), min_size=3, max_size=80)


@given(ids=SEQUENCES, seed=st.integers(0, 10_000))
def test_masking_takes_whole_words_and_nothing_else(ids: list[int], seed: int) -> None:
    continuations = np.arange(30) >= 20  # ids 20 … 29 continue a word
    sequence = np.array([1, *ids, 2], dtype=np.int32)
    fixed = np.isin(sequence, [1, 2])
    changed, positions = mask_words(sequence, fixed, continuations, 3, np.random.default_rng(seed), Masking())
    assert not fixed[positions].any()
    assert len(positions) <= min(20, max(1, round(0.15 * (~fixed).sum())))
    untouched = np.setdiff1d(np.arange(len(sequence)), positions)
    assert (changed[untouched] == sequence[untouched]).all()
    for position in positions:
        if position + 1 < len(sequence) and continuations[sequence[position + 1]] and not fixed[position + 1]:
            assert position + 1 in positions
        if continuations[sequence[position]] and not fixed[position - 1]:
            assert position - 1 in positions


def test_of_the_chosen_tokens_80_percent_are_hidden_and_10_replaced() -> None:
    rng = np.random.default_rng(0)
    sequence = np.full(100, 10, dtype=np.int32)
    fate: list[int] = []
    for _ in range(1000):
        changed, positions = mask_words(
            sequence, np.zeros(100, dtype=bool), np.zeros(5000, dtype=bool), 3, rng, Masking(0.15, 100)
        )
        assert len(positions) == 15
        fate += changed[positions].tolist()
    share = np.array(fate)
    assert (share == 3).mean() == pytest.approx(0.8, abs=0.01)
    assert (share == 10).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["[CLS]", "play", "##ing", "##s"], [False, False, True, True]),
        (["<s>", "Ġplay", "ing", "Ġa"], [True, False, True, False]),
        (["play", "a"], [False, False]),
    ],
)
def test_continuations_of_word_piece_and_byte_level_vocabularies(pieces: list[str], expected: list[bool]) -> None:
    class Vocabulary(list[str]):
        def convert_ids_to_tokens(self, ids: range) -> list[str]:
            return [self[number] for number in ids]

    assert word_continuations(Vocabulary(pieces)).tolist() == expected


def test_probability_of_valid_by_hand() -> None:
    logits = [[2.0, 1.0], [0.0, 0.0], [1.0, 3.0]]
    assert valid_probability(logits) == pytest.approx([0.7310585786, 0.5, 0.1192029220])
    assert valid_probability(logits, 2.0) == pytest.approx([0.6224593312, 0.5, 0.2689414214])


def test_a_shift_recovers_where_one_half_lay() -> None:
    rng = np.random.default_rng(3)
    margin = rng.normal(0, 4, 40_000)
    valid = rng.random(len(margin)) < expit((margin - 1.5) / 2)
    logits = np.stack([margin, np.zeros_like(margin)], axis=1)
    shift = fit_shift(logits, valid)
    assert shift == pytest.approx(-1.5, abs=0.1)
    moved = logits + np.array([shift, 0.0])
    assert fit_temperature(moved, valid) == pytest.approx(2, rel=0.05)
    assert fit_shift(moved, valid) == pytest.approx(0, abs=1e-3)


def test_reliability_by_hand() -> None:
    table = reliability([0.05, 0.95, 0.91, 1.0], [False, True, False, True], bins=10)
    assert table == [
        ReliabilityBin(0.05, 0.0, 1),
        ReliabilityBin(pytest.approx((0.95 + 0.91 + 1.0) / 3), pytest.approx(2 / 3), 3),
    ]
    expected = 0.25 * 0.05 + 0.75 * abs(2.86 / 3 - 2 / 3)
    assert expected_calibration_error(table) == pytest.approx(expected)
    assert math.isnan(expected_calibration_error([]))


def test_paper_head_has_neither_pooler_nor_bias(tiny_encoder: Path) -> None:
    one = network(tiny_encoder, pooled=False, bias=False)
    assert one.pooler is None
    assert one.classifier.bias is None
    given_tensors = tensors(one)
    with torch.no_grad():
        first = one.hidden(**given_tensors)[:, 0]
        torch.testing.assert_close(one(**given_tensors)[:, -2:], first @ one.classifier.weight.T)
    refused(ValueError, "head.pooled", one.load_original_head, tiny_encoder)
    refused(ValueError, "head.bias", one.shift, 0.5)


def test_a_shift_moves_the_logit_of_valid_alone(tiny_encoder: Path) -> None:
    one = network(tiny_encoder)
    given_tensors = tensors(one)
    with torch.no_grad():
        before = one(**given_tensors)
        one.shift(0.5)
        moved = one(**given_tensors) - before
    expected = torch.zeros_like(moved)
    expected[:, -2] = 0.5
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-6)


def test_original_head_scores_as_bert_does(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForPreTraining

    torch.manual_seed(5)
    bert = BertForPreTraining(BertConfig.from_pretrained(tiny_encoder)).eval()
    bert.save_pretrained(tmp_path)
    for file in tiny_encoder.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    one = small_network("deb", tmp_path, tuning="frozen")
    words = MaskedWordHead(32, bert.config.vocab_size).eval()
    one.load_original_head(tmp_path, words)
    given_tensors = tensors(one)
    with torch.no_grad():
        expected = bert(**given_tensors)
        logits = one(**given_tensors)[:, -2:]
        hidden = one.hidden(**given_tensors)
        guesses = words(hidden, one.encoder.get_input_embeddings().weight)
    torch.testing.assert_close(logits, expected.seq_relationship_logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(guesses, expected.prediction_logits, rtol=1e-4, atol=1e-5)


def test_checkpoint_keeps_temperature_quantiles_and_contamination(tiny_encoder: Path, tmp_path: Path) -> None:
    one = network(tiny_encoder)
    with torch.no_grad():
        logits = one(**tensors(one))[:, -2:].numpy()
    one.temperature.fill_(2.5)
    curves = {"native": quantile_curves(np.linspace(0, 1, 50), np.linspace(0, 0.5, 50))}
    one.config = replace(one.config, quantiles=curves, contaminated_by=("dailydialogpp_dev",))
    one.save_pretrained(tmp_path)
    metric = Deb(tmp_path, device="cpu")
    scores = metric.score_exchanges(TEXTS)
    assert scores.values == pytest.approx(valid_probability(logits, 2.5), abs=1e-5)
    assert metric.contaminated_by == {"dailydialogpp_dev"}
    turned = metric.score_exchanges(TEXTS[::-1])
    assert turned.values[::-1] == pytest.approx(scores.values, abs=1e-6)
    percentile = metric.score_exchanges(TEXTS, scale="human_percentile")
    assert percentile.values == pytest.approx(scores.values, abs=1e-6)  # human scores are uniform here


def test_a_scale_that_is_not_there_is_refused_before_anything_is_encoded(tiny_encoder: Path, tmp_path: Path) -> None:
    one = network(tiny_encoder)
    one.config = replace(one.config, quantiles={})
    one.save_pretrained(tmp_path)
    metric = Deb(tmp_path, device="cpu")
    metric.encoder = None  # type: ignore[assignment]
    for scale, named in (("human_percentile", "quantiles"), ("stars", "stars")):
        refused(ValueError, named, metric.score_exchanges, TEXTS, scale=scale)
        refused(ValueError, named, metric.score_dialogues, [["hi", "hello"]], scale=scale)


def test_temperature_of_one_margin_is_known_in_closed_form() -> None:
    # With one margin m and a share p of right labels, sigmoid(m / T) = p at the optimum.
    logits = np.tile([2.0, 0.0], (400, 1))
    valid = np.arange(400) < 300
    assert fit_temperature(logits, valid) == pytest.approx(2 / math.log(3), rel=1e-4)
