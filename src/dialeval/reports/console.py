"""What a run shows on a terminal: a bar per metric and benchmark, then one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialeval.agreement.leaderboard import number, p_value
from dialeval.agreement.results import Report
from dialeval.agreement.runs import Reporter
from dialeval.agreement.score import Advance
from dialeval.agreement.score_comparison import Verdict
from dialeval.reports.leaderboard import tables
from dialeval.tables import Table
from dialeval.tables import show as print_blocks


class ConsoleReporter(Reporter):
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
    print_blocks(tables(report))


_NO_CONTEXTS = (
    "contexts are not known, so every row counts as one of its own; if several rows answer the same context, p is too "
    "small: name the rows that were scored (--rows)"
)


def show_verdicts(found: Sequence[Verdict]) -> None:
    """Two files of scores: in every row which files, which metric, which way is better, and what follows."""
    header = ["metric", "A", "mean of A", "B", "mean of B", "A − B", "p", "rows", "contexts", "verdict"]
    rows = []
    for one in found:
        means = [one.first, number(one.mean_first), one.second, number(one.mean_second)]
        counts = [p_value(one.p), str(one.n_rows), str(one.n_contexts), one.verdict]
        rows.append([f"{one.metric} ({one.direction})", *means, _difference(one), *counts])
    notes = dict.fromkeys(one.left_out for one in found if one.left_out)
    if not all(one.knows_contexts for one in found):
        notes[_NO_CONTEXTS] = None
    print_blocks([*notes, Table(header, rows, (0, 1, 3, 9))])


def _difference(one: Verdict) -> str:
    interval = f" [{number(one.low)}, {number(one.high)}]" if math.isfinite(one.low) else ""
    return f"{one.difference:+.3f}{interval}"
