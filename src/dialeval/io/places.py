"""Where a run reads and writes: nothing is written over what it reads, and what it reads stays as it is meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations, islice
from pathlib import Path
from typing import TypeVar

from dialeval.io.files import is_stream, parse_json, place_beside, read_small

Item = TypeVar("Item")
#: Folders one in another; Python itself fails at some hundreds.
_DEEPEST = 200
#: Size and time of change of files.
States = Mapping[Path, tuple[int, int]]


#: More files than any folder of rows, weights or scores holds; `/` has millions.
_MOST_FILES = 100_000


def states(places: Iterable[object]) -> States:
    """How files are now, and those in folders, but for what this program keeps there of unfinished runs."""
    by_file = {}
    for place in places:
        path = Path(place) if isinstance(place, str | Path) else None
        files = [] if path is None else list(islice(path.rglob("*"), _MOST_FILES)) if path.is_dir() else [path]
        if len(files) == _MOST_FILES:
            raise ValueError(f"{path} is a folder of {_MOST_FILES:,} files or more; name one file, or a smaller folder")
        for file in sorted(files):
            with suppress(OSError):
                if file.is_file() and file.suffix != ".partial":
                    about = file.stat()
                    by_file[file] = (about.st_size, about.st_mtime_ns)
    return by_file


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


def check_places(writes: Mapping[str, Path | None], reads: Iterable[object], *, replace: bool = True) -> None:
    """Refuse, before anything is computed, what a run must not write: what it reads, one file twice, a folder.

    Args:
        writes: the files by what they are to the user: an option, "the output". Devices and pipes hold nothing.
        reads: the files and folders that the run reads; what is none is passed over.
        replace: whether files that are there may be replaced.
    """
    named = [(what, path) for what, path in writes.items() if path is not None and not is_stream(path)]
    read = [Path(file) for file in reads if isinstance(file, str | Path) and str(file)]
    for what, path in named:
        real(path)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file in it")
        if not (above := next(filter(Path.exists, path.parents), Path())).is_dir():
            raise NotADirectoryError(f"{above} is no folder; choose another place than {path}")
        if any(_is_part(path, file) for file in read):
            raise ValueError(f"{path} is both {what} and an input; choose another file")
        if path.exists() and not replace:
            raise FileExistsError(f"{path} already exists; choose another name, or replace it with --overwrite")
    for (what, path), (other, other_path) in combinations(named, 2):
        if _is_part(path, other_path):
            raise ValueError(f"{path} is both {what} and {other}; choose another file")


def check_parent(path: Path) -> None:
    """Refuse a place whose folder is not there, or is none."""
    if not path.parent.is_dir():
        problem = "is a file; choose another" if path.parent.exists() else "does not exist; create it first"
        raise FileNotFoundError(f"the folder {path.parent} {problem}")


def check_results(out: Path, names: Collection[str], reads: Iterable[object]) -> None:
    """Refuse a folder for results in which one of them would take the place of what is read, or of what no run of ours
    has written: its run.json comes before the others. Names are patterns.
    """
    places = [out / name for name in names]
    check_places({f"{path.name} of --out": path for path in places}, reads)
    foreign = next((path for name in names for path in out.glob(name)), None)
    if foreign and not _is_of_a_run(out / "run.json"):
        raise FileExistsError(f"{foreign} is not of an earlier run and is not replaced; choose another folder")


def drop_former(out: Path, patterns: Iterable[str], written: Collection[Path]) -> None:
    """Remove what an earlier run left in its folder of results, and this one has not: it would be read as its own."""
    for path in (path for pattern in patterns for path in out.glob(pattern)):
        if path not in written:
            path.unlink()


def _is_of_a_run(file: Path) -> bool:
    try:
        about = parse_json(read_small(file))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and {"command", "versions"} <= about.keys()


def check_can_be_made(folder: Path) -> None:
    """Refuse, before anything is computed, a place where the system lets no folder be made."""
    tried = place_beside(folder)
    try:
        tried.mkdir(0o700)
        tried.rmdir()
    except OSError as error:
        failure = type(error)(f"{folder} cannot be made ({error.strerror}); choose another folder")
        failure.errno = error.errno  # which tells a full disk from a wrong place
        raise failure from None


def check_new_folder(folder: Path, reads: Iterable[object] = ()) -> None:
    """Refuse, before anything is computed, a folder that a run cannot make: one that holds something, or is read."""
    target = real(folder)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise FileExistsError(f"{folder} is not empty; name a new folder")
    for read in reads:
        if isinstance(read, str | Path) and target.is_relative_to(real(Path(read))):
            raise ValueError(f"{folder} lies in {read}, which is an input; choose another folder")
    if target.parent.is_dir():
        check_can_be_made(target)


def real(path: Path) -> Path:
    """The place that a path leads to, whether or not something is there; one that leads round in a circle is refused.

    A pipe of the shell has no path and stays as it is.
    """
    if len(path.parts) > _DEEPEST:
        raise ValueError(f"{str(path)[:100]}... lies in {len(path.parts):,} folders; choose a shorter path")
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path} is a link that leads to itself; choose another place") from None
    return path if is_stream(path) else Path(os.path.realpath(path))


def _is_part(path: Path, of: Path) -> bool:
    """Whether two names are those of one file, or whether it is a file of that folder."""
    real_path, real_of = real(path), real(of)
    if real_path == real_of:
        return True
    if of.is_dir():  # an unfinished run is no part of what it reads
        return path.exists() and path.suffix != ".partial" and real_path.is_relative_to(real_of)
    with suppress(OSError):
        return path.samefile(of)
    return False
