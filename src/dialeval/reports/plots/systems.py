"""How several systems compare, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.reports.plots.figures import new_figure
from dialeval.systems.ranking_outcome import Ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(ranking: Ranking) -> Figure:
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
