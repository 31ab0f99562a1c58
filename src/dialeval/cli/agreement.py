"""`dialeval agreement`: how far metrics agree with people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.options import command_line, files_of, in_panel, listed, say

HELP = """Measure how far metrics agree with people, on benchmarks of human judgements.

[bold]Metrics[/bold] are names (`dialeval info` lists them; options follow a question mark, as in
bleu2?aggregation=avg), scores:FILE or scores:FILE#column for scores computed elsewhere (JSON lines or CSV by row id),
and python:package.module:function for a function of a list of exchanges. ?name=… renames any of them; files and
functions also take ?lower_is_better=true and ?range=0:1.

[bold]Your own ratings[/bold]: a .jsonl file of rows, each with rating (a number) or ratings (a list, or lists by
aspect), as `dialeval tune` reads them. Of these it also says what a metric is worth as a filter: how often its worst
tenth holds what people rated worst, and Cohen's kappa below a threshold, with the number of rows that it needs.

[bold]Output[/bold] in the folder: agreement.jsonl (one row per number, with interval, n, ceiling and
signature), leaderboard.md and .html, tests.jsonl (paired tests against the best), excluded.jsonl (rows without a
value), filters.jsonl (of your own ratings), run.json, plots/, and values/, a cache from which an interrupted run
continues.

[bold]Examples[/bold]

$ dialeval agreement --metrics density,bleu2 --benchmarks all --out results/

$ dialeval agreement -m density -m 'scores:judges.jsonl#gpt' -b dailydialog_zhao --aspects all --out out/

$ dialeval agreement -m python:mine.metric:score -b my_ratings.jsonl --out out/"""

#: Options by the panels of the help.
_rows, _statistics, _files = map(in_panel, ("Which rows count", "Statistics", "Files"))


Benchmarks = Annotated[
    list[str] | None,
    typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL, first words (fbd), .jsonl files, or all."),
]
Mirror = Annotated[str | None, _files(envvar="DIALEVAL_MIRROR", help="Mirror of GitHub: a folder or an address.")]
Values = Annotated[Path | None, _files(help="Cache of computed values; default: OUT/values.")]
Levels = Annotated[
    Literal["auto", "own", "system"],
    _rows(help="The benchmark's own level, systems, or both with five or more systems."),
]
Ratings = Annotated[Literal["mean", "without_outliers"], _rows(help="How ratings are combined into one human score.")]
Following = Annotated[
    bool,
    _rows("--following", help="Give metrics the next user turn, where known (fed_turn); not the standard protocol."),
]
Resamples = Annotated[int, _statistics(min=0, max=10**6, help="Resamples of the bootstrap and the permutation tests.")]


def agreement(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Metrics, separated by commas; repeatable.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    benchmarks: Benchmarks = None,
    mirror: Mirror = None,
    values: Values = None,
    plots: Annotated[str, _files(help="Formats of the plots: png, svg, png,svg or none.")] = "png",
    aspects: Annotated[list[str] | None, _rows(help="main, all, or names of aspects.")] = None,
    levels: Levels = "auto",
    exclude: Annotated[str | None, _rows(help="A benchmark's named exclusion; none keeps all rows.")] = None,
    subset: Annotated[str | None, _rows(help="A paper's named subset.")] = None,
    ratings: Ratings = "mean",
    facts: Annotated[bool, _rows(help="Give metrics the facts of a benchmark, or withhold them.")] = True,
    following: Following = False,
    absolute: Annotated[bool, _statistics("--absolute", help="System-level correlations without sign.")] = False,
    force_systems: Annotated[bool, _statistics("--force-systems", help="Allow fewer than five systems.")] = False,
    threshold: Annotated[str, _statistics(help="For accuracy: auto, search, or a number.")] = "auto",
    resamples: Resamples = 10_000,
    seed: Annotated[int, _statistics(min=0, help="Random seed.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Measure, and write what was found."""
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings, as_threshold
    from dialeval.agreement.sources import find_sources
    from dialeval.io.places import check_places
    from dialeval.reports.console import show, telling
    from dialeval.reports.report_files import FILES, plot_formats, write_outputs

    check_places({f"{name} of --out": out / name for name in FILES}, [*listed(benchmarks), *files_of(metrics)])
    formats = plot_formats(plots)
    settings = Settings(
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
            reporter=reporter,
        )
    report.command = command_line(sys.argv[1:])
    write_outputs(report, out, formats)
    if not quiet:
        show(report)
    if not report.results:
        say("error: nothing could be measured; the reasons are above", err=True)
        raise typer.Exit(1)
