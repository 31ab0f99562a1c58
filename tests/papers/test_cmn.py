"""CMN by hand: its bounds, losses and combinations, then the network and the metric."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dialeval
from cmn_networks import BANK, CONTEXTS, LATENT, REFERENCES, RESPONSES, make_network
from dialeval.core.exchange import Exchange
from dialeval.papers import cmn
from dialeval.papers.cmn import Cmn, NegativeLatents, combine, estimate_information, mutual_information
from dialeval.papers.cmn_network import (
    LatentGaussian,
    ReplyDecoder,
    critic_loss,
    kl_divergence,
    masked_free_bits,
    training_losses,
)
from refusals import refused


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gaussians(seed: int, *shape: int, spread: float = 0.5) -> LatentGaussian:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return LatentGaussian(mean, spread * torch.randn(*shape, generator=generator, dtype=torch.float64) - 1)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_k1_kl_and_free_bits() -> None:
    posterior = LatentGaussian(tensor(0.5, 1, 0.2), tensor(0, -1, 0.1))
    prior = LatentGaussian(tensor(0, -0.5, 0.1), tensor(0, 0.5, 0))
    per_dimension = kl_divergence(posterior, prior)
    assert per_dimension.tolist() == pytest.approx([0.125, 1.043912072, 0.007585459], abs=1e-9)
    assert per_dimension.sum().item() == pytest.approx(1.176497531, abs=1e-9)
    assert masked_free_bits(per_dimension).item() == pytest.approx(1.043912072, abs=1e-9)
    assert masked_free_bits(per_dimension, 0.0).item() == pytest.approx(1.176497531, abs=1e-9)


@pytest.mark.parametrize("reconstruct_negatives", [True, False])
def test_the_two_training_cases(reconstruct_negatives: bool) -> None:
    posterior, prior, noise = gaussians(2, 2, 3), gaussians(3, 2, 3), normal(4, 2, 3)
    parts = [part.clone().requires_grad_() for part in (*posterior, *prior)]
    logits = tensor(0.2, 1.1, 0.4, -0.3).view(2, 2).requires_grad_()
    is_true = torch.tensor([True, False])
    given = (LatentGaussian(*parts[:2]), LatentGaussian(*parts[2:]), logits, is_true, lambda z: (z**2).sum(dim=-1))
    losses = training_losses(*given, noise, free_bits=0.0, reconstruct_negatives=reconstruct_negatives)
    sampled = [posterior.sample(noise)[0], prior.sample(noise)[1]]
    wanted = [(sampled[0] ** 2).sum().item(), (sampled[1] ** 2).sum().item() * reconstruct_negatives]
    assert losses.reconstruction.tolist() == pytest.approx(wanted)
    assert losses.kl.tolist() == pytest.approx([kl_divergence(posterior, prior)[0].sum().item(), 0.0])
    assert losses.nsp[0].item() == pytest.approx(-math.log(0.710949503), abs=1e-8)
    assert losses.nsp[1].item() == pytest.approx(math.log1p(math.exp(-0.7)))
    (losses.reconstruction + losses.kl).sum().backward()
    for part in parts[:2]:  # a wrong reply teaches the posterior nothing
        assert part.grad is not None
        assert part.grad[0].abs().min() > 0
        assert part.grad[1].tolist() == [0.0, 0.0, 0.0]


def test_critic_loss() -> None:
    posterior = tensor(1, 0, 0, 2).view(2, 2)
    prior = tensor(1, 1, 3, 0).view(2, 2)  # critics: (1, 3) and (2, 0)
    first, second = math.log(math.e + math.e**3) - 1, math.log(math.e**2 + 1)
    # A wrong pair should not agree with its own context: 3 of (1, 3), and 2 of (2, 0).
    first_wrong, second_wrong = math.log(math.e + math.e**3) - 3, math.log(math.e**2 + 1) - 2
    for is_true, wanted in (
        ([True, False], (first + second_wrong) / 2),
        ([False, True], (first_wrong + second) / 2),
        ([True, True], (first + second) / 2),
        ([False, False], (first_wrong + second_wrong) / 2),
    ):
        assert critic_loss(posterior, prior, torch.tensor(is_true)).item() == pytest.approx(wanted)
    for is_true, wanted in (([True, False], first), ([True, True], (first + second) / 2), ([False, False], 0.0)):
        flags = torch.tensor(is_true)
        assert critic_loss(posterior, prior, flags, wrong_pairs=False).item() == pytest.approx(wanted)
    bound = mutual_information(tensor(1)[0], tensor(3))
    assert first == pytest.approx(math.log(2) - bound.item())


@pytest.mark.parametrize(
    ("positive", "negatives", "expected"),
    [
        (2.0, (0.5, -1.0, 0.0), math.log(4) + 2 - math.log(math.exp(2) + math.exp(0.5) + math.exp(-1) + 1)),
        (0.6, (0.15, -1.25, -0.5), 0.631235669),  # K3
        (0.0, (0.0,) * 10, 0.0),  # K4
        (50.0, (0.5, -1.0, 0.0), math.log(4)),  # it ends at the logarithm of the candidates
        (5000.0, (0.5, -1.0, 0.0), math.log(4)),
    ],
)
def test_infonce(positive: float, negatives: tuple[float, ...], expected: float) -> None:
    assert mutual_information(tensor(positive)[0], tensor(*negatives)).item() == pytest.approx(expected, abs=1e-9)


def drawn(gaussian: LatentGaussian, seed: int, count: int) -> NegativeLatents:
    noise = normal(seed, len(gaussian.mean), count, gaussian.mean.shape[1])
    return NegativeLatents(len(gaussian.mean), gaussian.take(np.s_[:, None]).sample(noise).flatten(0, 1))


def test_k3_from_latents() -> None:
    still = tensor(-60, -60)  # no variance to speak of
    x, partner = LatentGaussian(tensor(1, -0.5)[None], still[None]), LatentGaussian(tensor(0.8, 0.4)[None], still[None])
    negatives = drawn(LatentGaussian(tensor(0.2, 0.1, -1, 0.5, 0, 1).view(3, 2), still.expand(3, 2)), 2, 5)
    noise = normal(0, 1, 7, 2), normal(1, 1, 7, 2)
    assert estimate_information(x, partner, negatives, noise).item() == pytest.approx(0.631235669, abs=1e-9)


def test_k6_combination() -> None:
    g = torch.softmax(tensor(0.2, 1.1), dim=-1)[1].item()
    assert g == pytest.approx(0.710949503, abs=1e-9)
    parts = np.array([[g], [0.8], [1.3]])
    assert combine(*parts)[0] == pytest.approx(1.868759602, abs=1e-9)
    assert combine(*parts, "without_nsp")[0] == pytest.approx(2.1)
    assert combine(*parts, "without_mi")[0] == pytest.approx(g)


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


def test_references_are_needed(metric: Cmn) -> None:
    refused(dialeval.BadRow, "row 1", metric.score, ["yes", "no"], [["hello"]] * 2, [["fine"], []])
    refused(dialeval.BadRow, "row 0", metric.score, ["yes"], [["hello"]], [["fine", "  "]])
    refused(ValueError, "references", metric.score_dialogues, [["hello", "how are you", "fine"]])


@pytest.mark.parametrize("option", [{"scoring": "nsp"}, {"prior_encoder": "both"}, {"samples": 0}, {"seed": -1}])
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
