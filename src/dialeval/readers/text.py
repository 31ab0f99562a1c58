"""Rows of JSON lines, of CSV and of transcripts, from bytes: compressed or not, and no line longer than a bound."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from lzma import LZMAError
from typing import Any, BinaryIO, cast

from dialeval.core.exchange import a_kind
from dialeval.io.files import parse_json
from dialeval.io.harmless import one_line
from dialeval.readers.chats import product_of
from dialeval.readers.rows import USUAL, Bounds, Columns, RawRow, megabytes
from dialeval.readers.transcripts import conversations, lines_of

#: A longer line is a broken file rather than a dialogue.
MAX_LINE_BYTES = 16 * 2**20
#: Of blank lines in a row.
MAX_BLANK_BYTES = 2**20
#: Where no line ends for so long, no row follows.
ENDLESS_LINE_BYTES = 256 * 2**20

_ONE_A_LINE = "write one object per line (jq -c '.[]' does it)"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
#: Such bytes are UTF-8 that is broken elsewhere, and hardly a text in Windows-1252 (Latin-1).
_OF_UTF8 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_OTHER_FORMATS = {
    b"PAR1": "is a Parquet file; rename it to .parquet",
    b"PK\x03\x04": "is a zip archive (an .xlsx file is one too); rename it to .zip or .xlsx",
    b"\x28\xb5\x2f\xfd": "is compressed with zstandard; unpack it or use gzip",
    b"BZh": "is compressed with bzip2; unpack it or use gzip",
    b"\xfd7zXZ": "is compressed with xz; unpack it or use gzip",
    b"\xff\xfe\0\0": "is encoded in UTF-32; save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `number` counts from 1 as editors do."""

    number: int
    data: bytes
    is_overlong: bool = False


def read_lines(stream: BinaryIO, name: str, bounds: Bounds = USUAL) -> Iterator[Line]:
    """The lines of a stream, unpacked if it is gzip, without a UTF-8 byte-order mark.

    Of an over-long line only the beginning is kept; the rest is passed over in pieces.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    number = data_read = blank = 0
    plain: Any = None
    try:
        plain = _unpacked(buffered, name)
        while data := plain.readline(MAX_LINE_BYTES + 1):
            number += 1
            data_read += len(data)
            bounds.check(name, data=data_read, rows=0)
            blank = blank + len(data) if data.isspace() else 0
            if blank > MAX_BLANK_BYTES:  # a packed file of nothing else would be read for minutes
                raise ValueError(f"{name} has {megabytes(blank)} of blank lines up to line {number}; remove them")
            is_overlong = len(data) > MAX_LINE_BYTES and not data.endswith(b"\n")
            if is_overlong:
                passed = len(data)
                while (rest := plain.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    passed += len(rest)
                    data_read += len(rest)
                    if passed > ENDLESS_LINE_BYTES:
                        raise ValueError(f"line {number} of {name} is too long; is this a file of rows?")
                data = data[:1000]
            if number == 1 and data.startswith(_UTF8_BOM):
                data = data[len(_UTF8_BOM) :]
            yield Line(number, data, is_overlong)
    except (EOFError, zlib.error, zipfile.BadZipFile, LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not what was packed
            raise
        raise ValueError(f"{name} is packed and damaged ({error}); fetch or pack it again") from None
    finally:
        if isinstance(plain, _Utf16):
            plain.detach()
        if buffered is not stream and not stream.closed:
            buffered.detach()  # or the stream would be closed with it, and it is not ours


def _unpacked(buffered: io.BufferedReader, name: str) -> BinaryIO:
    start = buffered.peek(8)[:8]
    for magic, kind in _OTHER_FORMATS.items():
        if start.startswith(magic):
            raise ValueError(f"{name} {kind}")
    plain = gzip.GzipFile(fileobj=buffered) if start.startswith(b"\x1f\x8b") else buffered
    return cast(BinaryIO, _Utf16(plain, name) if plain.peek(2)[:2] in _UTF16_BOMS else plain)


class _Utf16:
    """The lines of a stream in UTF-16, as spreadsheets and PowerShell write it, in UTF-8."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = io.TextIOWrapper(stream, "utf-16", newline="\n"), name

    def readline(self, size: int) -> bytes:
        """One line, or so many characters of it."""
        try:
            return self._stream.readline(size).encode("utf-8", "surrogatepass")
        except UnicodeError:
            raise ValueError(f"{self._name} is not the UTF-16 that it begins as; save it as UTF-8") from None

    def detach(self) -> None:
        """Leave the stream open: it is not ours."""
        self._stream.detach()


#: Between the turns of a CSV cell; the mark that DailyDialog made common.
CONTEXT_SEPARATOR = "__eou__"

#: Fields of several texts, which a cell of a CSV file holds as one.
LISTS = ("context", "references", "facts", "speakers", "dialogue")
_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB; is a line end missing?"


def json_rows(stream: BinaryIO, name: str, bounds: Bounds = USUAL) -> Iterator[RawRow]:
    """One row per JSON line, or per entry of a JSON array; blank lines are passed over and do not count."""
    yield from _rows_of_lines(read_lines(stream, name, bounds), name, bounds)


def _rows_of_lines(every: Iterator[Line], name: str, bounds: Bounds) -> Iterator[RawRow]:
    lines = (line for line in every if line.is_overlong or line.data.strip())
    first = next(lines, None)
    if first is None:
        return
    begun = [first]
    if first.data.lstrip().startswith(b"["):
        begun += islice(lines, 1)  # a list a line: chats without names
    is_array = first.data.lstrip().startswith(b"[") and not (len(begun) > 1 and _is_chat(first.data))
    if is_array or first.data.strip() == b"{":
        yield from _array_rows(chain(begun, lines), name, bounds)
        return
    for number, line in enumerate(chain(begun, lines)):
        yield _json_row(number, line, name)


def _is_chat(data: bytes) -> bool:
    """Whether a line is the whole list of a conversation's messages."""
    try:
        return _as_row(parse_json(data)) is not None
    except ValueError:
        return False


def _as_row(entry: Any) -> dict[str, Any] | None:
    """An object; of a list of messages the row that it is. None for anything else."""
    if isinstance(entry, list) and product_of({"messages": entry}):
        return {"messages": entry}
    return entry if isinstance(entry, dict) else None


def _array_rows(lines: Iterator[Line], name: str, bounds: Bounds) -> Iterator[RawRow]:
    """A file that is one JSON array, or one object over many lines, is read as a whole, so it has a bound."""
    data = bytearray()
    for line in lines:
        data += line.data
        if line.is_overlong or len(data) > bounds.whole:
            size = f"{megabytes(bounds.whole)}, or a line of {MAX_LINE_BYTES // 2**20} MB"
            raise ValueError(f"{name} is one piece of JSON of more than {size}; {_ONE_A_LINE}")
    try:
        entries = json.loads(data.decode("utf-8"), object_pairs_hook=_Object.of)
    except RecursionError:
        raise ValueError(f"{name} is JSON that is nested too deeply; a row is an object of strings") from None
    except ValueError as error:
        if data.startswith(b"{"):
            raise ValueError(f"{name} spans several lines but is not one object; {_ONE_A_LINE}") from None
        reason = getattr(error, "msg", "a number has thousands of digits")
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else reason
        raise ValueError(f"{name} starts like a JSON array but is not one ({reason}); {_ONE_A_LINE}") from None
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        where = f"{name}, entry {number}"
        if (values := _as_row(entry)) is not None:
            yield RawRow(number, where, values, duplicate=getattr(entry, "duplicate", ""))
        else:
            yield RawRow(number, where, problem=f"the entry is {a_kind(entry)}; a row is a JSON object", raw=entry)


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
        values = json.loads(text, object_pairs_hook=_Object.of)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        return bad(f"this is not JSON: {reason} at character {error.pos}; write one JSON object per line")
    except RecursionError:
        return bad("the JSON is nested too deeply; a row is an object of strings and lists of strings")
    except ValueError:  # what Python refuses to convert
        return bad("a number in the JSON has thousands of digits; a row holds strings")
    if (row := _as_row(values)) is None:
        return bad(f"the line is {a_kind(values)}; write one JSON object per line")
    return RawRow(number, where, row, duplicate=getattr(values, "duplicate", ""))


class _Object(dict[str, Any]):
    """A JSON object in which a key stands twice."""

    duplicate = ""

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object; of values with the same key the last one counts, as in every JSON reader."""
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        table = cls(values)
        table.duplicate = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return table


def text_rows(stream: BinaryIO, name: str, tell: Callable[[str], None], bounds: Bounds = USUAL) -> Iterator[RawRow]:
    """One row per conversation of a transcript; a text file that holds JSON is read as such."""
    every = _without_nul(read_lines(stream, name, bounds), name)
    lines: Iterator[Line] = dropwhile(lambda line: not line.data.strip(), every)
    first = next(lines, None)
    if first is None:
        return
    lines = chain([first], lines)
    if first.data.strip().startswith((b"{", b"[{")):
        yield from _rows_of_lines(lines, name, bounds)
        return
    texts = _TextLines(lines, name, tell)
    plain = (line for text in texts for line in lines_of(texts.checked(text)))
    for number, messages in enumerate(conversations(plain, tell, name=name, most=bounds.whole)):
        yield RawRow(number, f"{name}, conversation {number}", {"messages": messages})


def _without_nul(lines: Iterator[Line], name: str) -> Iterator[Line]:
    """The lines of a text; UTF-16 that does not begin with its mark would be read as letters with NUL bytes between."""
    for line in lines:
        if b"\0" in line.data:
            raise ValueError(f"{name}, line {line.number}: a NUL byte; is this a text file? Save it as UTF-8")
        yield line


_READ_AS_LATIN = "not UTF-8, so it is read as Windows-1252 (Latin-1)"


def _is_foreign(text: str) -> bool:
    """Whether bytes that are not UTF-8 were left in it as surrogates."""
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)


def _latin(data: bytes) -> str | None:
    """Bytes that are not UTF-8 as Windows-1252, of which Latin-1 is a part; None where they look like neither."""
    try:
        return None if _OF_UTF8.search(data) else data.decode("cp1252")
    except UnicodeDecodeError:
        return None


def csv_rows(
    stream: BinaryIO,
    name: str,
    *,
    delimiter: str,
    tell: Callable[[str], None] = lambda _: None,
    bounds: Bounds = USUAL,
) -> Iterator[RawRow]:
    """One row per record, all cells as texts; the first record names the columns and tells their separator."""
    lines = _TextLines(read_lines(stream, name, bounds), name, tell)
    delimiter = lines.delimiter(delimiter)
    # The module's bound on a cell is global; the bound on a row, which is as large, is the one that counts here.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    number, where, begun = 0, f"{name}, line 1", 0

    def lines_of_a_row() -> Iterator[str]:
        for text in lines:
            if lines.bytes_read - begun > MAX_LINE_BYTES:
                raise ValueError(f"row {number} ({where}): a cell never ends; is a quote left open?")
            yield text

    records = csv.reader(lines_of_a_row(), delimiter=delimiter, strict=True)
    header = _header(records, name)
    while True:
        where, begun = f"{name}, line {lines.number + 1}", lines.bytes_read
        try:
            cells = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"this is not CSV: {_reason(error)}; put the cell in quotes"
            yield RawRow(number, where, problem=problem, raw=lines.last)
            number += 1
            continue
        if not cells:  # a blank line
            continue
        if problem := _cells_problem(cells, header):
            yield RawRow(number, where, problem=problem, raw=[_printable(cell) for cell in cells])
        else:
            yield RawRow(number, where, dict(zip(header, cells, strict=True)))
        number += 1


def table_row(row: RawRow, columns: Columns, separator: str, *, cells: bool = True) -> RawRow:
    """A row of a table as its JSON form would be.

    Cells that hold several texts (context, references, facts, speakers, dialogue) are cut at `separator`, and texts of
    other files that hold one; a JSON array of strings is one. An empty cell of an optional column is no value.
    """
    if row.values is None:
        return row
    typed = dict(row.values)
    try:
        for field in columns.fields:
            column = columns.name(field)
            if isinstance(typed.get(column), str) and field in LISTS and (cells or separator in typed[column]):
                typed[column] = split_cell(typed[column], field, separator)
            elif cells and isinstance(typed.get(column), str) and field != "response":  # a zero is a value
                typed[column] = typed[column] or None
    except ValueError as error:
        return row.spoilt(str(error))
    return RawRow(row.number, row.where, typed)


class _TextLines(Iterator[str]):
    """Lines in UTF-8 or Windows-1252; what is neither stays visible as surrogates."""

    def __init__(self, lines: Iterator[Line], name: str, tell: Callable[[str], None]) -> None:
        self._lines, self._name, self._tell = lines, name, tell
        self._encoding = ""
        self.number = self.bytes_read = 0
        self.last = ""

    def __next__(self) -> str:
        line = next(self._lines)
        self.number = line.number
        self.bytes_read += len(line.data)
        if line.is_overlong:
            raise ValueError(f"{self._name}, line {line.number}: {_TOO_LONG}")
        self.last = line.data.decode("utf-8", errors="backslashreplace").rstrip("\r\n")
        return self._text(line.data)

    def _text(self, data: bytes) -> str:
        text = data.decode("utf-8", errors="surrogateescape")
        if text.isascii():
            return text
        latin = _latin(data) if _is_foreign(text) else None
        encoding = "utf-8" if latin is None else "cp1252"
        if latin is not None and not self._encoding:
            self._tell(_READ_AS_LATIN)
        self._encoding = self._encoding or encoding
        if encoding != self._encoding:
            raise ValueError(f"{self._name}, line {self.number}: the file mixes UTF-8 and Latin-1; save it as UTF-8")
        return text if latin is None else latin

    def checked(self, text: str) -> str:
        """The line, if it is text."""
        if _is_foreign(text):
            raise ValueError(f"{self._name}, line {self.number} is not UTF-8; save the file as UTF-8")
        return text

    def delimiter(self, usual: str) -> str:
        """What stands between cells: what spreadsheets say in a first line `sep=;`, or what the header has most of."""
        first = next((line for line in self._lines if line.data.strip()), None)
        if first is None:
            return usual
        if match := re.fullmatch(rb"sep=(.)\s*", first.data):
            return match[1].decode("latin-1")
        self._lines = chain([first], self._lines)
        header = first.data[:10000].decode("utf-8", errors="replace")
        try:
            return max((usual, ",", ";", "\t"), key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))
        except csv.Error:  # told where the header is read
            return usual


def _header(records: Iterator[list[str]], name: str) -> list[str]:
    try:
        header = next((record for record in records if record), None)
    except csv.Error as error:
        raise ValueError(f"the header of {name} is not CSV: {_reason(error)}") from None
    if header is None:
        raise ValueError(f"{name} is empty; its first line must name the columns")
    if problem := _cells_problem(header, header):
        raise ValueError(f"the header of {name}: {problem}")
    check_header(header, name)
    return header


def _reason(error: csv.Error) -> str:
    return "a lone carriage return" if "new-line" in str(error) else one_line(str(error))


def check_header(header: Sequence[str], name: str) -> None:
    """Refuse a table in which two columns have one name."""
    twice = next((column for column, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{name} has two columns {twice[:100]!r}; rename one of them")


def _cells_problem(cells: list[str], header: list[str]) -> str:
    if len(cells) != len(header):
        return f"there are {len(cells)} cells where the header names {len(header)}; quote cells that hold the separator"
    for column, cell in zip(header, cells, strict=True):
        if "\0" in cell:
            return f"{one_line(_printable(column[:100]))} holds a NUL byte; is this a text file?"
        if _is_foreign(cell):
            return f"{one_line(_printable(column[:100]))} is not UTF-8; save the file as UTF-8"
    return ""


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="backslashreplace")


def split_cell(cell: str, field: str, separator: str = CONTEXT_SEPARATOR) -> list[Any] | None:
    """The texts of a cell that stand between separators, or the texts or messages of a JSON array."""
    text = cell.strip()
    if not text:
        return [] if field in ("context", "dialogue") else None
    if text.startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            # What a data frame writes for a list; taken as one text it would be scored silently wrong.
            if text.startswith('["') or (text.startswith("['") and text.endswith("']")):
                raise ValueError(
                    f"{field} looks like a Python list, or a JSON array that is cut; write a JSON array, or join its "
                    f"texts by {separator!r}"
                ) from None
        else:
            if isinstance(values, list) and all(isinstance(value, str | dict) for value in values):
                return values
    turns = [turn.strip() for turn in cell.split(separator)]
    return turns[:-1] if len(turns) > 1 and not turns[-1] else turns
