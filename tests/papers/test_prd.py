"""PRD's rule against the specification's vectors (numbered P1…P7 as there) and its limiting cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.papers.prd import assign, best_f1, curves, exact_f1, fit_centroids, slopes
from refusals import refused

#: human shares, system shares; best F1 over all slopes, on the released grid with its constant, on the paper's
#: grid with m = 1001, with m = 3
VECTORS = {
    "P1": ((0.5, 0.5), (0.9, 0.1), 0.714285714, 0.714169006, 0.713929439, 0.6),
    "P2": ((0.5, 0.5), (1, 0), 0.666666667, 0.666374316, 0.666455555, 0.585786438),
    "P3": ((0.5, 0.5, 0), (0.25, 0.25, 0.5), 0.666666667, 0.666374316, 0.666455555, 0.585786438),
    "P4": ((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4), 0.6, 0.599999520, 0.6, 0.6),
    "P5": ((0.3, 0.7), (0.3, 0.7), 1, 0.9999995, 1, 1),
    "P6": ((1, 0), (0, 1), 0, 0, 0, 0),
    "P7": ((0.6, 0.3, 0.1), (0.2, 0.2, 0.6), 0.56, 0.559890355, 0.559973016, 0.517157288),
}

histograms = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8).filter(
    lambda pairs: all(any(side) for side in zip(*pairs, strict=True))
)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    human, system, sup, released, paper, coarse = VECTORS[name]
    theirs, ours = np.array([human]), np.array([system])
    assert exact_f1(theirs, ours) == pytest.approx(sup, abs=1e-9)
    assert best_f1(*curves(theirs, ours, slopes("released")), 1e-6) == pytest.approx(released, abs=1e-9)
    assert best_f1(*curves(theirs, ours, slopes("paper", 1001))) == pytest.approx(paper, abs=1e-9)
    assert best_f1(*curves(theirs, ours, slopes("paper", 3))) == pytest.approx(coarse, abs=1e-9)


def test_p1_curve() -> None:
    precision, recall = curves(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]]), slopes("paper", 3))
    assert precision == pytest.approx([0.307107, 0.6, 1.0], abs=1e-6)
    assert recall == pytest.approx([0.741421, 0.6, 0.414214], abs=1e-6)


def test_curves_are_averaged_before_the_best_f1_is_taken() -> None:
    theirs, ours = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    together = float(best_f1(*curves(theirs, ours, slopes())))
    alone = [float(best_f1(*curves(theirs[[run]], ours[[run]], slopes()))) for run in (0, 1)]
    assert alone == pytest.approx([2 / 3, 2 / 3], abs=1e-3)
    # At slope 1 both runs share half; nowhere do both reach their own best.
    assert together < 0.64


@settings(max_examples=60, deadline=None)
@given(histograms)
def test_what_holds_for_any_two_histograms(pairs: list[tuple[int, int]]) -> None:
    theirs, ours = (np.array([side], dtype=np.float64) for side in zip(*pairs, strict=True))
    value = exact_f1(theirs, ours)
    assert 0 <= value <= 1 + 1e-12
    assert exact_f1(ours, theirs) == pytest.approx(value, abs=1e-12)
    assert exact_f1(theirs, theirs) == pytest.approx(1.0)
    on_grid = float(best_f1(*curves(theirs, ours, slopes())))
    assert value - 2e-3 <= on_grid <= value + 1e-9
    assert exact_f1(3 * theirs, 7 * ours) == pytest.approx(value)


def two_modes(chance: np.random.Generator, left: int, right: int) -> np.ndarray:
    centres = np.repeat([[-5.0] * 4, [5.0] * 4], [left, right], axis=0)
    return (centres + 0.1 * chance.normal(size=centres.shape)).astype(np.float32)


def test_one_mode_of_two() -> None:
    chance = np.random.default_rng(0)
    human, system = two_modes(chance, 30, 30), two_modes(chance, 60, 0)
    centroids = fit_centroids(np.concatenate([human, system]), 2, runs=3)
    theirs, ours = (
        np.array([np.bincount(labels, minlength=2) for labels in assign(rows, centroids)]) for rows in (human, system)
    )
    assert sorted(theirs[0]) == [30, 30]
    assert exact_f1(theirs, ours) == pytest.approx(2 / 3)
    precision, recall = curves(theirs, ours, slopes())
    assert (precision.max(), recall.max()) == (pytest.approx(1.0), pytest.approx(0.5))


def test_assign_takes_the_nearest_centroid() -> None:
    centroids = np.array([[[0.0, 0.0], [4.0, 0.0]], [[0.0, 3.0], [4.0, 9.0]]])
    assert assign(np.array([[1.0, 0.0], [3.0, 8.0]]), centroids).tolist() == [[0, 1], [0, 1]]


def test_clusters_are_seeded_and_no_more_than_distinct_rows() -> None:
    rows = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    assert np.array_equal(fit_centroids(rows, 4, runs=2, seed=5), fit_centroids(rows, 4, runs=2, seed=5))
    assert not np.array_equal(fit_centroids(rows, 4, runs=1, seed=5), fit_centroids(rows, 4, runs=1, seed=6))
    first, second = fit_centroids(rows, 4, runs=2, seed=5)
    assert not np.array_equal(first, second)
    assert fit_centroids(np.repeat(rows[:3], 5, axis=0), 20, runs=2).shape == (2, 3, 3)


def test_unusable_rows_and_grids_are_refused() -> None:
    for rows in (np.zeros((0, 3)), np.array([[np.nan, 1.0]])):
        refused(ValueError, "finite", fit_centroids, rows)
    refused(ValueError, "paper", slopes, "fine")  # type: ignore[arg-type]
