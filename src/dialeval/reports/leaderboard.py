"""The leaderboard as a document: an overview, a table for each question, aspects, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dialeval.agreement.breakdowns import ABOUT_OVERALL, halves_lines, overall_table
from dialeval.agreement.results import Report, Result, marked
from dialeval.agreement.sections import (
    TITLES,
    LeaderboardRow,
    Section,
    between,
    number,
    overview,
    p_value,
    sections,
    with_interval,
)
from dialeval.io.tables import Block, Cell, Code, Heading, Items, Table, to_markdown, to_page

HOW_TO_READ = (
    "Every value is the agreement of a metric with people, higher is better, with its {confidence:.0%} bootstrap "
    "interval (contexts are resampled, not rows). **Bold**: the best metric by the statistic that orders a table, "
    "and those that a paired permutation test (Holm correction) cannot tell from it, unless their own interval "
    "holds zero. A metric without an interval stands last and is not ranked. †: the metric was trained on this "
    "benchmark, so the number says little and is not ranked. “One person against the others” is what "
    "a single rater reaches; a metric is compared with the mean of all raters and may exceed it."
)
ABOUT_ASPECTS = (
    "Each aspect that people judged (rows) against the metric's value and each of its own aspects (columns). Rows "
    "that lack what an aspect looks at are left out; n is named where that is so."
)
_WIDTH, _HEIGHT = 220, 18


def render_markdown(report: Report) -> str:
    """The whole page as Markdown."""
    return to_markdown([Heading("Agreement with people", 1), *document(report)])


def render_page(report: Report) -> str:
    """The whole page as HTML."""
    return to_page("Agreement with people", document(report))


def document(report: Report) -> Iterator[Block]:
    """Everything below the title."""
    every = sections(report)
    marks = HOW_TO_READ.format(confidence=report.settings.confidence)
    yield f"{marks} {ABOUT_SYSTEMS}" if any(map(who_spoke, every)) else marks
    if report.command:
        yield from ("Made by:", Code(report.command))
    if every:
        yield from (Heading("Overview"), _overview(every))
    if report.overall:
        yield from (Heading("On the mean over benchmarks"), ABOUT_OVERALL, Table(*overall_table(report.overall)))
    for section in every:
        yield Heading(section.title, anchor=_anchor(section))
        yield from (f"{line}." for line in facts(section))
        yield section_table(section)
        if halves := halves_lines(report.halves, section):
            yield Items([f"{line}." for line in halves])
    if report.filters:
        lines = [f"{line}." for filtering in report.filters for line in filtering.lines]
        yield from (Heading("As a filter"), Items(lines))
    if tables := aspect_tables(report):
        yield from (Heading("Aspect by aspect"), ABOUT_ASPECTS)
        for table in tables:
            yield from (Heading(table.title, 3), table)
    if report.skipped:
        named = [("every metric" if row.metric == "*" else row.metric, row) for row in report.skipped]
        yield from (Heading("Left out"), Items([f"{name} on {row.benchmark}: {row.reason}" for name, row in named]))


def tables(report: Report) -> Iterator[Block]:
    """What a terminal shows: the tables of the questions and of aspects, and what is to be known of each."""
    for section in sections(report):
        yield section_table(section)
        yield "\n".join(facts(section))
    yield from aspect_tables(report)
    yield from (f"{line}." for filtering in report.filters for line in filtering.lines)
    if any(result.contaminated for result in report.results):
        yield "† the metric was trained on this benchmark"


def facts(section: Section) -> list[str]:
    """What stands beside every number of the section."""
    people = [f"People: {section.people}"] if section.people else []
    baseline = who_spoke(section)
    return [section.facts, *people, *([f"Who spoke: {baseline}"] if baseline else [])]


def section_table(section: Section) -> Table:
    """All metrics on one question."""
    main, further = section.ranked_by, further_columns(section)
    thresholds = any("accuracy" in entry.results for entry in section.entries)
    header: list[str | Cell] = ["metric", Cell("", svg=" "), *(TITLES[name] for name in section.statistics)]
    header += [f"p ({TITLES[main]})", "n", "no value", *further.values()]
    lowest = min((_low(entry, main) for entry in section.entries), default=0.0)
    rows: list[list[str | Cell]] = []
    for entry in section.entries:
        result = entry.results.get(main) or next(iter(entry.results.values()))
        row: list[str | Cell] = [Cell(entry.metric, hint=result.signature), Cell("", svg=_axis(result, lowest) or " ")]
        row += [_cell(entry.results.get(name), with_interval) for name in section.statistics]
        row += [p_value(result.p), str(result.n), str(result.n_excluded)]
        row += [further_cell(entry.results.get(main), field) for field in further]
        rows.append([*row, _threshold(entry)] if thresholds else row)
    return Table([*header, "accepted above"] if thresholds else header, rows, title=section.title)


def aspect_tables(report: Report) -> list[Table]:
    """What people judged in rows, what the metric judges in columns: a table for every metric and benchmark."""
    grouped: dict[tuple[str, str, str], dict[str, dict[str, Result]]] = {}
    for aspect in report.aspects:
        cells = grouped.setdefault((aspect.metric, aspect.benchmark, aspect.protocol), {})
        cells.setdefault(aspect.aspect, {})[aspect.metric_aspect] = aspect
    return [_aspect_table(results) for results in grouped.values()]


def _aspect_table(cells: dict[str, dict[str, Result]]) -> Table:
    columns = list(dict.fromkeys(aspect for row in cells.values() for aspect in row))
    first = next(result for row in cells.values() for result in row.values())
    metric = marked(first.metric, first.contaminated)
    benchmark = first.benchmark if first.protocol == "standard" else f"{first.benchmark}@{first.protocol}"
    title = f"{metric} on {benchmark} ({TITLES[first.statistic]}, {first.selection})"
    rows = [[aspect, *(_aspect_cell(row, column) for column in columns)] for aspect, row in cells.items()]
    return Table(["people judged", *(aspect or metric for aspect in columns)], rows, title=title)


def _aspect_cell(row: dict[str, Result], column: str) -> str:
    result = row.get(column)
    if result is None or not math.isfinite(result.value):
        return "–"
    most = max(result.n for result in row.values())
    return with_interval(result) + (f" n {result.n}" if result.n < most else "")


def _overview(every: list[Section]) -> Table:
    shown, metrics = overview(every)
    header = [
        Cell(f"{section.benchmark}\n{section.aspect}\n{TITLES[section.ranked_by]}", link=_anchor(section))
        for section in shown
    ]
    entries = [{entry.metric: entry for entry in section.entries} for section in shown]
    rows = [
        [metric, *(_cell(known[metric].results.get(section.ranked_by), lambda result: number(result.value))
                   if metric in known else ""
                   for section, known in zip(shown, entries, strict=True))]
        for metric in metrics
    ]  # fmt: skip
    return Table(["metric", *header], rows)


def _cell(result: Result | None, text: Callable[[Result], str]) -> str | Cell:
    if result is None:
        return ""
    return Cell(text(result), best=bool(result.in_best_group), contaminated=result.contaminated)


def _threshold(entry: LeaderboardRow) -> str:
    """From which score on replies were accepted, and whether that was searched."""
    result = entry.results.get("accuracy")
    return "" if result is None else f"{result.threshold:.4g} ({result.threshold_method.split()[0]})"


def _axis(result: Result, lowest: float) -> str:
    """The value and its interval on an axis that ends at 1; a dashed line where one person stands."""
    if not math.isfinite(result.value):
        return ""
    start = min(0.0, math.floor(lowest * 10) / 10)

    def x_of(value: float) -> str:
        return f"{4 + (_WIDTH - 8) * (value - start) / (1 - start):.1f}"

    def line(name: str, x: float, y: float, to_x: float, to_y: float) -> str:
        return f'<line class="{name}" x1="{x_of(x)}" y1="{y:g}" x2="{x_of(to_x)}" y2="{to_y:g}"/>'

    middle = _HEIGHT / 2
    parts = [line("axis", 0, 1, 0, _HEIGHT - 1)]
    if math.isfinite(result.ceiling) and result.ceiling >= start:
        parts.append(line("people", result.ceiling, 1, result.ceiling, _HEIGHT - 1))
    if math.isfinite(result.low):
        parts.append(line("ci", result.low, middle, result.high, middle))
    dot = "hollow" if result.contaminated else "dot"
    parts.append(f'<circle class="{dot}" cx="{x_of(result.value)}" cy="{middle:g}" r="3.5"/>')
    label = f"{TITLES[result.statistic]} {with_interval(result)}"
    return f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="{_HEIGHT}">{"".join(parts)}</svg>'


def _low(entry: LeaderboardRow, statistic: str) -> float:
    result = entry.results.get(statistic)
    values = [value for value in (result.low, result.value) if math.isfinite(value)] if result else []
    return min(values, default=0.0)


def _anchor(section: Section) -> str:
    text = "-".join((section.benchmark, section.protocol, section.level, section.aspect))
    return "".join(character if character.isalnum() else "-" for character in text)


ABOUT_SYSTEMS = (
    "Within systems: the correlation among the rows of one system, averaged over systems by their rows, so that "
    "telling systems apart earns nothing. Without human-written rows: neither people's replies nor planted ones. "
    "Every system's own mean: what a score that knows only who spoke would reach."
)


def further_columns(section: Section) -> dict[str, str]:
    """Titles by the field of a result: not the one without human-written rows where there are none to leave out."""
    name, results = TITLES[section.ranked_by], _ranked(section)
    of_systems = any(math.isfinite(result.within_systems) for result in results)
    columns = {"within_systems": f"within systems ({name})"} if of_systems else {}
    if any(map(_some_are_human, results)):
        columns["without_humans"] = f"without human-written rows ({name})"
    return columns


def further_cell(result: Result | None, field: str) -> str:
    """A value with its interval."""
    if result is None:
        return ""
    return between(*(float(getattr(result, f"{field}{end}")) for end in ("", "_low", "_high")))


def who_spoke(section: Section) -> str:
    """What knowing only who spoke would reach on the rows of the section; empty where no system is named."""
    result = max(_ranked(section), key=lambda result: result.n, default=None)
    if result is None or not math.isfinite(result.system_means):
        return ""
    left = f"; {result.n_without_humans} rows without the human-written ones" if _some_are_human(result) else ""
    return f"every system's own mean as the score {TITLES[section.ranked_by]} {number(result.system_means)}{left}"


def _ranked(section: Section) -> list[Result]:
    return [entry.results[section.ranked_by] for entry in section.entries if section.ranked_by in entry.results]


def _some_are_human(result: Result) -> bool:
    return result.n_without_humans is not None and 0 < result.n_without_humans < result.n
