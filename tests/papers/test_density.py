"""DENSITY by hand: losses, Gaussians, every scoring rule, the metric and its percentiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dialeval
from dialeval.checkpoints.find import CheckpointError
from dialeval.papers.density import (
    Density,
    DensityNetwork,
    contrastive_loss,
    fit_gaussian,
    relative_density,
    response_selection_loss,
    selection_ranks,
    squared_mahalanobis,
)
from dialeval.papers.learned import quantile_curves
from dialeval.statistics.moments import Moments
from refusals import refused
from small_checkpoints import small_checkpoint

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


WIDTH = 32


def test_shrinkage_moves_the_covariance_towards_a_sphere_of_the_same_trace() -> None:
    moments = Moments.of(np.array([[0.0, 0], [2, 0], [0, 4], [2, 4]]))  # variances 1 and 4
    _, precision = fit_gaussian(moments, shrinkage=0.5)
    assert precision == pytest.approx(np.diag([1 / 1.75, 1 / 3.25]))
    _, sphere = fit_gaussian(moments, shrinkage=1.0)
    assert sphere == pytest.approx(np.diag([0.4, 0.4]))


RESPONSES = ["i am fine thanks", "fish and chips", "see you next week"]
CONTEXTS = [["hello there", "how are you"], ["hello"], ["shall we go for a walk"]]
#: Of the specification's points T5: mean (1, 1.5), precision ((1.1, -0.2), (-0.2, 0.4)).
HUMAN = fit_gaussian(Moments.of(np.array([[0.0, 0], [2, 0], [0, 2], [2, 4]])))


def test_by_hand_in_two_dimensions() -> None:
    background = (np.zeros(2), np.diag([0.25, 1.0]))
    points = np.array([[3.0, 0.0], [5.0, 5.0], [1.0, 1.5]])
    # 9/4 - 6.5, 25/4 + 25 - 16.9, and 1/4 + 9/4 - 0 in the human centre.
    assert relative_density(points, HUMAN, background) == pytest.approx([-4.25, 14.35, 2.5])


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


def test_a_score_is_minus_the_root_of_the_squared_distance(folders: tuple[Path, Path]) -> None:
    rows = np.zeros((3, WIDTH + 1), dtype=np.float32)
    rows[:, :-1] = np.linspace(-1, 1, WIDTH)
    rows[1, 0] += 3  # three units off along the first feature, whose precision is one half
    rows[2, WIDTH - 1] -= 3  # and along the last, whose precision is four
    rows[:, -1] = (0.25, -7, 9)
    rules: dict[Any, list[float]] = {
        "mahalanobis": [0, -np.sqrt(9 / 2), -6], "euclidean": [0, -3, -3], "classifier": [0.25, -7, 9],
    }  # fmt: skip
    for scoring, expected in rules.items():
        metric = Density(folders[0], device="cpu", scoring=scoring)
        metric.network.set_gaussian(np.linspace(-1, 1, WIDTH), np.diag(np.linspace(0.5, 4, WIDTH)))
        assert metric.values_of(rows) == pytest.approx(expected, abs=1e-5)


def test_a_dialogue_averages_squares(folders: tuple[Path, Path]) -> None:
    assert Density(folders[0]).aggregate_dialogue(np.array([-3.0, -4.0])) == pytest.approx(-np.sqrt(12.5))
    # A logit is no distance: it is averaged as it is.
    assert Density(folders[0], scoring="classifier").aggregate_dialogue(np.array([-1.0, 3.0])) == 1.0


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
