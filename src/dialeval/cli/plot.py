"""`dialeval plot`: pictures of scores and of agreement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import flowing, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dialeval.agreement.results import Panel

Metrics = Annotated[list[str], typer.Option("--metrics", "-m", help="As in `dialeval agreement`.")]
Benchmarks = Annotated[list[str], typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL, files, or all.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")]
Formats = Annotated[str, typer.Option(help="png, svg, or png,svg.")]
Values = Annotated[Path | None, typer.Option(help="Folder with values of an earlier run (its OUT/values).")]
Mirror = Annotated[str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Mirror of GitHub: a folder or an address.")]
Aspects = Annotated[list[str] | None, typer.Option(help="main, all, or names of aspects.")]
Exclude = Annotated[str | None, typer.Option(help="A benchmark's named exclusion; none keeps all rows.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]

_HELP = """Draw pictures of scores and of agreement.

[bold]Examples[/bold]

$ dialeval plot forest --results results/ --out plots/

$ dialeval plot scatter -m density,bleu2 -b convai2_grade --values results/values --out plots/

$ dialeval plot violin -m deb -b dailydialogpp_test --out plots/

$ dialeval plot prd --input replies.jsonl --out plots/

$ dialeval plot scores scores.jsonl --input rows.jsonl --out plots/"""

app = typer.Typer(help=flowing(_HELP), no_args_is_help=True, rich_markup_mode="rich")


def add_to(parent: typer.Typer) -> None:
    """Add the sub-commands to the `dialeval` command."""
    parent.add_typer(app, name="plot")


@app.command()
def forest(
    results: Annotated[Path, typer.Option("--results", "-r", help="The folder of a `dialeval agreement` run.")],
    out: Out,
    formats: Formats = "png",
) -> None:
    """Every metric with its interval, a picture per benchmark, from the table of a run."""
    from dialeval.agreement.leaderboard import sections
    from dialeval.agreement.results import Report, read_results
    from dialeval.agreement.settings import Settings
    from dialeval.plots.agreement import forest as draw

    for section in sections(Report(Settings(), results=read_results(results))):
        name = f"forest_{section.benchmark}_{section.protocol}_{section.level}_{section.aspect}"
        _save(draw(section), name, out, formats)


def _of_benchmarks(kind: str) -> Callable[..., None]:
    def draw(
        metrics: Metrics,
        benchmarks: Benchmarks,
        out: Out,
        formats: Formats = "png",
        values: Values = None,
        mirror: Mirror = None,
        aspects: Aspects = None,
        exclude: Exclude = None,
        seed: Seed = 0,
    ) -> None:
        from dialeval.reports.pictures import pictures_of

        for panel in _panels(metrics, benchmarks, values, mirror, aspects, exclude):
            for name, figure in pictures_of(panel, kind, seed=seed):
                _save(figure, name, out, formats)

    return draw


for _kind, _help in {
    "scatter": "People against each metric, both scaled to [0, 1], with a regression line; people's scores jittered.",
    "heatmap": "How metrics correlate with each other and with people.",
    "box": "Box plots of each metric's scores, per kind of reply or per system.",
    "violin": "Violins of each metric's scores, per kind of reply or per system.",
    "histogram": "Histograms of each metric's scores, per kind of reply or per system.",
}.items():
    app.command(_kind, help=_help)(_of_benchmarks(_kind))


@app.command()
@reading.reads_rows
def prd(
    input: Annotated[str, typer.Option("--input", "-i", help="Rows with systems, as for `dialeval score`.")],
    out: Out,
    reference: Annotated[
        str | None, typer.Option(help="Rows that people wrote, or a saved human side, in place of the references.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder or name of a pretrained encoder.")] = None,
    clusters: Annotated[int, typer.Option(min=1, help="Clusters of the features.")] = 20,
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
    *,
    read: reading.Read,
    formats: Formats = "png",
) -> None:
    """Your own scores: a histogram by system, the aspects, and value against length and turn number."""
    from dialeval.plots.scores import metric_of, read_table
    from dialeval.plots.scores import scores as draw

    table = read_table(file)
    chosen, rows = metric_of(table, metric), []
    if input is not None:
        source = read(input)
        rows = [exchange for _, exchange in source.exchanges(empty="score")]
    name = file.name.split(".")[0]
    _save(draw(table, chosen, rows, title=name), f"scores_{name}", out, formats)


def _panels(
    metrics: list[str],
    benchmarks: list[str],
    values: Path | None,
    mirror: str | None,
    aspects: list[str] | None,
    exclude: str | None,
) -> list[Panel]:
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings
    from dialeval.reports.console import telling

    # Pictures need values, not intervals.
    settings = Settings(aspects=tuple(listed(aspects)) or ("main",), exclusion=exclude, resamples=0)
    with telling() as reporter:
        report = run(
            listed(metrics),
            benchmark_names(listed(benchmarks)),
            settings=settings,
            values=values,
            mirror=mirror,
            reporter=reporter,
        )
    found = [panel for panel in report.panels if panel.columns]
    if not found:
        typer.echo("error: there is nothing to draw; the reasons are above", err=True)
        raise typer.Exit(1)
    return found


def _save(figure: Figure, name: str, out: Path, formats: str) -> None:
    from dialeval.plots.figures import save
    from dialeval.reports.outputs import plot_formats
    from dialeval.reports.pictures import file_name

    for path in save(figure, out / file_name(name), plot_formats(formats)):
        typer.echo(path)
