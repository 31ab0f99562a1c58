"""Training on dialogues of one's own, with every approach: from an embedded checkpoint and from the bare encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import WEIGHTS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
#: A few steps each, and few held-out contexts.
SHORT = {
    "density": ("training.epochs=0.05", "validation.contexts=10", "fit.held_out_pairs=20"),
    "deb": ("fine_tuning.epochs=0.02", "groups.held_out_contexts=10"),
    "quantidce": ("pretraining.epochs=0.02", "groups.held_out_contexts=10"),
    "cmn": ("training.epochs=0.1", "validation.contexts=5"),
}
STARTS = {
    "density": "density-minilm",
    "deb": "deb-minilm",
    "quantidce": "quantidce-minilm",
    "cmn": "deb-minilm",  # both encoders begin from one
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own") / "CORPORA"
    subprocess.run([sys.executable, str(ROOT / "examples" / "sample.py"), str(root)], check=True)
    return root


def train(approach: str, corpora: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "training" / f"{approach}.py"), "--cpu"]
    command += ["--recipe", str(ROOT / "training" / "recipes" / f"own-{approach}.yaml")]
    command += ["--corpora", str(corpora), "--out", str(out)]
    command += [word for option in options for word in ("--set", option)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.encoder
@pytest.mark.parametrize("start", [None, "null"])
@pytest.mark.parametrize("approach", list(SHORT))
def test_a_recipe_of_ones_own(approach: str, start: str | None, corpora: Path, tmp_path: Path) -> None:
    beginning = [] if start is None else [f"start_from={start}"]
    done = train(approach, corpora, tmp_path / "run", *SHORT[approach], *beginning)
    assert done.returncode == 0, done.stderr
    checkpoint = tmp_path / "run" / "checkpoint"
    config = json.loads((checkpoint / "config.json").read_text())
    assert config["name"] == f"my-{approach}"
    # What the start has seen comes along; the bare encoder has seen no benchmark.
    seen = [] if start else list(CheckpointConfig.read(WEIGHTS / STARTS[approach]).contaminated_by)
    assert list(config["contaminated_by"]) == seen
    assert "mine" in config["training"]["corpora"]
    assert config["training"]["recipe"]["start_from"] == (None if start else STARTS[approach])
    assert config["training"]["total"]["steps"] > 0
    scores = dialeval.load(approach, checkpoint=str(checkpoint)).score(["Fine!"], [["How are you?"]], ["Very well!"])
    assert np.isfinite(scores.values).all()


@pytest.mark.parametrize("approach", list(SHORT))
def test_what_is_wrong_with_a_corpus_is_one_sentence(approach: str, corpora: Path, tmp_path: Path) -> None:
    missing = train(approach, corpora, tmp_path / "run", "leave_out=overlaps.json.gz", "start_from=null")
    assert missing.returncode == 1
    assert "overlaps.json.gz is not there" in missing.stderr
    assert "--set leave_out=null" in missing.stderr
    assert "Traceback" not in missing.stderr
    if approach == "density":
        empty = train(approach, tmp_path, tmp_path / "run", "start_from=null")
        assert empty.returncode == 1
        assert "corpus mine has no split train" in empty.stderr
        assert "Traceback" not in empty.stderr


def test_a_start_for_a_recipe_that_averages_runs_is_refused_with_the_way_out(corpora: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "training" / "density.py"), "--corpora", str(corpora)]
    command += ["--out", str(tmp_path / "run"), "--set", "start_from=density-minilm"]
    command += ["--set", "average_of=[density-minilm]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "own-density.yaml" in done.stderr
