"""DENSITY's training end to end on a tiny random encoder, and that of every approach on dialogues of one's own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import dialeval
import training_runs as runs
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS
from dialeval.papers.density import Density
from refusals import refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tiny_encoder: Path, tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    runs.run_here(runs.command(tiny_encoder, tiny_corpora, out, 12))
    return out


def test_a_run_leaves_a_checkpoint_that_scores(finished: Path) -> None:
    metric = Density(finished / "checkpoint")
    scores = metric.score(["i am fine thanks", "fish and chips"], [["how are you"], ["how are you"]])
    assert np.isfinite(scores.values).all()
    shares = metric.score(["i am fine thanks"], [["how are you"]], scale="human_percentile")
    assert 0 <= shares.aggregate <= 1


def test_the_log_and_the_config_tell_how_it_was_made(finished: Path) -> None:
    steps = runs.log_of(finished, "train")
    assert [row["step"] for row in steps] == list(range(1, 13))
    losses = [row["selection"] for row in steps]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert {row["kind"] for row in runs.log_of(finished)} == {"train", "validation", "final"}
    assert list((finished / "tensorboard").iterdir())
    training = CheckpointConfig.read(finished / "checkpoint").training
    kept = [row for row in runs.log_of(finished) if row.get("kept")][-1]
    # Four contexts a step, each with the true reply and four wrong ones, of the steps that shipped.
    assert (training["steps"], training["steps_run"], training["total"]["steps"]) == (kept["step"], 12, kept["step"])
    assert training["stages"][-1]["seen"] == {"pairs": kept["step"] * 4 * 5} == {"pairs": kept["pairs"]}
    assert kept["r1"] == max(row["r1"] for row in runs.log_of(finished, "validation"))
    assert set(training["validation"]) == {"r1", "mrr", "contexts", "auc"}
    assert (training["validation"]["contexts"], training["corpora"]) == (20, ["chat"])
    assert training["command"].startswith("training/density.py --recipe training/recipes/density-minilm.yaml")


def test_a_killed_run_resumes_to_the_same_weights(
    finished: Path, tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path
) -> None:
    """By a signal that nothing can catch; the run goes on in this process."""
    out = tmp_path / "killed"
    whole = runs.command(tiny_encoder, tiny_corpora, out, 12)
    # As many threads as here: other sums would be rounded otherwise, and Adam makes a step of that.
    alike = runs.environment() | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen([sys.executable, *whole], env=alike, stderr=subprocess.DEVNULL) as process:
        while not (out / "progress.json").exists() and process.poll() is None:
            time.sleep(0.02)
        process.kill()
    refused(SystemExit, "--resume", runs.run_here, whole)
    runs.run_here([*whole, "--resume"])
    expected, resumed = runs.weights(finished), runs.weights(out)
    assert expected.keys() == resumed.keys()
    for name, value in expected.items():
        torch.testing.assert_close(resumed[name], value, rtol=1e-4, atol=1e-5)


def ends(given: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises((SystemExit, FileNotFoundError)) as ended:
        runs.run_here(given)
    return f"{ended.value} {capsys.readouterr().err}"


@pytest.mark.parametrize(
    ("setting", "named"),
    [("training.stepz=3", "training.stepz"), ("start_from=runs/trunk-minilm/checkpoint-that-is-none", "trunk-minilm")],
)
def test_what_is_wrong_with_a_recipe_is_told_before_anything_is_read(
    setting: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(runs.SCRIPT), "--corpora", str(tmp_path / "none"), "--out", str(tmp_path / "run"), "--set", setting]
    assert named in ends(words, capsys)
    assert not (tmp_path / "run").exists()


DDP_CHECK = """
import sys; sys.path.insert(0, {training!r}); sys.argv = ["check"]
import torch
from accelerate import Accelerator
from density import losses
accelerator = Accelerator(cpu=True)
recipe = {{"losses": {{"contrastive_weight": 1.0, "temperature": 0.5}}}}
# Four contexts of two candidates.
data = torch.randn(8, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

def gradient(rows, contexts, one):
    weight = torch.linspace(-1, 1, 30, dtype=torch.float64).view(6, 5).requires_grad_()
    losses(rows @ weight, contexts, recipe, one)[0].backward()
    return weight.grad

class Alone:
    num_processes = 1

expected = gradient(data, 4, Alone())
mine = gradient(data[4 * accelerator.process_index :][:4], 2, accelerator)
averaged = accelerator.reduce(mine, "mean")
assert torch.allclose(averaged, expected, atol=1e-10), (averaged - expected).abs().max()
print("equal")
"""


def test_two_processes_have_the_gradient_of_one(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(DDP_CHECK.format(training=str(runs.TRAINING)))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    done = subprocess.run(launch, capture_output=True, text=True, check=False, env=runs.environment())
    assert done.stdout.count("equal") == 2, done.stderr[-2000:]


#: A few steps each, and few held-out contexts.
SHORT = {
    "density": ("training.epochs=0.05", "validation.contexts=10", "validation.candidates=4", "fit.held_out_pairs=20",
                "fit.corpora=[{name: mine, splits: [train], pairs: 40}]"),
    "deb": ("fine_tuning.epochs=0.02", "groups.held_out_contexts=10"),
    "quantidce": ("pretraining.epochs=0.02", "groups.held_out_contexts=10"),
    "cmn": ("training.epochs=0.1", "validation.contexts=5"),
}  # fmt: skip


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own") / "CORPORA"
    subprocess.run([sys.executable, str(runs.ROOT / "examples" / "sample.py"), str(root)], check=True)
    return root


def words(approach: str, corpora: Path, out: Path, *options: str) -> list[str]:
    recipe = ["--recipe", str(runs.RECIPES / f"own-{approach}.yaml")]
    given = ["--cpu", *recipe, "--corpora", str(corpora), "--out", str(out)]
    return [str(runs.TRAINING / f"{approach}.py"), *given, *runs.settings(options)]


@pytest.mark.encoder
@pytest.mark.parametrize(
    ("approach", "start"), [*((approach, None) for approach in SHORT), ("density", "null")], ids=str
)
def test_a_recipe_of_ones_own(approach: str, start: str | None, corpora: Path, tmp_path: Path) -> None:
    beginning = [] if start is None else [f"start_from={start}"]
    runs.run_here(words(approach, corpora, tmp_path / "run", *SHORT[approach], *beginning))
    checkpoint = tmp_path / "run" / "checkpoint"
    config = json.loads((checkpoint / "config.json").read_text())
    assert config["name"] == f"my-{approach}"
    # What the start has seen comes along; the bare encoder has seen no benchmark.
    seen = [] if start else list(CheckpointConfig.read(WEIGHTS / f"{approach}-minilm").contaminated_by)
    assert list(config["contaminated_by"]) == seen
    assert "mine" in config["training"]["corpora"]
    assert config["training"]["recipe"]["start_from"] == (None if start else f"{approach}-minilm")
    assert config["training"]["total"]["steps"] > 0
    scores = dialeval.load(approach, checkpoint=str(checkpoint)).score(["Fine!"], [["How are you?"]], ["Very well!"])
    assert np.isfinite(scores.values).all()


def test_what_is_wrong_with_a_corpus_is_named(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = ("leave_out=overlaps.json.gz", "start_from=null")
    for approach in SHORT:
        assert "overlaps.json.gz" in ends(words(approach, corpora, tmp_path / "run", *listed), capsys)
    assert "mine" in ends(words("density", tmp_path, tmp_path / "run", "start_from=null"), capsys)
