"""Documents of paragraphs and tables, rendered as Markdown, as HTML and on a terminal; and scores in a notebook.

A paragraph is a text in which `**…**` is bold and `` `…` `` code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.io.harmless import for_markdown, for_terminal, for_xml, one_line

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

#: Characters of a line where no terminal says how many it has.
_WIDE = 160


@dataclass(frozen=True)
class Cell:
    """A text in a table. In a header, what follows the first line stands small below it."""

    text: str
    best: bool = False
    #: Marked with †.
    contaminated: bool = False
    #: In HTML only: what shows on hover, the heading that it leads to, and a picture in its place.
    hint: str = ""
    link: str = ""
    svg: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells; the columns `left` hold names, the others numbers."""

    header: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell]]
    left: Sequence[int] = (0,)
    title: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading; `anchor` is where links to it lead."""

    text: str
    level: int = 2
    anchor: str = ""


@dataclass(frozen=True)
class Code:
    """A line of code."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: Sequence[str]


Block = str | Heading | Table | Code | Items


def to_markdown(blocks: Iterable[Block]) -> str:
    """The whole as Markdown."""
    return "\n\n".join(filter(None, map(_markdown, blocks))) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {for_markdown(one_line(block.text), code=True)}"
        case Table():
            header, *rows = (
                [for_markdown(one_line(cell)) if isinstance(cell, str) else cell for cell in line]
                for line in (block.header, *block.rows)
            )
            return "\n".join(markdown_table(header, rows, left=block.left))
        case Code():
            text = one_line(block.text)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}\n{text}\n{fence}"
        case Items():
            return "\n".join(f"- {for_markdown(one_line(line), code=True)}" for line in block.lines)
    return for_markdown(block, code=True)


def markdown_table(
    header: Sequence[str | Cell], rows: Iterable[Sequence[str | Cell]], *, left: Sequence[int] = (0,)
) -> Iterator[str]:
    """Lines of a Markdown table: names on the left, numbers on the right. What is text may hold
    Markdown of its own; bars in it are escaped.
    """
    shown = [column for column, cell in enumerate(header) if not (isinstance(cell, Cell) and cell.svg)]

    def line(cells: Sequence[str | Cell]) -> str:
        return f"| {' | '.join(_plain(cells[column]).replace('|', chr(92) + '|') for column in shown)} |"

    yield line(header)
    yield "|" + "".join("---|" if column in left else "---:|" for column in shown)
    yield from map(line, rows)


def _plain(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return cell
    text = for_markdown(_marked(cell)).replace("\n", "<br>")
    return f"**{text}**" if cell.best else text


def _marked(cell: Cell) -> str:
    return f"{cell.text} †" if cell.contaminated else cell.text


def to_html(blocks: Iterable[Block]) -> str:
    """The whole as a part of a page; what looks like markup in texts is text."""
    return "\n".join(map(_html, blocks))


def to_page(title: str, blocks: Iterable[Block]) -> str:
    """A page of its own: no script, no font, no picture from elsewhere."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{for_xml(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<h1>{for_xml(title)}</h1>\n{to_html(blocks)}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading():
            anchor = f' id="{for_xml(block.anchor)}"' if block.anchor else ""
            return f"<h{block.level}{anchor}>{_inline(block.text)}</h{block.level}>"
        case Table():
            head = "".join(map(_header_cell, block.header))
            body = "\n".join(f"<tr>{''.join(map(_body_cell, row))}</tr>" for row in block.rows)
            table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
            return f'<div class="scroll">{table}</div>'
        case Code():
            return f"<p><code>{for_xml(block.text)}</code></p>"
        case Items():
            return f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in block.lines)}</ul>"
    return f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", for_xml(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def _header_cell(cell: str | Cell) -> str:
    cell = Cell(cell) if isinstance(cell, str) else cell
    first, *rest = map(for_xml, cell.text.split("\n"))
    first = f'<a href="#{for_xml(cell.link)}">{first}</a>' if cell.link else first
    below = f"<br><small>{'<br>'.join(rest)}</small>" if rest else ""
    return f"<th>{first}{below}</th>"


def _body_cell(cell: str | Cell) -> str:
    """A text; of a `Cell` the interval, in brackets, stands small behind the value."""
    if isinstance(cell, str):
        return f"<td>{for_xml(cell)}</td>"
    names = [name for name, is_so in (("best", cell.best), ("contaminated", cell.contaminated)) if is_so]
    marks = f' class="{" ".join(names)}"' if names else ""
    marks += f' title="{for_xml(cell.hint)}"' if cell.hint else ""
    value, bracket, rest = cell.text.partition(" [")
    small = f" <small>[{for_xml(rest)}</small>" if bracket else ""
    dagger = ' <abbr title="trained on this benchmark">†</abbr>' if cell.contaminated else ""
    return f"<td{marks}>{cell.svg or for_xml(value)}{small}{dagger}</td>"


def show(blocks: Iterable[Block]) -> None:
    """The tables and paragraphs on standard output; in a file or pipe they are not squeezed into eighty columns."""
    from rich.console import Console

    console = Console()
    _draw(console if console.is_terminal else Console(width=_WIDE), blocks)


def to_text(blocks: Iterable[Block]) -> str:
    """The same as a text, for `print`."""
    from io import StringIO

    from rich.console import Console

    written = StringIO()
    _draw(Console(file=written, width=_WIDE, color_system=None, force_terminal=False, force_jupyter=False), blocks)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def _literal(text: str) -> str:
    from rich.markup import escape as literal

    return literal(for_terminal(text))


def _draw(console: RichConsole, blocks: Iterable[Block]) -> None:
    from rich.table import Table as Drawn

    for block in blocks:
        if isinstance(block, Table):
            shown = [column for column, cell in enumerate(block.header) if not (isinstance(cell, Cell) and cell.svg)]
            drawn = Drawn(title=_literal(block.title) or None, title_justify="left")
            for column in shown:
                title = block.header[column]
                name = title if isinstance(title, str) else title.text
                drawn.add_column(_literal(name), justify="left" if column in block.left else "right")
            for row in block.rows:
                cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in (row[column] for column in shown)]
                texts = [(_literal(_marked(cell)), cell.best) for cell in cells]
                drawn.add_row(*(f"[bold]{text}[/]" if best else text for text, best in texts))
            console.print(drawn)
        elif isinstance(block, str):
            console.print(_literal(block), soft_wrap=not console.is_terminal)


_ROWS, _BINS, _WIDTH, _HEIGHT = 5, 24, 240, 48


def scores_as_html(scores: Any) -> str:
    """A small table beside a histogram; `scores` are `Scores`, whose module imports this one."""
    direction = "higher is better" if scores.higher_is_better else "lower is better"
    head = (
        f"<b>{for_xml(scores.metric)} {scores.aggregate:.4g}</b> over {len(scores)} values, {direction}; "
        f"{scores.n_truncated} truncated, {scores.n_empty} blank"
    )
    cautions = "".join(f"<p>⚠ {for_xml(warning)}</p>" for warning in scores.warnings)
    return (
        f"<div><p>{head}</p>{cautions}{_histogram(scores)}{_table(scores)}"
        f"<p><small><code>{for_xml(scores.signature.short)}</code></small></p></div>"
    )


def _histogram(scores: Any) -> str:
    known = scores.values[np.isfinite(scores.values)]
    if len(known) < 2 or np.ptp(known) == 0:
        return ""
    counts, edges = np.histogram(known, bins=min(_BINS, len(known)))
    step = _WIDTH / len(counts)
    bars = "".join(
        f'<rect x="{index * step:.1f}" y="{_HEIGHT * (1 - count / counts.max()):.1f}" width="{step - 1:.1f}" '
        f'height="{_HEIGHT * count / counts.max():.1f}"/>'
        for index, count in enumerate(counts)
    )
    caption = f"histogram of the values from {edges[0]:.4g} to {edges[-1]:.4g}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT + 16}" role="img" aria-label="{caption}" fill="#1f6feb">{bars}'
        f'<g fill="currentColor" font-size="11"><text x="0" y="{_HEIGHT + 13}">{edges[0]:.3g}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 13}" text-anchor="end">{edges[-1]:.3g}</text></g></svg>'
    )


def _table(scores: Any) -> str:
    columns = {
        name: column
        for name, column in scores.columns().items()
        if column.dtype != object and (name == scores.metric or np.isfinite(column).any())
    }
    replies = ["response"] if scores.exchanges else []
    rows = []
    for index in range(min(_ROWS, len(scores))):
        name = scores.ids[index] if scores.ids is not None and scores.ids[index] is not None else index
        reply = [_short(scores.exchanges[index].response)] if scores.exchanges else []
        figures = [f"{column[index]:.3g}" if np.isfinite(column[index]) else "" for column in columns.values()]
        rows.append([str(name), *reply, *figures])
    left = len(scores) - len(rows)
    more = f"<p><small>and {left} more; <code>.to_pandas()</code> has all</small></p>" if left else ""
    return to_html([Table(["", *replies, *columns], rows)]) + more


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
