"""`dialeval agreement`: how far metrics agree with people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.options import command_line, flowing, listed

_HELP = """Measure how far metrics agree with people, on benchmarks of human judgements.

[bold]Metrics[/bold] are names (`dialeval info` lists them; options follow a question mark, as in
bleu2?aggregation=avg), scores:FILE or scores:FILE#column for scores computed elsewhere (JSON lines or CSV by row id),
and python:package.module:function for a function of a list of exchanges. To any of them ?name=… gives another name; to
files and functions ?lower_is_better=true and ?range=0:1 say what they cannot say themselves.

[bold]Output[/bold] in the folder: agreement.jsonl and .parquet (one row per number, with interval, n, ceiling and
signature), leaderboard.md and .html, tests.jsonl (paired tests against the best), excluded.jsonl (rows without a
value), run.json, plots/, and values/, from which an interrupted run goes on: nothing is computed twice.

[bold]Examples[/bold]

$ dialeval agreement --metrics density,bleu2 --benchmarks all --out results/

$ dialeval agreement -m density -m 'scores:judges.jsonl#gpt' -b dailydialog_zhao --aspects all --out out/

$ dialeval agreement -m python:mine.metric:score -b my_ratings.jsonl --out out/"""

_ROWS, _STATISTICS, _FILES = "Which rows count", "Statistics", "Files"


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("agreement", help=flowing(_HELP), no_args_is_help=True)(agreement)


def agreement(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Metrics, separated by commas; repeatable.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    benchmarks: Annotated[
        list[str] | None,
        typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL, first words (fbd), .jsonl files, or all."),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Score columns or functions for which lower is better.")
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            envvar="DIALEVAL_MIRROR", rich_help_panel=_FILES, help="Mirror of GitHub: a folder or an address."
        ),
    ] = None,
    values: Annotated[
        Path | None, typer.Option(rich_help_panel=_FILES, help="Cache of computed values; default: OUT/values.")
    ] = None,
    plots: Annotated[
        str, typer.Option(rich_help_panel=_FILES, help="Formats of the plots: png, svg, png,svg or none.")
    ] = "png",
    aspects: Annotated[
        list[str] | None, typer.Option(rich_help_panel=_ROWS, help="main, all, or names of aspects.")
    ] = None,
    levels: Annotated[
        Literal["auto", "own", "system"],
        typer.Option(rich_help_panel=_ROWS, help="The benchmark's own level, systems, or both where there are five."),
    ] = "auto",
    exclude: Annotated[
        str | None, typer.Option(rich_help_panel=_ROWS, help="A benchmark's named exclusion; none keeps all rows.")
    ] = None,
    subset: Annotated[str | None, typer.Option(rich_help_panel=_ROWS, help="A paper's named subset.")] = None,
    ratings: Annotated[
        Literal["mean", "without_outliers"],
        typer.Option(rich_help_panel=_ROWS, help="How single ratings become one human score."),
    ] = "mean",
    facts: Annotated[
        bool, typer.Option(rich_help_panel=_ROWS, help="Give metrics the facts of a benchmark, or withhold them.")
    ] = True,
    following: Annotated[
        bool,
        typer.Option(
            "--following",
            rich_help_panel=_ROWS,
            help="Give metrics the following user turn, where known (fed_turn); not the standard protocol.",
        ),
    ] = False,
    statistics: Annotated[
        str, typer.Option(rich_help_panel=_STATISTICS, help="Of pearson, spearman, kendall.")
    ] = "pearson,spearman,kendall",
    absolute: Annotated[
        bool, typer.Option("--absolute", rich_help_panel=_STATISTICS, help="System-level correlations without sign.")
    ] = False,
    force_systems: Annotated[
        bool, typer.Option("--force-systems", rich_help_panel=_STATISTICS, help="Allow fewer than five systems.")
    ] = False,
    threshold: Annotated[
        str, typer.Option(rich_help_panel=_STATISTICS, help="For accuracy: auto, search, or a number.")
    ] = "auto",
    validation: Annotated[
        str, typer.Option(rich_help_panel=_STATISTICS, help="Benchmark on which thresholds are searched.")
    ] = "dailydialogpp_dev",
    resamples: Annotated[
        int,
        typer.Option(min=0, rich_help_panel=_STATISTICS, help="Resamples of the bootstrap and the permutation tests."),
    ] = 10_000,
    confidence: Annotated[
        float, typer.Option(rich_help_panel=_STATISTICS, help="Confidence level of the intervals.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=_STATISTICS, help="Random seed.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Measure, and write what was found."""
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings, as_threshold
    from dialeval.agreement.sources import find_sources, turned
    from dialeval.reports.console import show, telling
    from dialeval.reports.outputs import plot_formats, write_outputs

    formats = plot_formats(plots)
    settings = Settings(
        statistics=tuple(listed([statistics])),
        aspects=tuple(listed(aspects)) or ("main",),
        levels=levels,
        exclusion=exclude,
        subset=subset,
        ratings=ratings,
        facts=facts,
        following=following,
        absolute=absolute,
        force_systems=force_systems,
        threshold=as_threshold(threshold),
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    sources = turned(find_sources(listed(metrics)), listed(lower_is_better))
    with telling(quiet=quiet) as reporter:
        report = run(
            sources,
            benchmark_names(listed(benchmarks) or ["all"]),
            settings=settings,
            values=values or out / "values",
            mirror=mirror,
            validation=validation,
            reporter=reporter,
        )
    report.command = command_line(sys.argv[1:])
    write_outputs(report, out, formats)
    if not quiet:
        show(report)
    if not report.results:
        typer.echo("error: nothing could be measured; the reasons are above", err=True)
        raise typer.Exit(1)
