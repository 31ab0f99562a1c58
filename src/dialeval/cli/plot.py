"""`dialeval plot`: pictures of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import flowing, say

_HELP = """Plot scores. `dialeval agreement` plots agreement.

[bold]Examples[/bold]

$ dialeval plot scores scores.jsonl --input rows.jsonl --out plots/"""

app = typer.Typer(help=flowing(_HELP), no_args_is_help=True, rich_markup_mode="rich")


@app.command(cls=reading.ReadsRows)
def scores(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `dialeval score` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")],
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Default: the first metric.")] = None,
    input: Annotated[str | None, typer.Option("--input", "-i", help="The rows, for their lengths and turns.")] = None,
    level: Annotated[
        Literal["turn", "dialogue"], typer.Option(help="Whether replies were scored, or whole conversations.")
    ] = "turn",
    formats: Annotated[str, typer.Option(help="png, svg, or png,svg.")] = "png",
) -> None:
    """Your own scores: a histogram by system, the aspects, and value against length and turn number."""
    from dialeval.io.files import safe_name
    from dialeval.io.places import check_places
    from dialeval.readers import Rejects
    from dialeval.reports.output import plot_formats
    from dialeval.reports.plots.figures import save
    from dialeval.reports.plots.own_scores import metric_of, read_table
    from dialeval.reports.plots.own_scores import scores as draw

    read = reading.reader(context)
    name = file.name.split(".")[0]
    picture, forms = out / safe_name(f"scores_{name}"), plot_formats(formats)
    check_places({f"{form} of --out": picture.with_name(f"{picture.name}.{form}") for form in forms}, [file, input])
    table = read_table(file)
    chosen = metric_of(table, metric)
    rows: dict[int, Any] | None = None
    if input is not None:  # bad rows are passed over: `score` may have set them aside
        source = read(input)
        items = (source.dialogues if level == "dialogue" else source.exchanges)(empty="score", skip_bad=Rejects())
        rows = {row.number: item for row, item in items}
    for path in save(draw(table, chosen, rows, title=name), picture, forms):
        say(str(path))
