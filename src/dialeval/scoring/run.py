"""From a source of rows to a table of scores."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dialeval.cautions import Watch
from dialeval.exchange import Exchange
from dialeval.readers import Rejects
from dialeval.scoring.journal import Journal
from dialeval.scoring.outputs import Before, OutputFormat, Record, replacing, table
from dialeval.scoring.records import could_be_ours
from dialeval.scoring.summary import Summary
from dialeval.scoring.task import Chunk, Task, chunked, unscored

#: Called with the number of rows done so far.
Progress = Callable[[int], None]


def open_journal(task: Task, output: Path, *, resume: bool, replaces: bool = False) -> Journal:
    """Take hold of the output: whoever comes second is refused before it has touched any file."""
    return Journal(journal_path(output), task.identity(), fresh=not resume, replaces=replaces)


def score_to_file(
    task: Task,
    output: Path,
    file_format: OutputFormat,
    *,
    journal: Journal,
    rejects: Rejects | None,
    progress: Progress,
    before: Before | None = None,
) -> Summary:
    """Score into a file that appears when all is done; until then finished chunks are kept in the journal beside it.

    The journal of those chunks is left for the caller to remove when whatever else belongs to the outcome
    is written, so that a run killed before that is finished by running it again.
    """
    if not task.of_rows:
        summary = _score_chunks(task, rejects, progress, lambda chunk: (unscored(chunk), False))
        with replacing(output, before=before) as stream:
            write_systems(task, summary, stream, file_format)
        return summary
    summary = _score_chunks(task, rejects, progress, lambda chunk: _once(task, chunk, journal))
    if journal.next_finished() is not None:
        raise ValueError(changed(journal, "ends earlier than it did"))
    with (
        replacing(output, journal.announce, before) as stream,
        table(stream, file_format, task.columns, texts=task.texts) as write,
    ):
        for record in journal.finished():
            write(record)
    return summary


def score_to_stream(
    task: Task, stream: BinaryIO, file_format: OutputFormat, *, rejects: Rejects | None, progress: Progress
) -> Summary:
    """Score into a pipe, each chunk as soon as it is done."""
    if not task.of_rows:
        summary = _score_chunks(task, rejects, progress, lambda chunk: (unscored(chunk), False))
        write_systems(task, summary, stream, file_format)
        return summary
    with table(stream, file_format, task.columns, texts=task.texts) as write:

        def finish(chunk: Chunk) -> tuple[Record, bool]:
            record = task.score(chunk)
            write(record)
            stream.flush()
            return record, False

        return _score_chunks(task, rejects, progress, finish)


def journal_path(output: Path) -> Path:
    """Where the finished chunks of an unfinished run lie."""
    return output.with_name(output.name + ".partial")


def journals_of_workers(output: Path) -> list[Path]:
    """What an unfinished run in several processes left beside its output."""
    return sorted(output.parent.glob(f"{glob.escape(journal_path(output).name)}.*-of-*"))


def _score_chunks(
    task: Task, rejects: Rejects | None, progress: Progress, finish: Callable[[Chunk], tuple[Record, bool]]
) -> Summary:
    """Take every chunk to its record (and whether that record was there before), and add them up."""
    summary = Summary.begin(str(task.level), task.infos)
    collected: list[Exchange] = []
    watch = Watch()
    for chunk in chunked(task.rows(rejects)):
        record, was_there = finish(chunk)
        summary.add(record)
        watch.see(chunk.items)
        summary.n_resumed += len(chunk.rows) if was_there else 0
        if task.of_systems:
            collected += chunk.exchanges
        progress(summary.n)
    summary.n_rejected = rejects.count if rejects else 0
    if not summary.n:
        raise ValueError(f"none of the {summary.n_rejected} rows can be scored")
    for name in task.of_systems:
        summary.add_systems(name, task.score_systems(name, collected))
    summary.cautions = watch.messages()
    return summary


def _once(task: Task, chunk: Chunk, journal: Journal) -> tuple[Record, bool]:
    before = journal.next_finished()
    if before is None:
        record = task.score(chunk)
        journal.append(record)
        return record, False
    check_record(before, chunk, task, journal)
    return before, True


def check_record(record: Record, chunk: Chunk, task: Task, journal: Journal) -> None:
    """Refuse what an earlier run finished if it is of another input, or no run could have written it."""
    if record.get("fingerprint") != chunk.fingerprint():
        raise ValueError(changed(journal, f"differs between rows {chunk.rows[0]} and {chunk.rows[-1]}"))
    if not could_be_ours(record, chunk, task):
        raise ValueError(
            f"{journal.path.name} is damaged where it holds rows {chunk.rows[0]} to {chunk.rows[-1]}; "
            "begin again with --no-resume"
        )


def changed(journal: Journal, how: str) -> str:
    """What to say when a run that goes on finds another input."""
    return (
        f"the input is not that of the interrupted run: it {how}; "
        f"bring {journal.path.name} its input back, or begin again with --no-resume"
    )


def write_systems(task: Task, summary: Summary, stream: BinaryIO, file_format: OutputFormat) -> None:
    """With nothing but metrics of systems, the table has one row per system."""
    columns = {name: summary.tallies[name].systems or {} for name in task.of_systems}
    systems = list(dict.fromkeys(system for column in columns.values() for system in column))
    values = {name: [column.get(system) for system in systems] for name, column in columns.items()}
    with table(stream, file_format, task.of_systems, keys=("system",)) as write:
        write({"system": systems, "values": values})
