"""How large the pages of a Parquet file are by their own headers, which say it where the footer may lie."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

#: Kinds of pages, and encodings, by their numbers in the format.
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BY_DICTIONARY = frozenset({2, 8})
_BY_PREFIX = 7
#: Encodings of texts that Arrow cannot read as a dictionary: lengths apart, and prefixes.
_NO_DICTIONARY = frozenset({6, _BY_PREFIX})
#: Bytes of one value that is not a text, at most; those of a fixed length say how long they are.
_WIDEST = 12
#: Bytes that a value's place in its row takes, and its number in a dictionary.
_PLACE = 8
#: Bytes of a dictionary in which the longest text is looked for; they are a megabyte otherwise.
_LARGEST_DICTIONARY = 2**24
#: Fields of a header; none has so many, nor is any so deep.
_MOST_FIELDS, _DEEPEST = 64, 8
#: Bytes at the end of a file that say where its columns lie.
_LARGEST_FOOTER = 2**24
#: Compressions by their numbers in the format.
_CODECS = {0: "", 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4_raw", 6: "zstd", 7: "lz4_raw"}


class Damaged(ValueError):
    """A header that is none."""

    def __init__(self) -> None:
        super().__init__("what should be a header is none")


@dataclass(frozen=True)
class Page:
    """One page: where it begins in the file, and what it says of itself."""

    offset: int
    #: Where its content begins, and the bytes of that as they stand there.
    start: int
    packed: int
    unpacked: int
    values: int
    encoding: int
    is_dictionary: bool


@dataclass(frozen=True)
class Column:
    """The pages of one column in one group of rows."""

    path: str
    pages: list[Page]
    nested: bool
    text: bool
    #: Bytes of the longest text in the dictionary, or of any value that is not a text.
    longest: int

    @property
    def once(self) -> int | None:
        """Bytes that its texts take where equal ones are held once, until the group ends; none if they cannot be."""
        if not self.text or any(page.encoding in _NO_DICTIONARY for page in self.pages):
            return None
        return sum(page.unpacked for page in self.pages if page.encoding not in _BY_DICTIONARY or page.is_dictionary)

    def largest(self, rows: int, once: bool) -> int:
        """Bytes that the largest page takes at most, and what is held beside it."""
        held = sum(page.unpacked for page in self.pages if page.is_dictionary)
        beside = (self.once or 0) if once else held
        return beside + max((size for _, size in self.sizes(rows, once)), default=0)

    def sizes(self, rows: int, once: bool) -> Iterator[tuple[int, int]]:
        """Where each page begins, and the bytes that it may take when so many rows are read from it at once."""
        suffixes = sum(page.unpacked for page in self.pages if page.encoding == _BY_PREFIX)
        for page in self.pages:
            values, longest = page.values if self.nested else min(page.values, rows), 0
            if page.is_dictionary:
                values = page.values
            elif page.encoding == _BY_PREFIX:
                longest = suffixes
            elif not self.text or (page.encoding in _BY_DICTIONARY and not once):
                longest = self.longest
            yield page.offset, page.unpacked * (1 + self.text) + values * (_PLACE + longest)  # texts are copied


@dataclass(frozen=True)
class Chunk:
    """Where a column of a group of rows lies, as the footer says."""

    codec: str
    values: int
    packed: int
    start: int


def chunks_of(stream: BinaryIO) -> list[list[Chunk]]:
    """The columns of each group of rows, read from the footer: of a damaged one Arrow's own would end the process."""
    stream.seek(-8, io.SEEK_END)
    end = stream.tell()
    length = int.from_bytes(stream.read(4), "little")
    if length > min(end, _LARGEST_FOOTER):
        raise Damaged
    stream.seek(end - length)
    footer = _struct(io.BytesIO(stream.read(length)), 0, lists=True)
    try:
        return [[_chunk(column[3]) for column in group[1]] for group in footer[4]]
    except (KeyError, TypeError):
        raise Damaged from None


def _chunk(fields: dict[int, Any]) -> Chunk:
    first, dictionary = _count(fields, 9), fields.get(11)
    start = dictionary if isinstance(dictionary, int) and 0 < dictionary < first else first
    return Chunk(_CODECS.get(fields[4], "unknown"), _count(fields, 5), _count(fields, 7), start)


def columns_of(stream: BinaryIO, schema: Any, chunks: list[Chunk], wanted: frozenset[str]) -> Iterator[Column]:
    """The wanted columns of a group of rows."""
    if len(chunks) != len(schema):
        raise Damaged
    for index, chunk in enumerate(chunks):
        about = schema.column(index)
        if about.path.split(".")[0] in wanted:
            text = about.physical_type == "BYTE_ARRAY"
            pages = list(_pages(stream, chunk))
            first = next((page for page in pages if page.is_dictionary), None)
            longest = max(_WIDEST, about.length) if not text else _longest(stream, first, chunk) if first else 0
            yield Column(about.path, pages, about.max_repetition_level > 0, text, longest)


def _longest(stream: BinaryIO, page: Page, chunk: Chunk) -> int:
    """Bytes of the longest text of a dictionary; of all together where they cannot be told apart."""
    import pyarrow as pa

    if page.unpacked > _LARGEST_DICTIONARY:
        return page.unpacked
    stream.seek(page.start)
    content = stream.read(page.packed)
    try:
        if chunk.codec:
            content = pa.Codec(chunk.codec).decompress(content, page.unpacked, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return page.unpacked
    longest = place = 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 4], "little")
        longest = max(longest, length)
        place += 4 + length
    return min(longest, page.unpacked)


def _pages(stream: BinaryIO, chunk: Chunk) -> Iterator[Page]:
    """The pages of a column as Arrow finds them: one after another, until there are as many values as it expects."""
    start, seen = chunk.start, 0
    while seen < chunk.values and start < chunk.start + chunk.packed:
        stream.seek(start)
        header = _struct(stream, 0)
        kind, begin = _count(header, 1), stream.tell()
        inner = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind, 0))
        unpacked, packed = _count(header, 2), _count(header, 3)
        if isinstance(inner, dict):
            values, encoding = _count(inner, 1), _count(inner, 4 if kind == _DATA_V2 else 2)
            seen += 0 if kind == _DICTIONARY else values
            yield Page(start, begin, packed, unpacked, values, encoding, kind == _DICTIONARY)
        start = begin + packed


def _count(fields: dict[int, Any], number: int) -> int:
    value = fields.get(number)
    if not isinstance(value, int) or value < 0:
        raise Damaged
    return value


def _struct(stream: BinaryIO, depth: int, *, lists: bool = False) -> dict[int, Any]:
    """The numbers of a struct of Thrift's compact protocol, by their fields; what else it holds is passed over.

    Only footers have lists.
    """
    fields: dict[int, Any] = {}
    number = 0
    for _ in range(_MOST_FIELDS):
        head = _byte(stream)
        if not head:
            return fields
        number = number + (head >> 4) if head >> 4 else _zigzag(stream)
        fields[number] = _value(stream, head & 15, depth, lists)
    raise Damaged


def _value(stream: BinaryIO, kind: int, depth: int, lists: bool) -> Any:
    if kind in (1, 2):
        return kind == 1
    if kind == 3:
        return _byte(stream)
    if kind in (4, 5, 6):
        return _zigzag(stream)
    if kind in (7, 8):
        stream.seek(8 if kind == 7 else _varint(stream), io.SEEK_CUR)
        return None
    if kind == 12 and depth < _DEEPEST:
        return _struct(stream, depth + 1, lists=lists)
    if kind == 9 and lists:
        head = _byte(stream)
        count, inner = _varint(stream) if head >> 4 == 15 else head >> 4, head & 15
        return [_byte(stream) if inner in (1, 2) else _value(stream, inner, depth, lists) for _ in range(count)]
    raise Damaged  # a map, which the format has not


def _byte(stream: BinaryIO) -> int:
    if not (byte := stream.read(1)):
        raise Damaged
    return byte[0]


def _varint(stream: BinaryIO) -> int:
    total = 0
    for shift in range(0, 70, 7):
        byte = _byte(stream)
        total |= (byte & 127) << shift
        if byte < 128:
            return total
    raise Damaged


def _zigzag(stream: BinaryIO) -> int:
    value = _varint(stream)
    return (value >> 1) ^ -(value & 1)
