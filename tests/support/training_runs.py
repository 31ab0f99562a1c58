"""Training scripts run in this process with small recipes, and what a run leaves behind."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "training"
RECIPES = TRAINING / "recipes"
#: Of what only the papers' tables need.
PAPERS = ROOT / "reproduce" / "recipes"
SCRIPT = TRAINING / "density.py"
STEPS = {"warmup": 2, "learning_rate": 0.01, "log_every": 1, "evaluate_every": 4, "save_every": 4, "max_length": 48}


#: Of DENSITY alone.
DENSITY = {
    "validation": "{corpus: chat, split: validation, contexts: 10, candidates: 4}",
    "training.batch_contexts": 4,
    "fit.corpora": "[{name: chat, splits: [train], pairs: null}]",
    "fit.shrinkage": "{human: 0.05, background: 0.2}",
    "fit.held_out_pairs": 30,
}


def overrides(encoder: Path, steps: int, own: Mapping[str, Any] = DENSITY) -> list[str]:
    """The settings of a short training on the dialogues that all training tests share."""
    values = {
        "encoder": str(encoder),
        "start_from": "null",
        "lora": "{rank: 4, alpha: 8, dropout: 0.0}",
        "layout.max_length": 48,
        "leave_out": "overlaps.json",
        "corpora": "[{name: chat, splits: [train], share: 1.0}]",
        "negatives": "{random: 2, same_dialogue: 1, shared_word: 0, corrupted: 1}",
        "training.steps": steps,
        **{f"training.{key}": value for key, value in STEPS.items()},
        **own,
    }
    return settings(f"{key}={value}" for key, value in values.items())


def settings(chosen: Iterable[str]) -> list[str]:
    return [word for one in chosen for word in ("--set", one)]


def command(encoder: Path, corpora: Path, out: Path, steps: int, *more: str) -> list[str]:
    return [*[str(SCRIPT), "--cpu", "--corpora", str(corpora), "--out", str(out)], *overrides(encoder, steps), *more]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}


def run_here(words: Iterable[object]) -> None:
    """Run a script in this process; its first word is its path."""
    script, *_ = given = list(map(str, words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", given)
        try:
            importlib.import_module(Path(script).stem).main()
        finally:  # a setting of the whole thread, which would follow the other tests
            torch.set_flush_denormal(False)


def run_in_two_processes(words: list[str]) -> None:
    """Run a script as torchrun does."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run([*launch, *words], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def log_of(out: Path, kind: str = "") -> list[dict[str, Any]]:
    return [row for row in read_lines(out / "log.jsonl") if kind in ("", row["kind"])]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {
        f"{path.parent.name}/{key}": tensor
        for path in sorted(folder.rglob("*.safetensors"))
        for key, tensor in load_file(path).items()
    }


def same(first: Path, second: Path) -> bool:
    """Whether two folders hold the same tensors to the last bit."""
    one, two = weights(first), weights(second)
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


class Killed(BaseException):
    """Stands for a signal: nothing of ours catches it."""


def killed_after_saves(words: Iterable[object], count: int) -> None:
    """Run a script in this process and kill it after it has saved so often."""
    run = importlib.import_module("common").Run
    original, done = run.save, [0]

    def save(self: Any) -> None:
        original(self)
        done[0] += 1
        if done[0] == count:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "save", save)
        with pytest.raises(Killed):
            run_here(words)
