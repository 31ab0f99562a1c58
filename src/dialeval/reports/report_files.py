"""Everything that a run leaves in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval.agreement.results import Report
from dialeval.io.files import write_atomically
from dialeval.reports.leaderboard import render_markdown, render_page

_FORMATS = ("png", "svg")
#: Beside pictures; what is read must not be one of them.
FILES = (
    *(f"{name}.jsonl" for name in "agreement tests excluded halves overall filters aspects".split()),
    *("run.json", "leaderboard.md", "leaderboard.html"),
)


def write_outputs(report: Report, folder: Path, plots: Sequence[str] = ("png",)) -> list[Path]:
    """Write tables, leaderboards and plots; formats are `png` and `svg`, none for no plots."""
    written = report.write(folder) + write_pages(report, folder)
    if plots:
        from dialeval.reports.pictures import draw_all

        written += draw_all(report, folder / "plots", plots)
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
