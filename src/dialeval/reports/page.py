"""The leaderboard as one HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from dialeval.agreement.halves import halves_lines
from dialeval.agreement.leaderboard import TITLES, Entry, Section, number, overview, p_value, sections, with_interval
from dialeval.agreement.overall import ABOUT_OVERALL, overall_table
from dialeval.agreement.results import Report, Result
from dialeval.reports.aspect_tables import ABOUT_ASPECTS, aspect_tables
from dialeval.reports.by_system_columns import further_columns, who_spoke
from dialeval.reports.markdown import how_to_read, threshold_of

_STYLE = """
:root { color-scheme: light dark;
  --ink: #1d2129; --soft: #5b6472; --line: #d9dde3; --paper: #fff; --tint: #eef4fb; --mark: #1f6feb; --warn: #b4540a }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ee; --soft: #9aa4b2; --line: #343b45; --paper: #14171c; --tint: #1b2636; --mark: #6cb0ff; --warn: #f0a35e
} }
a { color: var(--mark) }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 0 .5rem }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem }
p, li { max-width: 60rem }
.facts, .people { color: var(--soft); margin: .1rem 0 }
.scroll { overflow-x: auto; margin-top: .6rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper) }
th { font-weight: 600; vertical-align: bottom }
td small { color: var(--soft) }
.best { font-weight: 700; background: var(--tint) }
.contaminated { color: var(--warn) }
code { background: var(--tint); padding: .1rem .3rem; overflow-wrap: anywhere }
svg { vertical-align: middle }
svg .axis { stroke: var(--line) } svg .ci { stroke: var(--mark); stroke-width: 2 } svg .dot { fill: var(--mark) }
svg .hollow { fill: var(--paper); stroke: var(--warn); stroke-width: 2 }
svg .people { stroke: var(--soft); stroke-dasharray: 3 3 }
"""

_WIDTH, _HEIGHT = 220, 18


def render_page(report: Report) -> str:
    """The whole page."""
    found = sections(report)
    body = [
        "<h1>Agreement with people</h1>",
        f"<p>{escape(how_to_read(report)).replace('**Bold**', '<strong>Bold</strong>')}</p>",
        f"<p>Made by <code>{escape(report.command)}</code></p>" if report.command else "",
        *(_overview(found) if found else []),
        *(_overall(report) if report.overall else []),
        *(part for section in found for part in (*_section(section), *_halves(report, section))),
        *_aspects(report),
        *_left_out(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Agreement with people</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body>\n</html>\n"
    )


def _overview(found: list[Section]) -> Iterable[str]:
    own, metrics = overview(found)
    head = "".join(
        f'<th scope="col"><a href="#{_anchor(one)}">{escape(one.benchmark)}</a><br><small>{escape(one.aspect)}<br>'
        f"{TITLES[one.ranked_by]}</small></th>"
        for one in own
    )
    yield "<h2>Overview</h2>"
    yield f'<div class="scroll"><table>\n<thead><tr><th scope="col">metric</th>{head}</tr></thead>\n<tbody>'
    for metric in metrics:
        cells = []
        for section in own:
            entry = next((entry for entry in section.entries if entry.metric == metric), None)
            result = entry.results.get(section.ranked_by) if entry else None
            cells.append(_cell(number(result.value), result) if result else "<td></td>")
        yield f'<tr><th scope="row">{escape(metric)}</th>{"".join(cells)}</tr>'
    yield "</tbody></table></div>"


def _overall(report: Report) -> Iterable[str]:
    header, rows = overall_table(report.overall)
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    yield f"<h2>On the mean over benchmarks</h2>\n<p>{escape(ABOUT_OVERALL)}</p>"
    yield f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>'
    for first, *others in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _section(section: Section) -> Iterable[str]:
    main = section.ranked_by
    yield f'<h2 id="{_anchor(section)}">{escape(section.title)}</h2>'
    yield f'<p class="facts">{escape(section.facts)}.</p>'
    if section.people:
        yield f'<p class="people">People: {escape(section.people)}.</p>'
    if baseline := who_spoke(section):
        yield f'<p class="people">Who spoke: {escape(baseline)}.</p>'
    columns = [*(TITLES[name] for name in section.statistics), f"p ({TITLES[main]})", "n", "no value"]
    thresholds = any("accuracy" in entry.results for entry in section.entries)
    columns += [column.title for column in further_columns(section)]
    columns += ["accepted above"] if thresholds else []
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("metric", "", *columns))
    yield f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>'
    lowest = min((_low(entry, main) for entry in section.entries), default=0.0)
    for entry in section.entries:
        yield _row(section, entry, lowest, thresholds)
    yield "</tbody></table></div>"


def _halves(report: Report, section: Section) -> Iterable[str]:
    for line in halves_lines(report.halves, section):
        yield f'<p class="people">{escape(line)}.</p>'


def _row(section: Section, entry: Entry, lowest: float, thresholds: bool) -> str:
    main = section.ranked_by
    shown = entry.results.get(main) or next(iter(entry.results.values()))
    cells = [
        _cell(with_interval(entry.results[name]), entry.results[name]) if name in entry.results else "<td></td>"
        for name in section.statistics
    ]
    cells += [f"<td>{escape(text)}</td>" for text in (p_value(shown.p), str(shown.n), str(shown.n_excluded))]
    cells += [_plain_cell(column.of(entry.results.get(main))) for column in further_columns(section)]
    cells += [f"<td>{escape(threshold_of(entry))}</td>"] if thresholds else []
    name = f'<th scope="row" title="{escape(shown.signature, quote=True)}">{escape(entry.metric)}</th>'
    return f"<tr>{name}<td>{_bar(shown, lowest)}</td>{''.join(cells)}</tr>"


def _cell(text: str, result: Result) -> str:
    classes = [name for name, is_so in (("best", result.in_best_group), ("contaminated", result.contaminated)) if is_so]
    mark = ' <abbr title="trained on this benchmark">†</abbr>' if result.contaminated else ""
    interval = _small_interval(text)
    return f'<td class="{" ".join(classes)}">{interval}{mark}</td>' if classes else f"<td>{interval}{mark}</td>"


def _plain_cell(text: str) -> str:
    return f"<td>{_small_interval(text)}</td>"


def _small_interval(text: str) -> str:
    value, space, rest = text.partition(" ")
    return f"{escape(value)}{space}<small>{escape(rest)}</small>" if rest else escape(value)


def _bar(result: Result, lowest: float) -> str:
    """The value and its interval on an axis that ends at 1; a dashed line where one person stands."""
    if not math.isfinite(result.value):
        return ""
    start = min(0.0, math.floor(lowest * 10) / 10)

    def at(value: float) -> str:
        return f"{4 + (_WIDTH - 8) * (value - start) / (1 - start):.1f}"

    middle = _HEIGHT / 2
    parts = [f'<line class="axis" x1="{at(0)}" y1="1" x2="{at(0)}" y2="{_HEIGHT - 1}"/>']
    if math.isfinite(result.ceiling) and result.ceiling >= start:
        parts.append(
            f'<line class="people" x1="{at(result.ceiling)}" y1="1" x2="{at(result.ceiling)}" y2="{_HEIGHT - 1}"/>'
        )
    if math.isfinite(result.low):
        parts.append(f'<line class="ci" x1="{at(result.low)}" y1="{middle}" x2="{at(result.high)}" y2="{middle}"/>')
    dot = "hollow" if result.contaminated else "dot"
    parts.append(f'<circle class="{dot}" cx="{at(result.value)}" cy="{middle}" r="3.5"/>')
    label = escape(f"{TITLES[result.statistic]} {with_interval(result)}", quote=True)
    return f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="{_HEIGHT}">{"".join(parts)}</svg>'


def _low(entry: Entry, statistic: str) -> float:
    result = entry.results.get(statistic)
    values = [value for value in (result.low, result.value) if math.isfinite(value)] if result else []
    return min(values, default=0.0)


def _aspects(report: Report) -> Iterable[str]:
    tables = aspect_tables(report)
    if tables:
        yield f'<h2>Aspect by aspect</h2>\n<p class="facts">{escape(ABOUT_ASPECTS)}</p>'
    for table in tables:
        yield f"<h3>{escape(table.title)}</h3>"
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
        yield f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>'
        for first, *rest in table.rows():
            yield f'<tr><th scope="row">{escape(first)}</th>{"".join(map(_plain_cell, rest))}</tr>'
        yield "</tbody></table></div>"


def _left_out(report: Report) -> Iterable[str]:
    if not report.skipped:
        return
    yield "<h2>Left out</h2>\n<ul>"
    for one in report.skipped:
        who = "every metric" if one.metric == "*" else one.metric
        yield f"<li>{escape(who)} on {escape(one.benchmark)}: {escape(one.reason)}</li>"
    yield "</ul>"


def _anchor(section: Section) -> str:
    text = "-".join((section.benchmark, section.protocol, section.level, section.aspect))
    return escape("".join(character if character.isalnum() else "-" for character in text), quote=True)
