"""`dialeval tune`: a judge that learns from your own ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.parsing import flowing, listed, pairs, unescaped

_INPUT, _LEARNING = "Input", "Learning"

_HELP = """Fit the judge to replies that your people rated, or to pairs of replies that they compared.

[bold]Rows[/bold] are those of `dialeval score`, each with a rating (a number on any scale, higher is better) or with
ratings (a list, one of each rater; in CSV 4;5;3). Or each has response_a, response_b and preferred: a, b or tie.
Thirty to ten contexts are the least, a hundred are advised, and 5,000 take minutes.

[bold]What happens[/bold]: the weights of the judge's features begin as they are and move as far as cross-validation by
context justifies. Agreement on contexts held out is printed before and after, with intervals; beside it how well one of
your raters predicts the others, if there are several of a reply. Where nothing is gained, the old weights are kept.

[bold]Teacher[/bold]: with --teacher the ratings are a language model's scores. Ratings of people, which some rows may
have, are then what the outcome is held against. What the teacher gets wrong again and again is learned, too.

[bold]Output[/bold]: an ordinary checkpoint folder with a card, which every command takes as --checkpoint. It holds
counts and figures of your rows, no text.

[bold]Examples[/bold]

$ dialeval tune rated.jsonl --out mine

$ dialeval score --metric judge --checkpoint mine --input rows.jsonl --output scores.jsonl

$ dialeval tune rated.csv --columns response=reply,rating=stars --deep --human our-agents.jsonl --out mine

$ dialeval score -m llm --model gpt-4o-mini -i rows.jsonl -o scores.jsonl

$ dialeval tune rows.jsonl --teacher scores.jsonl --out mine"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("tune", help=flowing(_HELP), no_args_is_help=True)(tune)


def tune(
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="File, - for standard input, data-set folder or Hub id.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make; it appears when it is complete.")],
    teacher: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_LEARNING,
            help="Scores of these rows by a language model, as dialeval score writes them, to learn from in place of "
            "ratings.",
        ),
    ] = None,
    teacher_column: Annotated[
        str | None,
        typer.Option(rich_help_panel=_LEARNING, help="Which of several columns of scores is the teacher's."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(rich_help_panel=_LEARNING, help="Judge to begin with: folder, name or Hub id; else the embedded."),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", rich_help_panel=_LEARNING, help="Train the adapter, too; kept if it helps held-out contexts."
        ),
    ] = False,
    human: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_LEARNING, help="Rows whose replies people wrote, for the human percentile of new values."
        ),
    ] = None,
    contaminated_by: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_LEARNING, help="Benchmarks that the rows come from; results will be marked."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=_LEARNING, help="Of every random draw.")] = 0,
    resamples: Annotated[
        int, typer.Option(min=100, rich_help_panel=_LEARNING, help="Of the bootstrap behind the intervals.")
    ] = 2000,
    format: Annotated[
        Literal["jsonl", "csv", "tsv", "parquet", "dataset"] | None,
        typer.Option(rich_help_panel=_INPUT, help="Of the rows; by default the ending tells."),
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
    empty: Annotated[
        Literal["error", "score"],
        typer.Option(rich_help_panel=_INPUT, help="Refuse blank responses and contexts, or take them as they are."),
    ] = "error",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...; chosen by itself if left out.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens that pass the model at once.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the checkpoint that is at --out.")] = False,
) -> None:
    """Read, fit, say what was found, and where it is."""

    from dialeval.readers import Source
    from dialeval.tuning import tune as tune_judge

    separator = unescaped(context_separator)
    found = tune_judge(
        Source(rows, format, pairs(columns), separator, split, subset),
        out=out,
        teacher=teacher,
        teacher_column=teacher_column,
        checkpoint=checkpoint,
        deep=deep,
        human=None if human is None else Source(human, separator=separator),
        empty=empty,
        contaminated_by=listed(contaminated_by),
        seed=seed,
        resamples=resamples,
        device=device,
        batch_tokens=batch_tokens,
        overwrite=overwrite,
        progress=True,
    )
    for line in found.lines():
        typer.echo(line)
    typer.echo(f"{found.folder}: dialeval score --metric judge --checkpoint {found.folder} ...")
