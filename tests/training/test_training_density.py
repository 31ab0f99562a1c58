"""The DENSITY training script end to end, on a tiny random encoder and a made-up corpus."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dialeval.checkpoints.config import CheckpointConfig
from dialeval.papers.density import Density
from refusals import refused
from training_runs import SCRIPT, TRAINING, command, environment, killed_after_saves, log_of, run_here, same

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tiny_encoder: Path, tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    run_here(command(tiny_encoder, tiny_corpora, out, 12))
    return out


def test_a_run_leaves_a_checkpoint_that_scores(finished: Path) -> None:
    metric = Density(finished / "checkpoint")
    scores = metric.score(["i am fine thanks", "fish and chips"], [["how are you"], ["how are you"]])
    assert np.isfinite(scores.values).all()
    shares = metric.score(["i am fine thanks"], [["how are you"]], scale="human_percentile")
    assert 0 <= shares.aggregate <= 1


def test_the_log_and_the_config_tell_how_it_was_made(finished: Path) -> None:
    steps = log_of(finished, "train")
    assert [row["step"] for row in steps] == list(range(1, 13))
    losses = [row["selection"] for row in steps]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert {row["kind"] for row in log_of(finished)} == {"train", "validation", "final"}
    assert list((finished / "tensorboard").iterdir())
    training = CheckpointConfig.read(finished / "checkpoint").training
    kept = [row for row in log_of(finished) if row.get("kept")][-1]
    # Four contexts a step, each with the true reply and four wrong ones, of the steps that shipped.
    assert (training["steps"], training["steps_run"], training["total"]["steps"]) == (kept["step"], 12, kept["step"])
    assert training["stages"][-1]["seen"] == {"pairs": kept["step"] * 4 * 5} == {"pairs": kept["pairs"]}
    assert kept["r1"] == max(row["r1"] for row in log_of(finished, "validation"))
    assert set(training["validation"]) == {"r1", "mrr", "contexts", "auc"}
    assert (training["validation"]["contexts"], training["corpora"]) == (20, ["chat"])
    assert training["command"].startswith("training/density.py --recipe training/recipes/density-minilm.yaml")


def test_a_killed_run_resumes_to_the_same_weights(
    finished: Path, tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path
) -> None:
    whole = command(tiny_encoder, tiny_corpora, tmp_path / "killed", 12)
    killed_after_saves(whole, 1)
    refused(SystemExit, "--resume", run_here, whole)
    run_here([*whole, "--resume"])
    assert same(finished / "checkpoint", tmp_path / "killed" / "checkpoint")


@pytest.mark.parametrize(
    ("setting", "named"),
    [("training.stepz=3", "training.stepz"), ("start_from=runs/trunk-minilm/checkpoint-that-is-none", "trunk-minilm")],
)
def test_what_is_wrong_with_a_recipe_is_told_before_anything_is_read(
    setting: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(SCRIPT), "--corpora", str(tmp_path / "none"), "--out", str(tmp_path / "run"), "--set", setting]
    with pytest.raises(SystemExit) as ended:
        run_here(words)
    assert named in f"{ended.value} {capsys.readouterr().err}"
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
    script.write_text(DDP_CHECK.format(training=str(TRAINING)))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    done = subprocess.run(launch, capture_output=True, text=True, check=False, env=environment())
    assert done.stdout.count("equal") == 2, done.stderr[-2000:]
