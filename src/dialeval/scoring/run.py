"""From a source of rows to a table of scores: in a file that appears when all is done, or as a stream."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from dialeval.core.cautions import FirstRows
from dialeval.core.exchange import Exchange
from dialeval.io.files import is_stream, lock, name_place, replacing
from dialeval.io.harmless import json_text
from dialeval.io.places import check_parent, check_places, real
from dialeval.readers import Rejects
from dialeval.registry.interface import Metric
from dialeval.scoring.score_table import OutputFormat, Record, Summary, output_format, table
from dialeval.scoring.task import Chunk, Task, Twins, chunked, nothing_left, unscored
from dialeval.scoring.worst import Worst

#: What a run leaves beside its output: finished chunks while it is unfinished, bad rows, and the values of systems.
JOURNAL, REJECTS, SUMMARY = ".partial", ".rejects.jsonl", ".summary.json"
#: Called with the number of rows done so far, of all rows where it is known, and of those that an earlier run did.
Progress = Callable[[int, int | None, int], None]
#: Loads the metrics, once the rows are known to be good.
Load = Callable[[], Mapping[str, Metric]]


def score_file(
    task: Task,
    output: str,
    load: Load,
    *,
    skip_bad: bool = False,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress = lambda done, total, kept: None,
    reads: tuple[str | Path, ...] = (),
    worst: int = 0,
) -> Summary:
    """Score into OUTPUT (`-` for standard output), and return what it adds up to.

    Finished chunks are kept in OUTPUT.partial until all is done, so that the same call goes on with a run that was
    killed. Bad rows that are skipped go to OUTPUT.rejects.jsonl, values of systems to OUTPUT.summary.json, too.

    Args:
        task: what is to be judged; it has no metrics yet.
        output: where the table goes; its extension says in which format.
        load: gives the metrics; called when every row has been looked through.
        skip_bad: set bad rows aside and go on.
        overwrite: replace files that are there.
        resume: go on with an interrupted run, or begin again.
        progress: is told how many rows are done.
        reads: other files of the run, which the output must not replace.
        worst: so many of the worst rows are named in the summary, with aspects and reasons.
    """
    # Folders of weights are read at once, and may be where somebody keeps scores.
    files = tuple(filter(os.path.isfile, reads))
    if not output:
        raise ValueError("no output was given; pass a file, or - for standard output")
    if output == "-" or is_stream(Path(output)):
        if skip_bad:
            raise ValueError("bad rows are written beside the output, so --skip-bad needs an output file, not a pipe")
        return _score_stream(task, output, load, files, progress, worst)
    # A link keeps pointing where it did; what it points to is replaced.
    path = real(Path(output))
    file_format = output_format(output)
    check_parent(path)
    ends = {"the output": "", "the bad rows": REJECTS, "the summary": SUMMARY, "the unfinished run": JOURNAL}
    places = {what: path.with_name(path.name + end) for what, end in ends.items()}
    unfinished = places["the unfinished run"]  # which tells what its run may replace
    check_places(places, [task.source.input, *files], replace=overwrite or unfinished.exists())
    task = replace(task.look_through(files, skip_bad=skip_bad), metrics=load())
    progress(0, task.n_checked, 0)
    # Before anything is written: a second process must not touch the files of the first.
    with closing(Journal(unfinished, task.identity(), fresh=not resume, overwrite=overwrite)) as journal:
        check_places({"the output": path}, (), replace=journal.may_replace)
        with _in_place(places["the bad rows"]) if skip_bad else nullcontext() as stream:
            rejects = Rejects(stream) if stream else None
            summary = _score_with(journal, task, path, file_format, rejects, progress, worst)
        journal.drop()
    return summary


def _score_with(
    journal: Journal,
    task: Task,
    path: Path,
    file_format: OutputFormat,
    rejects: Rejects | None,
    progress: Progress,
    worst: int,
) -> Summary:
    twins = Twins()
    summary = _score_chunks(task, rejects, progress, lambda chunk: _once(task, chunk, journal, twins), worst)
    if task.of_rows and journal.next_finished() is not None:
        raise ValueError(_changed(journal, "ends earlier than it did"))
    if task.of_systems:
        with _in_place(path.with_name(path.name + SUMMARY)) as stream:
            stream.write(json_text(summary.to_dict(), indent=2).encode() + b"\n")
    with replacing(path) as hidden:
        with hidden.open("wb") as stream:
            _write(task, summary, stream, file_format, journal.finished())
        journal.complete()
    return summary


def _score_stream(
    task: Task, output: str, load: Load, reads: tuple[str | Path, ...], progress: Progress, worst: int
) -> Summary:
    """Score into a pipe, each chunk as soon as it is done."""
    if output == "-" and sys.stdout is None:  # the shell's >&-
        raise ValueError("standard output is closed; name a file, or open it")
    task = replace(task.look_through(reads, skip_bad=False), metrics=load())
    progress(0, task.n_checked, 0)
    with ExitStack() as stack:
        stream: BinaryIO = sys.stdout.buffer if output == "-" else stack.enter_context(Path(output).open("wb"))
        if not task.of_rows:
            summary = _score_chunks(task, None, progress, lambda chunk: (unscored(chunk), False), worst)
            _write(task, summary, stream, "jsonl", ())
            return summary
        write = stack.enter_context(table(stream, "jsonl", task.columns, task.keys, kinds=task.kinds))

        twins = Twins()

        def finish(chunk: Chunk) -> tuple[Record, bool]:
            record = twins.settle(chunk, task.score(chunk))
            write(record)
            stream.flush()
            return record, False

        return _score_chunks(task, None, progress, finish, worst)


def _score_chunks(
    task: Task, rejects: Rejects | None, progress: Progress, finish: Callable[[Chunk], tuple[Record, bool]], worst: int
) -> Summary:
    """Take every chunk to its record (and whether that record was there before), and add them up."""
    summary = Summary.begin(str(task.level), task.infos)
    collected: list[Exchange] = []
    seen = FirstRows(any(info.english for info in task.infos.values()))
    lowest = Worst(task, worst) if worst else None
    try:
        for chunk in chunked(task.rows(rejects)):
            record, was_there = finish(chunk)
            summary.add(record)
            if lowest:
                lowest.see(chunk, record)
            seen.see(chunk.items)
            summary.n_resumed += len(chunk.rows) if was_there else 0
            if task.of_systems:
                collected += chunk.exchanges
            progress(summary.n, task.n_checked, summary.n_resumed)
    except (OSError, ValueError):  # of rows that are half written, say
        task.check_unchanged()
        raise
    task.check_unchanged(summary.n)
    summary.n_rejected = rejects.count if rejects else 0
    if not summary.n:
        raise nothing_left(rejects)
    for name in task.of_systems:
        summary.add_systems(name, task.score_systems(name, collected))
    summary.cautions, summary.worst = seen.messages(), lowest.lines() if lowest else []
    return summary


def _once(task: Task, chunk: Chunk, journal: Journal, twins: Twins) -> tuple[Record, bool]:
    """The record of a chunk: the one that an earlier run finished, else a new one."""
    if not task.of_rows:
        return unscored(chunk), False
    before = journal.next_finished()
    if before is None:
        record = twins.settle(chunk, task.score(chunk))
        journal.append(record)
        return record, False
    if before.get("fingerprint") != chunk.fingerprint():
        raise ValueError(_changed(journal, f"differs between rows {chunk.rows[0]} and {chunk.rows[-1]}"))
    return twins.settle(chunk, before), True


def _changed(journal: Journal, how: str) -> str:
    return (
        f"the input has changed since the interrupted run: it {how}; "
        f"restore the input of {journal.path.name}, or start again with --no-resume"
    )


def _write(
    task: Task, summary: Summary, stream: BinaryIO, file_format: OutputFormat, records: Iterable[Record]
) -> None:
    if task.of_rows:
        with table(stream, file_format, task.columns, task.keys, kinds=task.kinds) as write:
            for record in records:
                write(record)
        return
    # With nothing but metrics of systems, the table has one row per system.
    columns = {name: summary.tallies[name].systems or {} for name in task.of_systems}
    systems = list(dict.fromkeys(system for column in columns.values() for system in column))
    values = {name: [column.get(system) for system in systems] for name, column in columns.items()}
    with table(stream, file_format, task.of_systems, keys=("system",)) as write:
        write({"system": systems, "values": values})


@contextmanager
def _in_place(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when all of it is written."""
    with replacing(path) as hidden, hidden.open("wb") as stream:
        yield stream


_MARK = "dialeval_journal"
_FORMAT = 3
_OTHER = "is an unfinished run of another version, or damaged; start again with --no-resume"
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
            text = json.dumps(record, allow_nan=False).encode()
            self._stream.write(text + _sum_of(text) + b"\n")
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
                    raise ValueError(f"{self.path} is not an unfinished run; move it away or choose another output")
                if header is None and line.endswith(b"\n"):
                    raise ValueError(f"{self.path} {_OTHER}")
                break  # what is damaged is computed again, and so is what follows
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
            raise ValueError(f"{self.path} {_OTHER}")
        if difference := _difference(header["run"], json.loads(json.dumps(run))):
            raise ValueError(
                f"{self.path} is an unfinished run with other options ({difference}); "
                "pass the same options to continue, or --no-resume to start again"
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
            raise ValueError(f"{path} is a link, a folder or a device; finished rows are kept there, so move it away")
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
    """What a line says, if it is as it was written."""
    text, end = line[: -_SUM_BYTES - 1], line[-_SUM_BYTES - 1 :]
    if end != _sum_of(text) + b"\n":
        return None
    record: dict[str, Any] = json.loads(text)
    return record


#: At the end of each line: a file that was cut, mended or half overwritten holds lines of JSON that say too little.
_SUM_BYTES = len(b"\t00000000")


def _sum_of(text: bytes) -> bytes:
    return b"\t%08x" % zlib.crc32(text)


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
