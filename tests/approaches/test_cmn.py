"""CMN's arithmetic against the specification's vectors (K1…K7 as numbered there), limits and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dialeval.approaches.cmn import NegativeLatents, combine, estimate_information, mutual_information
from dialeval.approaches.cmn_network import (
    LatentGaussian,
    critic_loss,
    kl_divergence,
    masked_free_bits,
    training_losses,
)

BOUNDS = ("paper_eq4", "dv", "infonce", "released")


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


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_kl_is_that_of_torch_and_zero_only_for_equal_distributions(seed: int, width: int) -> None:
    one, other = gaussians(seed, 3, width), gaussians(seed + 1, 3, width)
    normals = [torch.distributions.Normal(each.mean, (each.log_variance / 2).exp()) for each in (one, other)]
    assert torch.allclose(kl_divergence(one, other), torch.distributions.kl_divergence(*normals))
    assert kl_divergence(one, one).abs().max() < 1e-12


def test_free_dimensions_get_no_gradient() -> None:
    values = tensor(0.4, 0.6, 3.0).requires_grad_()
    masked_free_bits(values).backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0.0, 1.0, 1.0]


def test_gradients_of_kl_and_of_free_bits() -> None:
    inputs = [part.clone().requires_grad_() for part in (*gaussians(0, 2, 4), *gaussians(1, 2, 4))]

    def masked(*parts: Tensor) -> Tensor:
        return masked_free_bits(kl_divergence(LatentGaussian(*parts[:2]), LatentGaussian(*parts[2:])), 0.5)

    assert torch.autograd.gradcheck(
        lambda *parts: kl_divergence(LatentGaussian(*parts[:2]), LatentGaussian(*parts[2:])), inputs
    )
    assert torch.autograd.gradcheck(masked, inputs)


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


def test_a_better_decoder_lowers_the_loss() -> None:
    posterior, prior, noise = gaussians(5, 4, 3), gaussians(6, 4, 3), normal(7, 4, 3)

    def total(decoder_error: float) -> float:
        losses = training_losses(
            posterior,
            prior,
            torch.zeros(4, 2),
            torch.tensor([True, False] * 2),
            lambda z: z[:, 0] * 0 + decoder_error,
            noise,
        )
        return sum(term.sum().item() for term in losses)

    assert total(1.0) < total(2.0)


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
    inputs = (normal(8, 4, 3).requires_grad_(), normal(9, 4, 3).requires_grad_())
    assert torch.autograd.gradcheck(lambda q, p: critic_loss(q, p, torch.tensor([True, False, True, True])), inputs)


# --- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positive", "negatives", "expected"),
    [
        (2.0, (0.5, -1.0, 0.0), (3.093093972, 1.994481683, 1.043944779, 3.934541558)),  # K2
        (0.6, (0.15, -1.25, -0.5), (2.077012138, 0.978399849, 0.631235669, 2.662514280)),  # K3
        (0.0, (0.0,) * 10, (2.302585093, 0.0, 0.0, 2.072326584)),  # K4
    ],
)
def test_k2_k3_k4_bounds(positive: float, negatives: tuple[float, ...], expected: tuple[float, ...]) -> None:
    for bound, value in zip(BOUNDS, expected, strict=True):
        assert mutual_information(tensor(positive)[0], tensor(*negatives), bound).item() == pytest.approx(
            value, abs=1e-9
        )  # type: ignore[arg-type]


def test_k3_from_latents() -> None:
    still = tensor(-60, -60)  # no variance to speak of
    x, partner = LatentGaussian(tensor(1, -0.5)[None], still[None]), LatentGaussian(tensor(0.8, 0.4)[None], still[None])
    negatives = NegativeLatents(LatentGaussian(tensor(0.2, 0.1, -1, 0.5, 0, 1).view(3, 2), still.expand(3, 2)))
    assert estimate_information(x, partner, negatives, None).item() == pytest.approx(0.631235669, abs=1e-9)
    noise = normal(0, 1, 7, 2), normal(1, 1, 7, 2)
    assert estimate_information(x, partner, negatives, noise).item() == pytest.approx(0.631235669, abs=1e-9)


def test_k4_infonce_saturates_at_the_logarithm_of_the_candidates() -> None:
    assert mutual_information(tensor(50)[0], tensor(0.5, -1, 0)).item() == pytest.approx(1.386294361, abs=1e-9)
    assert mutual_information(tensor(5000)[0], tensor(0.5, -1, 0)).item() == pytest.approx(math.log(4))
    assert mutual_information(tensor(5000)[0], tensor(0.5, -1, 0), "dv").item() > 4000


@settings(max_examples=100, deadline=None)
@given(st.floats(-30, 30), st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.floats(-5, 5))
def test_laws_of_the_bounds(positive: float, negatives: list[float], shift: float) -> None:
    def value(bound: str, offset: float = 0.0) -> float:
        shifted = tensor(*(negative + offset for negative in negatives))
        return mutual_information(tensor(positive + offset)[0], shifted, bound).item()  # type: ignore[arg-type]

    assert value("infonce") <= math.log(len(negatives) + 1) + 1e-9
    assert value("paper_eq4") == pytest.approx(value("dv") + math.log(len(negatives)), abs=1e-9)
    for bound in ("infonce", "dv", "paper_eq4"):  # only the difference of the critics counts
        assert value(bound, shift) == pytest.approx(value(bound), abs=1e-9)
    one = tensor(negatives[0])
    assert mutual_information(tensor(positive)[0], one, "released").item() == pytest.approx(
        positive - negatives[0] + math.log(10), abs=1e-9
    )


@pytest.mark.parametrize("bound", BOUNDS)
def test_gradients_of_the_bounds(bound: str) -> None:
    inputs = (normal(10, 3).requires_grad_(), normal(11, 3, 5).requires_grad_())
    assert torch.autograd.gradcheck(lambda one, others: mutual_information(one, others, bound), inputs)  # type: ignore[arg-type]


def test_an_unknown_bound() -> None:
    with pytest.raises(ValueError, match="bound is 'nce'; it is one of infonce"):
        mutual_information(tensor(0)[0], tensor(0), "nce")  # type: ignore[arg-type]


# --- expectations ----------------------------------------------------------------------------------


def test_k5_closed_inner_expectation() -> None:
    negatives = NegativeLatents(LatentGaussian(tensor(0.2, 0.3)[None], tensor(1, 0.25).log()[None]))
    logarithm = negatives.critic(tensor(0.5, -1)[None]).item()
    assert logarithm == pytest.approx(0.05, abs=1e-12)
    assert math.exp(logarithm) == pytest.approx(1.051271096, abs=1e-9)


def test_sampled_inner_expectations_converge_to_the_closed_form() -> None:
    negatives, points = gaussians(20, 4, 3), normal(21, 6, 3) / 2
    closed = NegativeLatents(negatives).critic(points)
    off = []
    for count in (100, 100_000):
        draws = negatives.take(np.s_[:, None]).sample(normal(22, 4, count, 3)).flatten(0, 1)
        off.append((NegativeLatents(negatives, draws).critic(points) - closed).abs().max().item())
    assert off[1] < off[0]
    assert off[1] < 0.02


@pytest.mark.parametrize("bound", BOUNDS)
def test_sampled_bounds_converge(bound: str) -> None:
    x, partner, negatives = gaussians(30, 1, 3), gaussians(31, 1, 3), gaussians(32, 4, 3)
    draws = negatives.take(np.s_[:, None]).sample(normal(33, 4, 1000, 3)).flatten(0, 1)
    noise = normal(34, 1, 1000, 3), normal(35, 1, 1000, 3)
    sampled = estimate_information(x, partner, NegativeLatents(negatives, draws), noise, bound=bound)  # type: ignore[arg-type]
    closed = estimate_information(x, partner, NegativeLatents(negatives), noise, bound=bound)  # type: ignore[arg-type]
    assert sampled.item() == pytest.approx(closed.item(), abs=0.1)


def test_without_variance_every_estimator_is_the_same() -> None:
    x, partner, negatives = (LatentGaussian(normal(seed, 3, 4), tensor(-60).expand(3, 4)) for seed in (40, 41, 42))
    noise = normal(43, 3, 5, 4), normal(44, 3, 5, 4)
    draws = negatives.take(np.s_[:, None]).sample(normal(45, 3, 6, 4)).flatten(0, 1)
    means = estimate_information(x, partner, NegativeLatents(negatives), None)
    for one in (NegativeLatents(negatives), NegativeLatents(negatives, draws)):
        assert torch.allclose(estimate_information(x, partner, one, noise), means, atol=1e-8)


def test_large_critics_neither_overflow_nor_vanish() -> None:
    far = LatentGaussian(torch.full((1, 2), 200.0, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64))
    negatives = NegativeLatents(far, far.mean.expand(3, 2))
    noise = normal(0, 1, 4, 2), normal(1, 1, 4, 2)
    assert torch.isfinite(estimate_information(far, far, negatives, noise)).all()


# --- the score -------------------------------------------------------------------------------------


def test_k6_combination() -> None:
    g = torch.softmax(tensor(0.2, 1.1), dim=-1)[1].item()
    assert g == pytest.approx(0.710949503, abs=1e-9)
    parts = np.array([[g], [0.8], [1.3]])
    assert combine(*parts)[0] == pytest.approx(1.868759602, abs=1e-9)
    assert combine(*parts, "alternative")[0] == pytest.approx(0.944525249, abs=1e-9)
    assert combine(*parts, "without_nsp")[0] == pytest.approx(2.1)
    assert combine(*parts, "without_mi")[0] == pytest.approx(g)
