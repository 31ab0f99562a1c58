"""Pictures of agreement: people against metrics, metrics against each other, scores by kind of reply or by system.

Every function takes plain columns and returns a matplotlib figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dialeval.agreement.results import Panel, Report
from dialeval.agreement.sections import number
from dialeval.io.files import safe_name
from dialeval.reports.plots.figures import INK, MARK, new_figure, new_grid, save
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
        text, colour = f"{value:.2f}" if math.isfinite(value) else "–", "white" if abs(value) > 0.6 else INK
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize="x-small")
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


def distributions(columns: Mapping[str, ArrayLike], labels: Sequence[str], *, title: str = "") -> Figure:
    """Each metric's scores by what kind of reply, or whose reply, they judge; a violin each."""
    owners = np.array([str(label) for label in labels], dtype=object)
    names = list(dict.fromkeys(owners.tolist()))
    figure, panels = new_grid(len(columns), 3.6, 2.0 + 0.18 * len(names))
    for (metric, values), axes in zip(columns.items(), panels, strict=True):
        column = np.asarray(values, dtype=np.float64)
        parts = [column[(owners == name) & np.isfinite(column)] for name in names]
        if filled := {len(parts) - number: part for number, part in enumerate(parts) if len(part)}:
            shapes = {"orientation": "horizontal", "showmedians": True, "widths": 0.8}
            axes.violinplot(list(filled.values()), positions=list(filled), **shapes)
            axes.set_ylim(0.3, len(parts) + 0.7)
        first = axes.get_subplotspec().is_first_col()
        axes.set_yticks(range(len(names), 0, -1), labels=names if first else [], fontsize="x-small")
        axes.set_title(f"{metric} (n {sum(map(len, parts))})", fontsize="small")
    figure.suptitle(title, fontsize="medium")
    return figure


#: With more systems than this, violins per system are a thicket.
_MOST_SYSTEMS = 25


def draw_all(report: Report, folder: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Draw and save every picture of a report; the names say what they show."""
    return [
        path
        for name, figure in _pictures(report)
        for path in save(figure, folder / safe_name(name.replace("_standard", "")), formats)
    ]


def _pictures(report: Report) -> Iterator[tuple[str, Figure]]:
    for panel in report.panels:
        if not panel.columns:
            continue
        yield from scatters(panel, seed=report.settings.seed)
        judged, columns, labels = panel.judged, panel.marked_columns, reply_labels(panel)
        if len(set(labels)) in range(2, _MOST_SYSTEMS + 1):
            yield f"violin_{panel_name(panel)}", distributions(columns, labels, title=judged.info.name)
        people = judged.labels if judged.labels is not None else next(iter(judged.scores.values()))
        yield f"heatmap_{panel_name(panel)}", heat_map({"people": people, **columns}, title=judged.info.name)


def scatters(panel: Panel, *, seed: int) -> Iterator[tuple[str, Figure]]:
    """People against metrics, one figure per aspect; labels of 0 and 1 are no scatter."""
    for cut, _ in panel.questions:
        if cut.level != "system" and not cut.is_labelled:
            columns = {metric: column[cut.rows] for metric, column in panel.marked_columns.items()}
            title = f"{panel.judged.info.name}, {cut.aspect}"
            yield f"scatter_{panel_name(panel)}_{cut.aspect}", scatter(columns, cut.human, title=title, seed=seed)


def reply_labels(panel: Panel) -> list[str]:
    """What sort of reply each row holds: the kind where replies are labelled, else the system."""
    judged = panel.judged
    return judged.kinds if judged.kinds is not None else [system or "?" for system in judged.systems]


def panel_name(panel: Panel) -> str:
    """The benchmark and its protocol."""
    return f"{panel.judged.info.name}_{panel.judged.info.protocol}"
