"""`dialeval score` and `score-ray`, `show` and `judge`: rows of files, or replies on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli import ROWS_SET_ASIDE
from dialeval.cli import options as reading
from dialeval.cli.options import checkpoints, in_panel, metrics_or_judge, say

if TYPE_CHECKING:
    from dialeval.scoring import Summary


_judging, _files = map(in_panel, ("Judging", "Output"))


ScaleName = Annotated[
    Literal["native", "human_percentile"],
    _judging(help="The metric's own scale, or the share of human replies that score lower."),
]
Worst = Annotated[int, _judging(min=0, help="Print the N worst rows, with aspects and reasons.")]
Checkpoint = Annotated[
    list[str] | None, _judging(help="Folder, name or Hub id; with several metrics METRIC=CHECKPOINT, repeatable.")
]
Input = Annotated[str, typer.Option("--input", "-i", help="File, - for standard input, data-set folder or Hub id.")]
Output = Annotated[str, typer.Option("--output", "-o", help="File (.jsonl, .csv, .parquet), or - for JSON lines.")]
Texts = Annotated[Literal["none", "reply", "all"], _files(help="Texts beside the values: all is replies and turns.")]
SkipBad = Annotated[bool, _files("--skip-bad", help="Set bad rows aside in OUTPUT.rejects.jsonl.")]
Overwrite = Annotated[bool, _files("--overwrite", help="Replace existing files.")]
Resume = Annotated[bool, _files(help="Continue an interrupted run, or start again.")]


def score(
    context: typer.Context,
    input: Input,
    output: Output,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Names, separated by commas, or python:package.module:function; default: judge."
        ),
    ] = None,
    empty: reading.Empty = "error",
    level: Annotated[Literal["turn", "dialogue"], _judging(help="Judge replies, or whole dialogues.")] = "turn",
    per_turn: Annotated[bool, _judging("--per-turn", help="Also write the value of every turn of a dialogue.")] = False,
    scale: ScaleName = "native",
    explain: Annotated[
        Literal["no", "short", "full"], _judging(help="Add the judge's 90 % interval and reason; full: with numbers.")
    ] = "no",
    flag: Annotated[list[str] | None, _judging(help="Mark rows in a column flags: relevant<0.2; repeatable.")] = None,
    worst: Worst = 0,
    texts: Texts = "reply",
    checkpoint: Checkpoint = None,
    reference: Annotated[
        str | None, _judging(help="For fbd and prd: human-written rows, or a saved human side.")
    ] = None,
    dtype: Annotated[str | None, _judging(help="float32, bfloat16, int8 or auto.")] = None,
    device: Annotated[str | None, _judging(help="cpu, cuda, cuda:1, ...")] = None,
    max_length: Annotated[int | None, _judging(min=8, help="Maximum tokens per row.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    resume: Resume = True,
) -> None:
    """Score the replies in a file, a pipe or a data set.

    [bold]Rows[/bold] are JSON lines, each with a context (list of turns) and a response, and if you have them reference
    or references, facts, following (the next turn), speakers, system, id:

    {"context": ["Hi!", "Hello, how are you?"], "response": "Fine, thanks!", "id": "a1"}

    In CSV the turns of a context are separated by __eou__ (--context-separator). Excel, Parquet, folders of the
    datasets library and ids of data sets on the Hub are read, too.

    [bold]Scores[/bold], one line per row: row (its number, from 0), id, system, language (of the reply, if detected),
    the reply (--texts: all turns, too, or none), and a column per metric and aspect.

    [bold]Examples[/bold]

    $ dialeval score --input rows.jsonl --output scores.jsonl

    $ zcat rows.jsonl.gz | dialeval score --metric deb --input - --output - | jq .deb

    $ dialeval score -m density -i replies.csv -o scores.csv --columns response=reply,context=history

    $ dialeval score -i dialogues.jsonl -o scores.parquet --level dialogue --per-turn --flag 'satisfied<0.05'

    $ dialeval score -i rows.jsonl -o scores.csv --explain short --worst 10 --flag 'relevant<0.2'

    $ dialeval score -m 'python:my_module:my_function?name=mine' -i rows.jsonl -o scores.jsonl

    $ dialeval score -m fbd,prd -i systems.jsonl -o values.jsonl --reference people.jsonl

    [bold]Interrupted?[/bold] Run the same command again: finished rows are in OUTPUT.partial. OUTPUT appears when it is
    complete.

    [bold]Exit codes[/bold]: 0 done; 1 the program or the machine failed; 2 wrong usage or input; 3 done, but rows were
    set aside (--skip-bad); 130 interrupted.
    """
    from dialeval.io.files import progress_counter
    from dialeval.registry import check_options, load_metrics, metric_class, registered
    from dialeval.registry.interface import Level
    from dialeval.scoring import Task, score_file
    from dialeval.scoring.task import texts_beside, without_references

    source = reading.reader(context)(input)
    given = {"dtype": dtype, "device": device, "max_length": max_length, "reference": reference}
    given["reasons"] = "full" if explain == "full" else None
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    beside = texts_beside(Level(level), texts)
    names = list(dict.fromkeys(registered(name) for name in metrics_or_judge(metric)))
    if any(name.partition(":")[0] == "llm" for name in names):
        raise ValueError("language models have a command of their own: dialeval llm-score")
    weights = checkpoints(checkpoint, names)
    check_options(names, options, weights, scale)
    infos = {name: metric_class(name)[0].info_with(**options) for name in names}
    if "reference" in options:
        infos = {name: without_references(info) for name, info in infos.items()}
    task = Task(
        source, infos, Level(level), scale, empty, explain=explain, per_turn=per_turn, flag=flag or [], texts=beside
    )
    with progress_counter("scoring", "reading and loading") as progress:
        summary = score_file(
            task, output, lambda: load_metrics(names, options, weights),
            skip_bad=skip_bad, overwrite=overwrite, resume=resume, progress=progress, worst=worst,
            reads=tuple(filter(None, (reference, *weights.values()))),
        )  # fmt: skip
    print_summary(summary, output)
    if summary.n_rejected:
        raise typer.Exit(ROWS_SET_ASIDE)


def print_summary(summary: Summary, output: str) -> None:
    """What a run adds up to, on standard error."""
    for line in summary.lines():
        say(line, err=True)
    if summary.n_rejected:
        say(f"{summary.n_rejected} rows were set aside in {output}.rejects.jsonl", err=True)


def show(
    context: typer.Context,
    input: Annotated[str, typer.Argument(metavar="FILE", help="File, data-set folder or Hub id.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 3,
    level: Annotated[Literal["turn", "dialogue"], typer.Option(help="Read replies, or whole dialogues.")] = "turn",
) -> None:
    """Show how the first rows of a file are read, before anything is scored.

    Each row is shown as a chat: what was said before, the reply that is judged (>), what was said then, references and
    facts. On standard error stands what was guessed: columns, who is judged, what was passed over. It takes the options
    of reading that `dialeval score` has.

    [bold]Examples[/bold]

    $ dialeval show traces.jsonl

    $ dialeval show export.zip --rows 5 --judge-role ShopBot

    $ dialeval show log.csv --columns response=outputs.messages[-1].content,message=inputs.question

    $ dialeval show runs.json --columns messages=outputs.messages --level dialogue
    """
    read = reading.reader(context)
    say(*read(input).shown(rows, level=level))


def judge(
    context: Annotated[list[str], typer.Argument(metavar="TURN...", help="The turns before the reply, oldest first.")],
    reply: Annotated[list[str], typer.Option("--reply", "-r", help="A reply; repeat it to compare several.")],
    fact: Annotated[list[str] | None, typer.Option("--fact", help="A fact the reply should know; repeatable.")] = None,
    following: Annotated[str | None, typer.Option(help="What the other side said next, if you know it.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Folder, name or Hub id; default: the embedded judge.")] = None,
) -> None:
    """Judge a reply, or compare several, and say why.

    [bold]Examples[/bold]

    $ dialeval judge "How was your trip?" "Great, but I lost my suitcase." --reply "Oh no! Did you find it?"

    $ dialeval judge "Do you have a pet?" --reply "Yes, a dog." --reply "It will rain." --fact "I have a dog."

    $ dialeval score --help judges files.
    """
    from dialeval.io.tables import show
    from dialeval.judge.verdicts import compare_replies
    from dialeval.registry import load

    comparison = compare_replies(
        load("judge", checkpoint=checkpoint), context, reply, facts=fact or (), following=following
    )
    say(comparison.sentence)
    scores = comparison.scores
    show([comparison.table])
    for warning in scores.warnings:
        say(f"warning: {warning}", err=True)
    for row in comparison.order if len(comparison.order) > 1 else ():
        say(f"{comparison.names[row]}: {scores.explain(row)}")


def score_ray(
    context: typer.Context,
    input: Annotated[str, typer.Option("--input", "-i", help="File or folder of .parquet, .jsonl or .csv.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Names, separated by commas; default: judge.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Folder for Parquet files.")] = None,
    checkpoint: Annotated[list[str] | None, typer.Option(help="Weights; METRIC=CHECKPOINT with several.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or auto.")] = None,
    actors: Annotated[
        int | None, typer.Option(min=1, help="Number of model processes; default: one per GPU or per two cores.")
    ] = None,
) -> None:
    """Score files on the Ray cluster of RAY_ADDRESS, else on all processors and GPUs of this machine.

    Files and folders can be anywhere that Ray Data reads and writes (s3://, gs://, local). Scores are Parquet files
    with the columns of the rows; values of fbd and prd are printed. An interrupted run is not resumed.

    [bold]Example[/bold]

    $ dialeval score-ray -m judge,deb -i 's3://bucket/replies/' -o s3://bucket/scores
    """
    from dialeval.io.places import check_new_folder
    from dialeval.registry import metric_class, registered
    from dialeval.registry.interface import Level
    from dialeval.scoring.on_ray import read_dataset, score_dataset, score_systems

    read = reading.reader(context)
    names = [registered(name) for name in metrics_or_judge(metric)]
    options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    weights, source = checkpoints(checkpoint, names), read(input)
    if source.split is not None or source.subset is not None:
        raise ValueError("score-ray reads files, which have no splits or subsets; leave those options out")
    sets = [name for name in names if metric_class(name)[0].info.level is Level.SYSTEM]
    of_rows = [name for name in names if name not in sets]
    if of_rows and output is None:
        raise ValueError("scores of rows need a folder; pass --output")
    if output is not None and "://" not in output:
        check_new_folder(Path(output), [] if "://" in input else [input])
    dataset = read_dataset(input)
    if of_rows and output is not None:
        score_dataset(
            dataset, of_rows, source=source, checkpoints=weights, actors=actors, **options
        ).write_parquet(output)  # fmt: skip
        say(f"scores: {output}", err=True)
    for name in sets:
        checkpoint_of = weights.get(name)
        scores = score_systems(dataset, name, source=source, checkpoint=checkpoint_of, actors=actors, **options)
        for system, value in zip(scores.ids or ("all",), scores.values, strict=True):
            say(f"{name}\t{system or 'all'}\t{value:.6g}")
