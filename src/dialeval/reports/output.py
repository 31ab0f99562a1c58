"""Everything that a run leaves in its folder, and what it shows on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dialeval.agreement.on_benchmark import Advance
from dialeval.agreement.results import Report
from dialeval.agreement.runs import Reporter
from dialeval.agreement.score_comparison import Verdict
from dialeval.agreement.sections import number, p_value
from dialeval.io.files import progress_bar, write_atomically
from dialeval.io.harmless import one_line
from dialeval.io.places import drop_former
from dialeval.io.tables import Table
from dialeval.io.tables import show as print_blocks
from dialeval.reports.leaderboard import render_markdown, render_page, tables

_FORMATS = ("png", "svg")
#: What a run may leave; what is read must not be one of them.
FILES = (
    *(f"{name}.jsonl" for name in "agreement tests excluded halves overall filters aspects".split()),
    *("run.json", "leaderboard.md", "leaderboard.html"),
    *(f"plots/{kind}_*.{form}" for kind in ("scatter", "violin", "heatmap") for form in _FORMATS),
)


def write_outputs(report: Report, folder: Path, plots: Sequence[str] = ("png",)) -> list[Path]:
    """Write tables, leaderboards and plots; formats are `png` and `svg`, none for no plots."""
    written = report.write(folder) + write_pages(report, folder)
    if plots:
        from dialeval.reports.plots.panels import draw_all

        written += draw_all(report, folder / "plots", plots)
    drop_former(folder, FILES, written)
    return written


def write_pages(report: Report, folder: Path) -> list[Path]:
    """Write the leaderboards."""
    written = []
    for name, text in (("leaderboard.md", render_markdown(report)), ("leaderboard.html", render_page(report))):
        write_atomically(folder / name, [text.rstrip("\n")])
        written.append(folder / name)
    return written


def plot_formats(text: str) -> tuple[str, ...]:
    """`png`, `svg`, both with a comma, or `none`."""
    if text == "none":
        return ()
    formats = tuple(part.strip() for part in text.split(","))
    if wrong := [form for form in formats if form not in _FORMATS]:
        raise ValueError(f"plots cannot be written as {wrong[0]!r}; choose png, svg, png,svg or none")
    return formats


class ConsoleReporter(Reporter):
    """Shows how far a run is, a bar for each metric and benchmark, and says what is left out, on standard error."""

    def __init__(self, bars: ExitStack) -> None:
        self._bars = bars

    def begin(self, metric: str, benchmark: str, rows: int) -> Advance:
        """A new bar in place of the last one."""
        self._bars.close()
        return self._bars.enter_context(progress_bar(f"{metric} on {benchmark}", rows, shown=True))

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        print(one_line(text), file=sys.stderr)


@contextmanager
def telling(*, quiet: bool = False) -> Iterator[Reporter]:
    """Bars and notes while the run goes on, or nothing."""
    with ExitStack() as bars:
        yield Reporter() if quiet else ConsoleReporter(bars)


def show(report: Report) -> None:
    """The leaderboard, question by question."""
    print_blocks(tables(report))


_NO_CONTEXTS = (
    "contexts are unknown, so every row counts as its own context; if several rows share a context, p is too "
    "small: pass the rows that were scored (--rows)"
)


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Two files of scores: in every row which files, which metric, which way is better, and what follows."""
    header = ["metric", "A", "mean of A", "B", "mean of B", "A − B", "p", "rows", "contexts", "verdict"]
    rows = []
    for comparison in verdicts:
        means = [comparison.first, number(comparison.mean_first), comparison.second, number(comparison.mean_second)]
        counts = [p_value(comparison.p), str(comparison.n_rows), str(comparison.n_contexts), comparison.verdict]
        rows.append([f"{comparison.metric} ({comparison.direction})", *means, _difference(comparison), *counts])
    notes = dict.fromkeys(comparison.left_out for comparison in verdicts if comparison.left_out)
    if not all(comparison.knows_contexts for comparison in verdicts):
        notes[_NO_CONTEXTS] = None
    print_blocks([*notes, Table(header, rows, (0, 1, 3, 9))])


def _difference(comparison: Verdict) -> str:
    interval = f" [{number(comparison.low)}, {number(comparison.high)}]" if math.isfinite(comparison.low) else ""
    return f"{comparison.difference:+.3f}{interval}"
