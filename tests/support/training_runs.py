"""Training scripts run in this process with a small recipe."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = ROOT / "training" / "density.py"


def overrides(encoder: Path, steps: int) -> list[str]:
    values = {
        "encoder": str(encoder),
        "start_from": "null",
        "lora": "{rank: 4, alpha: 8, dropout: 0.0}",
        "layout.max_length": 48,
        "leave_out": "overlaps.json",
        "corpora": "[{name: chat, splits: [train], share: 1.0}]",
        "negatives": "{random: 2, same_dialogue: 1, shared_word: 0, corrupted: 1}",
        "validation": "{corpus: chat, split: validation, contexts: 10, candidates: 4}",
        "average_of": "null",
        "training.max_length": 48,
        "training.batch_contexts": 4,
        "training.steps": steps,
        "training.warmup": 2,
        "training.learning_rate": 0.01,
        "training.log_every": 1,
        "training.evaluate_every": 4,
        "training.save_every": 4,
        "fit.corpora": "[{name: chat, splits: [train], pairs: null}]",
        "fit.shrinkage": "{human: 0.05, background: 0.2}",
        "fit.held_out_pairs": 30,
    }
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def command(encoder: Path, corpora: Path, out: Path, steps: int, *more: str) -> list[str]:
    return [
        *[str(SCRIPT), "--cpu", "--corpora", str(corpora), "--out", str(out)],
        *overrides(encoder, steps),
        *more,
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
