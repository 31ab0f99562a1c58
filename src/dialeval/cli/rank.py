"""`dialeval rank`: which of several systems is best?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import check_reports, metrics_or_judge

HELP = """Compare several systems on replies to the same contexts, under one metric or several.

Give one file with a column `system`, whose replies to one context are compared, or one file per system, with equal ids
or the same contexts in the same order. For each metric: mean, interval, share of human replies below, share of pairs
won, and clusters of systems that a test cannot tell apart. With --level dialogue whole conversations are compared: in
pairs where the systems' conversations share their ids, else as groups.

[bold]Examples[/bold]

$ dialeval rank replies.jsonl

$ dialeval rank small=small.jsonl large=large.jsonl --metric judge,deb --markdown ranking.md

$ dialeval rank old.jsonl new.jsonl --level dialogue

$ dialeval rank a.jsonl b.jsonl c.jsonl --json ranking.json --html ranking.html --plot ranking.png"""


def rank(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="FILE, or NAME=FILE for each system.")],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Names, separated by commas; default: judge.")
    ] = None,
    columns_b: reading.ColumnsB = None,
    *,
    read: reading.Read,
    level: Annotated[
        Literal["turn", "dialogue"], typer.Option(help="Compare replies, or whole conversations.")
    ] = "turn",
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Allow more than 10 % unpaired rows of a system.")
    ] = False,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Confidence level of the intervals and clusters.")
    ] = 0.95,
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables as Markdown.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures as JSON.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="Also write an HTML page.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the means with their intervals: .png, .svg or .pdf.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of the bootstrap and the tests.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Score all, compare, print tables."""
    import json

    from dialeval.io import plain, write_atomically
    from dialeval.pairing import files_by_name
    from dialeval.systems import rank as compare
    from dialeval.systems.outcome import LEGEND, draw
    from dialeval.tables import show

    named = {
        name: read(file, **reading.of_second(at, columns_b))
        for at, (name, file) in enumerate(files_by_name(files).items())
    }
    reports = {"--markdown": markdown, "--json": json_file, "--html": html_file, "--plot": plot}
    check_reports(reports, (str(source.input) for source in named.values()))
    wanted = metrics_or_judge(metrics)
    systems = named if len(files) > 1 else next(iter(named.values()))
    found = compare(
        systems,
        wanted,
        level=level,
        allow_missing=allow_missing,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        progress=True,
    )
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    show([*(block for metric in found.metrics for block in found.tables(metric)), LEGEND])
    if markdown is not None:
        write_atomically(markdown, found.to_markdown().splitlines())
    if json_file is not None:
        write_atomically(json_file, [json.dumps(plain(found.to_dict()), ensure_ascii=False, indent=1)])
    if html_file is not None:
        write_atomically(html_file, found.to_html().splitlines())
    if plot is not None:
        draw(found, plot)
