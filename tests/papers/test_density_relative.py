"""DENSITY beside a background of random pairs: values by hand, limiting cases, checkpoints with and without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.checkpoints.find import CheckpointError
from dialeval.papers.density import Density, DensityNetwork, fit_gaussian, relative_density
from dialeval.papers.learned import quantile_curves
from dialeval.statistics.moments import Moments
from refusals import refused
from small_checkpoints import small_checkpoint

RESPONSES = ["i am fine thanks", "fish and chips", "see you next week"]
CONTEXTS = [["hello there", "how are you"], ["hello"], ["shall we go for a walk"]]
#: Of the specification's points T5: mean (1, 1.5), precision ((1.1, -0.2), (-0.2, 0.4)).
HUMAN = fit_gaussian(Moments.of(np.array([[0.0, 0], [2, 0], [0, 2], [2, 4]])))


def test_by_hand_in_two_dimensions() -> None:
    background = (np.zeros(2), np.diag([0.25, 1.0]))
    points = np.array([[3.0, 0.0], [5.0, 5.0], [1.0, 1.5]])
    # 9/4 - 6.5, 25/4 + 25 - 16.9, and 1/4 + 9/4 - 0 in the human centre.
    assert relative_density(points, HUMAN, background) == pytest.approx([-4.25, 14.35, 2.5])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_with_one_covariance_it_is_the_linear_discriminant(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(width, width))
    precision = root @ root.T + np.eye(width)
    human, background = rng.normal(size=(2, width))
    points = rng.normal(size=(20, width))
    slope = 2 * precision @ (human - background)
    halfway = (human + background) / 2
    expected = (points - halfway) @ slope
    found = relative_density(points, (human, precision), (background, precision))
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_turning_stretching_and_moving_the_space_changes_nothing(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    spread = np.linspace(0.5, 2.0, width)
    human, others = rng.normal(size=(60, width)), rng.normal(size=(50, width)) * spread + 1
    points = rng.normal(size=(9, width))
    turned, _ = np.linalg.qr(rng.normal(size=(width, width)))
    matrix, move = turned * rng.uniform(0.5, 3.0, size=width), rng.normal(size=width)

    def values(change: bool) -> np.ndarray:
        sets = [rows @ matrix + move if change else rows for rows in (human, others, points)]
        gaussians = [fit_gaussian(Moments.of(rows)) for rows in sets[:2]]
        return relative_density(sets[2], gaussians[0], gaussians[1])

    assert values(change=True) == pytest.approx(values(change=False), rel=1e-6, abs=1e-6)


@pytest.fixture(scope="module")
def folders(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One checkpoint in two forms: as the paper has it, and with a background that is its rule by default."""
    root = tmp_path_factory.mktemp("checkpoints")
    plain = small_checkpoint("density", tiny_encoder, root / "plain")
    network = DensityNetwork.from_pretrained(plain, trainable=True)
    rows = Density(plain).encoder.encode(list(exchanges())).rows[:, :-1].astype(np.float64)
    network.set_gaussian(rows.mean(axis=0), np.eye(rows.shape[1]))
    network.set_background(rows[0], 2 * np.eye(rows.shape[1]))
    curves = {**network.config.quantiles, "relative": quantile_curves(np.linspace(-1, 1, 50), np.linspace(-3, 0, 50))}
    architecture = {**network.config.architecture, "default_scoring": "relative"}
    network.config = replace(network.config, architecture=architecture, quantiles=curves)
    network.save_pretrained(root / "both")
    return plain, root / "both"


def exchanges() -> list[dialeval.Exchange]:
    pairs = zip(CONTEXTS, RESPONSES, strict=True)
    return [dialeval.Exchange(context=tuple(context), response=response) for context, response in pairs]


def test_a_checkpoint_with_a_background_scores_by_it(folders: tuple[Path, Path]) -> None:
    metric = Density(folders[1])
    rows = metric.encoder.encode(exchanges()).rows[:, :-1].astype(np.float64)
    expected = 2 * ((rows - rows[0]) ** 2).sum(axis=1) - ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
    scores = metric.score(RESPONSES, CONTEXTS)
    assert scores.values == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert scores.higher_is_better
    assert scores.signature["scoring"] == "relative"


def test_each_rule_has_its_own_percentiles(folders: tuple[Path, Path]) -> None:
    metric = Density(folders[1])
    native = metric.score(RESPONSES, CONTEXTS).values
    shares = metric.score(RESPONSES, CONTEXTS, scale="human_percentile").values
    assert shares == pytest.approx(np.clip((native + 1) / 2, 0, 1), abs=1e-9)


def test_a_checkpoint_of_the_papers_form_loads_and_says_what_it_lacks(folders: tuple[Path, Path]) -> None:
    assert Density(folders[0]).scoring == "mahalanobis"
    refused(ValueError, "density-tiny", Density, folders[0], scoring="relative")


def test_a_default_that_is_no_rule(folders: tuple[Path, Path], tmp_path: Path) -> None:
    network = DensityNetwork.from_pretrained(folders[0], trainable=True)
    network.config = replace(network.config, architecture={"default_scoring": "cosine"})
    network.save_pretrained(tmp_path / "odd")
    refused(CheckpointError, "default_scoring", Density, tmp_path / "odd")
    assert Density(tmp_path / "odd", scoring="euclidean").scoring == "euclidean"
