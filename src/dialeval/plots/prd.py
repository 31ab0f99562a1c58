"""Precision and recall of systems, as PRD sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.plots.figures import SOFT, new_figure
from dialeval.scores import Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of matplotlib's cycle; more lines than that would repeat them.
_MOST_SYSTEMS = 10


def precision_recall(scores: Scores, *, title: str = "") -> Figure:
    """The curve of each system in the scores of `prd`, best first; the value is the best F1 on it."""
    curves = [scores.details.get(side) for side in ("precision", "recall")]
    if curves[0] is None or curves[1] is None:
        raise ValueError(f"scores of {scores.metric} hold no curves; pass those of prd")
    names = scores.ids or (None,) * len(scores)
    best = sorted(range(len(scores)), key=lambda number: -scores.values[number])[:_MOST_SYSTEMS]
    figure = new_figure(5.0, 5.0)
    axes = figure.subplots()
    for number in best:
        label = f"{names[number] or 'all rows'} {scores.values[number]:.2f}"
        axes.plot(curves[1][number], curves[0][number], linewidth=1.6, label=label)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle="--")
    axes.set(xlim=(0, 1.01), ylim=(0, 1.01), aspect="equal")
    axes.set_xlabel("recall: share of human replies that the system covers")
    axes.set_ylabel("precision: share of its replies among human ones")
    axes.legend(loc="lower left", frameon=False, fontsize="small")
    left_out = len(scores) - len(best)
    caption = f"{title} (best {len(best)} of {len(scores)})" if left_out else title
    axes.set_title(caption, fontsize="medium", loc="left")
    return figure
