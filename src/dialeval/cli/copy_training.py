"""`dialeval copy-training`: the training scripts and recipes, also where dialeval came as a package."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import say

HELP = """Copy the training scripts and recipes into a folder, to train on dialogues of your own.

They are part of the package; running them needs the extra [bold]training[/bold].

[bold]Examples[/bold]

$ dialeval copy-training

$ python training/density.py --recipe training/recipes/own-density.yaml --corpora CORPORA --out runs/mine"""

#: Beside the package's own modules in a wheel; beside `src` in a checkout.
_PLACES = (Path(__file__).parents[1] / "training_files", Path(__file__).parents[3] / "training")


def copy_training(
    folder: Annotated[Path, typer.Argument(help="New folder.")] = Path("training"),
) -> None:
    """Copy, whole or not at all."""
    source = next((place for place in _PLACES if (place / "recipes").is_dir()), None)
    if source is None:
        raise FileNotFoundError("this installation holds no training scripts; install dialeval again")
    if folder.exists():
        raise ValueError(f"{folder} already exists; choose a new folder")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    recipes = len(list((folder / "recipes").glob("*.yaml")))
    say(f"{folder}: {len(list(folder.glob('*.py')))} scripts, {recipes} recipes")
