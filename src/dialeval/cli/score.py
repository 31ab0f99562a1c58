"""`dialeval score`: rows in, scores out."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli import on_ray
from dialeval.cli.errors import ROWS_SET_ASIDE
from dialeval.cli.parsing import checkpoints, flowing, listed, pairs, unescaped
from dialeval.cli.paths import RunPaths
from dialeval.cli.progress import bar
from dialeval.cli.sharded import score_together

if TYPE_CHECKING:
    from dialeval.scoring.outputs import Before
    from dialeval.scoring.summary import Summary
    from dialeval.scoring.task import Task

_HELP = """Score the replies in a file, a pipe or a data set.

[bold]Rows[/bold] are JSON lines, each with a context (list of turns) and a response, and if you have them reference or
references, facts, following (the next turn), speakers, system, id:

{"context": ["Hi!", "Hello, how are you?"], "response": "Fine, thanks!", "id": "a1"}

In CSV the turns of a context stand between __eou__ (or --context-separator). Parquet files, folders written by the
datasets library and ids of data sets on the Hub are read as well.

[bold]Scores[/bold] come one to a row: row (its number in the input, from 0), id, system, and a column per metric
and aspect.

[bold]Examples[/bold]

$ dialeval score --metric density --input rows.jsonl --output scores.jsonl

$ zcat rows.jsonl.gz | dialeval score --metric density --input - --output - | jq .density

$ dialeval score -m density -i replies.csv -o scores.csv --columns response=reply,context=history

$ dialeval score -m density -i dialogues.jsonl -o scores.parquet --level dialogue --dtype bfloat16

$ dialeval score -m judge -i rows.jsonl -o scores.csv --explain

$ dialeval score -m 'python:my_module:my_function?name=mine' -i rows.jsonl -o scores.jsonl

$ dialeval score -m fbd,prd -i systems.jsonl -o values.jsonl --reference people.jsonl

$ torchrun --nproc_per_node 4 -m dialeval score -m density -i rows.jsonl -o scores.jsonl

$ dialeval score --engine ray -m density,fbd -i 's3://bucket/replies/*.parquet' -o s3://bucket/scores

[bold]Interrupted?[/bold] Finished rows stay in OUTPUT.partial; run the same command again to go on. OUTPUT itself
appears only when it is complete."""

_EPILOG = """[bold]Exit codes[/bold]: 0 done; 1 the program or the machine failed; 2 wrong usage or input; 3 done, but
rows were set aside (--skip-bad); 130 interrupted."""

_INPUT, _JUDGING, _FILES, _PLACES = "Input", "Judging", "What is written", "Where it runs"


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("score", help=flowing(_HELP), epilog=flowing(_EPILOG), no_args_is_help=True)(score)


def score(
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            help="One metric, or several separated by commas; python:package.module:function for your own.",
        ),
    ],
    input: Annotated[str, typer.Option("--input", "-i", help="File, - for standard input, data-set folder or Hub id.")],
    output: Annotated[str, typer.Option("--output", "-o", help="File, or - for standard output.")],
    format: Annotated[
        Literal["jsonl", "csv", "parquet"] | None,
        typer.Option(rich_help_panel=_FILES, help="Of the output; by default its ending tells."),
    ] = None,
    input_format: Annotated[
        Literal["jsonl", "csv", "tsv", "parquet", "dataset"] | None,
        typer.Option(
            rich_help_panel=_INPUT, help="Of the input; by default its ending tells, and a pipe holds JSON lines."
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_INPUT, help="FIELD=COLUMN where names differ; several separated by commas."),
    ] = None,
    context_separator: Annotated[
        str, typer.Option(rich_help_panel=_INPUT, help="Between the turns of a CSV cell; \\n and \\t are understood.")
    ] = "__eou__",
    split: Annotated[str | None, typer.Option(rich_help_panel=_INPUT, help="Split of a data set.")] = None,
    subset: Annotated[str | None, typer.Option(rich_help_panel=_INPUT, help="Configuration of a data set.")] = None,
    judge_role: Annotated[
        str,
        typer.Option(rich_help_panel=_INPUT, help="Of chat logs (messages, conversations): whose turns are judged."),
    ] = "assistant",
    system_as_facts: Annotated[
        bool,
        typer.Option("--system-as-facts", rich_help_panel=_INPUT, help="Of chat logs: system prompts count as facts."),
    ] = False,
    level: Annotated[
        Literal["turn", "dialogue"],
        typer.Option(rich_help_panel=_JUDGING, help="Judge responses, or whole dialogues (rows with 'dialogue')."),
    ] = "turn",
    scale: Annotated[
        Literal["native", "human_percentile"],
        typer.Option(
            rich_help_panel=_JUDGING,
            help="The metric's own values, or the share of human replies that score lower, where it has that scale.",
        ),
    ] = "native",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            rich_help_panel=_JUDGING,
            help="Add METRIC.low, METRIC.high (a 90 % interval) and METRIC.why (what moved the value), from judge.",
        ),
    ] = False,
    empty: Annotated[
        Literal["error", "score"],
        typer.Option(rich_help_panel=_INPUT, help="Refuse blank responses and contexts, or score and count them."),
    ] = "error",
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_JUDGING,
            help="Folder, name or Hub id of weights; with several metrics METRIC=CHECKPOINT, repeatable.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_JUDGING,
            help="For metrics of systems, in place of the rows' references: a file of rows whose responses people "
            "wrote, a saved human side, or a checkpoint that brings one.",
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(rich_help_panel=_JUDGING, help="float32, bfloat16, int8 or auto.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(rich_help_panel=_JUDGING, help="cpu, cuda, cuda:1, ...; chosen by itself if left out.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_JUDGING, help="Tokens that pass the model at once.")
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=8, rich_help_panel=_JUDGING, help="Tokens that are read of a row, in place of the metric's own."
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", rich_help_panel=_FILES, help="Set bad rows aside and go on.")
    ] = False,
    rejects: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_FILES, help="Where bad rows go, by default OUTPUT.rejects.jsonl; implies --skip-bad."
        ),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(rich_help_panel=_FILES, help="Write the summary as JSON, too.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", rich_help_panel=_FILES, help="Replace files that are there.")
    ] = False,
    resume: Annotated[
        bool, typer.Option(rich_help_panel=_FILES, help="Go on with an interrupted run, or begin again.")
    ] = True,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(
            rich_help_panel=_PLACES, help="This machine, or the Ray cluster of RAY_ADDRESS (else a local Ray)."
        ),
    ] = "local",
    actors: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=_PLACES,
            help="Processes of Ray that hold models; by default one per GPU or two cores.",
        ),
    ] = None,
) -> None:
    """Check the rows, load the metrics, score; the help text above is for users."""
    from dataclasses import replace

    from dialeval.metric import Level
    from dialeval.readers import Chats, Source
    from dialeval.registry import check_options, load_metrics, metric_class, registered
    from dialeval.scoring.outputs import output_format
    from dialeval.scoring.task import Task, without_references
    from dialeval.scoring.workers import WorkerGroup

    names = list(dict.fromkeys(registered(name) for name in listed(metric)))
    if not names:
        raise ValueError("no metric is named; `dialeval info` lists them")
    if any(name.partition(":")[0] == "llm" for name in names):
        raise ValueError("language models have a command of their own: dialeval llm-score")
    given = {
        "dtype": dtype,
        "device": device,
        "batch_tokens": batch_tokens,
        "max_length": max_length,
        "reference": reference,
    }
    options = {option: value for option, value in given.items() if value is not None}
    weights = checkpoints(checkpoint, names)
    if engine == "ray":
        only_local = {
            "input-format": None if input_format == "parquet" else input_format,
            "format": format,
            "split": split,
            "subset": subset,
            "rejects": rejects,
            "summary": summary,
        }
        on_ray.check_given({**only_local, "overwrite": overwrite})
        check_options(names, options, weights, scale)
        judging = {"level": Level(level), "scale": scale, "empty": empty, "explain": explain, **options}
        mapped = pairs(columns)
        on_ray.score_on_ray(
            input,
            output,
            names,
            bar,
            columns=mapped,
            checkpoints=weights,
            skip_bad=skip_bad,
            resume=resume,
            actors=actors,
            **judging,
        )
        return
    if actors is not None:
        raise ValueError("--actors is for --engine ray; for several processes on this machine use torchrun")
    infos = {name: metric_class(name)[0].info_with(**options) for name in names}
    if reference is not None:
        infos = {name: without_references(info) for name, info in infos.items()}
    chats = Chats(judge_role.strip().lower(), system_as_facts)
    source = Source(input, input_format, pairs(columns), unescaped(context_separator), split, subset, chats)
    task = Task(source, infos, Level(level), scale, empty, explain=explain)
    file_format = output_format(output, format)
    paths = RunPaths.choose(
        input,
        output,
        skip_bad=skip_bad,
        rejects=rejects,
        summary=summary,
        needs_summary=bool(task.of_systems),
        reads={
            "--reference": reference,
            **{f"--checkpoint of {name}": place for name, place in weights.items()},
        },
    )

    def check() -> int | None:
        """Everything that can be wrong comes to light before weights are read, and long before hours are spent."""
        paths.check(overwrite=overwrite)
        check_options(names, options, weights, scale)
        return task.look_through(skip_bad=paths.rejects is not None) if source.can_be_read_twice else None

    def load() -> Task:
        return replace(task, metrics=load_metrics(names, options, weights))

    if (workers := WorkerGroup.from_environment()) is not None:
        score_together(
            workers, paths, file_format, check=check, load=load, task=task, resume=resume, replaces=overwrite
        )
        return
    # Whatever comes there later is not of this run.
    before = None if overwrite else paths.before()
    total = check()
    outcome = run_task(load(), paths, file_format, resume=resume, before=before, total=total)
    if outcome.n_rejected:
        raise typer.Exit(ROWS_SET_ASIDE)


def run_task(
    task: Task,
    paths: RunPaths,
    file_format: Literal["jsonl", "csv", "parquet"],
    *,
    resume: bool,
    before: Before | None,
    total: int | None,
) -> Summary:
    """Score all rows, write the table and say what came of it."""
    from dialeval.readers import Rejects
    from dialeval.scoring.journal import begun
    from dialeval.scoring.outputs import replacing
    from dialeval.scoring.run import open_journal, score_to_file, score_to_stream

    with ExitStack() as stack:
        journal = None
        if paths.output is not None:
            # Before anything else is opened: a second process must not touch the files of the first.
            journal = held = stack.enter_context(
                open_journal(task, paths.output, resume=resume, replaces=before is None)
            )
            # Behind everything that is written below, the file of bad rows included, and before it is released.
            stack.push(lambda kind, *_: held.drop() if kind is None else None)
        rejects = Rejects(stack.enter_context(replacing(paths.rejects, before=before))) if paths.rejects else None
        progress = stack.enter_context(bar(total))
        if paths.output is None or journal is None:
            if sys.stdout is None and paths.stream is None:  # the shell's >&-
                raise ValueError("standard output is closed; name a file, or open it")
            stream = sys.stdout.buffer if paths.stream is None else stack.enter_context(paths.stream.open("wb"))
            outcome = score_to_stream(task, stream, file_format, rejects=rejects, progress=progress)
        else:
            try:
                outcome = score_to_file(
                    task, paths.output, file_format, journal=journal, rejects=rejects, progress=progress, before=before
                )
            except KeyboardInterrupt:
                if begun(journal.path) is not None:
                    kept = f"finished rows are kept in {journal.path}; run the same command again to go on"
                else:
                    kept = "no chunk of rows was finished yet, so nothing is kept"
                typer.echo(kept, err=True)
                raise
        if paths.summary:
            outcome.save(paths.summary, before)
    for line in outcome.lines():
        typer.echo(line, err=True)
    if outcome.n_rejected:
        typer.echo(f"{outcome.n_rejected} rows were set aside in {paths.shown_rejects}", err=True)
    return outcome
