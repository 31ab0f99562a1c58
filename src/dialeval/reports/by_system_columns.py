"""The columns of a leaderboard that say what a metric's agreement owes to who spoke; see `by_system`."""

from __future__ import annotations

import math

from dialeval.agreement.leaderboard import TITLES, Section, number
from dialeval.agreement.results import Result

HOW_TO_READ = (
    "Within systems: the correlation among the rows of one system, averaged over systems by their rows, so that "
    "telling systems apart earns nothing. Without human-written rows: neither people's replies nor planted ones. "
    "Every system's own mean: what a score that knows only who spoke would reach."
)


def further_columns(section: Section) -> dict[str, str]:
    """Titles by the field of a result: not the one without human-written rows where there are none to leave out."""
    name = TITLES[section.ranked_by]
    results = _ranked(section)
    columns = {}
    if any(math.isfinite(result.within_systems) for result in results):
        columns["within_systems"] = f"within systems ({name})"
    if any(map(_some_are_human, results)):
        columns["without_humans"] = f"without human-written rows ({name})"
    return columns


def further_cell(result: Result | None, field: str) -> str:
    """A value with its interval."""
    if result is None:
        return ""
    value, low, high = (float(getattr(result, f"{field}{end}")) for end in ("", "_low", "_high"))
    return f"{number(value)} [{number(low)}, {number(high)}]" if math.isfinite(low) else number(value)


def who_spoke(section: Section) -> str:
    """What knowing only who spoke would reach on the rows of the section; empty where no system is named."""
    result = max(_ranked(section), key=lambda one: one.n, default=None)
    if result is None or not math.isfinite(result.system_means):
        return ""
    left = f"; {result.n_without_humans} rows without the human-written ones" if _some_are_human(result) else ""
    return f"every system's own mean as the score {TITLES[section.ranked_by]} {number(result.system_means)}{left}"


def _ranked(section: Section) -> list[Result]:
    return [entry.results[section.ranked_by] for entry in section.entries if section.ranked_by in entry.results]


def _some_are_human(result: Result) -> bool:
    return result.n_without_humans is not None and 0 < result.n_without_humans < result.n
