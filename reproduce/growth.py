"""`python -m reproduce growth`: agreement against the amount of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.agreement.results import Result, read_results
from dialeval.plots.figures import COLOURS, new_grid, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Levels on which people judged single replies or dialogues; systems are too few for a curve.
_HUMAN_LEVELS = ("turn", "dialogue")

Curves = Mapping[str, Mapping[str, float]]


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""

    @app.command("growth", no_args_is_help=True)
    def draw(
        results: Annotated[Path, typer.Option("--results", "-r", help="The folder of a `dialeval agreement` run.")],
        curve: Annotated[
            list[str],
            typer.Option("--curve", "-c", help="LABEL=NAME:SIZE,NAME:SIZE with metrics of that run; repeatable."),
        ],
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture.")],
    ) -> None:
        """Plot agreement over the training pairs of each checkpoint, one panel per benchmark."""
        save(growth(read_results(results), dict(map(read_curve, curve))), out / "growth")


def read_curve(text: str) -> tuple[str, dict[str, float]]:
    """`LABEL=NAME:SIZE,NAME:SIZE` as the label and the size behind each metric of a run."""
    label, equals, points = text.partition("=")
    sizes = {}
    for point in filter(None, points.split(",")):
        name, colon, size = point.rpartition(":")
        if not colon or not size.replace("_", "").isdigit() or not int(size):
            raise ValueError(f"{point!r} is not NAME:SIZE, where SIZE is a number of training pairs above 0")
        sizes[name] = float(size)
    if not equals or not label or not sizes:
        raise ValueError(f"{text!r} is not LABEL=NAME:SIZE,NAME:SIZE")
    return label, sizes


def growth(results: Sequence[Result], curves: Curves) -> Figure:
    """Spearman with its interval over the number of training pairs, on the level of replies or whole dialogues."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    named = {name for sizes in curves.values() for name in sizes}
    kept = [
        one for one in results if one.metric in named and one.statistic == "spearman" and one.level in _HUMAN_LEVELS
    ]
    absent = sorted(named - {one.metric for one in kept})
    if absent:
        raise ValueError(f"the table has no Spearman of {', '.join(absent)}; name metrics of that run")
    questions = list(dict.fromkeys((one.benchmark, one.level, one.aspect) for one in kept))
    figure, panels = new_grid(len(questions), 3.2, 2.7)
    for axes, question in zip(panels, questions, strict=True):
        here = {one.metric: one for one in kept if (one.benchmark, one.level, one.aspect) == question}
        for number, (label, sizes) in enumerate(curves.items()):
            points = [(size, here[name]) for name, size in sorted(sizes.items(), key=itemgetter(1)) if name in here]
            colour = COLOURS[number % len(COLOURS)]
            pairs, values = [size for size, _ in points], [one.value for _, one in points]
            axes.plot(pairs, values, "o-", color=colour, label=label, markersize=4)
            axes.fill_between(
                pairs, [one.low for _, one in points], [one.high for _, one in points], color=colour, alpha=0.12
            )
        axes.set_title(f"{question[0]}, {question[2]}", fontsize="small")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].legend(frameon=False, fontsize="small")
    panels[0].set_ylabel("Spearman with people")
    figure.supxlabel("training pairs, all stages together")
    return figure
