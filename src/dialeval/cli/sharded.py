"""`torchrun --nproc_per_node N -m dialeval score …`: one run in several processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

import typer

from dialeval.cli.errors import FAILED
from dialeval.cli.paths import RunPaths

if TYPE_CHECKING:
    from dialeval.scoring.task import Task
    from dialeval.scoring.workers import WorkerGroup


def score_together(
    workers: WorkerGroup,
    paths: RunPaths,
    file_format: Literal["jsonl", "csv", "parquet"],
    *,
    task: Task,
    check: Callable[[], int | None],
    load: Callable[[], Task],
    resume: bool,
    replaces: bool,
) -> None:
    """Score this process's part; the leader checks before, and merges and reports after.

    Rows set aside do not change the exit code here: launchers take anything but 0 for a crash.
    """
    from dialeval.scoring.workers import FailedElsewhere

    try:
        with workers:
            _score(workers, paths, file_format, task=task, check=check, load=load, resume=resume, replaces=replaces)
    except FailedElsewhere:
        raise typer.Exit(FAILED) from None


def _score(
    workers: WorkerGroup,
    paths: RunPaths,
    file_format: Literal["jsonl", "csv", "parquet"],
    *,
    task: Task,
    check: Callable[[], int | None],
    load: Callable[[], Task],
    resume: bool,
    replaces: bool,
) -> None:
    from dialeval.cli.progress import bar
    from dialeval.readers import Rejects
    from dialeval.scoring.outputs import replacing
    from dialeval.scoring.sets import SetPlan
    from dialeval.scoring.sharding import ShardedRun, make_plan

    def prepare() -> int | None:
        if paths.output is None or not task.source.can_be_read_twice:
            raise ValueError("several processes read one file and write beside another; pass files, not pipes")
        return check()

    before = None if replaces else paths.before()
    total = workers.from_leader(prepare)
    assert paths.output is not None  # the leader has looked
    loaded = load()
    skips = paths.rejects is not None
    nothing = ShardedRun(loaded, paths.output, workers, SetPlan(()), resume)
    workers.from_leader(nothing.check_leftovers)
    plan = workers.from_leader(lambda: make_plan(loaded, skip_bad=skips))
    run = ShardedRun(loaded, paths.output, workers, plan, resume, replaces)
    with ExitStack() as stack:
        rejects = Rejects() if skips else None
        if workers.leads and paths.rejects:
            rejects = Rejects(stack.enter_context(replacing(paths.rejects, before=before)))
        progress = stack.enter_context(bar(total)) if workers.leads else lambda done: None
        run.score(rejects, progress)
    workers.wait_for_all()

    def finish() -> None:
        outcome = run.merge(file_format, rejects.count if rejects else 0, before)
        if paths.summary:
            outcome.save(paths.summary, before)
        run.clear()
        for line in outcome.lines():
            typer.echo(line, err=True)
        if outcome.n_rejected:
            typer.echo(f"{outcome.n_rejected} rows were set aside in {paths.shown_rejects}", err=True)

    workers.from_leader(finish)
