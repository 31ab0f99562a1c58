"""The leaderboard as data: one section per question, one entry per metric, best first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dialeval.agreement.results import Report, Result

#: How tables call the statistics.
TITLES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall τ-b",
    "point_biserial": "Point-biserial",
    "auc": "AUC",
    "accuracy": "Accuracy",
}


@dataclass(frozen=True)
class LeaderboardRow:
    """A metric in a section: its result for each statistic."""

    metric: str
    results: dict[str, Result]

    @property
    def contaminated(self) -> bool:
        """Whether the metric was trained on this benchmark."""
        return any(result.contaminated for result in self.results.values())


@dataclass(frozen=True)
class Section:
    """All metrics on one question."""

    benchmark: str
    protocol: str
    level: str
    aspect: str
    statistics: list[str]
    entries: list[LeaderboardRow]

    @property
    def ranked_by(self) -> str:
        """The statistic by which entries are ordered and compared."""
        known = [name for name in ("spearman", "point_biserial", "pearson") if name in self.statistics]
        return known[0] if known else self.statistics[0]

    @property
    def fullest(self) -> Result:
        """A result of the metric that judged the most rows, for what all of them share."""
        return max((next(iter(entry.results.values())) for entry in self.entries), key=lambda result: result.n)

    @property
    def title(self) -> str:
        """Benchmark, protocol if it is not the usual one, level and aspect."""
        protocol = "" if self.protocol == "standard" else f" ({self.protocol})"
        return f"{self.benchmark}{protocol}, {self.level} level, {self.aspect}"

    @property
    def facts(self) -> str:
        """What stands beside every number of the section."""
        result = self.fullest
        units = f"{result.n} systems" if self.level == "system" else f"{result.n + result.n_excluded} rows"
        parts = [f"{units} in {result.n_groups} {'dialogues' if self.level == 'dialogue' else 'contexts'}"]
        if self.level != "system" and result.n_systems:
            parts.append(f"{result.n_systems} systems")
        parts.append(f"{result.selection}, {result.n_left_out} left out" if result.n_left_out else result.selection)
        parts.append(f"revision {result.revision}")
        return "; ".join(parts)

    @property
    def people(self) -> str:
        """How far people agree with each other, or nothing where single ratings are not known."""
        first = self.entries[0].results
        parts = [
            f"{TITLES[name]} {number(first[name].ceiling)}"
            for name in self.statistics
            if name in first and math.isfinite(first[name].ceiling)
        ]
        if not parts:
            return ""
        result = self.fullest
        people = f"one person against the others {', '.join(parts)}; Krippendorff's α {number(result.alpha)}"
        has_reach = math.isfinite(result.attainable)
        return people + (f"; within reach of a perfect metric {number(result.attainable)}" if has_reach else "")


def sections(report: Report) -> list[Section]:
    """The report's results, question by question, in the order in which they were measured."""
    grouped: dict[tuple[str, str, str, str], dict[str, dict[str, Result]]] = {}
    for result in report.results:
        question = (result.benchmark, result.protocol, result.level, result.aspect)
        grouped.setdefault(question, {}).setdefault(result.metric, {})[result.statistic] = result
    return [_section(question, metrics) for question, metrics in grouped.items()]


def _section(question: tuple[str, str, str, str], metrics: dict[str, dict[str, Result]]) -> Section:
    statistics = list(dict.fromkeys(name for results in metrics.values() for name in results))
    section = Section(*question, statistics, [LeaderboardRow(name, results) for name, results in metrics.items()])
    by = section.ranked_by
    without = [entry for entry in section.entries if by not in entry.results or math.isnan(entry.results[by].low)]
    if len(without) == len(section.entries):  # measured without resamples
        without = []
    section.entries.sort(key=lambda entry: (entry in without, _rank(entry, by)))
    return section


def _rank(entry: LeaderboardRow, statistic: str) -> float:
    result = entry.results.get(statistic)
    return -result.value if result is not None and math.isfinite(result.value) else math.inf


def overview(every: Sequence[Section]) -> tuple[list[Section], list[str]]:
    """Sections and metrics of the table at the top: each benchmark at its own level, metrics by first appearance."""
    of_rows = [section for section in every if section.level != "system"] or list(every)
    return of_rows, list(dict.fromkeys(entry.metric for section in every for entry in section.entries))


def number(value: float) -> str:
    """Three digits after the point, a dash where there is no number."""
    return f"{value:.3f}" if math.isfinite(value) else "–"


def between(value: float, low: float, high: float) -> str:
    """A value with its interval, where both are known."""
    if not math.isfinite(value) or not math.isfinite(low):
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def with_interval(result: Result) -> str:
    """A result with its interval."""
    return between(result.value, result.low, result.high)


def p_value(p: float) -> str:
    """A p-value for people: two significant digits, tiny ones as a bound."""
    if not math.isfinite(p):
        return "–"
    return "< .0001" if p < 1e-4 else f"{p:.2g}"
