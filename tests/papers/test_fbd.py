"""FBD's rule against the specification's vectors (numbered F1…F6 as there) and its limiting cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from dialeval.papers.fbd import Distance, Gaussian, MeanTerm, frechet_distance, influences
from refusals import refused

X_F2 = np.array([(0, 0), (2, 0), (0, 2), (2, 2)], dtype=np.float64)
Y_F2 = np.array([(1, 1), (3, 1), (1, 3), (3, 5)], dtype=np.float64)

sizes = st.integers(2, 12)
seeds = st.integers(0, 2**32 - 1)


def gaussian(mean: ArrayLike, covariance: ArrayLike) -> Gaussian:
    return Gaussian.of_covariance(np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64))


def between(x: np.ndarray, y: np.ndarray, *, mean_term: MeanTerm = "squared") -> float:
    return frechet_distance(Gaussian.of_rows(x), Gaussian.of_rows(y), mean_term=mean_term).total


def cloud(seed: int, n: int, d: int) -> np.ndarray:
    """Rows with a spectrum that falls off, as features have, far from the origin."""
    chance = np.random.default_rng(seed)
    return chance.normal(size=(n, d)) @ chance.normal(size=(d, d)) / np.arange(1, d + 1) + 10


def test_f1_two_covariances() -> None:
    x, y = gaussian([0, 0], [[2, 0.5], [0.5, 1]]), gaussian([1, -1], [[1, 0.2], [0.2, 3]])
    distance = frechet_distance(x, y)
    assert distance.of_spreads == pytest.approx(0.754386285, abs=1e-9)
    assert distance.total == pytest.approx(2.754386285, abs=1e-9)
    assert frechet_distance(x, y, mean_term="norm").total == pytest.approx(2.168599847, abs=1e-9)


def test_f2_data_sets_have_unbiased_covariances() -> None:
    distance = frechet_distance(Gaussian.of_rows(X_F2), Gaussian.of_rows(Y_F2))
    assert distance.of_spreads == pytest.approx(0.655677117, abs=1e-9)
    assert distance.total == pytest.approx(3.905677117, abs=1e-9)
    assert between(X_F2, Y_F2, mean_term="norm") == pytest.approx(2.458452754, abs=1e-9)


def test_f3_singular_covariances() -> None:
    distance = frechet_distance(gaussian([0, 0], [[1, 1], [1, 1]]), gaussian([0, 0], [[4, 0], [0, 0]]))
    assert distance == Distance(0.0, pytest.approx(2.0, abs=1e-12))


@settings(max_examples=30, deadline=None)
@given(seeds, sizes, sizes)
def test_f6_identical_sets(seed: int, n: int, d: int) -> None:
    rows = cloud(seed, n, d)
    assert 0.0 <= between(rows, rows) <= 1e-12 * np.trace(np.cov(rows.T)).clip(1e-300)


@settings(max_examples=50, deadline=None)
@given(seeds, sizes, sizes, sizes)
def test_what_holds_for_any_two_sets(seed: int, n: int, m: int, d: int) -> None:
    x, y = cloud(seed, n, d), cloud(seed + 1, m, d)
    distance = between(x, y)
    assert np.isfinite(distance)
    assert distance >= 0
    assert between(y, x) == pytest.approx(distance, rel=1e-9)
    assert between(-2.5 * x, -2.5 * y) == pytest.approx(6.25 * distance, rel=1e-9)
    assert between(x + 3, y + 3) == pytest.approx(distance, rel=1e-8)
    order = np.random.default_rng(seed).permutation(n)
    assert between(x[order], y) == pytest.approx(distance, rel=1e-9)


@pytest.mark.parametrize("mean_term", ["squared", "norm"])
@pytest.mark.parametrize(("n", "m", "d"), [(6, 5, 9), (30, 40, 4), (6, 40, 8)])
def test_influences_are_derivatives(n: int, m: int, d: int, mean_term: MeanTerm) -> None:
    """Against the distance of sets in which one row weighs a little more, by central differences."""
    x, y = cloud(0, n, d), cloud(1, m, d)
    of_x, of_y = influences(x, Gaussian.of_rows(x), Gaussian.of_rows(y), y, mean_term=mean_term)
    assert of_y is not None

    def weighted(rows: np.ndarray, weights: np.ndarray) -> Gaussian:
        mean = weights @ rows / weights.sum()
        centred = (rows - mean) * np.sqrt(weights / weights.sum() * len(rows) / (len(rows) - 1))[:, None]
        return Gaussian(mean, centred)

    def moved(row: int, step: float, first: bool) -> float:
        weights = np.ones(n if first else m)
        weights[row] += step
        sides = (weighted(x, weights), Gaussian.of_rows(y)) if first else (Gaussian.of_rows(x), weighted(y, weights))
        return frechet_distance(*sides, mean_term=mean_term).total

    step = 1e-5
    for row in (0, 3):
        for first, found in ((True, of_x), (False, of_y)):
            slope = (moved(row, step, first) - moved(row, -step, first)) / (2 * step)
            assert found[row] == pytest.approx(slope, rel=1e-5, abs=1e-7)
    assert of_x.sum() == pytest.approx(0, abs=1e-9)


def test_nan_is_refused() -> None:
    refused(ValueError, "NaN", lambda: Gaussian.of_rows(np.array([[0.0, np.nan], [1.0, 2.0]])))
