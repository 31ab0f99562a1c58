"""`dialeval score`: rows in, scores out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli import ROWS_SET_ASIDE
from dialeval.cli import options as reading
from dialeval.cli.options import checkpoints, in_panel, metrics_or_judge, say

if TYPE_CHECKING:
    from dialeval.core.exchange import EmptyPolicy
    from dialeval.readers import Source
    from dialeval.registry.metric import Scale
    from dialeval.scoring import Summary
    from dialeval.scoring.task import Explain

HELP = """Score the replies in a file, a pipe or a data set.

[bold]Rows[/bold] are JSON lines, each with a context (list of turns) and a response, and if you have them reference or
references, facts, following (the next turn), speakers, system, id:

{"context": ["Hi!", "Hello, how are you?"], "response": "Fine, thanks!", "id": "a1"}

In CSV the turns of a context are separated by __eou__ (--context-separator). Excel, Parquet, folders of the datasets
library and ids of data sets on the Hub are read, too.

[bold]Scores[/bold], one line per row: row (its number, from 0), id, system, language (of the reply, if detected), the
reply (--texts: all turns, too, or none), and a column per metric and aspect.

[bold]Examples[/bold]

$ dialeval score --input rows.jsonl --output scores.jsonl

$ zcat rows.jsonl.gz | dialeval score --metric deb --input - --output - | jq .deb

$ dialeval score -m density -i replies.csv -o scores.csv --columns response=reply,context=history

$ dialeval score -i dialogues.jsonl -o scores.parquet --level dialogue --per-turn --flag 'satisfied<0.05'

$ dialeval score -i rows.jsonl -o scores.csv --explain short --worst 10 --flag 'relevant<0.2'

$ dialeval score -m 'python:my_module:my_function?name=mine' -i rows.jsonl -o scores.jsonl

$ dialeval score -m fbd,prd -i systems.jsonl -o values.jsonl --reference people.jsonl

[bold]Interrupted?[/bold] Run the same command again: finished rows are in OUTPUT.partial. OUTPUT appears when it is
complete."""

EPILOG = """[bold]Exit codes[/bold]: 0 done; 1 the program or the machine failed; 2 wrong usage or input; 3 done, but
rows were set aside (--skip-bad); 130 interrupted."""

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
    input: Input,
    output: Output,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Names, separated by commas, or python:package.module:function; default: judge."
        ),
    ] = None,
    *,
    read: reading.Read,
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
    """Check the rows, load the metrics, score."""
    from dialeval.registry.metric import Level
    from dialeval.scoring.task import texts_beside

    source = read(input)
    given = {"dtype": dtype, "device": device, "max_length": max_length, "reference": reference}
    given["reasons"] = "full" if explain == "full" else None
    options = {option: value for option, value in given.items() if value is not None}
    run(
        metrics_or_judge(metric), checkpoint, options, source, output,
        beside=texts_beside(Level(level), texts),
        level=level, per_turn=per_turn, scale=scale, empty=empty, explain=explain, flag=flag or [], worst=worst,
        skip_bad=skip_bad, overwrite=overwrite, resume=resume,
    )  # fmt: skip


def run(
    metrics: list[str], checkpoint: list[str] | None, options: dict[str, Any], source: Source, output: str, *,
    beside: Sequence[str], level: str, per_turn: bool, scale: Scale, empty: EmptyPolicy, explain: Explain,
    flag: list[str], worst: int, skip_bad: bool, overwrite: bool, resume: bool,
) -> None:  # fmt: skip
    """Score with what the options say, and print what it adds up to."""
    from dialeval.io.files import progress_counter
    from dialeval.registry import check_options, load_metrics, metric_class, registered
    from dialeval.registry.metric import Level
    from dialeval.scoring import Task, score_file
    from dialeval.scoring.task import without_references

    names = list(dict.fromkeys(registered(name) for name in metrics))
    if any(name.partition(":")[0] == "llm" for name in names):
        raise ValueError("language models have a command of their own: dialeval llm-score")
    weights = checkpoints(checkpoint, names)
    check_options(names, options, weights, scale)
    infos = {name: metric_class(name)[0].info_with(**options) for name in names}
    if "reference" in options:
        infos = {name: without_references(info) for name, info in infos.items()}
    task = Task(source, infos, Level(level), scale, empty, explain=explain, per_turn=per_turn, flag=flag, texts=beside)
    with progress_counter("scoring", "reading and loading") as progress:
        summary = score_file(
            task, output, lambda: load_metrics(names, options, weights),
            skip_bad=skip_bad, overwrite=overwrite, resume=resume, progress=progress, worst=worst,
            reads=tuple(filter(None, (options.get("reference"), *weights.values()))),
        )  # fmt: skip
    show(summary, output)
    if summary.n_rejected:
        raise typer.Exit(ROWS_SET_ASIDE)


def show(summary: Summary, output: str) -> None:
    """What a run adds up to, on standard error."""
    for line in summary.lines():
        say(line, err=True)
    if summary.n_rejected:
        say(f"{summary.n_rejected} rows were set aside in {output}.rejects.jsonl", err=True)
