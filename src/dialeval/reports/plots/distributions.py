"""How a metric's scores spread over kinds of replies, or over systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dialeval.reports.plots.figures import new_grid
from dialeval.statistics.correlation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def distributions(
    columns: Mapping[str, ArrayLike],
    labels: Sequence[str],
    *,
    kind: str = "violin",
    title: str = "",
) -> Figure:
    """Each metric's scores by what kind of reply, or whose reply, they judge; a box, violin or histogram each."""
    owners = np.array([str(label) for label in labels], dtype=object)
    names = list(dict.fromkeys(owners.tolist()))
    figure, panels = new_grid(len(columns), 3.6, 2.0 + 0.18 * len(names) if kind != "histogram" else 2.8)
    for (metric, values), axes in zip(columns.items(), panels, strict=True):
        column = np.asarray(values, dtype=np.float64)
        parts = [column[(owners == name) & np.isfinite(column)] for name in names]
        if kind == "histogram":
            _draw_histogram(axes, names, parts)
        else:
            _draw_shapes(axes, kind, parts)
            first = axes.get_subplotspec().is_first_col()
            axes.set_yticks(range(len(names), 0, -1), labels=names if first else [], fontsize="x-small")
        axes.set_title(f"{metric} (n {sum(map(len, parts))})", fontsize="small")
    figure.suptitle(title, fontsize="medium")
    return figure


def _draw_shapes(axes: Axes, kind: str, parts: Sequence[Floats]) -> None:
    filled = [(len(parts) - number, part) for number, part in enumerate(parts) if len(part)]
    if not filled:
        return
    positions, shown = zip(*filled, strict=True)
    if kind == "violin":
        axes.violinplot(shown, positions=positions, orientation="horizontal", showmedians=True, widths=0.8)
    else:
        axes.boxplot(shown, positions=positions, orientation="horizontal", sym=".", widths=0.6)
    axes.set_ylim(0.3, len(parts) + 0.7)


def _draw_histogram(axes: Axes, names: Sequence[str], parts: Sequence[Floats]) -> None:
    filled = [part for part in parts if len(part)]
    if not filled:
        return
    edges = np.histogram_bin_edges(np.concatenate(filled), bins=40).tolist()
    for name, part in zip(names, parts, strict=True):
        if len(part):
            axes.hist(part, bins=edges, density=True, alpha=0.5, label=f"{name} (n {len(part)})")
    axes.legend(frameon=False, fontsize="x-small")
