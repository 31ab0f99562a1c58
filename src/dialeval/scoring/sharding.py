"""One run in several processes: chunks are dealt out in turn, journalled by who scored them, merged in order.

Process r of N scores chunks r, r + N, r + 2N, … into `OUTPUT.partial.r-of-N`. What a killed run
finished stays there, and the same command goes on from it. Metrics of systems add up in
`OUTPUT.partial.r-of-N.sets`, moments and counts only.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from dialeval.approaches.distribution import DistributionMetric
from dialeval.cautions import Watch
from dialeval.exchange import BadRow
from dialeval.readers import Rejects
from dialeval.scoring.journal import Journal, is_journal
from dialeval.scoring.outputs import Before, OutputFormat, replacing, table
from dialeval.scoring.run import Progress, changed, check_record, journal_path, journals_of_workers, write_systems
from dialeval.scoring.sets import SetPlan, SetState, check_mergeable, look
from dialeval.scoring.summary import Summary
from dialeval.scoring.survey import Survey
from dialeval.scoring.task import Chunk, Task, chunked, unscored
from dialeval.scoring.workers import WorkerGroup

#: Smaller chunks than a single process takes, so that few rows still give every process something to do.
SHARD_PAIRS = 512
#: Seconds between two saves of what the metrics of systems have added up.
_SAVE_EVERY = 30.0


def make_plan(task: Task, *, skip_bad: bool) -> SetPlan:
    """In the leader: look at the sets that metrics compare, and find what all shards must agree on."""
    metrics, survey = _of_sets(task), Survey()
    if not metrics:
        return SetPlan(())
    for chunk in chunked(task.rows(Rejects() if skip_bad else None), pairs=SHARD_PAIRS):
        try:
            look(metrics, survey, chunk.exchanges)
        except BadRow as error:  # a metric counts from the chunk's first row
            raise BadRow(chunk.places[int(error.row)], error.problem) from None
    return SetPlan.make(metrics, survey)


@dataclass
class ShardedRun:
    """The part of a run that one process of a group does, and, in the leader, how all parts become one."""

    task: Task
    output: Path
    workers: WorkerGroup
    plan: SetPlan
    resume: bool
    #: Whether the user said that what is there may be replaced.
    replaces: bool = False
    _state: SetState = field(default_factory=SetState)
    #: Every process reads all rows, so the leader has seen what there is to warn of.
    _watch: Watch = field(default_factory=Watch)

    def score(self, rejects: Rejects | None, progress: Progress) -> None:
        """Score this process's chunks; the journal has them when this returns."""
        with ExitStack() as stack:
            journal = stack.enter_context(self._journal(fresh=not self.resume))
            added, digest = self._saved_state()
            own, seen, saved_at = 0, hashlib.sha256(), time.monotonic()
            for number, chunk in enumerate(chunked(self.task.rows(rejects), pairs=SHARD_PAIRS)):
                if number % self.workers.size == self.workers.rank:
                    own += 1
                    seen.update(chunk.fingerprint().encode())
                    self._finish(chunk, journal)
                    if own > added:
                        self._add_to_sets(chunk)
                        if time.monotonic() - saved_at > _SAVE_EVERY:
                            self._save_state(own, seen.hexdigest())
                            saved_at = time.monotonic()
                    elif own == added and seen.hexdigest() != digest:
                        raise ValueError(changed(journal, "differs from what its sets were made of"))
                self._watch.see(chunk.items)
                progress(chunk.rows[-1] + 1)
            if journal.next_finished() is not None or own < added:
                raise ValueError(changed(journal, "ends earlier than it did"))
            self._save_state(own, seen.hexdigest())

    def merge(self, file_format: OutputFormat, n_rejected: int, before: Before | None = None) -> Summary:
        """In the leader, when all are done: one table in the order of the input, one summary."""
        summary = Summary.begin(str(self.task.level), self.task.infos)
        with ExitStack() as stack:
            journals = [stack.enter_context(self._journal(rank, fresh=False)) for rank in range(self.workers.size)]
            stream = stack.enter_context(replacing(self.output, journals[0].announce, before))
            columns, texts = self.task.columns, self.task.texts
            write = stack.enter_context(table(stream, file_format, columns, texts=texts)) if self.task.of_rows else None
            for record in in_turn([journal.finished() for journal in journals]):
                summary.add(record)
                if write is not None:
                    write(record)
            summary.n_rejected = n_rejected
            if not summary.n:
                raise ValueError(f"none of the {n_rejected} rows can be scored")
            metrics, merged = _of_sets(self.task), SetState()
            for rank in range(self.workers.size if metrics else 0):
                merged.merge(SetState.of_bytes(self._state_path(rank).read_bytes())[0])
            for name, scores in merged.scores(metrics, self.plan).items() if metrics else ():
                summary.add_systems(name, scores)
            if write is None:
                write_systems(self.task, summary, stream, file_format)
        summary.cautions = self._watch.messages()
        return summary

    def clear(self) -> None:
        """Remove the journals, when everything that belongs to the outcome is written."""
        for rank in range(self.workers.size):
            self._path(rank).unlink(missing_ok=True)
            self._state_path(rank).unlink(missing_ok=True)

    def check_leftovers(self) -> None:
        """In the leader, first: refuse the journals of another number of processes, or drop them."""
        expected = {path for rank in range(self.workers.size) for path in (self._path(rank), self._state_path(rank))}
        for path in journals_of_workers(self.output):
            if not self.resume:
                if not (_is_sums(path) if path.suffix == ".sets" else is_journal(path)):
                    raise ValueError(f"{path} is no unfinished run; move it away or choose another output")
                path.unlink()
            elif path not in expected:
                size = path.name.removesuffix(".sets").rpartition("-")[2]
                raise ValueError(
                    f"{path} is of an unfinished run of {size} processes; "
                    f"go on with {size}, or give --no-resume to begin again"
                )

    def _finish(self, chunk: Chunk, journal: Journal) -> None:
        before = journal.next_finished()
        if before is None:
            journal.append(self.task.score(chunk) if self.task.of_rows else unscored(chunk))
        else:
            check_record(before, chunk, self.task, journal)

    def _add_to_sets(self, chunk: Chunk) -> None:
        if metrics := _of_sets(self.task):
            self._state.add(metrics, self.plan, chunk.exchanges)

    def _saved_state(self) -> tuple[int, str]:
        """How many chunks the saved sums hold, and a digest of them; damaged or foreign sums begin again."""
        if self.resume and _of_sets(self.task):
            try:
                state, facts = SetState.of_bytes(self._state_path().read_bytes())
            except (OSError, SafetensorError, KeyError, ValueError):
                return 0, ""
            if facts.get("run") == self._identity():
                self._state = state
                return int(facts["chunks"]), str(facts["digest"])
        return 0, ""

    def _save_state(self, chunks: int, digest: str) -> None:
        if _of_sets(self.task):
            content = self._state.to_bytes(run=self._identity(), chunks=chunks, digest=digest)
            with replacing(self._state_path()) as stream:
                stream.write(content)

    def _identity(self) -> dict[str, Any]:
        sets = {name: dict(self.task.metrics[name].signature()) for name in self.task.of_systems}
        return {**self.task.identity(), "sets": sets, "processes": self.workers.size, "pairs": SHARD_PAIRS}

    def _journal(self, rank: int | None = None, *, fresh: bool) -> Journal:
        return Journal(self._path(rank), self._identity(), fresh=fresh, replaces=self.replaces)

    def _path(self, rank: int | None = None) -> Path:
        name = f"{journal_path(self.output).name}.{self.workers.rank if rank is None else rank}-of-{self.workers.size}"
        return self.output.with_name(name)

    def _state_path(self, rank: int | None = None) -> Path:
        return self._path(rank).with_name(f"{self._path(rank).name}.sets")


def _is_sums(path: Path) -> bool:
    """Whether a file holds a process's sums; an empty one was being written when the machine stopped."""
    try:
        content = path.read_bytes()
        if content:
            SetState.of_bytes(content)
    except (OSError, SafetensorError, KeyError, ValueError):
        return False
    return True


def in_turn(journals: list[Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Records in the order of the input: one of each journal, round and round, until one has no more."""
    while True:
        for journal in journals:
            record = next(journal, None)
            if record is None:
                return
            yield record


def _of_sets(task: Task) -> dict[str, DistributionMetric]:
    return dict(check_mergeable({name: task.metrics[name] for name in task.of_systems}))
