"""Write anew what says what the embedded checkpoints are: the catalogue, the cards, docs/training.md's table.

python training/cards.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dialeval.checkpoints.catalogue import CATALOGUE
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS, file_sha256
from dialeval.hub.card import CardResults, licence_of, rated, render_card
from runs_table import write_runs_table

ROOT = Path(__file__).resolve().parents[1]


def catalogue_of(weights: Path, catalogue: Path) -> str:
    """The catalogue with its checkpoints as they are below `weights`; all that stands before them is left alone.

    A folder keeps the id that it has. A new one gets the name of its approach, if that is free, or else its own.
    """
    text = catalogue.read_text("utf-8")
    before, key, after = text.partition("\ncheckpoints:\n")
    listed: dict[str, dict[str, Any]] = yaml.safe_load(after) or {}
    ids = {entry["folder"]: name for name, entry in listed.items()}
    for folder in sorted(path.parent for path in weights.glob("*/config.json")):
        config = CheckpointConfig.read(folder)
        name = ids.get(folder.name) or (folder.name if config.approach in listed else config.approach)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "README.md")
        listed[name] = {
            "approach": config.approach,
            "folder": folder.name,
            "encoder": config.encoder.id,
            "licence": licence_of(config.training),
            "corpora": list(config.training.get("corpora", ())),
            "ratings": list(rated(config.training)),
            "files": {path.relative_to(folder).as_posix(): file_sha256(path) for path in files},
        }
    entries = yaml.safe_dump(listed, sort_keys=False, width=120, default_flow_style=None)
    return before + key + "".join(f"  {line}" for line in entries.splitlines(keepends=True))


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
    CATALOGUE.write_text(catalogue_of(WEIGHTS, CATALOGUE), encoding="utf-8")
    for card in write_cards(WEIGHTS, ROOT / "results", ROOT / "model_cards"):
        print(card.relative_to(ROOT))
    write_runs_table(ROOT / "docs" / "training.md", ROOT / "results" / "training", ROOT / "training" / "recipes")
    print("docs/training.md")
