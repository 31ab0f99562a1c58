"""Rows of Excel files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dialeval.readers.rows import MANY, Bounds, RawRow, megabytes
from dialeval.readers.text import check_header
from dialeval.version import how_to_install

#: So many empty cells may be filled in for each byte of a sheet.
_MOST_FILLED = 4


def excel_rows(path: Path, name: str, tell: Callable[[str], None], bounds: Bounds) -> Iterator[RawRow]:
    """Rows of the first sheet, all cells as texts; its first row names the columns."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(f"{name} is an Excel file; save it as CSV, or: {how_to_install('agreement')}") from None
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
        book = None if unpacked > bounds.workbook else openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet: Any
        sheet, *others = [None] if book is None else book.worksheets
    except Exception:  # a zip archive of anything else: openpyxl raises what comes
        raise _no_workbook(name) from None
    if book is None:
        raise ValueError(f"{name} unpacks to more than {megabytes(bounds.workbook)}; save it as CSV")
    most = _MOST_FILLED * max(unpacked, MANY)
    if any(any(row) for other in others for row in _cells(other, name, most)):
        tell(f"only the first sheet is read, {sheet.title!r}; save another one as a file of its own")
    filled = ((number, row) for number, row in enumerate(_cells(sheet, name, most), start=1) if any(row))
    _, header = next(filled, (0, []))
    named = [index for index, column in enumerate(header) if column]
    check_header([header[column] for column in named], name)
    for number, (line, row) in enumerate(filled):
        yield RawRow(
            number,
            f"{name}, line {line}",
            {header[column]: row[column] if column < len(row) else "" for column in named},
        )


def _cells(sheet: Any, name: str, most: int) -> Iterator[list[str]]:
    """The rows of a sheet, and what is not in the file before them: that is filled in, and has a bound."""
    from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]

    sheet.reset_dimensions()  # what a sheet says of its size may be anything, and rows are filled up to it
    rows, count = sheet.iter_rows(values_only=True), 0
    while True:
        try:
            row = next(rows, None)
        except Exception:  # openpyxl raises what comes
            raise _no_workbook(name) from None
        if row is None:
            return
        count += 1 + len(row)
        if count > most:
            raise ValueError(
                f"{name} is nearly all empty cells; remove what stands far from the rows, or save it as CSV"
            )
        # A control character, such as the end of a line of Windows, is written as `_x000D_`.
        yield ["" if cell is None else unescape(str(cell)) for cell in row]


def _no_workbook(name: str) -> ValueError:
    return ValueError(f"{name} is not an Excel file, or is damaged; save it again")
