"""Rows of Excel files."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dialeval.readers.rows import MANY, Bounds, RawRow, megabytes
from dialeval.readers.text import check_header
from dialeval.version import how_to_install

#: So many tags of XML are unpacked, and so many cells filled in, for each byte of the file; real ones have two.
_MOST_FOR_A_BYTE = 4
#: Tags in all parts that are made into objects before a row is read; 65,000 formats, Excel's most, have fewer.
_MOST_WHOLE = 300_000
#: What counts as a tag, too: so many bytes of text, and the opening of a part this often.
_BYTES_OF_A_TAG, _TAGS_OF_OPENING = 100, 100
#: So many of the other sheets are looked at for rows.
_OTHERS = 100


class _Parts(zipfile.ZipFile):
    """The parts of a workbook, with a bound on what openpyxl makes of them, however often it reads one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.unpacked = sum(part.file_size for part in self.infolist())
        self.most = max(_MOST_FOR_A_BYTE * path.stat().st_size, MANY)
        self.is_too_much = False
        self._left, self._left_whole = self.most, _MOST_WHOLE

    def open(self, name: Any, *rest: Any, **options: Any) -> Any:
        """A part that is read as it comes (a sheet, the texts of all sheets), or at once, to be made into objects."""
        self._left_whole = self._after(_TAGS_OF_OPENING, self._left_whole)
        return _Part(self, super().open(name, *rest, **options))

    def count(self, read: Callable[[int], bytes], size: int) -> bytes:
        """What is read of a part, if it is not too much."""
        data = read(size if size >= 0 else _BYTES_OF_A_TAG * (self._left_whole + 1))
        if size >= 0:
            self._left = self._after(_tags(data), self._left)
        else:
            self._left_whole = self._after(_tags(data), self._left_whole)
        return data

    def _after(self, count: int, left: int) -> int:
        if count > left:
            self.is_too_much = True
            raise ValueError
        return left - count


class _Part(io.BufferedIOBase):
    def __init__(self, parts: _Parts, stream: Any) -> None:
        self._parts, self._stream = parts, stream

    def read(self, size: int | None = -1) -> bytes:
        return self._parts.count(self._stream.read, -1 if size is None else size)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _tags(data: bytes) -> int:
    return data.count(b"<") + len(data) // _BYTES_OF_A_TAG


def excel_rows(path: Path, name: str, tell: Callable[[str], None], bounds: Bounds) -> Iterator[RawRow]:
    """Rows of the first sheet, all cells as texts; its first row names the columns."""
    try:
        import openpyxl  # type: ignore[import-untyped] # noqa: F401
    except ImportError:
        raise ValueError(f"{name} is an Excel file; save it as CSV, or: {how_to_install('agreement')}") from None
    try:
        parts = _Parts(path)
    except Exception:  # a zip archive of anything else
        raise _no_workbook(name) from None
    if parts.unpacked > bounds.workbook:
        raise ValueError(f"{name} unpacks to more than {megabytes(bounds.workbook)}; save it as CSV")
    with parts:
        sheet, *others = _sheets(path, name, parts)
        if any(any(row) for other in others[:_OTHERS] for row in _cells(other, name, parts)):
            tell(f"only the first sheet is read, {sheet.title!r}; save another one as a file of its own")
        filled = ((number, row) for number, row in enumerate(_cells(sheet, name, parts), start=1) if any(row))
        _, header = next(filled, (0, []))
        named = [index for index, column in enumerate(header) if column]
        check_header([header[column] for column in named], name)
        for number, (line, row) in enumerate(filled):
            values = {header[column]: row[column] if column < len(row) else "" for column in named}
            yield RawRow(number, f"{name}, line {line}", values)


def _sheets(path: Path, name: str, parts: _Parts) -> list[Any]:
    from openpyxl.reader.excel import ExcelReader  # type: ignore[import-untyped]

    try:
        with warnings.catch_warnings(action="ignore"):  # of formats that it will not write again
            reader = ExcelReader(path, read_only=True, data_only=True, keep_links=False)
            reader.archive.close()
            reader.archive = parts
            reader.read()
        sheets: list[Any] = reader.wb.worksheets
        for sheet in sheets:
            sheet.reset_dimensions()  # what a sheet says of its size may be anything, and rows are filled up to it
        return [sheets[0], *sheets[1:]]
    except Exception:  # openpyxl raises what comes
        raise _no_workbook(name, parts) from None


def _cells(sheet: Any, name: str, parts: _Parts) -> Iterator[list[str]]:
    """The rows of a sheet, and what is not in the file before them: that is filled in, and has a bound."""
    from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]

    rows, count = sheet.iter_rows(values_only=True), 0
    while True:
        try:
            row = next(rows, None)
        except Exception:  # openpyxl raises what comes
            raise _no_workbook(name, parts) from None
        if row is None:
            return
        count += 1 + len(row)
        if count > parts.most:
            raise ValueError(
                f"{name} is nearly all empty cells; remove what stands far from the rows, or save it as CSV"
            )
        # A control character, such as the end of a line of Windows, is written as `_x000D_`.
        yield ["" if cell is None else unescape(str(cell)) for cell in row]


def _no_workbook(name: str, parts: _Parts | None = None) -> ValueError:
    if parts is not None and parts.is_too_much:
        return ValueError(f"{name} unpacks to more formats, names or empty cells than a sheet needs; save it as CSV")
    return ValueError(f"{name} is not an Excel file, or is damaged; save it again")
