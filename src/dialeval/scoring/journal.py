"""The journal of a run: one line per finished chunk, so that a killed run goes on where it was.

A line is either whole or not there: whatever follows the last line end was cut off by the
interruption and is dropped. One process at a time may hold a journal. One without a finished chunk
is worth nothing and goes when it is closed, so that a journal always tells of a run that was begun.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from dialeval.io import name_place

_MARK = "dialeval_journal"
_FORMAT = 1
_START = f'{{"{_MARK}"'.encode()
#: A line with this key tells which file the finished table is, just before it takes its place.
_TABLE = "table"


class Journal:
    """Finished chunks of a run, read back in order, then written on."""

    def __init__(self, path: Path, run: Mapping[str, Any], *, fresh: bool, replaces: bool = False) -> None:
        """Open or begin the journal of `run` (what decides the values); `fresh` drops what was there.

        `replaces` notes that files of the outcome may be replaced by this run, because its user said so.
        """
        self.path = path
        self._stream: BinaryIO = _open_locked(path)
        self._is_worth_keeping = True
        try:
            if fresh and is_journal(path):
                self._stream.truncate(0)
            self.resumed = self._check_header(dict(run), replaces)
        except BaseException:
            with suppress(OSError):
                self._stream.close()
            raise
        self._is_reading = True

    def next_finished(self) -> dict[str, Any] | None:
        """The next chunk that an earlier run finished, or None when there are no more."""
        if not self._is_reading:
            return None
        record: dict[str, Any] | None = {_TABLE: None}
        while record is not None and _TABLE in record:
            start = self._stream.tell()
            record = _record(self._stream.readline())
        if record is None or not _is_chunk(record):
            self._stream.seek(start)
            self._stream.truncate()
            self._is_reading = False
            return None
        self._is_worth_keeping = True
        return record

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one finished chunk, down to the disk."""
        self._write(record)
        self._is_worth_keeping = True

    def announce(self, table: os.stat_result) -> None:
        """Note which file is about to take the output's place, so that this run is known to have made it."""
        self._stream.seek(0, os.SEEK_END)
        self._write({_TABLE: traits(table)})

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            self._stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            name_place(error, self.path)
            raise

    def finished(self) -> Iterator[dict[str, Any]]:
        """All finished chunks from the first, for writing the final table."""
        self._stream.seek(0)
        self._stream.readline()
        for line in self._stream:
            record = _record(line)
            assert record is not None
            if _TABLE not in record:
                yield record

    def drop(self) -> None:
        """All that it was for is written: it goes when it is closed, before anybody else can hold it."""
        self._is_worth_keeping = False

    def close(self) -> None:
        """Release the file; what was finished stays in it, and without any it is removed."""
        if not self._is_worth_keeping:
            with suppress(OSError):
                self.path.unlink()
        # What counts is on the disk since each chunk was: a disk that complains now ends nothing that was done.
        with suppress(OSError):
            self._stream.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_header(self, run: dict[str, Any], replaces: bool) -> bool:
        line = self._stream.readline()
        # Nothing yet, or a header that was cut off while it was written.
        if not line.endswith(b"\n") and _is_start(line):
            self._stream.seek(0)
            self._stream.truncate()
            self._write({_MARK: _FORMAT, "run": run, "replaces": replaces})
            self._is_worth_keeping = False
            return False
        header = _header(line)
        if header is None:
            raise ValueError(f"{self.path} is no unfinished run of this version; move it away or choose another output")
        self._is_worth_keeping = begun(self.path) is not None
        if difference := _difference(header["run"], run):
            raise ValueError(
                f"{self.path} is an unfinished run with other options ({difference}); "
                "give the same ones to go on with it, or --no-resume to begin again"
            )
        return True


@dataclass(frozen=True)
class Begun:
    """What the journal of a run with finished chunks says about the files of its outcome."""

    #: Whether the run was told to replace what is there.
    replaces: bool
    #: The tables that it has put in the output's place.
    tables: tuple[list[int], ...]

    def may_replace(self, output: Path) -> bool:
        """Whether what stands at the output is this run's to replace."""
        return self.replaces or (output.exists() and traits(output.stat()) in self.tables)


def begun(path: Path) -> Begun | None:
    """What a journal says, None where there is none, or none with a finished chunk."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as stream:
            header = _header(stream.readline())
            first = None if header is None else _record(stream.readline())
            if header is None or first is None or not _is_chunk(first):
                return None
            found = [record[_TABLE] for line in stream if (record := _record(line)) is not None and _TABLE in record]
    except OSError:
        return None
    return Begun(header.get("replaces") is True, tuple(found))


def is_journal(path: Path) -> bool:
    """Whether a file is a journal of some version or empty, and so may be dropped."""
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as stream:
        return _is_start(stream.read(len(_START)))


#: A link is never followed: what it leads to is not the run's.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _open_locked(path: Path) -> BinaryIO:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise _not_ours(path) from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _not_ours(path)
        stream = os.fdopen(descriptor, "r+b")
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on Windows
            return stream
        except BlockingIOError:
            stream.close()
            raise ValueError(f"another process is writing {path}; wait for it, or choose another output") from None
        # Whoever held it may have removed it meanwhile; a lock on what has no name keeps nobody out.
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream.fileno()), os.lstat(path)):
                return stream
        stream.close()


def _not_ours(path: Path) -> ValueError:
    return ValueError(f"{path} is a link, a folder or a device, where a run would keep what it finished; move it away")


def traits(file: os.stat_result) -> list[int]:
    """What a file keeps when it is renamed, and another one hardly shares."""
    return [file.st_ino, file.st_size, file.st_mtime_ns]


def _is_start(line: bytes) -> bool:
    return line.startswith(_START) or _START.startswith(line)


def _header(line: bytes) -> dict[str, Any] | None:
    header = _record(line)
    is_ours = header is not None and header.get(_MARK) == _FORMAT and isinstance(header.get("run"), dict)
    return header if is_ours else None


def _is_chunk(record: Mapping[str, Any]) -> bool:
    """Whether a record has what every finished chunk has; other JSON is dropped like a line that was cut off."""
    rows, values = record.get("row"), record.get("values")
    return (
        isinstance(record.get("fingerprint"), str)
        and isinstance(rows, list)
        and isinstance(values, dict)
        and all(isinstance(column, list) and len(column) == len(rows) for column in values.values())
    )


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
            return f"{key} was {_shown(old)}, now {_shown(new)}"
    return ""


def _shown(value: Any) -> str:
    return "absent" if value is None else str(value) if not isinstance(value, dict) else "present"
