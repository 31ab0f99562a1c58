"""Aspect by aspect: what people judged in rows, what a metric judges in columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dialeval.agreement.leaderboard import TITLES, with_interval
from dialeval.agreement.results import Report, Result, marked

ABOUT_ASPECTS = (
    "Each aspect that people judged (rows) against the metric's value and each of its own aspects (columns). Rows "
    "that lack what an aspect looks at are left out; n is named where that is so."
)


@dataclass(frozen=True)
class AspectTable:
    """One metric on one benchmark."""

    metric: str
    benchmark: str
    statistic: str
    selection: str
    #: By people's aspect, then by the metric's; its own value has no name.
    cells: dict[str, dict[str, Result]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The metric, the benchmark, the statistic and which rows count."""
        return f"{self.metric} on {self.benchmark} ({TITLES[self.statistic]}, {self.selection})"

    @property
    def columns(self) -> list[str]:
        """The metric's aspects, the value first."""
        return list(dict.fromkeys(aspect for row in self.cells.values() for aspect in row))

    @property
    def header(self) -> list[str]:
        """The titles of the columns."""
        return ["people judged", *(aspect or self.metric for aspect in self.columns)]

    def rows(self) -> list[list[str]]:
        """The lines of the table as text."""
        return [[aspect, *(self._cell(row, column) for column in self.columns)] for aspect, row in self.cells.items()]

    def _cell(self, row: dict[str, Result], column: str) -> str:
        result = row.get(column)
        if result is None or not math.isfinite(result.value):
            return "–"
        most = max(one.n for one in row.values())
        return with_interval(result) + (f" n {result.n}" if result.n < most else "")


def aspect_tables(report: Report) -> list[AspectTable]:
    """A table for every metric with aspects and every benchmark."""
    tables: dict[tuple[str, str, str], AspectTable] = {}
    for one in report.aspects:
        protocol = "" if one.protocol == "standard" else f"@{one.protocol}"
        name = marked(one.metric, one.contaminated)
        table = AspectTable(name, f"{one.benchmark}{protocol}", one.statistic, one.selection)
        table = tables.setdefault((one.metric, one.benchmark, one.protocol), table)
        table.cells.setdefault(one.aspect, {})[one.metric_aspect] = one
    return list(tables.values())
