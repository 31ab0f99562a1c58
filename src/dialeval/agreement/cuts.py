"""The questions put to a benchmark, and for each the rows that both a metric and people judged, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.judgements import Judgements
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.metric import Level
from dialeval.statistics.correlation import Floats
from dialeval.statistics.system_level import FEWEST_SYSTEMS

#: What is computed where replies are labelled good or bad.
LABEL_STATISTICS = ("point_biserial", "auc", "accuracy")


@dataclass(frozen=True)
class Cut:
    """One question: rows of the judgements, and the human value of each.

    `level` is turn, dialogue or system; for labels `aspect` names what is told apart.
    """

    level: str
    aspect: str
    rows: NDArray[np.intp]
    human: Floats
    statistics: tuple[str, ...]

    @property
    def is_labelled(self) -> bool:
        """Whether the human column is 0 or 1 rather than a rating."""
        return "point_biserial" in self.statistics


def cuts(judged: Judgements, settings: Settings) -> list[Cut]:
    """Every question that the settings ask of a benchmark."""
    if judged.labels is not None and judged.kinds is not None:
        return _label_cuts(judged.labels, np.array(judged.kinds))
    found: list[Cut] = []
    for aspect, scores in judged.scores.items():
        rows = np.flatnonzero(np.isfinite(scores))
        if settings.levels != "system":
            found.append(Cut(judged.info.level, aspect, rows, scores[rows], settings.statistics))
        if _asks_for_systems(judged, settings):
            rows = np.array([row for row in rows if judged.systems[row] is not None], dtype=np.intp)
            found.append(Cut("system", aspect, rows, scores[rows], settings.statistics))
    return found


def _asks_for_systems(judged: Judgements, settings: Settings) -> bool:
    enough = len(judged.named_systems) >= FEWEST_SYSTEMS or settings.force_systems
    return settings.levels == "system" or (settings.levels == "auto" and enough and len(judged.named_systems) > 1)


def _label_cuts(labels: NDArray[np.int8], kinds: NDArray[np.str_]) -> list[Cut]:
    """Good replies against each kind of bad ones: what is easy and what is hard should not be mixed."""
    good = labels == 1
    found: list[Cut] = []
    if not good.any():
        return found
    for kind in dict.fromkeys(str(kind) for kind in kinds[~good]):
        rows = np.flatnonzero(good | (kinds == kind))
        found.append(Cut("turn", f"positive/{kind}", rows, labels[rows].astype(np.float64), LABEL_STATISTICS))
    return found


@dataclass(frozen=True)
class View:
    """The rows that both a metric and people judged; values turned so that higher is better."""

    values: Floats
    human: Floats
    groups: NDArray[np.intp]
    n_groups: int
    systems: NDArray[np.object_]
    n_excluded: int

    @property
    def named_systems(self) -> list[str]:
        """The systems among the rows, in order of first occurrence."""
        return list(dict.fromkeys(system for system in self.systems if system is not None))


def column_of(source: ValueSource, judged: Judgements, values: Values) -> Floats:
    """A metric's values beside the rows, higher always better, NaN where there is none.

    What a metric says of a whole system stands in all rows of the system.
    """
    keys = [system or "" for system in judged.systems] if source.level is Level.SYSTEM else judged.ids
    raw = values.column(keys)
    return raw if source.higher_is_better else -raw


def view_of(column: Floats, cut: Cut, judged: Judgements) -> View:
    """The rows of a question for which the metric has a value."""
    kept = np.isfinite(column[cut.rows])
    rows = cut.rows[kept]
    systems = np.array(judged.systems, dtype=object)[rows]
    return View(column[rows], cut.human[kept], judged.groups[rows], judged.n_groups, systems, int((~kept).sum()))
