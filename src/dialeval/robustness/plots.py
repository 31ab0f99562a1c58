"""Pictures of robustness: shares with their intervals, and values that decay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.agreement.results import marked
from dialeval.plots.figures import SOFT, new_figure, new_grid, save
from dialeval.robustness.run import Decay, Robustness
from dialeval.robustness.verdicts import AttackOutcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_plots(found: Robustness, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write what there is to draw."""
    paths = []
    if found.verdicts:
        title = f"Robustness on {found.material.name}"
        paths += save(
            shares([one for one in found.verdicts if one.domain == "all"], title=title), folder / "robustness", formats
        )
    if found.decays:
        paths += save(decays(found.decays), folder / "decays", formats)
    return paths


def shares(verdicts: Sequence[AttackOutcome], *, title: str = "") -> Figure:
    """For every attack the share that should be near 1, a mark per metric; hollow marks are controls."""
    import matplotlib

    attacks = list(dict.fromkeys(one.attack for one in verdicts))
    metrics = list(dict.fromkeys(one.metric for one in verdicts))
    colours = [matplotlib.colormaps["tab10"](place) for place in range(10)]
    figure = new_figure(7.5, 1.4 + len(attacks) * (0.22 + 0.13 * len(metrics)))
    axes = figure.subplots()
    for place, metric in enumerate(metrics):
        colour = colours[place % len(colours)]
        shift = 0.7 * ((place + 0.5) / len(metrics) - 0.5)
        for one in (one for one in verdicts if one.metric == metric and one.n):
            height = attacks.index(one.attack) + shift
            axes.plot([one.share.low, one.share.high], [height, height], color=colour, linewidth=1.4)
            face = colour if one.harmful else "white"
            axes.plot(one.share.value, height, "o", color=colour, markerfacecolor=face, markersize=4.5)
        trained = any(one.contaminated for one in verdicts if one.metric == metric)
        axes.plot([], [], "o-", color=colour, label=marked(metric, trained), markersize=4.5)
    controls = {one.attack for one in verdicts if not one.harmful}
    axes.set_yticks(range(len(attacks)), labels=[f"{name} ○" if name in controls else name for name in attacks])
    axes.set_ylim(len(attacks) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(0.5, color=SOFT, linestyle="--", linewidth=1)
    axes.set_xlabel("share of pairs: true reply preferred (ties half); ○ control: value not lowered")
    axes.set_title(title, fontsize="medium", loc="left")
    figure.legend(loc="outside lower center", ncols=min(len(metrics), 4), frameon=False, fontsize="small")
    return figure


def decays(found: Sequence[Decay]) -> Figure:
    """A panel per metric: its value against the share of perturbed replies, a line per perturbation."""
    metrics = list(dict.fromkeys(one.metric for one in found))
    figure, panels = new_grid(len(metrics), 3.4, 3.0)
    for metric, axes in zip(metrics, panels, strict=True):
        own = [one for one in found if one.metric == metric]
        for kind in dict.fromkeys(one.perturbation for one in own):
            line = [one for one in own if one.perturbation == kind]
            axes.plot([one.ratio for one in line], [one.value for one in line], "o-", markersize=3, label=kind)
        better = "" if own[0].higher_is_better else " (lower is better)"
        axes.set_title(f"{metric}{better}", fontsize="small")
        axes.set_xlabel("share of replies perturbed", fontsize="small")
    panels[0].legend(frameon=False, fontsize="small")
    return figure
