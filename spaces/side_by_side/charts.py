"""Figures as SVG in the page's own colours, so that they follow light and dark and need no other file."""

from __future__ import annotations

import html
import io
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from limits import cleaned
from markup import share

from dialeval.plots.distributions import distributions
from dialeval.plots.figures import INK, new_figure
from dialeval.plots.prd import precision_recall
from dialeval.scores import Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Any = {
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
    **{"axes.edgecolor": INK, "axes.labelcolor": INK, "axes.facecolor": "none", "figure.facecolor": "none"},
    **{"axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "none"},
    **{"svg.fonttype": "none", "svg.hashsalt": "dialeval", "font.size": 10},
}
#: More systems than this would not be read off a figure.
_MOST_SYSTEMS = 12
#: matplotlib's settings belong to the whole process.
_drawing = threading.Lock()


def percentiles(columns: Mapping[str, Sequence[float]], replies: Sequence[str]) -> str:
    """A bar per reply and metric: the share of human replies that score lower."""

    def draw() -> Figure:
        height = 0.9 + 0.3 * len(replies) * len(columns)
        figure = new_figure(3.9, height)
        axes = figure.subplots()
        place = np.arange(len(replies), dtype=float)
        width = 0.8 / len(columns)
        for at, (title, values) in enumerate(columns.items()):
            bars = axes.barh(place + (at - (len(columns) - 1) / 2) * width, values, height=width * 0.9, label=title)
            axes.bar_label(bars, labels=[html.unescape(share(value)) for value in values], padding=3, fontsize=9)
        axes.set(xlim=(0, 1.15), yticks=place, yticklabels=replies)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], labels=["0%", "25%", "50%", "75%", "100%"])
        axes.invert_yaxis()
        axes.set_xlabel("human replies that score lower")
        if len(columns) > 1:
            figure.legend(loc="outside upper left", ncols=min(3, len(columns)), frameon=False, fontsize=9)
        return figure

    return _svg(draw, "Bars: share of human replies that score lower than each reply")


def agreement(means: Mapping[str, float], here: Collection[str]) -> str:
    """A bar per metric: how far it agrees with people on average; those that the page offers stand out."""

    def draw() -> Figure:
        figure = new_figure(5.2, 0.8 + 0.28 * len(means))
        axes = figure.subplots()
        colours = ["C0" if name in here else "#8b95a5" for name in means]
        bars = axes.barh(list(means), list(means.values()), color=colours, height=0.7)
        axes.bar_label(bars, labels=[f"{value:.2f}" for value in means.values()], padding=3, fontsize=9)
        axes.invert_yaxis()
        axes.set_xlim(min(0.0, *means.values()), max(means.values()) * 1.15)
        axes.set_xlabel("mean rank correlation with people")
        return figure

    return _svg(draw, "Bars: mean agreement of each metric with people")


def spread(columns: Mapping[str, Sequence[float]], systems: Sequence[str | None]) -> str:
    """How the values of each metric spread over the rows, by system if there are several."""
    names = list(dict.fromkeys(systems))[:_MOST_SYSTEMS]
    kept = [row for row, system in enumerate(systems) if system in names]
    shown = {title: [values[row] for row in kept] for title, values in columns.items()}
    labels = [_label(systems[row]) for row in kept]
    kind: Any = "violin" if len(names) > 1 else "histogram"
    return _svg(lambda: distributions(shown, labels, kind=kind), "Distribution of the scores", wide=len(shown) > 2)


def curves(scores: Scores) -> str:
    """Precision and recall of each system."""
    known = replace(scores, ids=tuple(_label(name) for name in scores.ids or (None,) * len(scores)))
    return _svg(lambda: precision_recall(known), "Precision and recall of each system")


def _label(name: str | None) -> str:
    """A system's name as plain text for matplotlib: neither mathematics nor hidden nor endless."""
    plain = cleaned(name or "all rows")[0].replace("\n", " ")
    shown = plain if len(plain) <= 24 else f"{plain[:23]}…"
    return (f" {shown}" if shown.startswith("_") else shown).replace("$", r"\$")


def _svg(draw: Callable[[], Figure], caption: str, *, wide: bool = False) -> str:
    import matplotlib

    with _drawing, matplotlib.rc_context(_STYLE):
        stream = io.StringIO()
        draw().savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    drawn = stream.getvalue().replace(INK, "currentColor")
    inner = drawn[drawn.index("<svg") + len("<svg") :]
    kind = "chart wide" if wide else "chart"
    return f'<figure class="{kind}"><svg role="img" aria-label="{html.escape(caption)}"{inner}</figure>'
