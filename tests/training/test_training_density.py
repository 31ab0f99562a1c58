"""The DENSITY training script end to end, on a tiny random encoder and a made-up corpus."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from dialeval.approaches.density import Density
from resources import PATIENCE
from training_runs import ROOT, SCRIPT, command, environment

pytestmark = pytest.mark.slow


def weights(out: Path) -> dict[str, np.ndarray]:
    folder = out / "checkpoint"
    files = [folder / "model.safetensors", folder / "adapter" / "adapter_model.safetensors"]
    return {f"{file.name}:{key}": value.float().numpy() for file in files for key, value in load_file(file).items()}


@pytest.fixture(scope="module")
def finished(tiny_encoder: Path, tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    subprocess.run([sys.executable, *command(tiny_encoder, tiny_corpora, out, 12)], check=True, env=environment())
    return out


def test_a_run_leaves_a_checkpoint_that_scores(finished: Path) -> None:
    metric = Density(finished / "checkpoint")
    scores = metric.score(["i am fine thanks", "fish and chips"], [["how are you"], ["how are you"]])
    assert np.isfinite(scores.values).all()
    shares = metric.score(["i am fine thanks"], [["how are you"]], scale="human_percentile")
    assert 0 <= shares.aggregate <= 1


def test_the_log_tells_the_loss_of_every_step(finished: Path) -> None:
    rows = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    steps = [row["step"] for row in rows if row["kind"] == "train"]
    assert steps == list(range(1, 13))
    losses = [row["selection"] for row in rows if row["kind"] == "train"]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert {row["kind"] for row in rows} == {"train", "validation", "final"}
    assert list((finished / "tensorboard").iterdir())


def test_the_config_tells_how_it_was_made(finished: Path) -> None:
    training = json.loads((finished / "checkpoint" / "config.json").read_text())["training"]
    log = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    kept = [row for row in log if row.get("kept")][-1]
    # Four contexts a step, each with the true reply and four wrong ones, of the steps that shipped.
    assert (training["steps"], training["steps_run"]) == (kept["step"], 12)
    assert training["stages"][-1]["seen"] == {"pairs": kept["step"] * 4 * 5} == {"pairs": kept["pairs"]}
    assert training["total"]["steps"] == kept["step"]
    assert kept["r1"] == max(row["r1"] for row in log if row["kind"] == "validation")
    assert training["validation"]["contexts"] == 20
    assert training["corpora"] == ["chat"]
    assert training["command"].startswith("training/density.py --recipe training/recipes/density-minilm.yaml")
    assert set(training["validation"]) == {"r1", "mrr", "contexts", "auc"}


def test_a_killed_run_resumes_to_the_same_weights(
    finished: Path, tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    whole = command(tiny_encoder, tiny_corpora, out, 12)
    process = subprocess.Popen([sys.executable, *whole], env=environment(), stderr=subprocess.DEVNULL)
    waited = time.monotonic()
    while not (out / "progress.json").exists() and process.poll() is None and time.monotonic() - waited < PATIENCE:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert (out / "progress.json").exists()
    refused = subprocess.run([sys.executable, *whole], env=environment(), capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "--resume" in refused.stderr
    subprocess.run([sys.executable, *whole, "--resume"], check=True, env=environment())
    expected, resumed = weights(finished), weights(out)
    assert expected.keys() == resumed.keys()
    for name, value in expected.items():
        assert np.allclose(value, resumed[name], rtol=1e-4, atol=1e-5), name


def test_the_mean_of_runs_is_only_fitted(
    finished: Path, tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path
) -> None:
    both = f"average_of=[{finished / 'checkpoint'}, {finished / 'checkpoint'}]"
    out = tmp_path / "mean"
    words = command(tiny_encoder, tiny_corpora, out, 0, "--set", both)
    subprocess.run([sys.executable, *words], check=True, env=environment())
    expected, mean = weights(finished), weights(out)
    assert expected.keys() == mean.keys()
    for name, value in expected.items():
        assert np.allclose(value, mean[name], rtol=1e-4, atol=1e-4), name
    training = json.loads((out / "checkpoint" / "config.json").read_text())["training"]
    shipped = json.loads((finished / "checkpoint" / "config.json").read_text())["training"]["steps"]
    assert (training["steps"], training["steps_run"]) == (0, 0)
    # Both parts are one run here, which counts once.
    assert training["total"]["steps"] == shipped
    assert [history["steps"] for history in training["pretraining"]["averaged"]] == [shipped, shipped]


def test_two_processes_train_one_model(tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    out = tmp_path / "two"
    subprocess.run([*launch, *command(tiny_encoder, tiny_corpora, out, 4)], check=True, env=environment())
    config = json.loads((out / "checkpoint" / "config.json").read_text())
    assert config["training"]["hardware"].startswith("2 process(es)")
    assert np.isfinite(Density(out / "checkpoint").score(["yes"], [["shall we go"]]).values).all()


def test_a_key_that_the_recipe_does_not_have(tiny_corpora: Path, tmp_path: Path) -> None:
    words = [str(SCRIPT), "--corpora", str(tiny_corpora), "--out", str(tmp_path / "x"), "--set", "training.stepz=3"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 2
    assert "the recipe has no key 'training.stepz'" in done.stderr


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
    script.write_text(DDP_CHECK.format(training=str(ROOT / "training")))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    done = subprocess.run(launch, capture_output=True, text=True, check=False, env=environment())
    assert done.stdout.count("equal") == 2, done.stderr[-2000:]


def test_a_missing_earlier_stage_is_said_before_anything_is_read(tmp_path: Path) -> None:
    words = [str(SCRIPT), "--corpora", str(tmp_path / "none"), "--out", str(tmp_path / "run")]
    missing = "start_from=runs/trunk-minilm/checkpoint-that-is-not-there"
    done = subprocess.run([sys.executable, *words, "--set", missing], capture_output=True, text=True, env=environment())
    assert done.returncode == 2
    assert "trunk-minilm.yaml" in done.stderr
    assert "--set start_from=null" in done.stderr
    assert not (tmp_path / "run").exists()
