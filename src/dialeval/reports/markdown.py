"""The leaderboard as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

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
from dialeval.agreement.results import Report
from dialeval.io import markdown_table
from dialeval.reports import by_system_columns
from dialeval.reports.aspect_tables import ABOUT_ASPECTS, aspect_tables
from dialeval.reports.by_system_columns import further_columns, who_spoke

HOW_TO_READ = (
    "Every value is the agreement of a metric with people, higher is better, with its {confidence:.0%} bootstrap "
    "interval (contexts are resampled, not rows). **Bold**: the best metric by the statistic that orders a table, "
    "and those that a paired permutation test (Holm correction) cannot tell from it, unless their own interval "
    "holds zero. A metric without an interval stands last and is not ranked. †: the metric was trained on this "
    "benchmark, so the number says little and is not ranked. “One person against the others” is what "
    "a single rater reaches; a metric is compared with the mean of all raters and may exceed it."
)


def render_markdown(report: Report) -> str:
    """The whole page."""
    found = sections(report)
    lines = ["# Agreement with people", "", how_to_read(report), ""]
    if report.command:
        lines += ["Made by:", "", "```", report.command, "```", ""]
    if found:
        lines += ["## Overview", "", *_overview(found), ""]
    if report.overall:
        header, rows = overall_table(report.overall)
        lines += ["## On the mean over benchmarks", "", ABOUT_OVERALL, "", *markdown_table(header, rows), ""]
    for section in found:
        lines += [f"## {section.title}", "", f"{section.facts}.", ""]
        if section.people:
            lines += [f"People: {section.people}.", ""]
        if baseline := who_spoke(section):
            lines += [f"Who spoke: {baseline}.", ""]
        lines += [*_table(section), ""]
        if halves := halves_lines(report.halves, section):
            lines += [*(f"- {line}." for line in halves), ""]
    if tables := aspect_tables(report):
        lines += ["## Aspect by aspect", "", ABOUT_ASPECTS, ""]
        for table in tables:
            lines += [f"### {table.title}", "", *markdown_table(table.header, table.rows()), ""]
    if report.skipped:
        lines += ["## Left out", ""]
        lines += [
            f"- {one.metric if one.metric != '*' else 'every metric'} on {one.benchmark}: {one.reason}"
            for one in report.skipped
        ]
        lines.append("")
    return "\n".join(lines)


def how_to_read(report: Report) -> str:
    """What the marks mean, with the settings of this report."""
    marks = HOW_TO_READ.format(confidence=report.settings.confidence)
    return f"{marks} {by_system_columns.HOW_TO_READ}" if any(map(who_spoke, sections(report))) else marks


def _overview(found: list[Section]) -> Iterable[str]:
    own, metrics = overview(found)
    header = [f"{section.benchmark}<br>{section.aspect}<br>{TITLES[section.ranked_by]}" for section in own]
    rows = []
    for metric in metrics:
        cells = []
        for section in own:
            entry = next((entry for entry in section.entries if entry.metric == metric), None)
            cells.append(_short(entry, section.ranked_by) if entry else "")
        rows.append([metric, *cells])
    return markdown_table(["metric", *header], rows)


def _short(entry: LeaderboardRow, statistic: str) -> str:
    result = entry.results.get(statistic)
    return "" if result is None else _marked(number(result.value), entry, statistic)


def _marked(text: str, entry: LeaderboardRow, statistic: str) -> str:
    result = entry.results[statistic]
    text = f"{text} †" if result.contaminated else text
    return f"**{text}**" if result.in_best_group else text


def _table(section: Section) -> Iterable[str]:
    main = section.ranked_by
    header = ["metric", *(TITLES[name] for name in section.statistics), f"p ({TITLES[main]})", "n", "no value"]
    thresholds = any("accuracy" in entry.results for entry in section.entries)
    further = further_columns(section)
    header += [column.title for column in further]
    rows = []
    for entry in section.entries:
        cells = [
            _marked(with_interval(entry.results[name]), entry, name) if name in entry.results else ""
            for name in section.statistics
        ]
        result = entry.results.get(main) or next(iter(entry.results.values()))
        row = [entry.metric, *cells, p_value(result.p), str(result.n), str(result.n_excluded)]
        row += [column.of(entry.results.get(main)) for column in further]
        if thresholds:
            row.append(threshold_of(entry))
        rows.append(row)
    return markdown_table([*header, "accepted above"] if thresholds else header, rows)


def threshold_of(entry: LeaderboardRow) -> str:
    """From which score on replies were accepted, and whether that was searched."""
    result = entry.results.get("accuracy")
    return "" if result is None else f"{result.threshold:.4g} ({result.threshold_method.split()[0]})"
