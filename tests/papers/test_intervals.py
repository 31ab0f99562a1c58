"""The intervals of FBD and PRD: how much they hold, and where PRD's lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.papers.distribution import Contexts
from dialeval.papers.feature_set import FeatureSet
from dialeval.papers.prd import Prd, assign, best_f1, curves, exact_f1, fit_centroids
from dialeval.statistics.moments import Moments
from refusals import refused


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
        sides.append(
            FeatureSet((chance.normal(size=(30, 3)) + shift).astype(np.float32), keys, keys, np.zeros(30, bool))
        )
    metric = Prd(tiny_encoder, clusters=5, runs=6, resamples=0)
    facts = metric.compare(*sides).facts
    both = np.concatenate([side.rows for side in sides])
    order = np.argsort(np.concatenate([side.pairs for side in sides]), kind="stable")
    centroids = fit_centroids(both[order], 5, runs=6, seed=0)
    values = [
        float(
            best_f1(
                *curves(counted(sides[0].rows, one[None]), counted(sides[1].rows, one[None]), metric.slopes),
                metric.f1_epsilon,
            )
        )
        for one in centroids
    ]
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
