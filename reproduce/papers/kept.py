"""Numbers of ours on a page that was written before, for rows whose values are not at hand any more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: The last row of every table.
SIZES = "n of ours"
_MARKS = re.compile(r"( \([a-z]+\))+$")
#: The notes under a table, and where a cell gives one as the reason why it has no number.
_NOTES = re.compile(r"\(([a-z]+)\) (.+?)\.(?= \([a-z]+\) |$)")
_REASON = re.compile(r"– \(([a-z]+)\)")


@dataclass(frozen=True)
class EarlierTable:
    """Cells by the row's label, under the titles of the columns."""

    columns: Sequence[str]
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: By letter, which are others on another page.
    notes: Mapping[str, str] = field(default_factory=dict)

    def row(self, label: str, columns: Sequence[str], mark: Callable[[str], str]) -> list[str] | None:
        """The cells of a row in which something of ours was measured, if the table had these columns.

        `mark` gives the new letter of a note.
        """
        cells = dict(zip(self.columns, self.rows.get(label, ()), strict=False))
        if not set(columns) <= set(cells) or not any("**" in cell for cell in cells.values()):
            return None
        return [_REASON.sub(lambda one: f"– {mark(self.notes[one[1]])}", cells[column]) for column in columns]


def read_page(path: Path) -> dict[str, EarlierTable]:
    """The tables of a page by their titles; none where there is no page."""
    found: dict[str, EarlierTable] = {}
    if not path.is_file():
        return found
    for section in re.split(r"^#+ ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = section.splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
        if len(cells) > 2:
            header, _, *rows = cells
            notes = dict(_NOTES.findall(next((line for line in lines if line.startswith("(a) ")), "")))
            found[title] = EarlierTable(header[1:], {_MARKS.sub("", label): rest for label, *rest in rows}, notes)
    return found
