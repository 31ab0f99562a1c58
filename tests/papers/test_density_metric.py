"""DENSITY as a metric on a tiny checkpoint: what turns the network's rows into scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.papers.density import Density, DensityNetwork
from dialeval.statistics.moments import Moments
from small_checkpoints import small_checkpoint

WIDTH = 32


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = small_checkpoint("density", tiny_encoder, tmp_path_factory.mktemp("density") / "plain")
    network = DensityNetwork.from_pretrained(place, trainable=True)
    network.set_gaussian(np.linspace(-1, 1, WIDTH), np.diag(np.linspace(0.5, 4, WIDTH)))
    network.save_pretrained(place)
    return place


def made(folder: Path, **options: Any) -> Density:
    return Density(folder, device="cpu", **options)


def test_a_score_is_minus_the_root_of_the_squared_distance(folder: Path) -> None:
    rows = np.zeros((3, WIDTH + 1), dtype=np.float32)
    rows[:, :-1] = np.linspace(-1, 1, WIDTH)
    rows[1, 0] += 3  # three units off along the first feature, whose precision is one half
    rows[2, WIDTH - 1] -= 3  # and along the last, whose precision is four
    rows[:, -1] = (0.25, -7, 9)
    assert made(folder).values_of(rows) == pytest.approx([0, -np.sqrt(9 / 2), -6], abs=1e-5)
    assert made(folder, scoring="euclidean").values_of(rows) == pytest.approx([0, -3, -3], abs=1e-5)
    assert made(folder, scoring="classifier").values_of(rows).tolist() == [0.25, -7, 9]


def test_a_dialogue_averages_squares(folder: Path) -> None:
    values = np.array([-3.0, -4.0])
    assert made(folder).aggregate_dialogue(values) == pytest.approx(-np.sqrt(12.5))
    # A logit is no distance: it is averaged as it is.
    assert made(folder, scoring="classifier").aggregate_dialogue(np.array([-1.0, 3.0])) == 1.0


def test_shrinkage_moves_the_covariance_towards_a_sphere_of_the_same_trace() -> None:
    from dialeval.papers.density import fit_gaussian

    moments = Moments.of(np.array([[0.0, 0], [2, 0], [0, 4], [2, 4]]))  # variances 1 and 4
    _, precision = fit_gaussian(moments, shrinkage=0.5)
    assert precision == pytest.approx(np.diag([1 / 1.75, 1 / 3.25]))
    _, sphere = fit_gaussian(moments, shrinkage=1.0)
    assert sphere == pytest.approx(np.diag([0.4, 0.4]))
