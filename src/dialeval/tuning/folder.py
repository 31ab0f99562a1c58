"""A tuned checkpoint's folder: it appears when it is complete, and never in the place of something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialeval.checkpoints.config import current_versions
from dialeval.hub.card import render_card
from dialeval.io.files import left_beside, parse_json, place_beside
from dialeval.io.places import real
from dialeval.judge.metric import Judge, JudgeNetwork


def check_place(out: Path, reads: Iterable[object], *, overwrite: bool) -> None:
    """Refuse, before anything is computed, a place that holds something, or what is read."""
    if out == Path.cwd():  # an empty name, too; whoever stands in it would stand nowhere once it is replaced
        raise ValueError("out is the folder that you are in; name a new one")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"the folder {out.parent} does not exist; create it first")
    for workspace in left_beside(out):
        if not out.exists() and (workspace / "former").is_dir():  # killed between the two renames
            os.replace(workspace / "former", out)
        shutil.rmtree(workspace, ignore_errors=True)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(f"{out} already exists; choose another name, or replace it with --overwrite")
    if not _is_checkpoint(out):
        raise FileExistsError(f"{out} is not a checkpoint and is not replaced; choose another name")
    for read in reads:
        if isinstance(read, str | Path) and real(Path(read)).is_relative_to(out):
            raise ValueError(f"{read} is an input and lies in {out}, which would be replaced; choose another name")


#: The quantiles of human replies that a correction makes wrong.
OVERALL = "turn.overall"


def write_folder(network: JudgeNetwork, out: Path, *, record: Mapping[str, Any]) -> None:
    """Save beside `out` and rename."""
    earlier = network.config.training
    tuned = dict(record)
    if "tuned" in earlier:
        tuned["earlier"] = earlier["tuned"]
    network.config = replace(
        network.config,
        name=out.name,
        contaminated_by=tuple(dict.fromkeys([*network.config.contaminated_by, *record["contaminated_by"]])),
        training={**earlier, "tuned": tuned},
        versions=current_versions(),
    )
    workspace = place_beside(out)
    workspace.mkdir(0o700)
    former = workspace / "former"
    try:
        fresh = workspace / "fresh"
        network.save_pretrained(fresh, card=render_card(network.config))
        Judge(fresh)  # what was written can be loaded
        if out.is_dir() and any(out.iterdir()):
            os.replace(out, former)
        try:
            os.replace(fresh, out)
        except BaseException as error:
            if former.exists():
                _put_back(former, out, error)
            raise
    finally:
        # Between the two renames the former checkpoint is in the workspace only; what cannot go back stays there.
        if out.exists() or not former.exists():
            shutil.rmtree(workspace, ignore_errors=True)


def _put_back(former: Path, out: Path, error: BaseException) -> None:
    try:
        os.replace(former, out)
    except OSError:
        told = OSError(f"{out} cannot be written ({error}); the checkpoint that was there is in {former}: move it back")
        told.errno = getattr(error, "errno", None)
        raise told from error


def _is_checkpoint(folder: Path) -> bool:
    try:
        config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "dialeval"
