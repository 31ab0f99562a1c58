"""DENSITY's fit: which pairs, what is random, how the rules are measured and one is chosen."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import density_fit
from common import read_recipe, read_validation
from corpora.dialogues import read_corpus
from density import build_network
from dialeval.papers.density import Density, DensityNetwork, apply_rule, fit_gaussian
from dialeval.statistics.moments import Moments
from small_checkpoints import small_checkpoint
from training_runs import PAPERS

RECIPE = {
    "seed": 3,
    "leave_out": "overlaps.json",
    "negatives": {"random": 1},
    "validation": {"corpus": "chat", "split": "validation", "candidates": 3},
    "fit": {
        "corpora": [{"name": "chat", "splits": ["train"], "pairs": None}],
        "shrinkage": {"human": 0.05, "background": 0.2},
        "held_out_pairs": 40,
    },
}


def test_all_pairs_of_a_corpus_but_those_that_are_left_out(tiny_corpora: Path) -> None:
    dialogues = read_corpus(tiny_corpora, "chat", "train")
    kept = [one for one in dialogues if one.id not in ("train-0", "train-1")]
    assert len(kept) == len(dialogues) - 2
    (pairs,) = density_fit.fitting_pairs(RECIPE, tiny_corpora)
    expected = Counter(one.exchange(turn) for one in kept for turn in range(1, len(one.turns)))
    assert Counter(pairs) == expected
    some = {**RECIPE, "fit": {"corpora": [{"name": "chat", "splits": ["train"], "pairs": 17}]}}
    assert density_fit.fitting_pairs(some, tiny_corpora)[0] == pairs[:17]


@pytest.fixture(scope="module")
def fitted(tiny_encoder: Path, tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = small_checkpoint("density", tiny_encoder, tmp_path_factory.mktemp("density") / "checkpoint")
    network = DensityNetwork.from_pretrained(folder, trainable=True)
    encode = encoder(folder)
    measured = density_fit.fit_and_choose(network, encode, RECIPE, tiny_corpora, read_validation(RECIPE, tiny_corpora))
    return network, encode, measured


def encoder(folder: Path):
    metric = Density(folder, scoring="classifier")
    return lambda pairs: metric.encoder.encode(pairs).rows


def test_each_gaussian_has_its_own_pairs_and_shrinkage(fitted, tiny_corpora: Path) -> None:
    network, encode, measured = fitted
    (pairs,) = density_fit.fitting_pairs(RECIPE, tiny_corpora)
    assert measured["fitted_pairs"] == {"chat": len(pairs)}
    for some, shrinkage, mean, precision in (
        (pairs, 0.05, network.mean, network.precision),
        (density_fit.rotated(pairs), 0.2, network.background_mean, network.background_precision),
    ):
        moments = Moments.of(encode(some)[:, :-1])
        expected = fit_gaussian(moments, shrinkage=shrinkage, resolution=density_fit.FLOAT32_RESOLUTION)
        assert mean.numpy() == pytest.approx(expected[0], rel=1e-4, abs=1e-5)
        assert np.linalg.norm(precision.numpy() - expected[1]) < 1e-3 * np.linalg.norm(expected[1])


def test_the_config_holds_the_choice_and_percentiles_of_every_rule(fitted, tiny_corpora: Path, tmp_path: Path) -> None:
    network, encode, measured = fitted
    areas = measured["auc"]
    assert set(areas) == set(network.config.quantiles) == {"mahalanobis", "euclidean", "relative", "classifier"}
    chosen = network.config.architecture["default_scoring"]
    assert areas[chosen]["mean"] == max(kinds["mean"] for rule, kinds in areas.items() if rule != "classifier")
    assert all(set(kinds) == {"random", "same_dialogue", "shared_word", "mean"} for kinds in areas.values())
    human = density_fit.held_out_pairs(read_validation(RECIPE, tiny_corpora), RECIPE)["human"]
    for rule, curves in network.config.quantiles.items():
        values = apply_rule(rule, encode(human), network)
        assert curves["human"][100] == pytest.approx(np.median(values), rel=1e-5)
    network.save_pretrained(tmp_path / "fitted")
    assert Density(tmp_path / "fitted").scoring == chosen


def test_an_earlier_density_gives_adapter_and_head_and_nothing_else(tiny_encoder: Path, tmp_path: Path) -> None:
    earlier = small_checkpoint("density", tiny_encoder, tmp_path / "earlier")
    network = DensityNetwork.from_pretrained(earlier, trainable=True)
    width = len(network.mean)
    network.set_gaussian(np.ones(width), 2 * np.eye(width))
    network.config = replace(network.config, architecture={"bias": True, "default_scoring": "euclidean"})
    network.save_pretrained(earlier)
    recipe = {**read_recipe(PAPERS / "density-lora.yaml"), "encoder": str(tiny_encoder), "start_from": str(earlier)}
    begun = build_network(recipe)
    for name, value in network.named_parameters():
        assert (dict(begun.named_parameters())[name] == value).all(), name
    assert begun.config.layout.max_length == recipe["layout"]["max_length"] != network.config.layout.max_length
    assert begun.config.layout.facts_budget == 56
    assert begun.config.architecture == {"bias": True}
    assert not begun.mean.any()
    other = small_checkpoint("deb", tiny_encoder, tmp_path / "deb")
    fresh = build_network({**recipe, "start_from": str(other)})
    assert not (fresh.head.weight == begun.head.weight).all()


def test_areas_by_hand_and_the_best_density() -> None:
    scores = {
        "mahalanobis": {"human": np.array([1.0, 3.0]), "random": np.array([0.0, 2.0]), "shared_word": np.array([4.0])},
        "relative": {"human": np.array([1.0, 3.0]), "random": np.array([0.0, 0.5]), "shared_word": np.array([1.0])},
        "classifier": {"human": np.array([9.0]), "random": np.array([0.0]), "shared_word": np.array([0.0])},
    }
    areas = density_fit.separation(scores)  # type: ignore[arg-type]
    assert areas["mahalanobis"] == {"random": 0.75, "shared_word": 0.0, "mean": 0.375}
    assert areas["relative"] == {"random": 1.0, "shared_word": 0.75, "mean": 0.875}
    assert density_fit.choose_rule({**areas, "euclidean": {"mean": 0.1}}) == "relative"
    alike = {rule: {"mean": 0.5} for rule in ("mahalanobis", "euclidean", "relative", "classifier")}
    assert density_fit.choose_rule(alike) == "mahalanobis"
