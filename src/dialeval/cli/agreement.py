"""`dialeval agreement` and `robustness`: how far metrics agree with people, and whether they notice worse replies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import command_line, files_of, in_panel, listed, say

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
    force_systems: Annotated[bool, _statistics("--force-systems", help="Allow fewer than five systems.")] = False,
    threshold: Annotated[str, _statistics(help="For accuracy: auto, search, or a number.")] = "auto",
    resamples: Resamples = 10_000,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Measure how far metrics agree with people, on benchmarks of human judgements.

    [bold]Metrics[/bold] are names (`dialeval info` lists them; options follow a question mark, as in
    bleu2?aggregation=avg), scores:FILE or scores:FILE#column for scores computed elsewhere (JSON lines or CSV by row
    id), and python:package.module:function for a function of a list of exchanges. ?name=… renames any of them; files
    and functions also take ?lower_is_better=true and ?range=0:1.

    [bold]Your own ratings[/bold]: a .jsonl file of rows, each with rating (a number) or ratings (a list, or lists by
    aspect), as `dialeval tune` reads them. Of these it also says what a metric is worth as a filter: how often its
    worst tenth holds what people rated worst, and Cohen's kappa below a threshold, with the number of rows that it
    needs.

    [bold]Output[/bold] in the folder: agreement.jsonl (one row per number, with interval, n, ceiling and signature),
    leaderboard.md and .html, tests.jsonl (paired tests against the best), excluded.jsonl (rows without a value),
    filters.jsonl (of your own ratings), run.json, plots/, and values/, a cache from which an interrupted run continues.

    [bold]Examples[/bold]

    $ dialeval agreement --metrics density,bleu2 --benchmarks all --out results/

    $ dialeval agreement -m density -m 'scores:judges.jsonl#gpt' -b dailydialog_zhao --aspects all --out out/

    $ dialeval agreement -m python:mine.metric:score -b my_ratings.jsonl --out out/
    """
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings, as_threshold
    from dialeval.agreement.sources import find_sources
    from dialeval.io.places import check_results
    from dialeval.reports.output import FILES, plot_formats, show, telling, write_outputs

    check_results(out, FILES, [*listed(benchmarks), *files_of(metrics)])
    formats = plot_formats(plots)
    settings = Settings(
        aspects=tuple(listed(aspects)) or ("main",),
        levels=levels,
        exclusion=exclude,
        subset=subset,
        ratings=ratings,
        facts=facts,
        following=following,
        force_systems=force_systems,
        threshold=as_threshold(threshold),
        resamples=resamples,
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


def robustness(
    context: typer.Context,
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Metrics, separated by commas; repeatable.")],
    input: Annotated[str, typer.Option("--input", "-i", help="A benchmark's name, or a file of rows.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    attacks: Annotated[
        list[str] | None, typer.Option("--attacks", "-a", help="Names, separated by commas, or all.")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Attack a random sample of this many true replies.")] = None,
    tolerance: Annotated[
        float,
        typer.Option(min=0, help="Largest drop allowed for a control, in standard deviations of the true replies."),
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Mirror of GitHub: a folder or an address.")
    ] = None,
    values: Annotated[Path | None, typer.Option(help="Cache of computed values; default: OUT/values.")] = None,
    plots: Annotated[str, typer.Option(help="Formats of the plots: png, svg, png,svg or none.")] = "png",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Attack true replies and see whether metrics prefer the true ones.

    [bold]Input[/bold] is a benchmark or a file of rows as `dialeval score` reads them. In a benchmark the human replies
    are attacked (its human system, its references, or the replies labelled good), in a plain file all. A set with
    attacks of its own (adversarial_khalid, or rows with an adversarial_response) is used as it is. A reference equal to
    the true reply is left out, because a metric that compares with it would win by construction.

    [bold]Attacks[/bold]: reverse, jumble, nouns_only, no_stopwords, no_punctuation, synonyms, repetition, speaker_echo,
    random_reply, truncation, generic_reply, noise, instruction (a random reply that demands a high score; the share of
    steered replies is compared with that of a neutral sentence). no_punctuation and synonyms are controls: there the
    score should not fall.

    [bold]Output[/bold] in the folder: robustness.jsonl (a row per metric and attack, with interval, ties and n),
    robustness.md, a plot, run.json, and values/, a cache from which an interrupted run continues.

    [bold]Examples[/bold]

    $ dialeval robustness --metrics density,bleu2 --input dailydialogpp_test --sample 500 --out out/

    $ dialeval robustness -m density --input adversarial_khalid --out out/

    $ dialeval robustness -m python:mine.metric:score -i rows.jsonl --attacks jumble,random_reply --out out/
    """
    from dialeval.agreement.sources import find_sources
    from dialeval.io.places import check_results
    from dialeval.reports.output import plot_formats, telling
    from dialeval.robustness.inputs import gather
    from dialeval.robustness.report import FILES, render, write_report
    from dialeval.robustness.trial import run

    read = reading.reader(context)
    formats = plot_formats(plots)
    check_results(out, FILES, [input, *files_of(metrics)])
    sources = find_sources(listed(metrics))
    rows = read(input)
    material = gather(
        input, ["all"] if attacks is None else listed(attacks), seed=seed, sample=sample, mirror=mirror, rows=rows
    )
    with telling(quiet=quiet) as reporter:
        outcome = run(
            sources, material, tolerance=tolerance, seed=seed, values=values or out / "values", reporter=reporter
        )
    outcome.command = command_line(sys.argv[1:])
    write_report(outcome, out, formats)
    if not quiet:
        say(*render(outcome).splitlines())
    if not outcome.verdicts:
        say("error: no metric could be tried; the reasons are above", err=True)
        raise typer.Exit(1)
