"""Render the embedded checkpoints' cards and docs/training.md's table: `python -m dialeval.cards`, in a checkout."""

from __future__ import annotations

from pathlib import Path

from dialeval.cards import write_cards
from dialeval.cards.runs_table import write_runs_table
from dialeval.weights.find import WEIGHTS

if __name__ == "__main__":
    root = WEIGHTS.parents[2]
    if not (root / "pyproject.toml").is_file():
        raise SystemExit("the cards belong to a source checkout; install dialeval with: pip install -e .")
    for card in write_cards(WEIGHTS, root / "results", root / "model_cards"):
        print(Path(card).relative_to(root))
    write_runs_table(root / "docs" / "training.md", root / "results" / "training", root / "training" / "recipes")
    print("docs/training.md")
