"""Where reports go: checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dialeval.io import is_stream


def check_reports(reports: Mapping[str, Path | None], reads: Iterable[str | Path]) -> None:
    """Refuse reports that would take the place of what the run reads, or of one another."""
    named = [(option, path) for option, path in reports.items() if path is not None and not is_stream(path)]
    read = [("what is read", Path(one)) for one in reads]
    for at, (option, path) in enumerate(named):
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file in it")
        for other, there in [*read, *named[at + 1 :]]:
            if _are_one(resolved(path), resolved(there)):
                raise ValueError(f"{path} is both {option} and {other}; choose another file for one of them")


def resolved(path: Path) -> Path:
    """The path with all links followed; one that leads to itself, or to a pipe, which has no path, stays as it is."""
    return path if is_stream(path) else Path(os.path.realpath(path))


def _are_one(one: Path, other: Path) -> bool:
    """The same name, or two names of the same file."""
    if one == other:
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False
