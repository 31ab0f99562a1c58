"""`dialeval ensemble`: does a combined judge beat every single metric?"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.parsing import command_line, flowing, listed

_HELP = """Combine metrics and test whether the combination agrees with people better than each of them.

Works on values that `dialeval agreement` left; nothing is scored here. Each benchmark is measured with what was
chosen and fitted on the others. Metrics with human percentiles are the members unless --members names some of them.

[bold]Output[/bold] in the folder: ensemble.md, ensemble.jsonl (every number), ensemble.json (the weights and which
form to ship, if any), ensemble.png.

[bold]Example[/bold]

$ dialeval ensemble -m density,deb,quantidce,cmn -b convai2_grade,empathetic_grade,dailydialog_zhao
--values results/values --out results/ensemble"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("ensemble", help=flowing(_HELP), no_args_is_help=True)(ensemble)


def ensemble(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="As in `dialeval agreement`.")],
    benchmarks: Annotated[list[str], typer.Option("--benchmarks", "-b", help="Three or more, with ratings.")],
    values: Annotated[Path, typer.Option(help="Folder with the values of an earlier run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    members: Annotated[list[str] | None, typer.Option(help="Which of the metrics are combined.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Also write the file that load('ensemble') reads, if a form is to be shipped.")
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or address in GitHub's place.")
    ] = None,
    plots: Annotated[str, typer.Option(help="Formats of the picture: png, svg, png,svg or none.")] = "png",
    resamples: Annotated[int, typer.Option(min=1, help="Of the bootstrap and the permutation tests.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="Level of the intervals and of the verdict.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of every random draw.")] = 0,
) -> None:
    """Study, and write what was found."""
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.settings import Settings
    from dialeval.agreement.sources import find_sources
    from dialeval.reports.console import telling
    from dialeval.reports.outputs import plot_formats
    from dialeval.studies.ensemble import chosen_members, field_of
    from dialeval.studies.ensemble_report import write_study, write_weights
    from dialeval.studies.ensemble_study import study

    formats = plot_formats(plots)
    settings = Settings(statistics=("spearman",), levels="own", resamples=resamples, confidence=confidence, seed=seed)
    sources = [dataclasses.replace(source, only_cached=True) for source in find_sources(listed(metrics))]
    combined = chosen_members(sources, listed(members))
    with telling() as reporter:
        # Here only the columns are wanted; the study draws its own resamples, all judges together.
        columns = dataclasses.replace(settings, resamples=0)
        names = benchmark_names(listed(benchmarks))
        report = run(sources, names, settings=columns, values=values, mirror=mirror, reporter=reporter)
    fields = [field_of(panel, sources, combined) for panel in report.panels if panel.columns]
    found = study(fields, combined, settings)
    specs = dict(zip((source.name for source in sources), listed(metrics), strict=True))
    signatures = {source.name: source.signature for source in sources}
    command = command_line(sys.argv[1:])
    for path in write_study(found, out, settings=settings, command=command, signatures=signatures, formats=formats):
        typer.echo(path)
    if weights is not None:
        if not write_weights(found, weights, specs=specs, command=command):
            typer.echo(f"no form beats every single metric: {weights} was not written", err=True)
            raise typer.Exit(1)
        typer.echo(weights)
