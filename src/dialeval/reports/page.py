"""The leaderboard as one HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.agreement.halves import halves_lines
from dialeval.agreement.leaderboard import (
    TITLES,
    LeaderboardRow,
    Section,
    number,
    overview,
    p_value,
    sections,
    with_interval,
)
from dialeval.agreement.overall import ABOUT_OVERALL, overall_table
from dialeval.agreement.results import Report, Result
from dialeval.pages import render
from dialeval.reports.aspect_tables import ABOUT_ASPECTS, AspectTable, aspect_tables
from dialeval.reports.by_system_columns import further_columns, who_spoke
from dialeval.reports.markdown import how_to_read, threshold_of

_TEMPLATE = Path(__file__).with_name("leaderboard.html.jinja")
_WIDTH, _HEIGHT = 220, 18


@dataclass(frozen=True)
class _Cell:
    """A value, what stands small behind it, and how it is marked."""

    value: str = ""
    rest: str = ""
    classes: tuple[str, ...] = ()
    contaminated: bool = False

    @classmethod
    def of(cls, text: str, result: Result | None = None) -> _Cell:
        """An interval stands small behind its value; the marks are those of the result."""
        value, _, rest = text.partition(" ")
        if result is None:
            return cls(value, rest)
        marks = (("best", result.in_best_group), ("contaminated", result.contaminated))
        return cls(value, rest, tuple(name for name, is_so in marks if is_so), result.contaminated)


def render_page(report: Report) -> str:
    """The whole page."""
    found = sections(report)
    return render(
        _TEMPLATE,
        how_to_read=how_to_read(report).split("**Bold**"),
        command=report.command,
        overview=_overview(found) if found else None,
        overall=overall_table(report.overall) if report.overall else None,
        about_overall=ABOUT_OVERALL,
        sections=[_section(report, one) for one in found],
        aspects=[_aspects(table) for table in aspect_tables(report)],
        about_aspects=ABOUT_ASPECTS,
        skipped=report.skipped,
    )


def _overview(found: list[Section]) -> dict[str, Any]:
    own, metrics = overview(found)
    columns = [
        {
            "anchor": _anchor(one),
            "benchmark": one.benchmark,
            "aspect": one.aspect,
            "statistic": TITLES[one.ranked_by],
        }
        for one in own
    ]
    return {"columns": columns, "rows": [(metric, [_in_overview(one, metric) for one in own]) for metric in metrics]}


def _in_overview(section: Section, metric: str) -> _Cell:
    entry = next((entry for entry in section.entries if entry.metric == metric), None)
    result = entry.results.get(section.ranked_by) if entry else None
    return _Cell.of(number(result.value), result) if result else _Cell()


def _section(report: Report, section: Section) -> dict[str, Any]:
    main = section.ranked_by
    people = [f"People: {section.people}"] if section.people else []
    people += [f"Who spoke: {baseline}"] if (baseline := who_spoke(section)) else []
    thresholds = any("accuracy" in entry.results for entry in section.entries)
    header = ["metric", "", *(TITLES[name] for name in section.statistics), f"p ({TITLES[main]})", "n", "no value"]
    header += [column.title for column in further_columns(section)]
    header += ["accepted above"] if thresholds else []
    lowest = min((_low(entry, main) for entry in section.entries), default=0.0)
    return {
        "anchor": _anchor(section),
        "title": section.title,
        "facts": section.facts,
        "people": people,
        "header": header,
        "rows": [_row(section, entry, lowest, thresholds) for entry in section.entries],
        "halves": halves_lines(report.halves, section),
    }


def _row(section: Section, entry: LeaderboardRow, lowest: float, thresholds: bool) -> dict[str, Any]:
    main = section.ranked_by
    shown = entry.results.get(main) or next(iter(entry.results.values()))
    cells = [
        _Cell.of(with_interval(entry.results[name]), entry.results[name]) if name in entry.results else _Cell()
        for name in section.statistics
    ]
    cells += [_Cell(text) for text in (p_value(shown.p), str(shown.n), str(shown.n_excluded))]
    cells += [_Cell.of(column.of(entry.results.get(main))) for column in further_columns(section)]
    cells += [_Cell(threshold_of(entry))] if thresholds else []
    return {"metric": entry.metric, "signature": shown.signature, "axis": _axis(shown, lowest), "cells": cells}


def _aspects(table: AspectTable) -> dict[str, Any]:
    rows = [(first, [_Cell.of(text) for text in rest]) for first, *rest in table.rows()]
    return {"title": table.title, "header": table.header, "rows": rows}


@dataclass(frozen=True)
class _Axis:
    """The value and its interval on an axis that ends at 1; a dashed line where one person stands."""

    label: str
    dot: str
    zero: str
    value: str
    interval: tuple[str, str] | None
    people: str | None
    width: int = _WIDTH
    height: int = _HEIGHT


def _axis(result: Result, lowest: float) -> _Axis | None:
    if not math.isfinite(result.value):
        return None
    start = min(0.0, math.floor(lowest * 10) / 10)

    def at(value: float) -> str:
        return f"{4 + (_WIDTH - 8) * (value - start) / (1 - start):.1f}"

    return _Axis(
        label=f"{TITLES[result.statistic]} {with_interval(result)}",
        dot="hollow" if result.contaminated else "dot",
        zero=at(0),
        value=at(result.value),
        interval=(at(result.low), at(result.high)) if math.isfinite(result.low) else None,
        people=at(result.ceiling) if math.isfinite(result.ceiling) and result.ceiling >= start else None,
    )


def _low(entry: LeaderboardRow, statistic: str) -> float:
    result = entry.results.get(statistic)
    values = [value for value in (result.low, result.value) if math.isfinite(value)] if result else []
    return min(values, default=0.0)


def _anchor(section: Section) -> str:
    text = "-".join((section.benchmark, section.protocol, section.level, section.aspect))
    return "".join(character if character.isalnum() else "-" for character in text)
