"""A paper's figures, drawn from our values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.agreement.results import Panel
from dialeval.agreement.runs import Reporter
from dialeval.reports.plots.figures import COLOURS, new_figure
from dialeval.reports.plots.panels import distributions, reply_labels, scatters
from reproduce.papers.measured import Answers, panel
from reproduce.papers.tables import Chart, Column, Paper, Picture, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A point of a chart: its label, the published number, ours with its interval.
_Point = tuple[str, float | None, tuple[float, float, float] | None]


def draw(
    paper: Paper,
    found: Answers,
    values: Path,
    *,
    mirror: str | None = None,
    reporter: Reporter | None = None,
) -> Iterator[tuple[str, Figure]]:
    """Every figure of a paper for which there is something to draw, by its name."""
    for asked in paper.figures:
        figure = None
        if isinstance(asked, Chart):
            figure = chart(asked, paper, found)
        else:
            behind = panel(asked, values, mirror=mirror, reporter=reporter)
            figure = picture(asked, behind) if behind is not None else None
        if figure is not None:
            yield asked.name, figure


def picture(asked: Picture, behind: Panel) -> Figure:
    """How single scores spread, or how they follow people."""
    if asked.kind == "scatter":
        return next(scatters(behind, seed=0))[1]
    return distributions(behind.marked_columns, reply_labels(behind), kind=asked.kind, title=asked.benchmark)


def chart(asked: Chart, paper: Paper, found: Answers) -> Figure | None:
    """Ours as filled marks with their intervals, the paper's as hollow ones; None where ours has no number."""
    lines = dict(_lines(asked, paper, found))
    if not any(ours for points in lines.values() for _, _, ours in points):
        return None
    figure = new_figure(1.5 + 0.9 * max(map(len, lines.values())), 3.2)
    axes = figure.subplots()
    # Between corpora there is nothing to join; between more and less of something there is.
    drawn, dashed = ("-", "--") if asked.points else ("", "")
    for number, (name, points) in enumerate(lines.items()):
        # Beside each other, so that intervals do not cover each other.
        shift = 0.12 * (number - (len(lines) - 1) / 2)
        colour = COLOURS[number % len(COLOURS)]
        printed = [(place + shift, value) for place, (_, value, _) in enumerate(points) if value is not None]
        if printed:
            places, values = _across(printed)
            axes.plot(places, values, f"o{dashed}", color=colour, mfc="white", linewidth=0.8, label=f"{name}, paper")
        measured = [(place + shift, *ours) for place, (_, _, ours) in enumerate(points) if ours is not None]
        if measured:
            places, values, low, high = _across(measured)
            axes.plot(places, values, f"o{drawn}", color=colour, label=f"{name}, ours")
            axes.vlines(places, low, high, color=colour, linewidth=1)
    labels = [label for label, _, _ in next(iter(lines.values()))]
    axes.set_xticks(range(len(labels)), labels=labels, fontsize="small")
    (axes.set_xlabel if asked.points else axes.set_ylabel)(asked.axis)
    axes.legend(frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _across(rows: Sequence[tuple[float, ...]]) -> list[list[float]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _lines(asked: Chart, paper: Paper, found: Answers) -> Iterator[tuple[str, list[_Point]]]:
    (table,) = [one for one in paper.tables if one.title == asked.table]
    rows = {row.label: row for row in table.rows}
    columns = {column.title: column for column in table.columns}
    if asked.points is None:
        # "ρ" in a title as "Daily(Z) ρ" says what is drawn; the rest is the label.
        drawn = {title.removesuffix(f" {asked.axis}"): column for title, column in columns.items()}
        drawn = {label: column for label, column in drawn.items() if column.title != label}
        for name in asked.lines:
            yield name, [_point(label, rows[name], column, found) for label, column in drawn.items()]
    else:
        for name in asked.lines:
            yield name, [_point(label, rows[row], columns[name], found) for label, row in asked.points.items()]


def _point(label: str, row: Row, column: Column, found: Answers) -> _Point:
    answer = found.get((str(row.ours), column.question)) if column.question else None
    ours = None
    if answer is not None and answer.result is not None:
        result = answer.result
        ours = (column.scale * result.value, column.scale * result.low, column.scale * result.high)
    return label, row.published.get(column.title), ours
