"""DENSITY against the specification's vectors (numbered T1…T8 as there) and its limiting cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.papers.density import (
    contrastive_loss,
    fit_gaussian,
    response_selection_loss,
    selection_ranks,
    squared_mahalanobis,
)
from dialeval.statistics.moments import Moments
from refusals import refused

PAIRS_T2 = torch.tensor([[3.0, 0.0], [0.0, 2.0], [3.0, 4.0], [-1.0, 0.0]], dtype=torch.float64)
POSITIVE_T2 = torch.tensor([True, False, True, False])


def gaussian(*points: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return fit_gaussian(Moments.of(np.array(points, dtype=np.float64)))


def squared(point: tuple[float, ...], mean: np.ndarray, precision: np.ndarray) -> float:
    return float(squared_mahalanobis(np.array([point]), mean, precision)[0])


def test_t1_response_selection() -> None:
    logits = torch.tensor([[2.0, 0.5, -1.0]], dtype=torch.float64)
    assert response_selection_loss(logits).item() == pytest.approx(0.241311297, abs=1e-9)


@pytest.mark.parametrize(("temperature", "expected"), [(0.1, 0.531795861), (0.5, 0.310405533)])
def test_t2_contrastive(temperature: float, expected: float) -> None:
    loss = contrastive_loss(PAIRS_T2, POSITIVE_T2, temperature=temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


def test_one_positive_has_no_partner_and_costs_nothing() -> None:
    assert contrastive_loss(PAIRS_T2[:2], torch.tensor([True, False])).item() == 0.0


def test_t4_singular_covariance() -> None:
    mean, precision = gaussian((0, 0), (2, 2), (4, 4))
    assert mean.tolist() == [2.0, 2.0]
    assert precision == pytest.approx(np.full((2, 2), 0.09375))
    assert squared((3, 4), mean, precision) == pytest.approx(0.84375)
    assert -np.sqrt(squared((3, 4), mean, precision)) == pytest.approx(-0.918558654)
    assert -np.sqrt(squared((3, 4), mean, np.eye(2))) == pytest.approx(-2.236067977)
    assert squared((6, 6), mean, precision) == pytest.approx(6.0)
    assert squared((1, 3), mean, precision) == pytest.approx(0.0, abs=1e-12)


def test_t5_regular_covariance() -> None:
    mean, precision = gaussian((0, 0), (2, 0), (0, 2), (2, 4))
    assert mean == pytest.approx([1.0, 1.5])
    assert precision == pytest.approx(np.array([[1.1, -0.2], [-0.2, 0.4]]))
    for point, distance, score, euclid in [
        ((3, 0), 6.5, -2.549509757, -2.5),
        ((5, 5), 16.9, -4.110960958, -5.315072906),
    ]:
        assert squared(point, mean, precision) == pytest.approx(distance)
        assert -np.sqrt(squared(point, mean, precision)) == pytest.approx(score)
        assert -np.sqrt(squared(point, mean, np.eye(2))) == pytest.approx(euclid)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 40), st.integers(1, 4), st.integers(4, 8))
def test_t6_mean_squared_distance_is_the_rank(seed: int, count: int, rank: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, rank)) @ rng.normal(size=(rank, width)) + 100 * rng.normal(size=width)
    mean, precision = fit_gaussian(Moments.of(points))
    assert squared_mahalanobis(points, mean, precision).mean() == pytest.approx(min(rank, count - 1), rel=1e-6)


def test_t7_ranks() -> None:
    ranks = selection_ranks(np.array([[2, 1, 0], [0.5, 0.9, 0.1], [0.1, 0.2, 0.3]]))
    assert ranks.tolist() == [1, 2, 3]
    assert (1 / ranks).mean() == pytest.approx(0.611111, abs=1e-6)
    assert selection_ranks(np.array([[1.0, 1.0, 1.0]])).tolist() == [1]  # a tie does not push the answer down


def test_moments_refuse_what_cannot_be_averaged() -> None:
    refused(ValueError, "NaN", lambda: Moments.of(np.array([[np.nan, 1.0]])))
    refused(ValueError, "non-empty", lambda: Moments.of(np.zeros((0, 3))))
    refused(ValueError, "merge", lambda: Moments.of(np.zeros((2, 3))).merge(Moments.of(np.zeros((2, 4)))))


def test_a_direction_of_float32_noise_counts_as_constant() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 6))
    points[:, 0] = 0.3 + 1e-7 * rng.normal(size=500)
    _, exact = fit_gaussian(Moments.of(points))
    _, coarse = fit_gaussian(Moments.of(points), resolution=1e-5)
    assert np.linalg.eigvalsh(exact)[-1] > 1e12
    assert np.linalg.eigvalsh(coarse)[-1] < 2.0
    assert np.allclose(coarse[1:, 1:], np.linalg.inv(np.cov(points[:, 1:].T, ddof=0)), atol=1e-6)
