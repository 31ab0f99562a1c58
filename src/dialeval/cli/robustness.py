"""`dialeval robustness`: does a metric notice when a reply is made worse?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import command_line, files_of, listed, say

HELP = """Attack true replies and see whether metrics prefer the true ones.

[bold]Input[/bold] is a benchmark or a file of rows as `dialeval score` reads them. In a benchmark the human replies are
attacked (its human system, its references, or the replies labelled good), in a plain file all. A set with attacks of
its own (adversarial_khalid, or rows with an adversarial_response) is used as it is. A reference equal to the true reply
is left out, because a metric that compares with it would win by construction.

[bold]Attacks[/bold]: reverse, jumble, nouns_only, no_stopwords, no_punctuation, synonyms, repetition, speaker_echo,
random_reply, truncation, generic_reply, noise, instruction (a random reply that demands a high score; the share of
steered replies is compared with that of a neutral sentence). no_punctuation and synonyms are controls: there the score
should not fall.

[bold]Output[/bold] in the folder: robustness.jsonl (a row per metric and attack, with interval, ties and n),
robustness.md, a plot, run.json, and values/, a cache from which an interrupted run continues.

[bold]Examples[/bold]

$ dialeval robustness --metrics density,bleu2 --input dailydialogpp_test --sample 500 --out out/

$ dialeval robustness -m density --input adversarial_khalid --out out/

$ dialeval robustness -m python:mine.metric:score -i rows.jsonl --attacks jumble,random_reply --out out/"""


def robustness(
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
    *,
    read: reading.Read,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Attack, judge, and write what was found."""
    from dialeval.agreement.sources import find_sources
    from dialeval.io.places import check_places
    from dialeval.reports.console import telling
    from dialeval.reports.report_files import plot_formats
    from dialeval.robustness.inputs import gather
    from dialeval.robustness.report import FILES, render, write_report
    from dialeval.robustness.run import run

    check_places({f"{name} of --out": out / name for name in FILES}, [input, *files_of(metrics)])
    formats = plot_formats(plots)
    sources = find_sources(listed(metrics))
    rows = read(input)
    material = gather(input, listed(attacks) or ["all"], seed=seed, sample=sample, mirror=mirror, rows=rows)
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
