"""Rows of JSON lines and of CSV, from bytes: compressed or not, and no line longer than a bound, so that
no input can exhaust memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, cast

from dialeval.readers.rows import FIELDS, Columns, RawRow, check_width, required_fields

#: A longer line is a broken file rather than a dialogue.
MAX_LINE_BYTES = 16 * 2**20
#: A JSON array has no lines to stop at.
MAX_ARRAY_BYTES = 64 * 2**20

#: Where a file has no more lines: zeros without end, or a small compressed file that unpacks to nothing else.
MAX_WASTE_BYTES = 2**28
MAX_BLANK_LINES = 1_000_000

_ONE_A_LINE = "write one object per line (jq -c '.[]' does it)"
_UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_FORMATS = {
    b"PAR1": "is a Parquet file; say so with the format parquet",
    b"PK\x03\x04": "is a zip archive (an .xlsx file is one too); unpack it, or export it as CSV",
    b"\x28\xb5\x2f\xfd": "is compressed with zstandard; unpack it or use gzip",
    b"BZh": "is compressed with bzip2; unpack it or use gzip",
    b"\xfd7zXZ": "is compressed with xz; unpack it or use gzip",
    b"\xff\xfe": "is encoded in UTF-16 or UTF-32; save it as UTF-8",
    b"\xfe\xff": "is encoded in UTF-16; save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `number` counts from 1 as editors do."""

    number: int
    data: bytes
    is_overlong: bool = False


def read_lines(stream: BinaryIO, name: str) -> Iterator[Line]:
    """The lines of a stream, unpacked if it is gzip, without a UTF-8 byte-order mark.

    Of an over-long line only the beginning is kept; the rest is passed over in pieces.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    number = blank = 0
    try:
        plain = _unpacked(buffered, name)
        while data := plain.readline(MAX_LINE_BYTES + 1):
            number += 1
            is_overlong = len(data) > MAX_LINE_BYTES and not data.endswith(b"\n")
            if is_overlong:
                _pass_over_rest(plain, f"line {number} of {name}")
                data = data[:1000]
            blank = 0 if data.strip() else blank + 1
            if blank > MAX_BLANK_LINES:
                raise ValueError(f"{name} holds more than {MAX_BLANK_LINES} blank lines on end; is it a file of rows?")
            if number == 1 and data.startswith(_UTF8_BOM):
                data = data[len(_UTF8_BOM) :]
            yield Line(number, data, is_overlong)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name} is a damaged gzip file ({error}); fetch or pack it again") from None
    finally:
        if buffered is not stream:
            buffered.detach()  # or the stream would be closed with it, and it is not ours


def _unpacked(buffered: io.BufferedReader, name: str) -> BinaryIO:
    start = buffered.peek(8)[:8]
    for magic, kind in _OTHER_FORMATS.items():
        if start.startswith(magic):
            raise ValueError(f"{name} {kind}")
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return cast(BinaryIO, buffered)


def _pass_over_rest(stream: BinaryIO, where: str) -> None:
    passed = 0
    while (piece := stream.readline(MAX_LINE_BYTES)) and not piece.endswith(b"\n"):
        passed += len(piece)
        if passed > MAX_WASTE_BYTES:
            raise ValueError(f"{where} is longer than {MAX_WASTE_BYTES // 2**20} MiB; is it a file of rows?")


#: Between the turns of a CSV cell; the mark that DailyDialog made common.
CONTEXT_SEPARATOR = "__eou__"

#: Fields of several texts, which a cell of a CSV file holds as one.
LISTS = ("context", "references", "facts", "speakers", "dialogue")
_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB; is a line end missing?"


def json_rows(stream: BinaryIO, name: str) -> Iterator[RawRow]:
    """One row per JSON line, or per entry of a JSON array; blank lines are passed over and do not count."""
    lines = (line for line in read_lines(stream, name) if line.is_overlong or line.data.strip())
    first = next(lines, None)
    if first is None:
        return
    if first.data.lstrip().startswith(b"["):
        yield from _array_rows(chain([first], lines), name)
        return
    for number, line in enumerate(chain([first], lines)):
        yield _json_row(number, line, name)


def _array_rows(lines: Iterator[Line], name: str) -> Iterator[RawRow]:
    """A file that is one JSON array is read as a whole, so it has a bound."""
    data = bytearray()
    for line in lines:
        data += line.data
        if line.is_overlong or len(data) > MAX_ARRAY_BYTES:
            size = f"{MAX_ARRAY_BYTES // 2**20} MB, or a line of {MAX_LINE_BYTES // 2**20} MB"
            raise ValueError(f"{name} is a JSON array of more than {size}; {_ONE_A_LINE}")
    try:
        entries = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{name} is a JSON array that is nested too deeply; a row is an object of strings") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ValueError(f"{name} begins like a JSON array and is none ({reason}); {_ONE_A_LINE}") from None
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        where = f"{name}, entry {number}"
        if isinstance(entry, dict):
            yield RawRow(number, where, entry)
        else:
            yield RawRow(
                number, where, problem=f"the entry is a {type(entry).__name__}; a row is a JSON object", raw=entry
            )


def _json_row(number: int, line: Line, name: str) -> RawRow:
    where = f"{name}, line {line.number}"

    def bad(problem: str) -> RawRow:
        text = line.data.decode("utf-8", errors="backslashreplace")
        return RawRow(number, where, problem=problem, raw=text.rstrip("\r\n"))

    if line.is_overlong:
        return bad(_TOO_LONG)
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return bad(f"byte {error.start} of the line is not UTF-8; save the file as UTF-8")
    if "\0" in text:
        return bad("the line holds a NUL byte; is this a text file?")
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        if number == 0 and text.strip() == "{":
            return bad(f"the JSON is spread over lines; {_ONE_A_LINE}")
        reason = error.msg.removesuffix(" at")
        return bad(f"this is not JSON: {reason} at character {error.pos}; write one JSON object per line")
    except RecursionError:
        return bad("the JSON is nested too deeply; a row is an object of strings and lists of strings")
    except ValueError:  # what Python refuses to convert
        return bad("a number in the JSON has thousands of digits; a row holds strings")
    if not isinstance(values, dict):
        return bad(f"the line is a {type(values).__name__}; write one JSON object per line")
    return RawRow(number, where, values)


def csv_rows(
    stream: BinaryIO, name: str, columns: Columns, *, level: str, delimiter: str, separator: str
) -> Iterator[RawRow]:
    """One row per record; the first record names the columns.

    Cells that hold several texts (context, references, facts, speakers, dialogue) are cut at `separator`; a cell
    that is a JSON array of strings is taken as that array.
    """
    if not separator:
        raise ValueError("the separator of context turns is empty; choose the text that stands between turns")
    lines = _CsvLines(stream, name)
    # The module's bound on a cell is global; the bound on a line, above it, is the one that counts here.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    records = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(records, name, columns, level)
    lists = {columns.name(field): field for field in LISTS}
    singles = {columns.name(field) for field in FIELDS} - set(lists)
    number = 0
    while True:
        first = lines.number + 1
        where = f"{name}, line {first}"
        try:
            cells = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                raise ValueError(f"row {number} ({where}): a cell never ends; is a quote left open?") from None
            reason = "a lone carriage return" if "new-line" in str(error) else str(error)
            yield RawRow(number, where, problem=f"this is not CSV: {reason}; put the cell in quotes", raw=lines.last)
            number += 1
            continue
        if not cells:  # a blank line
            continue
        if problem := _cells_problem(cells, header):
            yield RawRow(number, where, problem=problem, raw=[_printable(cell) for cell in cells])
        else:
            values = dict(zip(header, cells, strict=True))
            try:
                yield RawRow(number, where, _typed(values, lists, singles, separator))
            except ValueError as error:
                yield RawRow(number, where, problem=str(error), raw=values)
        number += 1


class _CsvLines:
    """Text lines for the csv module; bytes that are not UTF-8 stay visible as surrogates."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._lines = read_lines(stream, name)
        self._name = name
        self.number = 0
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number = line.number
        if line.is_overlong:
            raise ValueError(f"{self._name}, line {line.number}: {_TOO_LONG}")
        self.last = line.data.decode("utf-8", errors="backslashreplace").rstrip("\r\n")
        return line.data.decode("utf-8", errors="surrogateescape")


def _header(records: Iterator[list[str]], name: str, columns: Columns, level: str) -> list[str]:
    try:
        header = next((record for record in records if record), None)
    except csv.Error as error:
        raise ValueError(f"the header of {name} is not CSV: {error}") from None
    if header is None:
        raise ValueError(f"{name} is empty; its first line must name the columns")
    check_width(name, len(header))
    if problem := _cells_problem(header, header):
        raise ValueError(f"the header of {name}: {problem}")
    if (twice := _twice(header)) is not None:
        raise ValueError(f"{name} has two columns {twice[:100]!r}; rename one of them")
    if absent := columns.missing(header, required_fields(columns, header, level)):
        for other in (";", "\t", ","):
            if len(header) == 1 and other in header[0]:
                raise ValueError(f"the cells of {name} are separated by {other!r}; write commas, or tabs in a .tsv")
        raise ValueError(f"{name}: {absent}")
    return header


def _twice(header: list[str]) -> str | None:
    """The first name that stands there a second time."""
    seen: set[str] = set()
    for column in header:
        if column in seen:
            return column
        seen.add(column)
    return None


def _cells_problem(cells: list[str], header: list[str]) -> str:
    if len(cells) != len(header):
        return f"there are {len(cells)} cells where the header names {len(header)}; quote cells that hold the separator"
    for column, cell in zip(header, cells, strict=True):
        if "\0" in cell:
            return f"{_printable(column[:100])} holds a NUL byte; is this a text file?"
        if not cell.isascii() and any("\udc80" <= character <= "\udcff" for character in cell):
            return f"{_printable(column[:100])} is not UTF-8; save the file as UTF-8"
    return ""


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="backslashreplace")


def _typed(values: dict[str, str], lists: dict[str, str], singles: set[str], separator: str) -> dict[str, object]:
    """Cells as the JSON form would have them; an empty cell of an optional column is no value."""
    typed: dict[str, object] = dict(values)
    for column, cell in values.items():
        if column in lists:
            typed[column] = split_cell(cell, lists[column], separator)
        elif column in singles and column != "response" and not cell:
            typed[column] = None
    return typed


def split_cell(cell: str, field: str, separator: str = CONTEXT_SEPARATOR) -> list[str] | None:
    """The texts of a cell that stand between separators, or those of a JSON array."""
    text = cell.strip()
    if not text:
        return [] if field in ("context", "dialogue") else None
    if text.startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            # What a data frame writes for a list; taken as one text it would be scored silently wrong.
            if text.startswith(("['", '["')) and text.endswith(("']", '"]')):
                raise ValueError(
                    f"{field} looks like a Python list; write a JSON array, or join its texts by {separator!r}"
                ) from None
        else:
            if isinstance(values, list) and all(isinstance(value, str) for value in values):
                return values
    turns = [turn.strip() for turn in cell.split(separator)]
    return turns[:-1] if len(turns) > 1 and not turns[-1] else turns
