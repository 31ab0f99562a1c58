"""The pictures that belong to a run, one set per benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialeval.agreement.results import Panel, Report
from dialeval.io.files import safe_name
from dialeval.reports.plots.agreement import heat_map, scatter
from dialeval.reports.plots.distributions import distributions
from dialeval.reports.plots.figures import save
from dialeval.statistics.correlation import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: With more systems than this, violins per system are a thicket.
_MOST_SYSTEMS = 25


def draw_all(report: Report, folder: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Draw and save every picture of a report; the names say what they show."""
    return [path for name, figure in _pictures(report) for path in save(figure, folder / file_name(name), formats)]


def _pictures(report: Report) -> Iterator[tuple[str, Figure]]:
    for panel in report.panels:
        if not panel.columns:
            continue
        yield from scatters(panel, seed=report.settings.seed)
        if len(set(reply_labels(panel))) in range(2, _MOST_SYSTEMS + 1):
            violins = distributions(panel.marked_columns, reply_labels(panel), title=panel.judged.info.name)
            yield f"violin_{panel_name(panel)}", violins
        yield f"heatmap_{panel_name(panel)}", heat_map(with_people(panel), title=panel.judged.info.name)


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


def with_people(panel: Panel) -> dict[str, Floats]:
    """The metrics' columns, and people's first aspect (or the labels) beside them."""
    people = panel.judged.labels if panel.judged.labels is not None else next(iter(panel.judged.scores.values()))
    return {"people": np.asarray(people, dtype=np.float64), **panel.marked_columns}


def panel_name(panel: Panel) -> str:
    """The benchmark and its protocol."""
    return f"{panel.judged.info.name}_{panel.judged.info.protocol}"


def file_name(text: str) -> str:
    """A picture's file name; the usual protocol goes without saying."""
    return safe_name(text.replace("_standard", ""))
