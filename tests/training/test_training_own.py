"""Training on dialogues of one's own, with every approach: from an embedded checkpoint and from the bare encoder."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS
from training_runs import RECIPES, ROOT, TRAINING, run_here, settings

pytestmark = pytest.mark.slow
#: A few steps each, and few held-out contexts.
SHORT = {
    "density": ("training.epochs=0.05", "validation.contexts=10", "validation.candidates=4", "fit.held_out_pairs=20",
                "fit.corpora=[{name: mine, splits: [train], pairs: 40}]"),
    "deb": ("fine_tuning.epochs=0.02", "groups.held_out_contexts=10"),
    "quantidce": ("pretraining.epochs=0.02", "groups.held_out_contexts=10"),
    "cmn": ("training.epochs=0.1", "validation.contexts=5"),
}  # fmt: skip
STARTS = {"density": "density-minilm", "deb": "deb-minilm", "quantidce": "quantidce-minilm", "cmn": "cmn-minilm"}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own") / "CORPORA"
    subprocess.run([sys.executable, str(ROOT / "examples" / "sample.py"), str(root)], check=True)
    return root


def words(approach: str, corpora: Path, out: Path, *options: str) -> list[str]:
    recipe = ["--recipe", str(RECIPES / f"own-{approach}.yaml")]
    given = ["--cpu", *recipe, "--corpora", str(corpora), "--out", str(out)]
    return [str(TRAINING / f"{approach}.py"), *given, *settings(options)]


@pytest.mark.encoder
@pytest.mark.parametrize(
    ("approach", "start"), [*((approach, None) for approach in SHORT), ("density", "null")], ids=str
)
def test_a_recipe_of_ones_own(approach: str, start: str | None, corpora: Path, tmp_path: Path) -> None:
    beginning = [] if start is None else [f"start_from={start}"]
    run_here(words(approach, corpora, tmp_path / "run", *SHORT[approach], *beginning))
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


def ends(given: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises((SystemExit, FileNotFoundError)) as ended:
        run_here(given)
    return f"{ended.value} {capsys.readouterr().err}"


def test_what_is_wrong_with_a_corpus_is_named(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = ("leave_out=overlaps.json.gz", "start_from=null")
    for approach in SHORT:
        assert "overlaps.json.gz" in ends(words(approach, corpora, tmp_path / "run", *listed), capsys)
    assert "mine" in ends(words("density", tmp_path, tmp_path / "run", "start_from=null"), capsys)
