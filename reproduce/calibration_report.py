"""Calibration as a page, a table and a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.io.files import plain, write_atomically
from dialeval.io.tables import markdown_table
from dialeval.reports.plots.figures import SOFT, new_grid, save
from reproduce.calibration import GRID, Calibration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGE = """# Do scores mean what they say?

**Human percentiles.** A value of .30 promises that 30 % of people's replies score lower. If that holds, the percentiles
of people's replies spread evenly: their mean is .5, and the *gap*, the greatest distance between a percentile and the
share of replies below it, stays under what chance alone gives 19 times in 20 (in brackets; dialogues count as
independent rows there, so the bound is on the strict side). *Wrong replies* are random turns of the same corpus, or
those that the benchmark labels wrong; the lower their mean percentile, the better.

**Probabilities.** Of the replies that a metric calls valid with 70 %, seven in ten should be. The *calibration error*
is the mean distance between promise and outcome in ten bins. It depends on how many of the replies are wrong and how:
a promise learned among as many wrong as right replies holds for such a mixture only.

Made by:

```
{command}
```
"""


def write_calibrations(
    found: Sequence[Calibration], out: Path, *, command: str, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """calibration.jsonl, calibration.md, and calibration.png."""
    write_atomically(out / "calibration.jsonl", (json.dumps(plain(one.to_dict())) for one in found))
    write_atomically(out / "calibration.md", page(found, command))
    written = [out / "calibration.jsonl", out / "calibration.md"]
    return written + (save(curves(found), out / "calibration", formats) if formats else [])


def page(found: Sequence[Calibration], command: str) -> Iterable[str]:
    """The lines of the page."""
    yield from _PAGE.format(command=command).splitlines()
    yield "\n## Human percentiles\n"
    header = ["metric", "dialogues", "replies", "mean percentile", "gap (by chance)", "mean of wrong replies"]
    yield from markdown_table(header, map(_percentile_row, sorted(found, key=lambda one: one.metric)))
    promised = [one for one in found if one.probabilities is not None]
    if promised:
        yield "\n## Probabilities\n"
        header = ["metric", "dialogues", "replies", "mean promise", "share valid", "calibration error"]
        yield from markdown_table(header, (row for one in promised for row in _probability_rows(one)))


def _percentile_row(one: Calibration) -> list[str]:
    spread = one.percentiles
    mean = f"{spread.mean:.3f} [{spread.interval.low:.3f}, {spread.interval.high:.3f}]"
    wrong = "" if math.isnan(spread.mean_of_wrong) else f"{spread.mean_of_wrong:.3f}"
    return [f"`{one.metric}`", one.sample, str(spread.n), mean, f"{spread.gap:.3f} ({spread.by_chance:.3f})", wrong]


def _probability_rows(one: Calibration) -> Iterable[list[str]]:
    if (found := one.probabilities) is not None:
        shares = [f"{value:.3f}" for value in (found.mean_promise, found.share_valid, found.error)]
        yield [f"`{one.metric}`", one.sample, str(found.n), *shares]


def curves(found: Sequence[Calibration]) -> Figure:
    """A panel per metric with a line per corpus; beside them the reliability of probabilities."""
    metrics = list(dict.fromkeys(one.metric for one in found))
    promised = list(dict.fromkeys(one.metric for one in found if one.probabilities is not None))
    figure, panels = new_grid(len(metrics) + len(promised), 3.6, 3.8)
    for axes in panels:
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle="--")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axes, metric in zip(panels, metrics, strict=False):
        for one in (one for one in found if one.metric == metric):
            axes.plot(GRID, one.percentiles.curve, linewidth=1.3, label=one.sample)
        axes.set_xlabel("human percentile")
        axes.set_ylabel("share of people's replies below")
        axes.set_title(metric, fontsize="medium", loc="left")
    for axes, metric in zip(panels[len(metrics) :], promised, strict=False):
        for one in (one for one in found if one.metric == metric and one.probabilities is not None):
            bins = one.probabilities.bins if one.probabilities is not None else ()
            axes.plot(
                [each.predicted for each in bins],
                [each.observed for each in bins],
                marker="o",
                markersize=3,
                linewidth=1.3,
                label=one.sample,
            )
        axes.set_xlabel("promised probability")
        axes.set_ylabel("share that is right")
        axes.set_title(f"{metric}: probability", fontsize="medium", loc="left")
    panels[0].legend(frameon=False, fontsize="x-small", loc="upper left")
    return figure
