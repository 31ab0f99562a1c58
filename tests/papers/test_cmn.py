"""CMN's arithmetic against the specification's vectors (K1…K7 as numbered there), limits and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dialeval.papers.cmn import NegativeLatents, combine, estimate_information, mutual_information
from dialeval.papers.cmn_network import (
    LatentGaussian,
    critic_loss,
    kl_divergence,
    masked_free_bits,
    training_losses,
)


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gaussians(seed: int, *shape: int, spread: float = 0.5) -> LatentGaussian:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return LatentGaussian(mean, spread * torch.randn(*shape, generator=generator, dtype=torch.float64) - 1)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- losses ----------------------------------------------------------------------------------------


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
    losses = training_losses(
        LatentGaussian(*parts[:2]),
        LatentGaussian(*parts[2:]),
        logits,
        is_true,
        lambda z: (z**2).sum(dim=-1),
        noise,
        free_bits=0.0,
        reconstruct_negatives=reconstruct_negatives,
    )
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


# --- bounds ----------------------------------------------------------------------------------------


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


@settings(max_examples=100, deadline=None)
@given(st.floats(-30, 30), st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.floats(-5, 5))
def test_laws_of_the_bound(positive: float, negatives: list[float], shift: float) -> None:
    def value(offset: float = 0.0) -> float:
        shifted = tensor(*(negative + offset for negative in negatives))
        return mutual_information(tensor(positive + offset)[0], shifted).item()

    assert value() <= math.log(len(negatives) + 1) + 1e-9
    assert value(shift) == pytest.approx(value(), abs=1e-9)  # only the difference of the critics counts


# --- the score -------------------------------------------------------------------------------------


def test_k6_combination() -> None:
    g = torch.softmax(tensor(0.2, 1.1), dim=-1)[1].item()
    assert g == pytest.approx(0.710949503, abs=1e-9)
    parts = np.array([[g], [0.8], [1.3]])
    assert combine(*parts)[0] == pytest.approx(1.868759602, abs=1e-9)
    assert combine(*parts, "without_nsp")[0] == pytest.approx(2.1)
    assert combine(*parts, "without_mi")[0] == pytest.approx(g)
