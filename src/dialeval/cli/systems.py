"""`dialeval rank`, `compare` and `gate`: which system is better, and whether the new one may replace the old."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import files_of, listed, metrics_or_judge, pairs, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dialeval.systems import Ranking


def compare(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A file of scores.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    lower_is_better: Annotated[list[str] | None, typer.Option(help="Columns for which lower is better.")] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="The scored rows, if score files have no ids: one file, or one each for A and B."),
    ] = None,
    columns_b: reading.ColumnsB = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Allow more than 10 % unpaired rows in one file.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=100, max=10**6, help="Resamples of the bootstrap and the permutation test.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Compare two files of scores, as `dialeval score` writes them for two systems, by paired tests.

    For each column that both have: the means, their difference with its bootstrap interval, and the p-value of a
    permutation test that swaps whole contexts. FILE#COLUMN chooses a column. A file of scores does not record its
    metric's options: both must have been scored with the same --scale and checkpoint.

    Rows belong together by id. Without ids, name the rows that were scored (--rows), which show whether they answer the
    same contexts; without either the files are refused. `dialeval rank` compares systems from their replies in one
    step; `dialeval agreement` tests which metric agrees better with people.

    [bold]Examples[/bold]

    $ dialeval compare old_scores.jsonl new_scores.jsonl

    $ dialeval compare old_scores.jsonl new_scores.jsonl --rows old_bot.jsonl --rows new_bot.jsonl
    """
    from dialeval.agreement.score_comparison import compare as compare_scores
    from dialeval.reports.output import show_verdicts

    read = reading.reader(context)
    verdicts = compare_scores(
        first,
        second,
        rows=[read(file, **reading.of_second(index, columns_b)) for index, file in enumerate(rows or ())],
        lower_is_better=listed(lower_is_better), allow_missing=allow_missing, resamples=resamples, seed=seed,
    )  # fmt: skip
    show_verdicts(verdicts)


def rank(
    context: typer.Context,
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
    """Compare several systems on replies to the same contexts, under one metric or several.

    Give one file with a column `system`, whose replies to one context are compared, or one file per system, with equal
    ids or the same contexts in the same order. For each metric: mean, interval, share of human replies below, share of
    pairs won, and clusters of systems that a test cannot tell apart. With --level dialogue whole conversations are
    compared: in pairs where the systems' conversations share their ids, else as groups.

    [bold]Other judges' scores[/bold]: scores:FILE holds no replies but a column of values (or several;
    scores:FILE#COLUMN chooses one) beside context (or id) and system; or one such file for each system.

    [bold]Examples[/bold]

    $ dialeval rank replies.jsonl

    $ dialeval rank small=small.jsonl large=large.jsonl --metric judge,deb --markdown ranking.md

    $ dialeval rank bots.csv --systems bot_a,bot_b,bot_c --aspects

    $ dialeval rank old.jsonl new.jsonl --level dialogue

    $ dialeval rank scores:judged.csv --columns context=question,system=bot

    $ dialeval rank a.jsonl b.jsonl c.jsonl --json ranking.json --html ranking.html --plot ranking.png
    """
    from dialeval.io.files import plain, write_atomically
    from dialeval.io.harmless import json_text
    from dialeval.io.tables import show
    from dialeval.readers.pairing import files_by_name
    from dialeval.reports.plots.figures import save
    from dialeval.reports.plots.own_scores import draw_ranking
    from dialeval.systems import rank as compare
    from dialeval.systems.ranking_outcome import LEGEND

    read = reading.reader(context)
    reports = {"--markdown": markdown, "--json": json_file, "--html": html_file, "--plot": plot}
    statistics: dict[str, Any] = {
        "allow_missing": allow_missing, "confidence": confidence, "resamples": resamples, "seed": seed,
    }  # fmt: skip
    # `scores:FILE`, or `NAME=scores:FILE`.
    given = [file for file in files if any(part.startswith("scores:") for part in (file, file.partition("=")[2]))]
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
        write_atomically(json_file, [json_text(plain(ranking.to_dict()), indent=1)])
    if html_file is not None:
        write_atomically(html_file, [ranking.to_html().rstrip("\n")])
    if plot is not None:
        save(draw_ranking(ranking), plot.with_suffix(""), [plot.suffix[1:]])


def _check_places(reports: Mapping[str, Path | None], reads: Iterable[object]) -> None:
    """Refuse, before anything is computed, what cannot be written."""
    from dialeval.io.places import check_places

    check_places(reports, reads)
    plot = reports["--plot"]
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{plot} is not a picture file; choose .png, .svg or .pdf")


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


_EXIT_CODES = {"passed": 0, "worse": 1, "undecided": 4, "not shown": 5}


def gate(
    context: typer.Context,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Rows of the new system.")],
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Rows of the baseline system.")],
    margin: Annotated[float, typer.Option(min=0, help="Accepted loss, in units of the scale.")],
    metric: Annotated[str, typer.Option("--metric", "-m", help="A metric of single replies.")] = "judge",
    max_rows: Annotated[
        list[str] | None,
        typer.Option("--max", help="Most rows of the new system that may be so: respectful<0.5=0 or =2%; repeatable."),
    ] = None,
    min_aspect: Annotated[
        list[str] | None,
        typer.Option("--min-aspect", help="Smallest accepted gain of an aspect: specific=-0.05; repeatable."),
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Checkpoint of the metric: folder, name or Hub id.")] = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Confidence level of the one-sided bound.")
    ] = 0.95,
    min_contexts: Annotated[
        int, typer.Option(min=1, help="Minimum contexts; with fewer the verdict is undecided.")
    ] = 30,
    scale: Annotated[Literal["native", "human_percentile"], typer.Option(help="Unit of the margin.")] = ("native"),
    columns_b: reading.ColumnsB = None,
    level: Annotated[
        Literal["turn", "dialogue"], typer.Option(help="Compare replies, or whole conversations.")
    ] = "turn",
    junit: Annotated[Path | None, typer.Option(help="Also write a JUnit report.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the verdict as Markdown, for a pull request.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures as JSON.")] = None,
    resamples: Annotated[
        int, typer.Option(min=100, max=10**6, help="Resamples of the bootstrap over contexts.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Test whether a new system is worse than a baseline by more than a margin, on replies to the same contexts.

    Both files hold rows of `dialeval score`. Rows belong together by their id; without ids both files must have the
    same contexts in the same order. The gate passes only on evidence: the lower bound of the gain, from resampled
    contexts, must be above minus the margin. Where it cannot tell, it says how many contexts like these the margin
    needs. With --level dialogue conversations are compared, in pairs if they share ids, else as groups.

    [bold]A mean hides rare faults[/bold]: --max limits how many rows of the new system meet a condition, --min-aspect
    gives an aspect a margin of its own. Without them, too, the verdict names aspects that fell significantly and new
    faults.

    [bold]Exit codes[/bold]: 0 passed; 1 worse, or over a limit; 2 an error; 4 undecided, since too few rows or contexts
    could be compared; 5 not shown: neither worse nor ruled out.

    [bold]Examples[/bold]

    $ dialeval gate new.jsonl --baseline old.jsonl --margin 0.05 --max 'respectful<0.5=0'

    $ dialeval gate new.jsonl -b old.jsonl --margin 0.05 --max 'judge<0.2=5%' --min-aspect specific=-0.05

    $ dialeval gate new_chats.jsonl -b old_chats.jsonl --margin 0.05 --level dialogue

    $ dialeval gate new.jsonl -b old.jsonl --margin 0.05 --junit gate.xml --markdown gate.md
    """
    from dialeval.io.files import write_atomically
    from dialeval.io.harmless import json_text
    from dialeval.io.places import check_places
    from dialeval.registry import check_options, load_metrics
    from dialeval.systems import gate as test

    read = reading.reader(context)
    reports = {"--junit": junit, "--markdown": markdown, "--json": json_file}
    check_places(reports, (new, baseline, checkpoint, *files_of([metric])))
    with _errors_in_reports(junit, markdown, json_file):
        weights = {metric: checkpoint} if checkpoint else {}
        check_options([metric], {}, weights)
        (loaded,) = load_metrics([metric], {}, weights).values()
        outcome = test(
            read(new),
            read(baseline, **reading.of_second(1, columns_b)),
            loaded, margin=margin, max_rows=pairs(max_rows, flag="--max", form="NAME<NUMBER=ROWS"),
            min_aspects=_numbers(min_aspect), confidence=confidence, min_contexts=min_contexts, scale=scale,
            level=level, resamples=resamples, seed=seed, names=(new, baseline), progress=True,
        )  # fmt: skip
        for path, text in (
            (junit, outcome.to_junit),
            (markdown, outcome.to_markdown),
            (json_file, lambda: json_text(outcome.to_dict(), indent=1)),
        ):
            if path is not None:
                write_atomically(path, [text().rstrip("\n")])
    for warning in outcome.warnings:
        say(f"warning: {warning}", err=True)
    say(outcome.sentence)
    raise typer.Exit(_EXIT_CODES[outcome.verdict])


def _numbers(options: list[str] | None) -> dict[str, float]:
    """Aspects and numbers."""
    numbers = {}
    for aspect, number in pairs(options, flag="--min-aspect", form="ASPECT=NUMBER").items():
        try:
            numbers[aspect] = float(number)
        except ValueError:
            raise ValueError(f"--min-aspect {aspect}={number}: {number!r} is no number; write {aspect}=-0.05") from None
    return numbers


#: What stands in a report until there is a verdict, and stays there if nothing of this program runs any more.
_UNFINISHED = "the gate has not finished: it is still running, or was stopped"


@contextmanager
def _errors_in_reports(junit: Path | None, markdown: Path | None, json_file: Path | None) -> Iterator[None]:
    """Replace any earlier report, so that a failed run leaves its error instead."""
    from dialeval.io.files import hub_tokens, is_stream, write_atomically
    from dialeval.io.harmless import json_text, without_secrets
    from dialeval.systems.gate_outcome import error_as_junit, error_as_markdown

    def tell(message: str) -> Iterator[tuple[Path, str]]:
        message = without_secrets(message, hub_tokens())
        reports = {
            junit: error_as_junit(message),
            markdown: error_as_markdown(message),
            json_file: json_text({"passed": False, "error": message}, indent=1),
        }
        return ((path, text.rstrip("\n")) for path, text in reports.items() if path is not None)

    for path, text in tell(_UNFINISHED):
        if not is_stream(path):
            write_atomically(path, [text])
    try:
        yield
    except Exception as error:
        for path, text in tell(str(error) or type(error).__name__):
            with suppress(OSError):  # where nothing can be written the error itself has to do
                write_atomically(path, [text])
        raise
