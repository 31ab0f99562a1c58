"""`dialeval rank`: which of several systems is best?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import files_of, listed, metrics_or_judge, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dialeval.systems import Ranking

HELP = """Compare several systems on replies to the same contexts, under one metric or several.

Give one file with a column `system`, whose replies to one context are compared, or one file per system, with equal ids
or the same contexts in the same order. For each metric: mean, interval, share of human replies below, share of pairs
won, and clusters of systems that a test cannot tell apart. With --level dialogue whole conversations are compared: in
pairs where the systems' conversations share their ids, else as groups.

[bold]Other judges' scores[/bold]: scores:FILE holds no replies but a column of values (or several; scores:FILE#COLUMN
chooses one) beside context (or id) and system; or one such file for each system.

[bold]Examples[/bold]

$ dialeval rank replies.jsonl

$ dialeval rank small=small.jsonl large=large.jsonl --metric judge,deb --markdown ranking.md

$ dialeval rank bots.csv --systems bot_a,bot_b,bot_c --aspects

$ dialeval rank old.jsonl new.jsonl --level dialogue

$ dialeval rank scores:judged.csv --columns context=question,system=bot

$ dialeval rank a.jsonl b.jsonl c.jsonl --json ranking.json --html ranking.html --plot ranking.png"""


def rank(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="FILE, or NAME=FILE for each system.")],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Names, separated by commas; default: judge.")
    ] = None,
    columns_b: reading.ColumnsB = None,
    systems: Annotated[
        list[str] | None, typer.Option(help="Columns with the replies of one system each: bot_a,bot_b.")
    ] = None,
    aspects: Annotated[bool, typer.Option("--aspects", help="Also print the systems by aspect.")] = False,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Columns of scores: files for which lower is better.")
    ] = None,
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
    resamples: Annotated[
        int, typer.Option(min=100, max=10**6, help="Resamples of the bootstrap and the tests.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Score all, compare, print tables."""
    import json

    from dialeval.io.files import plain, write_atomically
    from dialeval.io.tables import show
    from dialeval.readers.pairing import files_by_name
    from dialeval.reports.plots.figures import save
    from dialeval.reports.plots.systems import draw
    from dialeval.systems import rank as compare
    from dialeval.systems.ranking_outcome import LEGEND

    reports = {"--markdown": markdown, "--json": json_file, "--html": html_file, "--plot": plot}
    statistics: dict[str, Any] = {
        "allow_missing": allow_missing, "confidence": confidence, "resamples": resamples, "seed": seed,
    }  # fmt: skip
    given = [file for file in files if _is_scores(file)]
    if given and len(given) < len(files):
        raise ValueError("replies cannot be compared with scores; pass files of one kind")
    if given:
        ranking = _rank_scores(files, read("").columns, listed(lower_is_better), reports, statistics)
    else:
        named = {
            name: read(file, **reading.of_second(index, columns_b))
            for index, (name, file) in enumerate(files_by_name(files).items())
        }
        _check_places(reports, [*(source.input for source in named.values()), *files_of(metrics)])
        ranking = compare(
            named if len(files) > 1 else next(iter(named.values())),
            metrics_or_judge(metrics),
            level=level,
            reply_columns=listed(systems),
            progress=True,
            **statistics,
        )
    for warning in ranking.warnings:
        say(f"warning: {warning}", err=True)
    show([*(block for metric in ranking.metrics for block in ranking.tables(metric, aspects=aspects)), LEGEND])
    if markdown is not None:
        write_atomically(markdown, [ranking.to_markdown().rstrip("\n")])
    if json_file is not None:
        write_atomically(json_file, [json.dumps(plain(ranking.to_dict()), ensure_ascii=False, indent=1)])
    if html_file is not None:
        write_atomically(html_file, [ranking.to_html().rstrip("\n")])
    if plot is not None:
        save(draw(ranking), plot.with_suffix(""), [plot.suffix[1:]])


def _check_places(reports: Mapping[str, Path | None], reads: Iterable[object]) -> None:
    """Refuse, before anything is computed, what cannot be written."""
    from dialeval.io.places import check_places

    check_places(reports, reads)
    plot = reports["--plot"]
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{plot} is not a picture file; choose .png, .svg or .pdf")


def _is_scores(file: str) -> bool:
    """`scores:FILE`, or `NAME=scores:FILE`."""
    return file.startswith("scores:") or file.partition("=")[2].startswith("scores:")


def _rank_scores(
    files: list[str],
    columns: Mapping[str, str],
    lower_is_better: list[str],
    reports: Mapping[str, Path | None],
    statistics: Mapping[str, Any],
) -> Ranking:
    """Rank by what files of scores hold."""
    from dialeval.readers.pairing import files_by_name
    from dialeval.systems import rank

    places = [file.replace("scores:", "", 1).partition("#") for file in files]
    values = list(dict.fromkeys(column for *_, column in places if column))
    named = files_by_name(place for place, *_ in places)
    _check_places(reports, named.values())
    tables = named if len(files) > 1 else next(iter(named.values()))
    return rank(tables, values=values, columns=columns, lower_is_better=lower_is_better, **statistics)
