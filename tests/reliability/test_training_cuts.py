"""Training cut off before any operation on a file: resumed, it ends with an undisturbed run's weights and log."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))

from accelerate import Accelerator
from accelerate.utils import set_seed

from common import Run
from power_cuts import PowerCut, operations_of, power_until
from trainer import train_steps

pytestmark = pytest.mark.slow

RECIPE = {"name": "tiny"}
SETTINGS = {"steps": 6, "accumulation": 1, "clip": 1.0, "log_every": 1, "evaluate_every": 2, "save_every": 3}


def train(folder: Path) -> dict[str, Any]:
    """A few steps of a layer with dropout, so that the state of chance counts, too."""
    accelerator = Accelerator(cpu=True)
    set_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
    resume = (folder / "progress.json").exists()
    run = Run(folder, accelerator, RECIPE, resume=resume, unit="rows", per_step=4)
    # TensorBoard writes when it likes, from a thread of its own.
    run._board = SimpleNamespace(add_scalar=lambda *_: None)

    def loss(batch: torch.Tensor) -> tuple[torch.Tensor, dict[str, float]]:
        found = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        return found, {"seen": float(batch.sum())}

    def batches() -> Any:
        chance = torch.Generator().manual_seed(3)
        while True:
            yield torch.randn(4, 4, generator=chance)

    waiting = batches()
    for _ in range(run.step):
        next(waiting)
    train_steps(
        run,
        SETTINGS,
        model=model,
        optimizer=optimizer,
        schedule=schedule,
        batches=waiting,
        loss=loss,
        validate=lambda: run.judged(float(run.step % 4), {"r1": run.step / 10}) and None,
    )
    return {name: value.clone() for name, value in model.state_dict().items()}


def log_of(folder: Path) -> list[dict[str, Any]]:
    """Every line but for what a clock says."""
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if "second" not in key} for row in rows]


def test_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "run"
    undisturbed: dict[str, Any] = {}

    def whole() -> None:
        undisturbed.update(train(place))

    count = operations_of(whole, str(place), monkeypatch)
    expected = log_of(place)
    assert [row["step"] for row in expected if row["kind"] == "train"] == [1, 2, 3, 4, 5, 6]
    assert count > 20
    for operation in range(count):
        shutil.rmtree(place)
        with power_until(operation, str(place), monkeypatch), pytest.raises(PowerCut):
            train(place)
        if (place / "log.jsonl").exists():
            with (place / "log.jsonl").open("a") as log:  # what was just being written is torn
                log.write('{"kind": "tra')
        found = train(place)
        assert log_of(place) == expected, f"after a cut before operation {operation} of {count}"
        for name, value in undisturbed.items():
            assert torch.allclose(value, found[name], rtol=1e-5, atol=1e-6), (operation, name)
        assert json.loads((place / "progress.json").read_text())["step"] == 6
        assert [path.name for path in place.glob("state-*")] == ["state-6"]
