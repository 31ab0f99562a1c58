"""Pictures of agreement: people against metrics, metrics against each other.

Every function takes plain columns and returns a matplotlib figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dialeval.agreement.leaderboard import number
from dialeval.reports.plots.figures import INK, MARK, new_figure, new_grid
from dialeval.statistics.correlation import Floats, pearson, spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Standard deviation of the jitter of human scores in scatter plots; their few distinct values would hide each other.
JITTER = 0.03


def scatter(columns: Mapping[str, ArrayLike], human: ArrayLike, *, title: str = "", seed: int = 0) -> Figure:
    """People against each metric, both from 0 to 1, with the regression line of the points before jitter."""
    people = np.asarray(human, dtype=np.float64)
    figure, panels = new_grid(len(columns), 3.2, 3.2)
    for (name, values), axes in zip(columns.items(), panels, strict=True):
        column = np.asarray(values, dtype=np.float64)
        kept = np.isfinite(column) & np.isfinite(people)
        x, y = _unit(people[kept]), _unit(column[kept])
        noise = np.random.default_rng(seed).normal(0, JITTER, len(x))
        axes.plot(x + noise, y, ".", color=MARK, markersize=3, alpha=0.5)
        if len(x) > 1 and np.ptp(x) > 0:
            slope, start = np.polyfit(x, y, 1)
            axes.plot([0, 1], [start, start + slope], color=INK, linewidth=1.4)
        r, rho = pearson(column[kept], people[kept]).value, spearman(column[kept], people[kept]).value
        axes.set_title(f"{name}\nr {number(r)}, ρ {number(rho)}, n {len(x)}", fontsize="small")
        axes.set_xlabel("people, scaled", fontsize="small")
    panels[0].set_ylabel("metric, scaled", fontsize="small")
    figure.suptitle(title, fontsize="medium")
    return figure


def heat_map(columns: Mapping[str, ArrayLike], *, title: str = "") -> Figure:
    """How metrics (and people) correlate with each other: Spearman, on the rows that each pair shares."""
    names = list(columns)
    table = agreement_table(columns)
    figure = new_figure(2.4 + 0.62 * len(names), 1.8 + 0.55 * len(names))
    axes = figure.subplots()
    image = axes.imshow(table, vmin=-1, vmax=1, cmap="RdBu_r")
    axes.set_xticks(range(len(names)), labels=names, rotation=45, ha="right", fontsize="small")
    axes.set_yticks(range(len(names)), labels=names, fontsize="small")
    for (row, column), value in np.ndenumerate(table):
        colour = "white" if abs(value) > 0.6 else INK
        axes.text(
            column,
            row,
            f"{value:.2f}" if math.isfinite(value) else "–",
            ha="center",
            va="center",
            color=colour,
            fontsize="x-small",
        )
    figure.colorbar(image, ax=axes, shrink=0.8, label="Spearman")
    axes.set_title(title, fontsize="medium", loc="left")
    return figure


def agreement_table(columns: Mapping[str, ArrayLike]) -> Floats:
    """Spearman's correlation of every pair of columns, on the rows that both have."""
    table = np.array([np.asarray(values, dtype=np.float64) for values in columns.values()])
    correlations = np.eye(len(table))
    for line in range(len(table)):
        for other in range(line):
            both = np.isfinite(table[line]) & np.isfinite(table[other])
            correlations[line, other] = correlations[other, line] = spearman(
                table[line][both], table[other][both]
            ).value
    return correlations


def _unit(x: Floats) -> Floats:
    spread = np.ptp(x) if len(x) else 0.0
    return np.asarray((x - x.min()) / spread) if spread > 0 else np.full(len(x), 0.5)
