"""Where a run reads: what it reads must stay as it is until the run is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
#: Size and time of change of files.
States = Mapping[Path, tuple[int, int]]


def states(places: Iterable[object]) -> States:
    """How files are now, and those in folders, but for what this program keeps there of unfinished runs."""
    found = {}
    for place in places:
        path = Path(place) if isinstance(place, str | Path) else None
        for file in () if path is None else sorted(path.rglob("*")) if path.is_dir() else [path]:
            with suppress(OSError):
                if file.is_file() and file.suffix != ".partial":
                    about = file.stat()
                    found[file] = (about.st_size, about.st_mtime_ns)
    return found


def check_unchanged(before: States, how: str = "changed") -> None:
    """Refuse what came of files that somebody wrote meanwhile."""
    after = states(before)
    if changed := next((file for file, state in before.items() if after.get(file) != state), None):
        raise ValueError(f"{changed} {how} while it was read; wait until it is whole, then run the same command again")


def unchanging(items: Iterator[Item], places: Iterable[object]) -> Iterator[Item]:
    """What is read from files, which stay as they are until all of it is read."""
    before = states(places)
    yield from items
    check_unchanged(before)
