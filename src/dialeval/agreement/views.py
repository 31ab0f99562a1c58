"""The rows that both a metric and people judged, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.cuts import Cut
from dialeval.agreement.judgements import Judgements
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.metric import Level
from dialeval.statistics.correlation import Floats


@dataclass(frozen=True)
class View:
    """The rows that both a metric and people judged; values turned so that higher is better."""

    values: Floats
    human: Floats
    groups: NDArray[np.intp]
    n_groups: int
    systems: NDArray[np.object_]
    n_excluded: int

    def of_system(self, system: str) -> View:
        """The rows of one system; the groups keep their numbers, so that resamples stay the same."""
        own = self.systems == system
        return View(self.values[own], self.human[own], self.groups[own], self.n_groups, self.systems[own], 0)

    @property
    def named_systems(self) -> list[str]:
        """The systems among the rows, in order of first occurrence."""
        return list(dict.fromkeys(system for system in self.systems if system is not None))


def column_of(source: ValueSource, judged: Judgements, values: Values, settings: Settings) -> Floats:
    """A metric's values beside the rows, higher always better, NaN where there is none.

    What a metric says of a whole system stands in all rows of the system.
    """
    keys = [system or "" for system in judged.systems] if source.level is Level.SYSTEM else judged.ids
    raw = values.column(keys)
    if settings.missing == "zero":
        raw = np.where(np.isnan(raw), 0.0, raw)
    return raw if source.higher_is_better else -raw


def view_of(column: Floats, cut: Cut, judged: Judgements) -> View:
    """The rows of a question for which the metric has a value."""
    kept = np.isfinite(column[cut.rows])
    rows = cut.rows[kept]
    systems = np.array(judged.systems, dtype=object)[rows]
    return View(column[rows], cut.human[kept], judged.groups[rows], judged.n_groups, systems, int((~kept).sum()))
