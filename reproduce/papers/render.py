"""A paper's tables as Markdown: the printed number above, ours below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from dialeval.agreement.results import Result
from dialeval.agreement.sections import number
from dialeval.io.tables import markdown_table
from reproduce.papers.measured import NOT_MEASURED, Answers, CellValue, commands
from reproduce.papers.tables import CellQuery, Column, Paper, Row, Table

_HOW = """In every cell the number of the paper stands above and **ours** below it, with its 95 % bootstrap interval \
(contexts are resampled). †: our metric was trained on this benchmark. Metrics of the paper that cannot be run here \
keep their printed numbers and say what they need, weights or data. Letters point to the notes under a table."""
_SHOWN = re.compile(r"\*\*(-?[\d.]+)\*\*")
#: The last row of every table.
_SIZES = "n of ours"


def render(paper: Paper, measured: Answers, *, values: str) -> list[str]:
    """The lines of the page of one paper, below its title."""
    lines = [_HOW, ""]
    for table in paper.tables:
        lines += [*_table(table, measured, values), ""]
    if paper.elsewhere:
        lines += ["## Elsewhere, or not done", "", *(f"- {item}" for item in paper.elsewhere)]
    return lines


def _table(table: Table, measured: Answers, values: str) -> Iterable[str]:
    notes = _Notes()
    missing: list[tuple[str, CellQuery]] = []
    body = []
    for row in table.rows:
        cells = [_cell(row, column, measured, notes, missing) for column in table.columns]
        marks = [notes.mark(row.note)] if row.note else []
        body.append([" ".join([row.label, *marks]), *_with_averages(table.columns, cells)])
    yield f"## {table.title}"
    yield ""
    if table.note:
        yield table.note
        yield ""
    if table.remark is not None:
        yield table.remark()
        yield ""
    sizes = [_size(table, column, measured) for column in table.columns]
    yield from markdown_table(["metric", *(column.title for column in table.columns)], [*body, [_SIZES, *sizes]])
    if notes.texts:
        yield ""
        yield " ".join(f"({letter}) {text}." for text, letter in notes.texts.items())
    if missing:
        yield ""
        yield from _missing_lines(missing, values)


def _missing_lines(missing: Sequence[tuple[str, CellQuery]], values: str) -> Iterable[str]:
    yield "What is not measured would be measured by:"
    yield ""
    yield "```"
    yield from commands(missing, values)
    yield "```"


class _Notes:
    """Texts under a table, each once, by letters."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def mark(self, text: str) -> str:
        letter = self.texts.setdefault(text.rstrip("."), _letter(len(self.texts)))
        return f"({letter})"


def _letter(position: int) -> str:
    return ("" if position < 26 else _letter(position // 26 - 1)) + "abcdefghijklmnopqrstuvwxyz"[position % 26]


def _cell(row: Row, column: Column, measured: Answers, notes: _Notes, missing: list[tuple[str, CellQuery]]) -> str:
    printed = row.published.get(column.title)
    parts = [] if printed is None else [f"{printed:g}"]
    if (question := column.question) is not None:
        answers = {spec: measured.get((spec, question), CellValue(None, NOT_MEASURED)) for spec in row.specs}
        results = [answer.result for answer in answers.values() if answer.result is not None]
        lacking = {spec: answer.reason for spec, answer in answers.items() if answer.result is None}
        if results and not lacking:
            parts.append(_ours(results, column.scale))
        elif row.lacks:
            parts.append(f"needs {row.lacks}")
        elif NOT_MEASURED in lacking.values():
            missing += [(spec, question) for spec, reason in lacking.items() if reason == NOT_MEASURED]
            parts.append(NOT_MEASURED)
        elif lacking:
            parts.append(f"– {notes.mark(next(iter(lacking.values())))}")
    return "<br>".join(parts)


def _with_averages(columns: Sequence[Column], cells: Sequence[str]) -> list[str]:
    """Beside a printed average that of our numbers, as the other columns show them."""
    shown = {column.title: cell for column, cell in zip(columns, cells, strict=True)}
    whole = []
    for column, cell in zip(columns, cells, strict=True):
        matches = [_SHOWN.search(shown[title]) for title in column.average_of]
        values = [float(match[1]) for match in matches if match is not None]
        ours = f"**{number(fmean(values))}**" if values and len(values) == len(matches) else ""
        whole.append("<br>".join(filter(None, (cell, ours))))
    return whole


def _ours(results: Sequence[Result], scale: float) -> str:
    """A run's number with its interval, or the mean of several runs with their standard deviation."""

    def shown(value: float) -> str:
        return f"{scale * value:.1f}" if scale != 1 and value == value else number(value)

    values = [result.value for result in results]
    text = f"**{shown(fmean(values))}**"
    if len(values) > 1:
        text += f" ± {shown(stdev(values))}"
    elif results[0].low == results[0].low:
        text += f" [{shown(results[0].low)}, {shown(results[0].high)}]"
    if n_excluded := max(result.n_excluded for result in results):
        text += f" ({n_excluded} rows without a value)"
    return f"{text} †" if any(result.contaminated for result in results) else text


def _size(table: Table, column: Column, measured: Answers) -> str:
    answered = [measured.get((str(row.ours), column.question)) for row in table.rows] if column.question else []
    sizes: Sequence[int] = [cell.result.n for cell in answered if cell is not None and cell.result is not None]
    return str(max(sizes)) if sizes else ""
