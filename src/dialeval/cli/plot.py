"""`dialeval plot`: pictures of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import flowing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")]
Formats = Annotated[str, typer.Option(help="png, svg, or png,svg.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]

_HELP = """Plot scores. `dialeval agreement` plots agreement.

[bold]Examples[/bold]

$ dialeval plot scores scores.jsonl --input rows.jsonl --out plots/

$ dialeval plot prd --input replies.jsonl --out plots/"""

app = typer.Typer(help=flowing(_HELP), no_args_is_help=True, rich_markup_mode="rich")


def add_to(parent: typer.Typer) -> None:
    """Add the sub-commands to the `dialeval` command."""
    parent.add_typer(app, name="plot")


@app.command()
@reading.reads_rows
def prd(
    input: Annotated[str, typer.Option("--input", "-i", help="Rows with systems, as for `dialeval score`.")],
    out: Out,
    reference: Annotated[
        str | None, typer.Option(help="Human-written rows, or a saved human side, instead of the references.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder or name of a pretrained encoder.")] = None,
    clusters: Annotated[int, typer.Option(min=1, help="Number of clusters.")] = 20,
    formats: Formats = "png",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    *,
    read: reading.Read,
) -> None:
    """Precision and recall of each system's replies against human ones, as PRD weighs them.

    [bold]Example[/bold]

      dialeval plot prd --input replies.jsonl --out plots/
    """
    from dialeval.plots.prd import precision_recall
    from dialeval.registry import load

    source = read(input)
    rows = [exchange for _, exchange in source.exchanges(needs=() if reference else ("references",))]
    metric = load("prd", checkpoint=encoder, reference=reference, clusters=clusters, seed=seed, resamples=0)
    scores = metric.score_exchanges(rows)
    name = "standard_input" if input == "-" else Path(input).name.split(".")[0]
    _save(precision_recall(scores, title=name), f"prd_{name}", out, formats)


@app.command()
@reading.reads_rows
def scores(
    file: Annotated[Path, typer.Argument(help="What `dialeval score` wrote.")],
    out: Out,
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Default: the first metric.")] = None,
    input: Annotated[str | None, typer.Option("--input", "-i", help="The rows, for their lengths and turns.")] = None,
    level: Annotated[
        Literal["turn", "dialogue"], typer.Option(help="Whether replies were scored, or whole conversations.")
    ] = "turn",
    *,
    read: reading.Read,
    formats: Formats = "png",
) -> None:
    """Your own scores: a histogram by system, the aspects, and value against length and turn number."""
    from dialeval.pairing import read_items
    from dialeval.plots.scores import metric_of, read_table
    from dialeval.plots.scores import scores as draw

    table = read_table(file)
    chosen = metric_of(table, metric)
    rows = [] if input is None else read_items(read(input), level, None)
    name = file.name.split(".")[0]
    _save(draw(table, chosen, rows, title=name), f"scores_{name}", out, formats)


def _save(figure: Figure, name: str, out: Path, formats: str) -> None:
    from dialeval.io import safe_name
    from dialeval.plots.figures import save
    from dialeval.reports.outputs import plot_formats

    for path in save(figure, out / safe_name(name), plot_formats(formats)):
        typer.echo(path)
