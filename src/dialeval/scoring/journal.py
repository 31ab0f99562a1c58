"""The journal of a run: one line per finished chunk, so that a killed run goes on where it was.

A line is either whole or not there: whatever follows the last line end was cut off by the
interruption and is dropped. One process at a time may hold a journal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

_MARK = "dialeval_journal"
_FORMAT = 1


class Journal:
    """Finished chunks of a run, read back in order, then written on."""

    def __init__(self, path: Path, run: Mapping[str, Any], *, fresh: bool) -> None:
        """Open or begin the journal of `run` (what decides the values); `fresh` drops what was there."""
        self.path = path
        self._stream: BinaryIO = _open_locked(path)
        try:
            if fresh:
                self._stream.truncate(0)
            self.resumed = self._check_header(dict(run))
        except BaseException:
            self._stream.close()
            raise
        self._is_reading = True

    def next_finished(self) -> dict[str, Any] | None:
        """The next chunk that an earlier run finished, or None when there are no more."""
        if not self._is_reading:
            return None
        start = self._stream.tell()
        record = _record(self._stream.readline())
        if record is None:
            self._stream.seek(start)
            self._stream.truncate()
            self._is_reading = False
        return record

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one finished chunk, down to the disk."""
        self._stream.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def finished(self) -> Iterator[dict[str, Any]]:
        """All finished chunks from the first, for writing the final table."""
        self._stream.seek(0)
        self._stream.readline()
        for line in self._stream:
            record = _record(line)
            assert record is not None
            yield record

    def close(self) -> None:
        """Release the file; what was finished stays in it."""
        self._stream.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_header(self, run: dict[str, Any]) -> bool:
        line, start = self._stream.readline(), f'{{"{_MARK}"'.encode()
        # Nothing yet, or a header that was cut off while it was written.
        if not line.endswith(b"\n") and (line.startswith(start) or start.startswith(line)):
            self._stream.seek(0)
            self._stream.truncate()
            self.append({_MARK: _FORMAT, "run": run})
            return False
        header = _record(line)
        if header is None or header.get(_MARK) != _FORMAT:
            raise ValueError(f"{self.path} is no unfinished run of this version; move it away or choose another output")
        if difference := _difference(header["run"], run):
            raise ValueError(
                f"{self.path} is an unfinished run with other options ({difference}); "
                "give the same ones to go on with it, or --no-resume to begin again"
            )
        return True


def _open_locked(path: Path) -> BinaryIO:
    stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on Windows
        pass
    except BlockingIOError:
        stream.close()
        raise ValueError(f"another process is writing {path}; wait for it, or choose another output") from None
    return stream


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first option in which two runs differ, in words."""
    for key in {**before, **now}:
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if told := _difference(old, new):
                return f"{key}: {told}"
        elif old != new:
            return f"{key} was {_told(old)}, now {_told(new)}"
    return ""


def _told(value: Any) -> str:
    return "absent" if value is None else str(value) if not isinstance(value, dict) else "present"
