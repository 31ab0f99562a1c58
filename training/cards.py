"""Render the embedded checkpoints' cards and docs/training.md's table: `python training/cards.py`."""

from __future__ import annotations

from pathlib import Path

from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS
from dialeval.hub.card import CardResults, render_card
from runs_table import write_runs_table

ROOT = Path(__file__).resolve().parents[1]


def write_cards(weights: Path, results: Path, target: Path) -> list[Path]:
    """The cards of all checkpoints below `weights`; cards of checkpoints that are gone go too."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for folder in sorted(path.parent for path in weights.glob("*/config.json")):
        config = CheckpointConfig.read(folder)
        path = target / f"{folder.name}.md"
        path.write_text(render_card(config, CardResults.of(folder, config, results)), encoding="utf-8")
        written.append(path)
    for path in set(target.glob("*.md")) - set(written):
        path.unlink()
    return written


if __name__ == "__main__":
    for card in write_cards(WEIGHTS, ROOT / "results", ROOT / "model_cards"):
        print(card.relative_to(ROOT))
    write_runs_table(ROOT / "docs" / "training.md", ROOT / "results" / "training", ROOT / "training" / "recipes")
    print("docs/training.md")
