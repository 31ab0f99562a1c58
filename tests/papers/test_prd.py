"""PRD by hand, and the intervals of both metrics of sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.papers.distribution import Contexts
from dialeval.papers.feature_set import FeatureSet
from dialeval.papers.prd import Prd, assign, best_f1, curves, exact_f1, fit_centroids, slopes
from dialeval.statistics.moments import Moments
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


def counted(rows: Any, centroids: Any) -> Any:
    """How many rows fall to every centroid, run by run."""
    return np.array([np.bincount(labels, minlength=centroids.shape[1]) for labels in assign(rows, centroids)])


@pytest.mark.filterwarnings("ignore:fewer")
def test_prds_interval_surrounds_its_value(tiny_encoder: Path) -> None:
    """Two sides with the same replies to other contexts: no resample agrees as they do, so the draws are moved."""
    rows = np.repeat(np.eye(4, dtype=np.float32), 6, axis=0)
    sides = []
    for start in (0, 100):
        keys = np.arange(start, start + 24, dtype=np.uint64)
        sides.append(FeatureSet(rows, keys, keys, np.zeros(24, bool)))
    metric = Prd(tiny_encoder, clusters=4, runs=2, resamples=400)
    found = metric.compare(*sides)
    assert found.value == pytest.approx(1, abs=1e-5)

    contexts = Contexts.number(sides[0].contexts, sides[1].contexts)
    cluster = np.repeat(np.arange(4), 6)
    drawn = []
    for counts in np.concatenate(list(contexts.draw(400, seed=0))):
        pair = [np.bincount(cluster, counts[side], 4)[None] for side in (contexts.of_human, contexts.of_replies)]
        drawn.append(float(best_f1(*curves(*pair, metric.slopes), metric.f1_epsilon)))
    values = np.array(drawn)
    assert np.quantile(values, 0.975) < found.value  # plain percentiles would miss it
    low, high = np.quantile(found.value + values - values.mean(), [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=2e-3)
    assert found.high == min(1.0, high) == 1.0


@pytest.mark.filterwarnings("ignore:fewer")
def test_prd_tells_what_single_starts_of_the_clusters_give(tiny_encoder: Path) -> None:
    chance = np.random.default_rng(3)
    sides = []
    for shift in (0.0, 0.6):
        keys = np.arange(30, dtype=np.uint64) + np.uint64(1000 * shift)
        rows = (chance.normal(size=(30, 3)) + shift).astype(np.float32)
        sides.append(FeatureSet(rows, keys, keys, np.zeros(30, bool)))
    metric = Prd(tiny_encoder, clusters=5, runs=6, resamples=0)
    facts = metric.compare(*sides).facts
    both = np.concatenate([side.rows for side in sides])
    order = np.argsort(np.concatenate([side.pairs for side in sides]), kind="stable")
    centroids = fit_centroids(both[order], 5, runs=6, seed=0)
    values = []
    for run in centroids:
        theirs, ours = (counted(side.rows, run[None]) for side in sides)
        values.append(float(best_f1(*curves(theirs, ours, metric.slopes), metric.f1_epsilon)))
    assert (facts["seed_low"], facts["seed_high"]) == pytest.approx((min(values), max(values)))
    assert facts["seed_sd"] == pytest.approx(np.std(values, ddof=1))
    assert facts["exact"] == pytest.approx(exact_f1(*(counted(side.rows, centroids) for side in sides)))
    assert facts["n_reference"] == 30
    assert np.isnan(Prd(tiny_encoder, clusters=5, runs=1, resamples=0).compare(*sides).facts["seed_sd"])


def test_moments_need_more_rows_than_they_take_off() -> None:
    one = Moments.of(np.array([[1, 2]]))  # integers are counted in float64
    assert one.covariance().tolist() == [[0, 0], [0, 0]]
    refused(ValueError, "ddof=1", one.covariance, ddof=1)
    two = one.update(np.array([[3, 2]]))
    assert two.covariance(ddof=1).tolist() == [[2, 0], [0, 0]]
    assert two.covariance().tolist() == [[1, 0], [0, 0]]
    rounded = Moments.of(np.array([[0.1], [0.2], [0.4]], dtype=np.float32))
    assert rounded.mean.dtype == np.float64
    assert rounded.scatter.dtype == np.float64
    refused(ValueError, "NaN", lambda: Moments.of(np.array([[1.0], [np.inf]])))
