"""Sets of features, kept beside digests of the texts they came from, and the files they are saved in.

The digests put rows into one order whatever order they came in, and tell which rows share a
context, so that a saved set needs no text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dialeval.checkpoints.find import CheckpointError, find_checkpoint, first_line
from dialeval.io.files import replace_file
from dialeval.statistics.moments import Moments

#: What a checkpoint folder calls its human side.
HUMAN_FILE = "human.safetensors"
_FORMAT = "dialeval-features-1"


@dataclass(frozen=True)
class FeatureSet:
    """Features of (context, reply) pairs, digests of the pairs and contexts, and which pairs were truncated."""

    rows: NDArray[np.float32]
    pairs: NDArray[np.uint64]
    contexts: NDArray[np.uint64]
    cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: NDArray[np.intp]) -> Self:
        """Some of the rows, or all of them in another order."""
        return type(self)(self.rows[chosen], self.pairs[chosen], self.contexts[chosen], self.cut[chosen])

    def merge(self, other: Self) -> Self:
        """These rows, then those."""
        return type(self)(*(np.concatenate([mine, vars(other)[name]]) for name, mine in vars(self).items()))


def digest(texts: Sequence[str]) -> int:
    """Sixty-four bits that stand for some texts."""
    content = json.dumps(list(texts), ensure_ascii=False).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def write_side(path: str | Path, side: FeatureSet | Moments, made_with: Mapping[str, str]) -> None:
    """Write one side of a comparison and what it was made with; the file appears when it is complete."""
    tensors = {name: np.ascontiguousarray(value) for name, value in vars(side).items()}
    target = Path(path).expanduser()
    replace_file(target, lambda hidden: hidden.write_bytes(save(tensors, {"format": _FORMAT, **made_with})))


def read_side(source: str | Path) -> tuple[FeatureSet | Moments, dict[str, str]]:
    """One side of a comparison from a file, or from a checkpoint that brings one, and what it was made with."""
    path = Path(source).expanduser()
    if not path.is_file():
        path = find_checkpoint(source, default=str(source)).folder / HUMAN_FILE
    try:
        with safe_open(path, framework="numpy") as stored:
            made_with: dict[str, str] = dict(stored.metadata() or {})
            tensors: dict[str, Any] = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; this checkpoint brings no human side") from None
    except (SafetensorError, OSError, TypeError, ValueError) as error:  # among them numbers that numpy does not have
        raise CheckpointError(f"{path} is not a saved set, or is damaged: {first_line(error)}") from None
    if (version := made_with.pop("format", None)) != _FORMAT:
        raise CheckpointError(f"{path} is not a saved set of features; its format is {version!r}")
    is_moments = "scatter" in tensors
    if problem := _problem(tensors, _OF_MOMENTS if is_moments else _OF_ROWS):
        raise CheckpointError(f"{path} is damaged: {problem}")
    if is_moments:
        return Moments(int(tensors.pop("count").item()), **tensors), made_with
    return FeatureSet(**tensors), made_with


#: Of each kind of file the tensors, with the kind of their numbers and what their sides must equal.
_OF_MOMENTS = {"count": ("iu", ("one",)), "mean": ("f", ("width",)), "scatter": ("f", ("width", "width"))}
_OF_ROWS = {
    "rows": ("f", ("rows", "width")),
    "pairs": ("u", ("rows",)),
    "contexts": ("u", ("rows",)),
    "cut": ("b", ("rows",)),
}


def _problem(tensors: Mapping[str, NDArray[Any]], wanted: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """What is wrong with the tensors of a file that anybody may have written; nothing if they are as they are saved."""
    if tensors.keys() != wanted.keys():
        return f"it holds {', '.join(sorted(tensors)[:4]) or 'nothing'}, not {', '.join(wanted)}"
    sides = {"one": 1}
    for name, (kinds, shape) in wanted.items():
        values = tensors[name]
        if values.dtype.kind not in kinds or len(values.shape) != len(shape):
            return f"{name} holds {values.dtype} in the shape {values.shape}"
        if any(sides.setdefault(side, length) != length for side, length in zip(shape, values.shape, strict=True)):
            return f"{name} has the shape {values.shape}, which does not fit the others"
        if not np.isfinite(values).all():
            return f"{name} holds values that are no numbers"
    if "count" in tensors and not 0 < int(tensors["count"].item()) < 2**53:
        return "it was made of no number of rows"
    return ""


def check_made_alike(first: Mapping[str, str], other: Mapping[str, str], what: str) -> None:
    """Refuse to compare features that were not made in the same way."""
    for key in first.keys() | other.keys():
        if first.get(key) != other.get(key):
            raise ValueError(
                f"{what} was made with {key}={other.get(key)} and not {first.get(key)}; make it again, or load alike"
            )
