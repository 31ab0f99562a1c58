"""The journal of a run: one line per finished chunk, so that a killed run goes on where it was.

A line is either whole or not there: whatever follows the last line end was cut off by the interruption and is
dropped. One process at a time may hold a journal.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from dialeval.io import lock, name_place

_MARK = "dialeval_journal"
_FORMAT = 2
_START = f'{{"{_MARK}"'.encode()
#: Stands in the last line of a journal whose table is about to take the output's place.
_COMPLETE: Mapping[str, Any] = {"complete": True}
#: A link is never followed: what it leads to is not the run's.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Journal:
    """Finished chunks of a run, read back in order, then written on."""

    def __init__(self, path: Path, run: Mapping[str, Any], *, fresh: bool, overwrite: bool) -> None:
        """Lock and open the journal of `run` (what decides the values), or begin it; `fresh` drops what was there."""
        self.path = path
        self._stream = _open_locked(path)
        self.n_finished, self._is_complete = 0, False
        try:
            header = None if fresh and _is_start(self._stream.readline()) else self._cut_to_whole_lines()
            if header is None:
                header = self._begin(run, overwrite)
            else:
                self._check(header, run)
        except BaseException:
            self._stream.close()
            raise
        #: Whether an output that stands there may be replaced, by the user's word or because this run wrote it.
        self.may_replace = overwrite or bool(header["overwrite"]) or self._is_complete
        self._to_read = self.finished()

    def next_finished(self) -> dict[str, Any] | None:
        """The next chunk that an earlier run finished, or None when there are no more."""
        record = next(self._to_read, None) if self.n_finished else None
        if record is not None:
            self.n_finished -= 1
        return record

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one finished chunk, down to the disk."""
        try:
            self._stream.seek(0, os.SEEK_END)
            self._stream.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            name_place(error, self.path)
            raise

    def complete(self) -> None:
        """Note that the table is about to take the output's place."""
        self.append(_COMPLETE)

    def finished(self) -> Iterator[dict[str, Any]]:
        """All finished chunks from the first."""
        with self.path.open("rb") as stream:
            stream.readline()
            for line in stream:
                record = _record(line)
                if record is not None and record != _COMPLETE:
                    yield record

    def drop(self) -> None:
        """All that it was for is written."""
        with suppress(OSError):
            self.path.unlink()
        with suppress(OSError):
            self._stream.close()

    def close(self) -> None:
        """Release the file; one without a finished chunk is removed."""
        with suppress(OSError, ValueError):
            self._stream.seek(0)
            self._stream.readline()
            if not self._stream.readline():
                self.path.unlink()
        # What counts is on the disk since each chunk was: a disk that complains now ends nothing that was done.
        with suppress(OSError):
            self._stream.close()

    def _cut_to_whole_lines(self) -> dict[str, Any] | None:
        """Count the finished chunks, drop what follows the last whole line, and give the first one, if there is any."""
        self._stream.seek(0)
        header, end = None, 0
        for line in self._stream:
            record = _record(line)
            if record is None:
                if header is None and not _is_start(line):
                    raise ValueError(f"{self.path} is no unfinished run; move it away or choose another output")
                break
            self._is_complete = record == _COMPLETE
            self.n_finished += header is not None and not self._is_complete
            header = header or record
            end += len(line)
        self._stream.seek(end)
        self._stream.truncate()
        return header

    def _begin(self, run: Mapping[str, Any], overwrite: bool) -> dict[str, Any]:
        self._stream.seek(0)
        self._stream.truncate()
        header = {_MARK: _FORMAT, "run": run, "overwrite": overwrite}
        self.append(header)
        return header

    def _check(self, header: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        if header.get(_MARK) != _FORMAT:
            raise ValueError(f"{self.path} is no unfinished run of this version; move it away or choose another output")
        if difference := _difference(header["run"], json.loads(json.dumps(run))):
            raise ValueError(
                f"{self.path} is an unfinished run with other options ({difference}); "
                "give the same ones to go on with it, or --no-resume to begin again"
            )


def _open_locked(path: Path) -> BinaryIO:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
            descriptor = None
        if descriptor is None or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path} is a link, a folder or a device; a run keeps finished rows there, move it away")
        stream = os.fdopen(descriptor, "r+b")
        if not lock(descriptor):
            stream.close()
            raise ValueError(f"another process is writing {path}; wait for it, or choose another output")
        # Whoever held it may have removed it meanwhile; a lock on what has no name keeps nobody out.
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                return stream
        stream.close()


def _is_start(line: bytes) -> bool:
    return line.startswith(_START) or _START.startswith(line)


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first option in which two runs differ, in words."""
    for key in {**before, **now}:
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if difference := _difference(old, new):
                return f"{key}: {difference}"
        elif old != new:
            return f"{key} was {old}, now {new}"
    return ""
