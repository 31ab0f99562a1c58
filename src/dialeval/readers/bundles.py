"""Exports of many files: a zip archive, or a folder with a file for each day of a channel, as Slack writes them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from dialeval.io.files import first_line
from dialeval.io.harmless import one_line
from dialeval.readers.rows import Bounds, RawRow

#: The folder in which macOS puts what it alone reads of the files that it packs.
_OF_MACOS = "__MACOSX/"
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.json")
#: Reads the rows of one file by its name and stream; None where the name says that it holds none.
ReadFile = Callable[[str, BinaryIO], Iterator[RawRow] | None]


def is_folder_of_days(path: Path) -> bool:
    """Whether a folder, or one in it, holds files that are named by a day."""
    return any(_DAY.fullmatch(file.name) for pattern in ("*.json", "*/*.json") for file in path.glob(pattern))


def bundle_rows(
    path: Path, name: str, read: ReadFile, is_row: Callable[[RawRow], bool], bounds: Bounds
) -> Iterator[RawRow]:
    """The rows of all files, in the order of their names; files that hold something else are passed over."""
    number = 0
    for inner, open_file in _files(path, name, bounds):
        with closing(open_file()) as stream:
            rows = read(f"{name}, {one_line(inner)}", stream)
            first = next(rows, None) if rows is not None else None
            if rows is None or first is None or not (first.values is None or is_row(first)):
                continue
            for row in chain([first], rows):
                values = _with_thread(row, inner) if _DAY.fullmatch(PurePosixPath(inner).name) else row.values
                yield replace(row, number=number, values=values)
                number += 1


def _files(path: Path, name: str, bounds: Bounds) -> list[tuple[str, Callable[[], BinaryIO]]]:
    if path.is_dir():
        # A pipe would never end.
        days = [file for file in path.rglob("*.json") if _DAY.fullmatch(file.name) and file.is_file()]
        return [(str(file.relative_to(path)), lambda file=file: file.open("rb")) for file in sorted(days)]  # type: ignore[misc]
    try:
        archive = zipfile.ZipFile(path)
    except Exception:  # of a damaged directory `zipfile` raises what comes
        raise ValueError(f"{name} is not a zip archive, or is damaged; pack it again") from None
    if any(entry.flag_bits & 1 for entry in archive.infolist()):
        raise ValueError(f"{name} is a zip archive with a password; unpack it")
    bounds.check(name, data=sum(entry.file_size for entry in archive.infolist()))
    if sum(entry.compress_size for entry in archive.infolist()) > path.stat().st_size:  # older Pythons unpack them
        raise ValueError(f"{name} is a zip archive whose entries share their data; pack it again")
    entries = [entry for entry in archive.infolist() if not (entry.is_dir() or _OF_MACOS in entry.filename)]
    entries = [entry for entry in entries if _DAY.fullmatch(PurePosixPath(entry.filename).name)] or entries
    # By the entry and not by its name, which may stand there twice.
    return [
        (entry.filename, lambda entry=entry: _unpacked(archive, entry, name))  # type: ignore[misc]
        for entry in sorted(entries, key=lambda entry: entry.filename)
    ]


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> BinaryIO:
    try:
        return cast(BinaryIO, archive.open(entry))
    except Exception as error:  # the same
        raise ValueError(
            f"{name}, {one_line(entry.filename)} cannot be unpacked ({first_line(error)}); pack it again"
        ) from None


def _with_thread(row: RawRow, inner: str) -> Mapping[str, Any] | None:
    """A message with the conversation that it belongs to: its thread, or the channel whose folder it lies in."""
    if row.values is None:
        return None
    channel = PurePosixPath(inner).parent.name or "channel"
    thread = row.values.get("thread_ts")
    return {**row.values, "thread": f"{channel} {thread}" if thread else channel}
