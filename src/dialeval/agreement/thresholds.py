"""From which score on a reply counts as good: fixed, or searched on a validation benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dialeval.agreement.cuts import Cut
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.statistics.correlation import Floats
from dialeval.statistics.discrimination import observed_grid, search_threshold

#: Where 0.5 stands for "as likely good as bad".
_MIDDLE = 0.5


@dataclass(frozen=True)
class Decision:
    """A threshold on values turned so that higher is better, the same on the metric's own scale, and its origin."""

    threshold: float
    native: float
    method: str


#: Gives the metric's values (higher better) and the labels of validation rows; None where there are none.
Validation = Callable[[], tuple[Floats, Floats] | None]


def decide(source: ValueSource, cut: Cut, settings: Settings, validation: Validation) -> Decision | None:
    """The threshold for one question, or None where it would have to be searched and there is nothing to search on."""
    sign = 1.0 if source.higher_is_better else -1.0
    if not isinstance(settings.threshold, str):
        return Decision(sign * settings.threshold, settings.threshold, "fixed")
    if settings.threshold == "auto" and source.has_middle:
        return Decision(sign * _MIDDLE, _MIDDLE, "fixed")
    rows = validation()
    if rows is None or not len(rows[0]):
        return None
    values, labels = rows
    # Hundredths mean something between 0 and 1 only; elsewhere every observed value is tried.
    unit = source.in_unit_range and source.higher_is_better
    found = search_threshold(labels, values, grid=None if unit else observed_grid(values), ties=settings.threshold_ties)
    grid = "0, 0.01 … 1" if unit else "observed values"
    method = (
        f"searched over {grid} on {found.n} rows, {settings.threshold_ties} of {found.ties} with {found.errors} errors"
    )
    return Decision(found.value, sign * found.value, method)
