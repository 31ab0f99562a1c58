"""Cards and the page on training tell what shipped: figures against logs, and the rules by hand."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from dialeval.io import read_json_lines
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import WEIGHTS, embedded_checkpoints
from history import TrainingRun, joined, kept_line, stage_in, stages_of, total
from reproduce.spread import Spread, spread_in
from runs_table import BEGIN, END, figures_of, runs_table, write_runs_table

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "results" / "training"


def log(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"seconds": 3600 * number, **one}) + "\n" for number, one in enumerate(lines)))
    return path


def test_the_kept_validation_counts_not_the_last(tmp_path: Path) -> None:
    written = log(
        tmp_path / "mine.jsonl",
        {"kind": "train", "step": 10, "loss": 1.0},
        {"kind": "validation", "step": 10, "r1": 0.5, "pairs": 80, "kept": 1},
        {"kind": "validation", "step": 20, "r1": 0.7, "pairs": 160, "kept": 1},
        {"kind": "validation", "step": 30, "r1": 0.6, "pairs": 240, "kept": 0},
        {"kind": "final", "step": 30, "r1": 0.65},
    )
    assert stage_in(written, "mine") == TrainingRun("mine", 20, 30, 4.0, {"pairs": 160})
    assert stage_in(written, "mine").summary == "20 of 30 steps, 160 pairs"
    assert figures_of(written)["r1"] == 0.65


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ({"r1": 0.4, "mrr": 0.9}, {"r1": 0.5, "mrr": 0.8}, 2),
        ({"selection": 0.4, "auc_full": 0.3}, {"selection": 0.3, "auc_full": 0.9}, 1),
        (
            {"accuracy_random": 0.9, "accuracy_adversarial": 0.5},
            {"accuracy_random": 0.8, "accuracy_adversarial": 0.7},
            2,
        ),
        ({"loss": 0.5, "spearman": 0.1}, {"loss": 0.6, "spearman": 0.9}, 1),
    ],
)
def test_logs_without_marks_are_read_by_what_each_script_maximises(
    first: dict[str, Any], second: dict[str, Any], best: int
) -> None:
    lines = [{"kind": "validation", "step": step, **one} for step, one in ((1, first), (2, second))]
    assert kept_line(lines)["step"] == best


def test_a_log_without_a_validation_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was kept"):
        kept_line([{"kind": "train", "step": 1}])


def test_totals_count_a_shared_ancestor_once() -> None:
    trunk = TrainingRun("trunk", 600, 900, 0.5, {"pairs": 6000})
    one, two = TrainingRun("one", 10, 10, 0.25, {"replies": 100}), TrainingRun("two", 20, 30, 0.25, {"replies": 200})
    stages = joined([trunk, one], [trunk, two])
    assert stages == [trunk, one, two]
    assert total(stages) == TrainingRun("together", 630, 940, 1.0, {"pairs": 6000, "replies": 300})
    assert stages_of({"stages": [asdict(one)], "steps": 99, "hours": 1}) == [one]
    assert stages_of({"steps": 99, "hours": 1, "recipe": {"name": "old"}}) == [TrainingRun("old", 99, 99, 1)]
    assert stages_of({}) == []


def test_the_spread_of_a_precision(tmp_path: Path) -> None:
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))
    found = Spread.of(turned @ np.diag([10.0, 9.0, 8.1, 7.9, 0.0]) @ turned.T)
    assert found.near_largest == pytest.approx(0.75)  # three of the four that have a weight
    assert found.ratio == pytest.approx(10 / 7.9)
    assert Spread.of(np.eye(3)) == Spread(1.0, 1.0)
    save_file({"precision": np.diag([4.0, 1.0]).astype(np.float32)}, tmp_path / "model.safetensors")
    assert spread_in(tmp_path) == Spread(0.5, 4.0)
    save_file({"other": np.eye(2)}, tmp_path / "model.safetensors")
    assert spread_in(tmp_path) is None


def test_the_block_of_a_page_is_renewed_and_the_prose_stays(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "a.jsonl", {"kind": "validation", "step": 5, "r1": 0.5, "contexts": 300, "kept": 1})
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    write_runs_table(page, tmp_path / "logs", tmp_path)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| a | 5 steps | 0 | R@1 0.500 | 300 |" in text
    page.write_text("no block")
    with pytest.raises(ValueError, match="has no block between"):
        write_runs_table(page, tmp_path / "logs", tmp_path)


@pytest.mark.parametrize("name", embedded_checkpoints())
def test_what_a_card_says_of_a_run_is_what_its_log_says(name: str) -> None:
    config = CheckpointConfig.read(WEIGHTS / name)
    card = (ROOT / "model_cards" / f"{name}.md").read_text("utf-8")
    written = LOGS / f"{name}.jsonl"
    assert written.is_file(), f"results/training has no log of {name}"
    own = stages_of(config.training, LOGS)[-1]
    logged = stage_in(written, name)
    assert (own.steps, own.steps_run) == (logged.steps, logged.steps_run)
    assert f"| {name} | {own.summary} |" in card, name
    for stage in stages_of(config.training, LOGS):
        if (LOGS / f"{stage.name}.jsonl").is_file():
            assert stage.steps == stage_in(LOGS / f"{stage.name}.jsonl", stage.name).steps, stage.name
    final = next(line for line in reversed(read_json_lines(written)) if line["kind"] == "final")
    recorded = config.training.get("validation", {})  # the judge records its stack instead
    found = {key: value for key, value in recorded.items() if key in final}
    assert bool(found) == (config.approach != "judge")
    for key, value in found.items():
        assert value == pytest.approx(final[key], abs=1e-5), key


def test_the_page_on_training_holds_the_table_that_the_logs_give() -> None:
    text = (ROOT / "docs" / "training.md").read_text("utf-8")
    assert runs_table(LOGS, ROOT / "training" / "recipes") in text, "run: python training/cards.py"


def test_one_figure_is_measured_on_one_number_of_contexts() -> None:
    contexts: dict[str, set[int]] = {}
    for written in LOGS.glob("*.jsonl"):
        figures = figures_of(written)
        if "contexts" in figures:
            kind = next((key for key in ("r1", "auc_full", "accuracy_random") if key in figures), written.stem)
            contexts.setdefault(kind, set()).add(figures["contexts"])
    assert all(len(numbers) == 1 for numbers in contexts.values()), contexts


def test_a_run_of_before_stages_were_recorded_is_read_from_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "training"))
    common = importlib.import_module("common")
    recipe = {"name": "trunk", "approach": "density", "training": {"batch_contexts": 9, "accumulation": 2}}
    recipe["negatives"] = {"random": 5, "same_dialogue": 1, "shared_word": 1, "corrupted": 0}
    training = {"recipe": recipe, "steps": 30, "hours": 1.0, "corpora": []}
    folder = tmp_path / "run" / "checkpoint"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(CheckpointConfig("density", name="trunk", training=training).to_json())
    judged = [{"kind": "validation", "step": step, "r1": r1} for step, r1 in ((10, 0.4), (20, 0.6), (30, 0.5))]
    log(tmp_path / "run" / "log.jsonl", *judged)
    monkeypatch.setattr(common, "find_checkpoint", lambda source, default: SimpleNamespace(folder=folder))
    (stage,) = stages_of(common.earlier_training("run"))
    assert stage == TrainingRun("trunk", 20, 30, 2.0, {"pairs": 20 * 9 * 2 * 8})
