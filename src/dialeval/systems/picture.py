"""A ranking as people would rather look at it: a dot and an interval per system, a panel per metric."""

from __future__ import annotations

from pathlib import Path

from dialeval.io import replacing
from dialeval.systems.outcome import Ranking


def draw(ranking: Ranking, path: Path) -> None:
    """Write the figure; the ending of the path tells its format."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{path} is not a picture file; choose .png, .svg or .pdf")
    from matplotlib.figure import Figure

    metrics = ranking.metrics
    rows = max(len(ranking.of(metric)) for metric in metrics)
    figure = Figure(figsize=(4.2 * len(metrics), 1.2 + 0.4 * rows), layout="constrained")
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for metric, panel in zip(metrics, panels, strict=True):
        standings = ranking.of(metric)[::-1]
        means = [one.mean for one in standings]
        # Of equal values the mean and the ends of its interval may differ by a rounding, on either side.
        below = [max(0.0, one.mean - one.low) for one in standings]
        above = [max(0.0, one.high - one.mean) for one in standings]
        places = range(len(standings))
        panel.errorbar(means, places, xerr=[below, above], fmt="o", color="#1f6feb", ecolor="#5b6472", capsize=3)
        panel.set_yticks(places, [f"{one.system} ({one.cluster})" for one in standings])
        panel.set_ylim(-0.6, len(standings) - 0.4)
        panel.set_title(metric)
        panel.set_xlabel(f"mean and {ranking.confidence:.0%} interval; (cluster)")
        panel.grid(axis="x", alpha=0.3)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
