"""`dialeval compare`: is one metric better than another, or one set of scores higher than another?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import flowing, listed

_HELP = """Compare two metrics on benchmarks, or two files of scores with each other, by paired tests.

With --benchmarks, A and B are metrics as in `dialeval agreement`: for each statistic both values, the difference with
its bootstrap interval, and the p-values of the permutation test (contexts are swapped whole) and of Williams' test, or
for accuracies of McNemar's and the chi-square test. Without it, A and B are files of scores for the same rows, as
`dialeval score` writes them for two systems: is one higher on average, and is that better?

Rows of two files belong together by id. Without ids name the rows that were scored (--rows), so that it is seen whether
they answer the same contexts; else they are refused. `dialeval rank` compares systems from their replies in one step.

[bold]Examples[/bold]

$ dialeval compare density bleu2 --benchmarks convai2_grade,persona_usr

$ dialeval compare 'scores:judges.jsonl#gpt' 'scores:judges.jsonl#claude' --benchmarks dailydialog_zhao

$ dialeval compare old_scores.jsonl new_scores.jsonl

$ dialeval compare old_scores.jsonl new_scores.jsonl --rows old_bot.jsonl --rows new_bot.jsonl"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("compare", help=flowing(_HELP), no_args_is_help=True)(reading.reads_rows(compare))


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A metric, or a file of scores.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    benchmarks: Annotated[
        list[str] | None, typer.Option("--benchmarks", "-b", help="Names, NAME@PROTOCOL or files, or all.")
    ] = None,
    aspects: Annotated[list[str] | None, typer.Option(help="main, all, or names of aspects.")] = None,
    exclude: Annotated[str | None, typer.Option(help="A benchmark's named exclusion; none keeps all rows.")] = None,
    threshold: Annotated[str, typer.Option(help="For accuracy: auto, search, or a number.")] = "auto",
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Score columns or functions for which lower is better.")
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="The rows that were scored, if score files have no ids: one file, or one each for A and B."),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Allow more than 10 % of the rows of one file to have no partner.")
    ] = False,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Mirror of GitHub: a folder or an address.")
    ] = None,
    values: Annotated[Path | None, typer.Option(help="Cache of computed values.")] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Resamples of the bootstrap and the permutation test.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    *,
    read: reading.Read,
) -> None:
    """Print the paired tests."""
    from dialeval.agreement.pair_tests import pair_tests
    from dialeval.agreement.prepare import benchmark_names
    from dialeval.agreement.runs import run
    from dialeval.agreement.score_comparison import compare_scores
    from dialeval.agreement.settings import Settings, as_threshold
    from dialeval.agreement.sources import find_sources, turned
    from dialeval.reports.console import show_lines, show_verdicts, telling

    settings = Settings(
        aspects=tuple(listed(aspects)) or ("main",),
        exclusion=exclude,
        threshold=as_threshold(threshold),
        resamples=resamples,
        seed=seed,
    )
    if not benchmarks:
        worse = listed(lower_is_better)
        scored = [read(file) for file in rows or ()]
        show_verdicts(
            compare_scores(first, second, settings, rows=scored, lower_is_better=worse, allow_missing=allow_missing)
        )
        return
    if rows:
        raise ValueError("--rows is for two files of scores; leave it out, or --benchmarks")
    sources = turned(find_sources([first, second]), listed(lower_is_better))
    if len(sources) != 2:
        raise ValueError(f"{first} and {second} are {len(sources)} metrics; choose one column each with #column")
    with telling() as reporter:
        report = run(
            sources,
            benchmark_names(listed(benchmarks)),
            settings=settings,
            values=values,
            mirror=mirror,
            reporter=reporter,
        )
    a, b = (source.name for source in sources)
    lines = [line for panel in report.panels for line in pair_tests(panel, a, b, settings)]
    if not lines:
        typer.echo("error: nothing could be compared; the reasons are above", err=True)
        raise typer.Exit(1)
    show_lines(a, b, lines, 1 - settings.confidence)
