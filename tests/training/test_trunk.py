"""The shared encoder's training: resumption to the step, two processes as one."""

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
import yaml
from safetensors import safe_open
from transformers import AutoModel

import growth
import trunk
from dialeval.encoders.layout import TokenPair
from shell import write_rows
from training_runs import TRAINING, environment, run_here, settings
from trunk_network import next_reply_loss
from trunk_steps import padded

pytestmark = pytest.mark.slow


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    settings = yaml.safe_load((TRAINING / "recipes" / "trunk.yaml").read_text())
    settings |= {
        "leave_out": "overlaps.json",
        "layout": {"max_length": 48, "response_budget": 16, "separator": "[unused0]"},
        "corpora": {"chat": ["train", "validation"]},
        "stages": [
            {"name": "first", "contexts": 32, "corpora": ["chat"]},
            {"name": "second", "contexts": 32, "corpora": ["chat"], "doubled": ["chat"]},
        ],
        "batch_contexts": 4,
        "save_every": 4,
        "snapshots": [40],
        "mean_over": 5,
        "validation": {"dialogues": 0.3, "contexts": 6, "candidates": 5, "every_processor_hours": 1.0},
    }
    path = tmp_path / "trunk.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, (folder / "log.jsonl").open()) if row["event"] == kind]


@pytest.mark.parametrize(
    ("dtype", "dropout", "lora"), [("float32", 0.1, ""), ("bfloat16", 0.0, ""), ("float32", 0.0, "{rank: 4, alpha: 4}")]
)
def test_an_interrupted_run_ends_as_an_undisturbed_one(
    dtype: str, dropout: float, lora: str, recipe: Path, tiny_corpora: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    train = ["trunk.py", "--recipe", recipe, "--corpora", tiny_corpora, "--encoder", tiny_encoder, "--dtype", dtype]
    train += [*settings((f"dropout={dropout}", *([f"lora={lora}"] if lora else []))), "--out"]
    for words in (["whole"], ["halves", "--steps", 7], ["halves"]):
        run_here([*train, tmp_path / words[0], *words[1:]])
    whole, halves = (torch.load(tmp_path / name / "state.pt") for name in ("whole", "halves"))
    assert whole["step"] == halves["step"] == 16
    for part in ("weights", "mean"):
        torch.testing.assert_close(halves[part], whole[part], rtol=0, atol=1e-7)
    assert [row["step"] for row in events(tmp_path / "halves", "start")] == [0, 7]
    assert [row["contexts"] for row in events(tmp_path / "whole", "validation")] == [40, 64]
    start = AutoModel.from_pretrained(tiny_encoder).state_dict()
    with safe_open(tmp_path / "whole" / "trunk.safetensors", framework="pt") as stored:
        trained = {name.removeprefix("encoder."): stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    if lora:
        assert {name for name in trained if ".lora_" not in name} == {"head.weight", "head.bias"}
    else:
        changed = {name for name in trained.keys() & start.keys() if not torch.equal(start[name].half(), trained[name])}
        assert changed
        assert not any("embeddings" in name for name in changed)
    assert torch.load(tmp_path / "whole" / "contexts-40.pt")["step"] == 10


def test_the_mean_over_the_last_steps_is_kept(recipe: Path, tiny_encoder: Path) -> None:
    settings = {**yaml.safe_load(recipe.read_text()), "mean_over": 3}
    trainer = trunk.Trainer(settings, tiny_encoder, torch.float32, torch.device("cpu"))
    head = trainer.master.head.bias
    at = [one is head for one in trainer.weights].index(True)

    def move(to: float) -> None:
        trainer.take([torch.full_like(one, to) for one in trainer.weights])
        nothing = sum((one * 0).sum() for one in trainer.weights)
        trainer.update(nothing, torch.zeros(1), [0.0])

    for to, expected in ((3.0, 3.0), (6.0, 4.5), (9.0, 6.0), (0.0, 4.0)):
        move(to)
        assert trainer.mean[at].item() == pytest.approx(expected)
    with trainer.by_mean():
        assert head.item() == pytest.approx(4.0)
    assert head.item() == 0.0


def test_two_processes_take_the_steps_of_one(
    recipe: Path, tiny_corpora: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ["trunk.py", "--recipe", recipe, "--corpora", tiny_corpora, "--encoder", tiny_encoder, "--dtype", "float32"]
    monkeypatch.setenv("PYTHONPATH", str(TRAINING), prepend=":")
    for processes in ("1", "2"):
        run_here([*train, "--out", tmp_path / processes, "--steps", 4, "--processes", processes])
    alone, together = (torch.load(tmp_path / name / "state.pt")["weights"] for name in ("1", "2"))
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_every_snapshot_is_measured(
    recipe: Path, tiny_corpora: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = ["--recipe", recipe, "--encoder", tiny_encoder, "--out", tmp_path / "run"]
    run_here(["trunk.py", *common, "--corpora", tiny_corpora, "--set", "snapshots=[20, 40]"])
    replies = ["i am fine thanks", "fish and chips", "fine", "thanks"]
    rows = [
        {"id": str(n), "context": ["how are you"], "response": reply, "scores": {"overall": n}}
        for n, reply in enumerate(replies)
    ]
    write_rows(tmp_path / "rated.jsonl", rows)
    monkeypatch.setattr(growth, "BENCHMARKS", (str(tmp_path / "rated.jsonl"),))
    run_here(["growth.py", *common, "--device", "cpu"])
    grown = [json.loads(line) for line in (tmp_path / "run" / "growth.jsonl").open()]
    validated = {row["contexts"]: row["mean"] for row in events(tmp_path / "run", "validation")}
    assert [(row["replies"], row["held_out"]) for row in grown] == [(20 * 8, validated[20]), (40 * 8, validated[40])]
    assert all(-1 <= row["mean"] == row[str(tmp_path / "rated.jsonl")] <= 1 for row in grown)


def test_a_signal_ends_all_processes(recipe: Path, tiny_corpora: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    words = ["--recipe", recipe, "--corpora", tiny_corpora, "--encoder", tiny_encoder, "--out", tmp_path / "run"]
    endless = ["--processes", 2, "--set", "stages=[{name: all, contexts: 4000000, corpora: [chat]}]"]
    command = [sys.executable, TRAINING / "trunk.py", *words, *endless]
    with subprocess.Popen(list(map(str, command)), env=environment()) as process:
        while not (tmp_path / "run" / "state.pt").exists():
            assert process.poll() is None
            time.sleep(0.1)
        others = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert len(others) >= 2
    assert not psutil.wait_procs(others, timeout=30)[1]


@pytest.mark.parametrize("tokens", [12, 30, 1000])
def test_a_pair_s_number_does_not_depend_on_its_batch(tokens: int, recipe: Path, tiny_encoder: Path) -> None:
    settings = {**yaml.safe_load(recipe.read_text()), "batch_tokens": {"cpu": tokens}}
    trainer = trunk.Trainer(settings, tiny_encoder, torch.float32, torch.device("cpu"))
    ids = [[3, 6, 4, 9, 4], [3, 7, 8, 6, 9, 7, 8, 4, 6, 9, 4], [3, 8, 4, 6, 4], [3, 6, 7, 8, 4, 9, 7, 4]]
    pairs = [TokenPair(np.array(one, dtype=np.int32), 3, False) for one in ids]
    with torch.inference_mode():
        alone = torch.cat([trainer.logits([pair], 0) for pair in pairs])
        assert len(set(alone.tolist())) == len(pairs)
        torch.testing.assert_close(trainer.logits(pairs, 0), alone, rtol=0, atol=1e-5)


def test_dropout_is_the_same_in_the_same_step_and_off_otherwise(recipe: Path, tiny_encoder: Path) -> None:
    trainer = trunk.Trainer(yaml.safe_load(recipe.read_text()), tiny_encoder, torch.float32, torch.device("cpu"))
    batches = padded([TokenPair(np.array([3, 6, 4, 9, 4], dtype=np.int32), 3, False)], 0, 12)
    with torch.inference_mode():
        whole, parts, again = (trainer.through(batches, share).item() for share in (0.0, 0.5, 0.5))
        assert whole != parts == again
        assert trainer.through(batches).item() == whole
        trainer.updates += 1
        assert trainer.through(batches, 0.5).item() not in (whole, parts)


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)])
def test_only_the_last_layers_first_token_is_computed(device: str, tiny_encoder: Path) -> None:
    """And the number is the one that transformers' own forward pass gives."""
    model = trunk.Trunk(tiny_encoder).eval().to(device)
    ids = torch.tensor([[3, 6, 7, 8, 4, 9, 4], [3, 6, 4, 9, 4, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": torch.zeros_like(ids)}
    tensors = {name: one.to(device) for name, one in inputs.items()}
    with torch.inference_mode():
        expected = model.head(model.encoder(**tensors).last_hidden_state[:, 0]).squeeze(-1)
        torch.testing.assert_close(model(**tensors), expected, rtol=0, atol=1e-5)


def test_the_loss_is_of_the_first_candidate() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    right, wrong = next_reply_loss(logits, 0.0).tolist()
    assert right == pytest.approx(math.log(1 + math.exp(-2)))
    assert wrong == pytest.approx(right + 2)
    with_binary = next_reply_loss(logits, 0.5)[0].item() - right
    assert with_binary == pytest.approx(0.25 * (math.log(1 + math.exp(-2)) + math.log(2)))
