"""What dialeval knows by name, as `catalogue.yaml` lists it: base encoders, and checkpoints that stand on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CATALOGUE = Path(__file__).with_name("catalogue.yaml")


@dataclass(frozen=True)
class BaseEncoder:
    """A base encoder that is known by the digest of its files."""

    id: str
    extra: str
    packages: tuple[str, ...]
    #: Digests of the files that are read.
    files: Mapping[str, str]
    licence: str = ""
    #: The folder of the archive that the packages hold pieces of; empty where one package holds a folder.
    archive: str = ""

    @property
    def sha256(self) -> str:
        """The digest of its weights."""
        return self.files["model.safetensors"]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that users load by name; the one that bears an approach's name is its default."""

    id: str
    approach: str
    #: Its folder in `weights/`, its repository on the Hub, and what it was called earlier: it is found by either name.
    folder: str
    encoder: str
    licence: str
    corpora: tuple[str, ...]
    #: Sources of ratings that it was fitted to.
    ratings: tuple[str, ...]
    #: Digests of all files of which the checkpoint consists.
    files: Mapping[str, str]


@cache
def _listed() -> dict[str, dict[str, Any]]:
    listed: dict[str, dict[str, Any]] = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    return listed


@cache
def base_encoders() -> dict[str, BaseEncoder]:
    """By id."""
    return {
        name: BaseEncoder(name, **{**entry, "packages": tuple(entry["packages"])})
        for name, entry in _listed()["encoders"].items()
    }


@cache
def checkpoints() -> dict[str, Checkpoint]:
    """By id."""
    return {
        name: Checkpoint(name, **{**entry, "corpora": tuple(entry["corpora"]), "ratings": tuple(entry["ratings"])})
        for name, entry in _listed()["checkpoints"].items()
    }


def checkpoint_named(name: str) -> Checkpoint | None:
    """The checkpoint of an id or a folder's name."""
    return checkpoints().get(name) or next(
        (checkpoint for checkpoint in checkpoints().values() if checkpoint.folder == name), None
    )
