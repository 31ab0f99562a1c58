"""One's own scores in pictures: by system, the aspects, against length and turn number; and how systems compare."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Dialogue, Exchange
from dialeval.core.scores import explaining_columns, turns_column
from dialeval.io.files import parse_json
from dialeval.readers.score_files import records, row_scores
from dialeval.reports.plots.figures import COLOURS, new_figure, new_grid
from dialeval.statistics.correlation import spearman
from dialeval.systems.ranking_outcome import Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

Vector = NDArray[np.float64]

_BINS, _MOST_SYSTEMS = 20, 100
_HALF = re.compile("[\ud800-\udfff]")
_ROW = re.compile(r"\d{1,15}(\.0)?")
#: Columns of numbers that are no scores.
_OTHERS = frozenset({"row", "id", "system", "language", "response"})


def read_table(path: Path) -> DataFrame:
    """A file that `dialeval score` wrote."""
    import pandas as pd

    rows = [
        {**row, **row_scores(where, row), "row": _row_number(where, row)} for where, row in records(path, str(path))
    ]
    if not rows:
        raise ValueError(f"{path} has no rows; pass a file written by dialeval score")
    table = pd.DataFrame(rows)
    if np.isinf(table.select_dtypes("number").to_numpy(dtype=float)).any():
        raise ValueError(f"{path} holds a value without end, which cannot be drawn; leave its row out")
    return table


def _row_number(where: str, row: Mapping[str, Any]) -> int:
    if any(_HALF.search(text) for text in (*row, *row.values()) if isinstance(text, str)):
        raise ValueError(f"{where} holds a lone surrogate, which nothing can show; repair its encoding")
    number = row.get("row")  # of CSV a text, and of Parquet perhaps a float
    if not isinstance(number, int | str | float) or not _ROW.fullmatch(str(number)):
        raise ValueError(f"{where} has no number in a column row; pass a file written by dialeval score")
    return int(float(number))


def metric_of(table: DataFrame, wanted: str | None) -> str:
    """The column to draw: the one that is named, else the first metric's."""
    names = [str(name) for name in table.select_dtypes("number") if name not in _OTHERS]
    if wanted is not None and wanted not in names:
        raise ValueError(f"there is no column {wanted!r} of numbers; there are {', '.join(names) or 'none'}")
    if not names:
        raise ValueError("the file has no column of numbers beside row")
    return wanted or names[0]


def scores(
    table: DataFrame, metric: str, rows: Mapping[int, Exchange | Dialogue] | None = None, *, title: str = ""
) -> Figure:
    """A histogram by system, the aspects by system, with the rows, by their numbers, value against length and turn
    number, and where the table has the values of a conversation's turns, these against their numbers."""
    named = table["system"].notna().any() if "system" in table else False
    systems = table["system"].fillna("").astype(str) if named else table["row"].map(lambda _: "all")
    aspects = [
        name
        for name in table
        if str(name).startswith(f"{metric}.") and table[name].dtype.kind == "f" and table[name].notna().any()
        and name not in explaining_columns(metric)
    ]  # fmt: skip
    parts = {name: rows for name, rows in table.groupby(systems, sort=False) if rows[metric].notna().any()}
    if not parts:
        raise ValueError(f"no row has a value in {metric}")
    if len(parts) > _MOST_SYSTEMS:
        raise ValueError(f"there are {len(parts):,} systems; a picture has room for {_MOST_SYSTEMS}")
    against = _places(table, metric, [] if rows is None else _scored(table, rows))
    figure, panels = new_grid(1 + bool(aspects) + len(against), 3.6, 3.0)
    _histogram(panels[0], parts, metric)
    if aspects:
        _aspects(panels[1], parts, aspects)
    for axes, (name, (places, values)) in zip(panels[1 + bool(aspects) :], against.items(), strict=True):
        _against(axes, name, places, values, metric)
    figure.suptitle(title, fontsize="medium")
    return figure


def _scored(table: DataFrame, rows: Mapping[int, Exchange | Dialogue]) -> list[Exchange | Dialogue]:
    """The row behind each of the scores."""
    for row, named in zip(table["row"], table.get("id", table["row"]), strict=True):
        if int(row) not in rows:
            raise ValueError(f"row {row} is in the scores, but not in the rows; pass the rows that were scored")
        if (
            (id_of_row := rows[int(row)].id) is not None
            and isinstance(named, str)
            and named.removeprefix("'") != id_of_row
        ):
            raise ValueError(
                f"row {row} is {named!r} in the scores and {id_of_row!r} in the rows; pass the rows that were scored"
            )
    return [rows[int(row)] for row in table["row"]]


def _places(table: DataFrame, metric: str, items: Sequence[Exchange | Dialogue]) -> dict[str, tuple[Vector, Vector]]:
    """What values are drawn against, and the values."""
    points: dict[str, tuple[Vector, Vector]] = {}

    def add(name: str, places: Sequence[int]) -> None:
        points[name] = np.asarray(places, dtype=float), table[metric].to_numpy(dtype=float)

    replies = [item for item in items if isinstance(item, Exchange)]
    talks = [item for item in items if isinstance(item, Dialogue)]
    if replies:
        add("words of the reply", [len(reply.response.split()) for reply in replies])
        add("turn", [1 + len(reply.context) for reply in replies])
    if talks:
        add("words of the conversation", [sum(len(turn.split()) for turn in talk.turns) for talk in talks])
        add("turns of the conversation", [len(talk.turns) for talk in talks])
    if turns_column(metric) in table:
        cells = table[turns_column(metric)].dropna()
        each = [_of_turns(cell, turns_column(metric)) for cell in cells]
        numbers = [np.arange(1.0, 1 + len(column)) for column in each]
        points["turn"] = np.concatenate([np.zeros(0), *numbers]), np.concatenate([np.zeros(0), *each])
    return points


def _of_turns(cell: Any, column: str) -> Vector:
    try:
        values = np.array(parse_json(cell) if isinstance(cell, str) else cell, dtype=float)
    except (ValueError, TypeError):
        values = np.zeros(())
    if values.ndim != 1:
        raise ValueError(f"{column} holds {str(cell)[:60]!r}, which are no values of turns")
    return values


def _histogram(axes: Axes, parts: Mapping[Any, DataFrame], metric: str) -> None:
    values = {name: part[metric].dropna().to_numpy() for name, part in parts.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=_BINS)
    for index, (name, value) in enumerate(values.items()):
        label = f"{name}: {value.mean():.3g} (n {len(value)})"
        axes.hist(value, edges.tolist(), histtype="step", color=COLOURS[index % len(COLOURS)], label=label)
    axes.set_xlabel(metric)
    axes.legend(frameon=False, fontsize="x-small")


def _aspects(axes: Axes, parts: Mapping[Any, DataFrame], aspects: Sequence[str]) -> None:
    height = 0.8 / len(parts)
    for index, part in enumerate(parts.values()):
        places = np.arange(len(aspects)) + index * height
        axes.barh(places, part[list(aspects)].mean().to_numpy(), height, color=COLOURS[index % len(COLOURS)])
    labels = [name.partition(".")[2].replace("_", " ") for name in aspects]
    axes.set_yticks(np.arange(len(aspects)) + 0.4 - height / 2, labels=labels, fontsize="x-small")
    axes.invert_yaxis()
    axes.set_xlabel("mean of each aspect")


def _against(axes: Axes, name: str, places: Vector, values: Vector, metric: str) -> None:
    known = np.isfinite(values)
    axes.plot(places[known], values[known], ".", markersize=3, alpha=0.5, color=COLOURS[0])
    if len(set(places[known])) > 1 and len(set(values[known])) > 1:
        axes.set_title(f"Spearman {spearman(places[known], values[known]).value:.2f}", fontsize="small")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel(name)
    axes.set_ylabel(metric)


def draw_ranking(ranking: Ranking) -> Figure:
    """A dot and an interval per system, a panel per metric."""
    metrics = ranking.metrics
    rows = max(len(ranking.of(metric)) for metric in metrics)
    figure = new_figure(4.2 * len(metrics), 1.2 + 0.4 * rows)
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for metric, panel in zip(metrics, panels, strict=True):
        standings = ranking.of(metric)[::-1]
        means = [standing.mean for standing in standings]
        # Of equal values the mean and the ends of its interval may differ by a rounding, on either side.
        below = [max(0.0, standing.mean - standing.low) for standing in standings]
        above = [max(0.0, standing.high - standing.mean) for standing in standings]
        places = range(len(standings))
        panel.errorbar(means, places, xerr=[below, above], fmt="o", color="#1f6feb", ecolor="#5b6472", capsize=3)
        panel.set_yticks(places, [f"{standing.system} ({standing.cluster})" for standing in standings])
        panel.set_ylim(-0.6, len(standings) - 0.4)
        panel.set_title(metric)
        panel.set_xlabel(f"mean and {ranking.confidence:.0%} interval; (cluster)")
        panel.grid(axis="x", alpha=0.3)
    return figure
