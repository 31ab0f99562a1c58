"""What a run shows on a terminal: a bar per metric and benchmark, then one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dialeval.agreement.leaderboard import TITLES, Section, number, p_value, sections, with_interval
from dialeval.agreement.pair_tests import PairTestRow
from dialeval.agreement.results import Report, marked
from dialeval.agreement.score import Advance
from dialeval.agreement.score_comparison import Verdict
from dialeval.reports.aspect_tables import aspect_tables
from dialeval.reports.by_system_columns import further_columns, who_spoke


class ConsoleReporter:
    """Shows how far a run is, and says what is left out, on standard error."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, metric: str, benchmark: str, rows: int) -> Advance:
        """A bar that shows once there is something to tell, and goes when it is full."""
        task = self._progress.add_task(f"{metric} on {benchmark}", total=rows, visible=False)
        left = rows

        def advance(done: int) -> None:
            nonlocal left
            left -= done
            self._progress.update(task, advance=done, visible=left > 0)

        return advance

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(escape(text), style="yellow", soft_wrap=True)


@contextmanager
def telling(*, quiet: bool = False) -> Iterator[ConsoleReporter]:
    """Bars while the run goes on; without a terminal, or quiet, only the notes."""
    console = Console(stderr=True, quiet=quiet)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield ConsoleReporter(progress)


def show(report: Report) -> None:
    """The leaderboard, question by question."""
    console = wide_console()
    for section in sections(report):
        table = Table(title=escape(section.title), caption=escape(_caption(section)))
        table.add_column("metric", no_wrap=True)
        for name in section.statistics:
            table.add_column(TITLES[name], justify="right")
        table.add_column("p", justify="right")
        table.add_column("n", justify="right")
        further = further_columns(section)
        for column in further:
            table.add_column(column.title, justify="right")
        for entry in section.entries:
            main = entry.results.get(section.ranked_by) or next(iter(entry.results.values()))
            name = escape(marked(entry.metric, entry.contaminated))
            cells = [
                escape(with_interval(entry.results[one])) if one in entry.results else number(float("nan"))
                for one in section.statistics
            ]
            style = "bold" if main.in_best_group else ""
            cells += [p_value(main.p), str(main.n), *(escape(column.of(main)) for column in further)]
            table.add_row(name, *cells, style=style)
        console.print(table)
    for aspects in aspect_tables(report):
        table = Table(*map(escape, aspects.header), title=escape(aspects.title))
        for row in aspects.rows():
            table.add_row(*map(escape, row))
        console.print(table)
    if any(result.contaminated for result in report.results):
        console.print("† the metric was trained on this benchmark")


def show_lines(first: str, second: str, lines: Sequence[PairTestRow], level: float) -> None:
    """The statistics, tests and verdicts of two metrics, a table for each question."""
    tests = list(dict.fromkeys(name for line in lines for name in line.p))
    headers = (
        "statistic",
        escape(first),
        escape(second),
        "difference",
        *(f"p ({name})" for name in tests),
        "n",
        "verdict",
    )
    for question in dict.fromkeys(line.question for line in lines):
        table = Table(*headers, title=escape(question))
        for line in (one for one in lines if one.question == question):
            interval = f" [{number(line.low)}, {number(line.high)}]" if math.isfinite(line.low) else ""
            table.add_row(
                TITLES.get(line.statistic, line.statistic),
                number(line.first),
                number(line.second),
                escape(f"{line.difference:+.3f}{interval}"),
                *(p_value(line.p[name]) if name in line.p else "" for name in tests),
                str(line.n),
                escape(line.verdict(first, second, level)),
            )
        wide_console().print(table)


def show_verdicts(found: Sequence[Verdict]) -> None:
    """Two files of scores: in every row which files, which metric, which way is better, and what follows."""
    for note in dict.fromkeys(one.left_out for one in found if one.left_out):
        wide_console().print(escape(note))
    table = Table("metric", "A", "mean of A", "B", "mean of B", "A − B", "p", "rows", "contexts", "verdict")
    for one in found:
        interval = f" [{number(one.low)}, {number(one.high)}]" if math.isfinite(one.low) else ""
        table.add_row(
            escape(f"{one.metric} ({one.direction})"),
            escape(one.first),
            number(one.mean_first),
            escape(one.second),
            number(one.mean_second),
            escape(f"{one.difference:+.3f}{interval}"),
            p_value(one.p),
            str(one.n_rows),
            str(one.n_contexts),
            escape(one.verdict),
        )
    wide_console().print(table)


def wide_console() -> Console:
    """Standard output; in a file or pipe tables are not squeezed into eighty columns."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def _caption(section: Section) -> str:
    lines = [section.facts]
    lines += [f"People: {section.people}"] if section.people else []
    lines += [f"Who spoke: {baseline}"] if (baseline := who_spoke(section)) else []
    return "\n".join(lines)
