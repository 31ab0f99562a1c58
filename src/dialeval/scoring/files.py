"""What a run writes: the table of scores, and the journal of finished chunks from which a killed run goes on."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dialeval.exchange import from_first_visible
from dialeval.io import lock, name_place

OutputFormat = Literal["jsonl", "csv", "parquet"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("jsonl", "csv", "parquet")

#: What tells the rows of a table apart; the metrics' columns follow.
ROW_KEYS = ("row", "id", "system", "language")

#: What a metric's column holds where that is no number: words, or a list of numbers.
Kind = Literal["text", "list"]

#: A part of a table: lists of equal length under its keys, and under each metric's name in "values".
Record = Mapping[str, Any]

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def output_format(path: str) -> OutputFormat:
    """The format of an output: JSON lines for a pipe, else from the file extension."""
    extension = "jsonl" if path == "-" else Path(path).suffix.lower().lstrip(".")
    if extension not in OUTPUT_FORMATS:
        raise ValueError(f"cannot infer the format of {path}; its extension is one of: {', '.join(OUTPUT_FORMATS)}")
    return extension


@contextmanager
def table(
    stream: BinaryIO,
    file_format: OutputFormat,
    metrics: Sequence[str],
    keys: Sequence[str] = ROW_KEYS,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> Iterator[Callable[[Record], None]]:
    """A function that writes one part of the table to the stream; `kinds` names the columns that hold no numbers."""
    if file_format == "parquet":
        with _parquet(stream, metrics, keys, kinds or {}) as write:
            yield write
    elif file_format == "csv":
        yield _csv(stream, metrics, keys)
    else:
        yield lambda record: _write_json(stream, _columns(metrics, keys, record))


def _columns(metrics: Sequence[str], keys: Sequence[str], record: Record) -> dict[str, Sequence[Any]]:
    return {key: record[key] for key in keys} | {name: record["values"][name] for name in metrics}


def _write_json(stream: BinaryIO, columns: Mapping[str, Sequence[Any]]) -> None:
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _csv(stream: BinaryIO, metrics: Sequence[str], keys: Sequence[str]) -> Callable[[Record], None]:
    def send(rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        stream.write(text.getvalue().encode())

    def write(record: Record) -> None:
        columns = _columns(metrics, keys, record)
        send(zip(*(map(_harmless, cells) for cells in columns.values()), strict=True))

    send([[*keys, *metrics]])
    return write


def _harmless(cell: Any) -> Any:
    """The user's text with a quote before what a spreadsheet would take for a formula."""
    if isinstance(cell, list):
        return json.dumps(cell)
    if isinstance(cell, str) and not _NUMBER.fullmatch(cell) and _is_formula(cell):
        return f"'{cell}"
    return cell


def _is_formula(cell: str) -> bool:
    """A NUL, a byte-order mark or a zero-width space before the sign hides it from people, not from every program."""
    return any(_FORMULA.match(text) for text in (cell, from_first_visible(cell)))


def column_kinds(metrics: Iterable[str], keys: Iterable[str], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """The Arrow type of every column, in order."""
    import pyarrow as pa

    of_keys = {"row": pa.int64(), "id": pa.string(), "system": pa.string(), "language": pa.string()}
    types = {"text": pa.string(), "list": pa.list_(pa.float64())}
    of_metrics = {name: types[kinds[name]] if name in kinds else pa.float64() for name in metrics}
    return {key: of_keys[key] for key in keys} | of_metrics


@contextmanager
def _parquet(
    stream: BinaryIO, metrics: Sequence[str], keys: Sequence[str], kinds: Mapping[str, Kind]
) -> Iterator[Callable[[Record], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(column_kinds(metrics, keys, kinds).items())
    with pq.ParquetWriter(stream, schema) as writer:

        def write(record: Record) -> None:
            writer.write_table(pa.table(_columns(metrics, keys, record), schema=schema))

        yield write


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
