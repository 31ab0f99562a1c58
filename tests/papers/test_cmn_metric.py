"""CMN as a metric on a tiny random encoder: what a row's score may depend on, negatives, references, errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dialeval
from cmn_networks import BANK, CONTEXTS, LATENT, REFERENCES, RESPONSES, make_network
from dialeval.core.exchange import Exchange
from dialeval.papers import cmn
from dialeval.papers.cmn import Cmn
from dialeval.papers.cmn_network import ReplyDecoder
from refusals import refused


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cmn") / "checkpoint"
    make_network(tiny_encoder).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def metric(folder: Path) -> Cmn:
    return Cmn(folder, device="cpu", samples=20)


def rows(metric: Cmn, exchanges: list[Exchange]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and log-variances of pairs and of contexts, and NSP logits, straight from the network."""
    pairs = metric.encoder.encode(exchanges).rows.astype(np.float64)
    return pairs[:, : 2 * LATENT], metric.contexts.encode(exchanges).rows.astype(np.float64), pairs[:, 2 * LATENT :]


def sampled_infonce(x: np.ndarray, partner: np.ndarray, bank: np.ndarray) -> float:
    """The bound by plain Monte Carlo against negatives without variance; means and log-variances in one row each."""
    noise = np.random.default_rng(0).normal(size=(2, 100_000, LATENT))
    z, there = (one[:LATENT] + drawn * np.exp(one[LATENT:] / 2) for one, drawn in zip((x, partner), noise, strict=True))
    positive = (z * there).sum(axis=1)
    total = np.logaddexp.reduce([positive, *(z @ bank[:, :LATENT].T).T])
    return float(np.mean(positive + math.log(len(bank) + 1) - total))


# --- what a score depends on -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_row_is_scored_alone(folder: Path) -> None:
    metric = Cmn(folder, device="cpu", samples=10)
    together = metric.score(RESPONSES, CONTEXTS, REFERENCES).values
    assert len(set(together.round(6))) == len(RESPONSES)
    for row in range(len(RESPONSES)):
        metric.encoder.forget()
        alone = metric.score([RESPONSES[row]], [CONTEXTS[row]], [REFERENCES[row]]).values
        assert alone[0] == pytest.approx(together[row], abs=1e-4)
    order = [3, 0, 0, 4, 1, 2, 3]
    small = Cmn(folder, device="cpu", samples=10, batch_tokens=16)
    columns: tuple[list[Any], ...] = (RESPONSES, CONTEXTS, REFERENCES)
    shuffled = small.score(*([column[row] for row in order] for column in columns)).values
    assert shuffled == pytest.approx(together[order], abs=1e-4)
    assert shuffled[1] == shuffled[2]


def test_blocks_of_sampling_change_nothing(metric: Cmn, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = metric.score(RESPONSES, CONTEXTS, REFERENCES).values
    monkeypatch.setitem(cmn.BLOCK, "cpu", 1)
    monkeypatch.setattr(cmn, "ROWS_AT_ONCE", 2)
    assert metric.score(RESPONSES, CONTEXTS, REFERENCES).values == pytest.approx(whole, abs=1e-12)


# --- the numbers -----------------------------------------------------------------------------------


def test_components_by_hand(folder: Path) -> None:
    metric = Cmn(folder, device="cpu", samples=2000)
    exchange = Exchange(tuple(CONTEXTS[1]), RESPONSES[1], (REFERENCES[1][0],))
    (x, r), (c, _), logits = rows(metric, [exchange, Exchange(exchange.context, REFERENCES[1][0])])
    means = np.random.default_rng(1).normal(size=(BANK, LATENT)) / 4
    bank = np.hstack([means, np.full_like(means, -60)])
    metric.network.set_bank(bank, bank)
    scores = metric.score_exchanges([exchange])
    found = {name: scores.details[name][0] for name in ("nsp", "mi_context", "mi_reference")}
    assert found["nsp"] == pytest.approx(1 / (1 + math.exp(logits[0, 0] - logits[0, 1])))
    for name, partner in (("mi_context", c), ("mi_reference", r)):
        assert found[name] == pytest.approx(sampled_infonce(x, partner, bank), abs=0.1)
    assert scores.values[0] == pytest.approx(found["nsp"] * found["mi_context"] + found["mi_reference"])


def test_several_references(folder: Path, metric: Cmn) -> None:
    one = [metric.score(RESPONSES[-1:], CONTEXTS[-1:], [text]).details["mi_reference"][0] for text in REFERENCES[-1]]
    several = metric.score(RESPONSES[-1:], CONTEXTS[-1:], REFERENCES[-1:]).details["mi_reference"][0]
    assert several == pytest.approx(np.mean(one), abs=1e-4)
    twice = metric.score(RESPONSES[-1:], CONTEXTS[-1:], [REFERENCES[-1][:1] * 2]).details["mi_reference"][0]
    assert twice == pytest.approx(one[0], abs=1e-4)


# --- the door --------------------------------------------------------------------------------------


def test_references_are_needed(metric: Cmn) -> None:
    refused(dialeval.BadRow, "row 1", metric.score, ["yes", "no"], [["hello"]] * 2, [["fine"], []])
    refused(dialeval.BadRow, "row 0", metric.score, ["yes"], [["hello"]], [["fine", "  "]])
    refused(ValueError, "references", metric.score_dialogues, [["hello", "how are you", "fine"]])


@pytest.mark.parametrize(
    "option",
    [{"scoring": "nsp"}, {"prior_encoder": "both"}, {"samples": 0}, {"seed": -1}],
)
def test_bad_options(folder: Path, option: dict[str, Any]) -> None:
    refused(ValueError, next(iter(option)), Cmn, folder, device="cpu", **option)


def test_human_percentile_belongs_to_the_default_options(folder: Path, metric: Cmn) -> None:
    shares = metric.score(RESPONSES, CONTEXTS, REFERENCES, scale="human_percentile").values
    assert ((shares >= 0) & (shares <= 1)).all()
    variant = Cmn(folder, device="cpu", samples=5, prior_encoder="posterior_trunk")
    refused(ValueError, "quantiles", variant.score, RESPONSES, CONTEXTS, REFERENCES, scale="human_percentile")


def test_a_checkpoint_with_another_bank_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    network = make_network(tiny_encoder)
    network.save_pretrained(tmp_path / "one")
    text = (tmp_path / "one" / "config.json").read_text().replace('"bank": 6', '"bank": 7')
    (tmp_path / "one" / "config.json").write_text(text)
    refused(dialeval.checkpoints.find.CheckpointError, "bank_posterior", Cmn, tmp_path / "one", device="cpu")


# --- the decoder -----------------------------------------------------------------------------------


def make_decoder(vocabulary: int = 11, condition: int = 5) -> ReplyDecoder:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    shape = GPT2Config(
        vocab_size=vocabulary, n_layer=2, n_head=2, n_embd=8, n_positions=12, bos_token_id=0, eos_token_id=1
    )
    return ReplyDecoder(GPT2LMHeadModel(shape), condition).eval()


IDS = torch.tensor([[0, 4, 5, 1], [0, 6, 1, 1]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])


def test_a_clueless_decoder_pays_the_logarithm_of_the_vocabulary() -> None:
    decoder = make_decoder()
    torch.nn.init.zeros_(decoder.language_model.get_input_embeddings().weight)  # the output layer is the same
    with torch.no_grad():
        values = decoder(IDS, MASK, torch.zeros(2, 5))
    assert values.tolist() == pytest.approx([math.log(11) * 3 / 4, math.log(11) * 2 / 3], rel=1e-5)


@pytest.mark.parametrize("switched_off", ["to_past", "to_embedding"])
def test_either_way_lets_the_condition_in(switched_off: str) -> None:
    decoder = make_decoder()
    torch.nn.init.zeros_(getattr(decoder, switched_off).weight)
    with torch.no_grad():
        one, other = decoder(IDS, MASK, torch.ones(2, 5)), decoder(IDS, MASK, -torch.ones(2, 5))
    assert (one - other).abs().min() > 1e-4


def test_the_past_position_is_one_more_token_to_attend_to() -> None:
    """The same loss with the condition's keys and values put before those of the tokens by hand."""
    decoder, condition = make_decoder(), torch.randn(2, 5)
    torch.nn.init.zeros_(decoder.to_embedding.weight)
    model = decoder.language_model
    slices = decoder.to_past(condition).view(2, 2, 8)
    hidden = model.transformer.wte(IDS) + model.transformer.wpe(torch.arange(1, 5))
    for number, block in enumerate(model.transformer.h):
        query, key, value = block.attn.c_attn(block.ln_1(hidden)).split(8, dim=2)
        past = slices[:, number : number + 1]
        key, value = torch.cat([past, key], dim=1), torch.cat([past, value], dim=1)
        heads = [part.view(2, -1, 2, 4).transpose(1, 2) for part in (query, key, value)]
        weights = heads[0] @ heads[1].transpose(2, 3) / 2
        seen = torch.ones(4, 5).tril(1).bool()
        mixed = weights.masked_fill(~seen, -torch.inf).softmax(dim=-1) @ heads[2]
        hidden = hidden + block.attn.c_proj(mixed.transpose(1, 2).reshape(2, 4, 8))
        hidden = hidden + block.mlp(block.ln_2(hidden))
    logits = model.lm_head(model.transformer.ln_f(hidden))[0]
    wanted = torch.nn.functional.cross_entropy(logits[:3], IDS[0, 1:], reduction="sum") / 4
    assert decoder(IDS, MASK, condition)[0].item() == pytest.approx(wanted.item(), abs=1e-5)
