"""`dialeval plot`: pictures of scores, of agreement and of what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli import reading
from dialeval.cli.parsing import flowing, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dialeval.agreement.results import Panel

Metrics = Annotated[list[str], typer.Option("--metrics", "-m", help="As in `dialeval agreement`.")]
Benchmarks = Annotated[list[str], typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL, files, or all.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")]
Formats = Annotated[str, typer.Option(help="png, svg, or png,svg.")]
Values = Annotated[Path | None, typer.Option(help="Folder with values of an earlier run (its OUT/values).")]
Mirror = Annotated[str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or address in GitHub's place.")]
Aspects = Annotated[list[str] | None, typer.Option(help="main, all, or names of aspects.")]
Exclude = Annotated[str | None, typer.Option(help="A benchmark's named exclusion; none keeps all rows.")]
Seed = Annotated[int, typer.Option(min=0, help="Of jitter and of t-SNE.")]

_HELP = """Draw pictures of scores, of agreement and of what it costs.

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


@app.command()
def scatter(
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
    """People against each metric, both scaled to [0, 1], with the regression line; human scores are jittered."""
    from dialeval.reports.pictures import scatters

    for panel in _panels(metrics, benchmarks, values, mirror, aspects, exclude):
        for name, figure in scatters(panel, seed=seed):
            _save(figure, name, out, formats)


def _distribution_command(kind: Distribution) -> Callable[..., None]:
    def draw(
        metrics: Metrics,
        benchmarks: Benchmarks,
        out: Out,
        formats: Formats = "png",
        values: Values = None,
        mirror: Mirror = None,
        exclude: Exclude = None,
    ) -> None:
        from dialeval.plots.distributions import distributions
        from dialeval.reports.pictures import panel_name, reply_labels

        for panel in _panels(metrics, benchmarks, values, mirror, None, exclude):
            figure = distributions(panel.marked_columns, reply_labels(panel), kind=kind, title=panel.judged.info.name)
            _save(figure, f"{kind}_{panel_name(panel)}", out, formats)

    return draw


Distribution = Literal["box", "violin", "histogram"]
_DISTRIBUTIONS: dict[Distribution, str] = {"box": "Box plots", "violin": "Violins", "histogram": "Histograms"}
for _kind, _drawn in _DISTRIBUTIONS.items():
    _help = f"{_drawn} of each metric's scores, per kind of reply or per system."
    app.command(_kind, help=_help)(_distribution_command(_kind))


@app.command()
def heatmap(
    metrics: Metrics,
    benchmarks: Benchmarks,
    out: Out,
    formats: Formats = "png",
    values: Values = None,
    mirror: Mirror = None,
    aspects: Aspects = None,
    exclude: Exclude = None,
) -> None:
    """How metrics correlate with each other and with people."""
    from dialeval.plots.agreement import heat_map
    from dialeval.reports.pictures import panel_name, with_people

    for panel in _panels(metrics, benchmarks, values, mirror, aspects, exclude):
        _save(heat_map(with_people(panel), title=panel.judged.info.name), f"heatmap_{panel_name(panel)}", out, formats)


@app.command()
def features(
    file: Annotated[Path, typer.Argument(help="An .npz with `features` (rows x dimensions), optionally `labels`.")],
    out: Out,
    method: Annotated[Literal["pca", "tsne"], typer.Option(help="How to flatten.")] = "pca",
    formats: Formats = "png",
    seed: Seed = 0,
) -> None:
    """A matrix of features in two dimensions."""
    from dialeval.plots.features import feature_map, read_features

    matrix, labels = read_features(file)
    _save(feature_map(matrix, labels, method=method, seed=seed), f"{method}_{file.stem}", out, formats)


@app.command()
def prd(
    input: Annotated[str, typer.Option("--input", "-i", help="Rows with systems, as for `dialeval score`.")],
    out: Out,
    reference: Annotated[
        str | None, typer.Option(help="Rows that people wrote, or a saved human side, in place of the references.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder or name of a pretrained encoder.")] = None,
    clusters: Annotated[int, typer.Option(min=1, help="Clusters of the features.")] = 20,
    formats: Formats = "png",
    seed: Annotated[int, typer.Option(min=0, help="Of the clusters.")] = 0,
    columns: reading.Columns = None,
    context_separator: reading.ContextSeparator = reading.SEPARATOR,
    split: reading.Split = None,
    subset: reading.Subset = None,
    judge_role: reading.JudgeRole = "assistant",
    system_as_facts: reading.SystemAsFacts = False,
    other_languages: reading.OtherLanguages = "mark",
) -> None:
    """Precision and recall of each system's replies against human ones, as PRD weighs them.

    [bold]Example[/bold]

      dialeval plot prd --input replies.jsonl --out plots/
    """
    from dialeval.plots.prd import precision_recall
    from dialeval.registry import load

    source = reading.source(
        input, columns, context_separator, split, subset, judge_role, system_as_facts, other_languages
    )
    rows = [exchange for _, exchange in source.exchanges(needs=() if reference else ("references",))]
    metric = load("prd", checkpoint=encoder, reference=reference, clusters=clusters, seed=seed, resamples=0)
    scores = metric.score_exchanges(rows)
    name = "standard_input" if input == "-" else Path(input).name.split(".")[0]
    _save(precision_recall(scores, title=name), f"prd_{name}", out, formats)


@app.command()
def scores(
    file: Annotated[Path, typer.Argument(help="What `dialeval score` wrote.")],
    out: Out,
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Default: the first metric.")] = None,
    input: Annotated[str | None, typer.Option("--input", "-i", help="The rows, for their lengths and turns.")] = None,
    columns: reading.Columns = None,
    context_separator: reading.ContextSeparator = reading.SEPARATOR,
    split: reading.Split = None,
    subset: reading.Subset = None,
    judge_role: reading.JudgeRole = "assistant",
    system_as_facts: reading.SystemAsFacts = False,
    other_languages: reading.OtherLanguages = "mark",
    formats: Formats = "png",
) -> None:
    """Your own scores: a histogram by system, the aspects, and value against length and turn number."""
    from dialeval.plots.scores import metric_of, read_table
    from dialeval.plots.scores import scores as draw

    table = read_table(file)
    chosen, rows = metric_of(table, metric), []
    if input is not None:
        source = reading.source(
            input, columns, context_separator, split, subset, judge_role, system_as_facts, other_languages
        )
        rows = [exchange for _, exchange in source.exchanges(empty="score")]
    name = file.name.split(".")[0]
    _save(draw(table, chosen, rows, title=name), f"scores_{name}", out, formats)


@app.command()
def cost(
    results: Annotated[Path, typer.Option("--results", "-r", help="The folder of a `dialeval agreement` run.")],
    out: Out,
    speed: Annotated[Path, typer.Option(help="What performance/suite.py measured.")] = Path("performance/suite.json"),
    judge: Annotated[float | None, typer.Option(help="Mean Spearman of language models, where it is known.")] = None,
    formats: Formats = "png",
) -> None:
    """Mean agreement of each metric against rows per second, beside what language models cost."""
    from dialeval.agreement.results import read_results
    from dialeval.plots.cost import cost as draw
    from dialeval.plots.cost import mean_agreement, measured_rates, rows_per_second

    found = read_results(results)
    figure = draw(mean_agreement(found), rows_per_second(speed) | measured_rates(found), judge=judge)
    _save(figure, "cost", out, formats)


@app.command()
def growth(
    results: Annotated[Path, typer.Option("--results", "-r", help="The folder of a `dialeval agreement` run.")],
    curve: Annotated[
        list[str], typer.Option("--curve", "-c", help="LABEL=NAME:SIZE,NAME:SIZE with metrics of that run; repeatable.")
    ],
    out: Out,
    formats: Formats = "png",
) -> None:
    """How agreement grows with training: one panel per benchmark, over the training pairs of each checkpoint.

    [bold]Example[/bold]

      dialeval agreement -m 'deb?checkpoint=A&name=a,deb?checkpoint=B&name=b' -b convai2_grade -o r
      dialeval plot growth --results r --curve 'DEB=a:60_000,b:120_000' --out plots/
    """
    from dialeval.agreement.results import read_results
    from dialeval.plots.growth import growth as draw
    from dialeval.plots.growth import read_curve

    _save(draw(read_results(results), dict(map(read_curve, curve))), "growth", out, formats)


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
