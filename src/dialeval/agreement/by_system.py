"""What one correlation over all rows hides where some systems are liked better than others.

A metric that only recognises who spoke can agree with people very well. Three numbers show it:

* **within systems**: the correlation among the rows of one system, averaged over the systems with their rows as
  weights. Systems with fewer than three rows, or all of whose values or ratings are the same, have none and are
  left out. Telling systems apart earns nothing here.
* **without human-written rows**: the same correlation over the rows that a machine wrote. Replies of people and
  planted ones (a human reply to another context) are left out; rows that name no system, too.
* **system means**: what is reached by every system's own mean human score in place of a metric, a baseline that
  knows only who spoke. The mean is of all rows of the system, the row itself among them: without it the score would
  fall within a system as the rating rises, and the baseline would look weaker than knowing the systems is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.judgements import View
from dialeval.statistics.bootstrap import Resampled, number_groups
from dialeval.statistics.correlation import CORRELATIONS, Floats, is_constant
from dialeval.statistics.resampled import MOST_GROUPS_FOR_KENDALL, RESAMPLED
from dialeval.statistics.system_level import system_means

#: Two points always lie on a line.
FEWEST_ROWS = 3


@dataclass(frozen=True)
class RowCorrelation:
    """A correlation of some rows, on how many it stands, and the same of resamples."""

    value: float = math.nan
    n: int = 0
    statistic: Resampled | None = None


def within_systems(name: str, view: View) -> RowCorrelation:
    """The mean correlation within a system, weighted by rows; resamples weigh by the rows that were drawn."""
    systems = [np.flatnonzero(view.systems == system) for system in view.named_systems]
    kept = [rows for rows in systems if _tells_something(view, rows)]
    if not kept:
        return RowCorrelation()
    sizes = [len(rows) for rows in kept]
    values = [CORRELATIONS[name](view.values[rows], view.human[rows]).value for rows in kept]
    resampled = [_resampled(name, view, rows) for rows in kept]
    drawn = [np.bincount(view.groups[rows], minlength=view.n_groups).astype(np.float64) for rows in kept]
    statistics = [drawn_statistic for drawn_statistic in resampled if drawn_statistic is not None]
    return RowCorrelation(
        float(np.average(values, weights=sizes)),
        sum(sizes),
        _weighted(statistics, np.stack(drawn, axis=1)) if len(statistics) == len(kept) else None,
    )


def without_people(name: str, view: View, people: Collection[str]) -> RowCorrelation:
    """The correlation over the rows of named systems that are not among `people`."""
    rows = np.flatnonzero([system is not None and system not in people for system in view.systems])
    if not len(rows):
        return RowCorrelation()
    value = CORRELATIONS[name](view.values[rows], view.human[rows]).value
    return RowCorrelation(value, len(rows), _resampled(name, view, rows) if math.isfinite(value) else None)


def of_system_means(name: str, view: View) -> float:
    """The correlation of people's scores with the mean of their system."""
    rows = np.flatnonzero([system is not None for system in view.systems])
    systems = [str(system) for system in view.systems[rows]]
    if not systems:
        return math.nan
    means = system_means(view.human[rows], systems)[1]
    return CORRELATIONS[name](means[number_groups(systems)], view.human[rows]).value


def _tells_something(view: View, rows: NDArray[np.intp]) -> bool:
    enough = len(rows) >= FEWEST_ROWS
    return enough and not is_constant(view.values[rows]) and not is_constant(view.human[rows])


def _resampled(name: str, view: View, rows: NDArray[np.intp]) -> Resampled | None:
    """The statistic of some rows as a function of all groups' counts; tables only of the groups they are in."""
    present, numbers = np.unique(view.groups[rows], return_inverse=True)
    if name == "kendall" and len(present) > MOST_GROUPS_FOR_KENDALL:
        return None
    statistic = RESAMPLED[name](view.values[rows], view.human[rows], numbers, len(present))
    return lambda counts: statistic(counts[:, present])


def _weighted(statistics: Sequence[Resampled], sizes: Floats) -> Resampled:
    """The mean of statistics weighted by the rows that were drawn for each; undefined ones are left out."""

    def statistic(counts: Floats) -> Floats:
        values = np.stack([statistic(counts) for statistic in statistics], axis=1)
        weights = np.where(np.isfinite(values), counts @ sizes, 0.0)
        total = weights.sum(axis=1)
        summed = (weights * np.where(np.isfinite(values), values, 0.0)).sum(axis=1)
        return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)

    return statistic
