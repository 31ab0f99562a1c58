"""The sweep over DENSITY's shrinkage: what it fits, what it measures, what it recommends."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_training_density_fit import RECIPE, encoder

from dialeval.approaches.density import Density, DensityNetwork
from small_checkpoints import small_checkpoint
from training_runs import environment

TRAINING = Path(__file__).resolve().parents[2] / "training"
sys.path.insert(0, str(TRAINING))


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_checkpoint("density", tiny_encoder, tmp_path_factory.mktemp("density") / "checkpoint")


def test_every_shrinkage_is_measured_as_a_training_with_it_would_be(folder: Path, tiny_corpora: Path) -> None:
    script, fit = importlib.import_module("density_shrinkage"), importlib.import_module("density_fit")
    common = importlib.import_module("common")
    encode = encoder(folder)
    network = DensityNetwork.from_pretrained(folder, trainable=True)
    lines = script.sweep(network, encode, RECIPE, tiny_corpora)
    assert [line["shrinkage"] for line in lines] == list(script.SHRINKAGES)
    one = next(line for line in lines if line["shrinkage"] == 0.3)
    recipe = {**RECIPE, "fit": {**RECIPE["fit"], "shrinkage": {"human": 0.3, "background": 0.3}}}
    other = DensityNetwork.from_pretrained(folder, trainable=True)
    measured = fit.fit_and_choose(other, encode, recipe, tiny_corpora, common.read_validation(recipe, tiny_corpora))
    for rule, areas in measured["auc"].items():
        assert one["auc"][rule] == pytest.approx(areas, abs=1e-6), rule
    # The more shrinkage, the nearer to a sphere; the Euclidean distance does not look at the covariance.
    ratios = [line["ratio"] for line in lines]
    assert ratios == sorted(ratios, reverse=True)
    assert len({line["auc"]["euclidean"]["mean"] for line in lines}) == 1


def test_the_least_of_equally_good_shrinkages_is_recommended() -> None:
    script = importlib.import_module("density_shrinkage")

    def line(shrinkage: float, mahalanobis: float, relative: float) -> dict[str, object]:
        areas = {"mahalanobis": mahalanobis, "euclidean": 0.9, "relative": relative, "classifier": 0.99}
        return {"shrinkage": shrinkage, "auc": {rule: {"mean": area} for rule, area in areas.items()}}

    lines = [line(0.0, 0.5, 0.6), line(0.1, 0.7, 0.8), line(0.5, 0.7, 0.7)]
    assert script.recommended(lines) == {"mahalanobis": 0.1, "relative": 0.1}
    assert script.recommended([line(0.9, 0.8, 0.1), *lines]) == {"mahalanobis": 0.9, "relative": 0.1}


@pytest.mark.slow
def test_the_command_leaves_a_log_and_the_checkpoint_as_it_was(
    folder: Path, tiny_corpora: Path, tmp_path: Path
) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**RECIPE, "name": "tiny"}))
    before = Density(folder).score(["fine thanks"], [["how are you"]]).values
    words = [sys.executable, str(TRAINING / "density_shrinkage.py"), "--corpora", str(tiny_corpora)]
    words += ["--checkpoint", str(folder), "--recipe", str(tmp_path / "recipe.yaml"), "--log", str(tmp_path / "x.json")]
    subprocess.run(words, check=True, env=environment(), capture_output=True)
    log = json.loads((tmp_path / "x.json").read_text())
    assert (log["recipe"], log["validation"]) == ("tiny", {"corpus": "chat", "split": "validation"})
    assert (log["checkpoint"], log["fit"]) == (folder.name, RECIPE["fit"]["corpora"])
    assert log["against"] == ["random", "same_dialogue", "shared_word"]
    assert len(log["sweep"]) == 10
    assert np.array_equal(Density(folder).score(["fine thanks"], [["how are you"]]).values, before)
