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
and python:package.module:function for a function of a list of exchanges. ?name=… renames any of them; files and
functions also take ?lower_is_better=true and ?range=0:1.

[bold]Output[/bold] in the folder: agreement.jsonl (one row per number, with interval, n, ceiling and
signature), leaderboard.md and .html, tests.jsonl (paired tests against the best), excluded.jsonl (rows without a
value), run.json, plots/, and values/, a cache from which an interrupted run continues.

[bold]Examples[/bold]

$ dialeval agreement --metrics density,bleu2 --benchmarks all --out results/

$ dialeval agreement -m density -m 'scores:judges.jsonl#gpt' -b dailydialog_zhao --aspects all --out out/

$ dialeval agreement -m python:mine.metric:score -b my_ratings.jsonl --out out/"""

_ROWS, _STATISTICS, _FILES = "Which rows count", "Statistics", "Files"


Benchmarks = Annotated[
    list[str] | None,
    typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL, first words (fbd), .jsonl files, or all."),
]
Mirror = Annotated[
    str | None,
    typer.Option(envvar="DIALEVAL_MIRROR", rich_help_panel=_FILES, help="Mirror of GitHub: a folder or an address."),
]
Values = Annotated[
    Path | None, typer.Option(rich_help_panel=_FILES, help="Cache of computed values; default: OUT/values.")
]
Plots = Annotated[str, typer.Option(rich_help_panel=_FILES, help="Formats of the plots: png, svg, png,svg or none.")]
Aspects = Annotated[list[str] | None, typer.Option(rich_help_panel=_ROWS, help="main, all, or names of aspects.")]
Levels = Annotated[
    Literal["auto", "own", "system"],
    typer.Option(rich_help_panel=_ROWS, help="The benchmark's own level, systems, or both with five or more systems."),
]
Exclude = Annotated[
    str | None, typer.Option(rich_help_panel=_ROWS, help="A benchmark's named exclusion; none keeps all rows.")
]
Ratings = Annotated[
    Literal["mean", "without_outliers"],
    typer.Option(rich_help_panel=_ROWS, help="How ratings are combined into one human score."),
]
Facts = Annotated[
    bool, typer.Option(rich_help_panel=_ROWS, help="Give metrics the facts of a benchmark, or withhold them.")
]
Following = Annotated[
    bool,
    typer.Option(
        "--following",
        rich_help_panel=_ROWS,
        help="Give metrics the next user turn, where known (fed_turn); not the standard protocol.",
    ),
]
Statistics = Annotated[str, typer.Option(rich_help_panel=_STATISTICS, help="pearson, spearman or kendall.")]
Absolute = Annotated[
    bool, typer.Option("--absolute", rich_help_panel=_STATISTICS, help="System-level correlations without sign.")
]
ForceSystems = Annotated[
    bool, typer.Option("--force-systems", rich_help_panel=_STATISTICS, help="Allow fewer than five systems.")
]
Threshold = Annotated[str, typer.Option(rich_help_panel=_STATISTICS, help="For accuracy: auto, search, or a number.")]
Validation = Annotated[
    str, typer.Option(rich_help_panel=_STATISTICS, help="Benchmark on which thresholds are searched.")
]
Resamples = Annotated[
    int,
    typer.Option(min=0, rich_help_panel=_STATISTICS, help="Resamples of the bootstrap and the permutation tests."),
]
Confidence = Annotated[float, typer.Option(rich_help_panel=_STATISTICS, help="Confidence level of the intervals.")]


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("agreement", help=flowing(_HELP), no_args_is_help=True)(agreement)


def agreement(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Metrics, separated by commas; repeatable.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    benchmarks: Benchmarks = None,
    mirror: Mirror = None,
    values: Values = None,
    plots: Plots = "png",
    aspects: Aspects = None,
    levels: Levels = "auto",
    exclude: Exclude = None,
    subset: Annotated[str | None, typer.Option(rich_help_panel=_ROWS, help="A paper's named subset.")] = None,
    ratings: Ratings = "mean",
    facts: Facts = True,
    following: Following = False,
    statistics: Statistics = "pearson,spearman,kendall",
    absolute: Absolute = False,
    force_systems: ForceSystems = False,
    threshold: Threshold = "auto",
    validation: Validation = "dailydialogpp_dev",
    resamples: Resamples = 10_000,
    confidence: Confidence = 0.95,
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=_STATISTICS, help="Random seed.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Measure, and write what was found."""
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings, as_threshold
    from dialeval.agreement.sources import find_sources
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
    sources = find_sources(listed(metrics))
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
