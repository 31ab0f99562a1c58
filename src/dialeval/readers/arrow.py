"""Rows of Arrow files, as `datasets` keeps them, and what a row of a table takes before it is made."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from dialeval.io.files import first_line
from dialeval.readers.rows import MANY, PART, Bounds, Choice, RawRow
from dialeval.readers.text import check_header

#: Before the messages of a file that can be read from both ends.
_MAGIC = b"ARROW1\0\0"
#: Kinds of messages in Arrow's `Message.fbs`.
_OF_DICTIONARY, _OF_ROWS = 2, 3
#: Kinds of values by Arrow's names: those that have bytes of their own, and those that hold others.
_TEXTS = ("STRING", "BINARY", "LARGE_STRING", "LARGE_BINARY", "FIXED_SIZE_BINARY")
_NESTED = ("LIST", "LARGE_LIST", "FIXED_SIZE_LIST", "STRUCT", "MAP")


def arrow_rows(path: Path, name: str, choose: Choice, bounds: Bounds) -> Iterator[RawRow]:
    """Rows of one file; it is mapped, so that memory holds those that are looked at."""
    import pyarrow as pa

    packed, number = path.stat().st_size, 0
    try:
        with pa.memory_map(str(path)) as file:
            _check_buffers(_after_magic(file), name)
            with closing(pa.ipc.open_stream(_after_magic(file))) as stream:
                if odd := next((field.name for field in stream.schema if not _is_plain(field.type)), None):
                    raise ValueError(f"{name}: the column {odd} is of a kind that is not read; write it as Parquet")
                chosen = choose(stream.schema.names)
                wanted = [column for column in stream.schema.names if column in chosen]
                check_header(wanted, name)
                for batch in stream:
                    bounds.check(name, rows=number + batch.num_rows)
                    if batch.num_rows > max(packed, MANY):
                        raise ValueError(f"{name} has {batch.num_rows:,} rows in {packed:,} bytes; keep each once")
                    batch = batch.select(wanted)
                    batch.validate(full=True)  # or places in a damaged file lead anywhere in memory
                    for row in table_rows(batch, name, number, bounds):
                        yield row
                        number += 1
    except (pa.ArrowException, OSError, struct.error) as error:
        after = f" from row {number} on" if number else ""
        raise ValueError(f"{name} is no Arrow file, or is damaged{after} ({first_line(error)})") from None


def table_rows(batch: Any, name: str, number: int, bounds: Bounds) -> Iterator[RawRow]:
    """The rows of a batch, those that are too large as problems."""
    together = sum(map(_size, batch.columns))
    for index in range(batch.num_rows):
        if together > bounds.whole and sum(_size(cells.slice(index, 1)) for cells in batch.columns) > bounds.whole:
            yield RawRow(number + index, name, problem=f"the row {bounds.too_long}")
        else:
            yield _row(batch, index, number + index, name)


def _row(batch: Any, index: int, number: int, name: str) -> RawRow:
    values: dict[str, Any] = {}
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        try:
            values[column] = cells[index].as_py()
        except UnicodeDecodeError as error:
            return RawRow(number, name, problem=f"a text is not UTF-8 ({error.reason})")
        except Exception as error:  # a time before the first year, a zone that nobody has, a duration too long: any
            return RawRow(number, name, problem=f"{column} is a {cells.type} that Python has no value for ({error})")
    return RawRow(number, name, values)


def _size(cells: Any) -> int:
    """What the values will count for, without making them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, parts = cells.type, PART * len(cells)
    if isinstance(kind, pa.BaseExtensionType):
        return _size(cells.storage)
    if pa.types.is_dictionary(kind):
        lengths = _lengths(cells.dictionary)
        return parts + (pc.sum(lengths.take(cells.indices)).as_py() or 0 if lengths else 0)
    if pa.types.is_map(kind):
        first, last = cells.offsets[0].as_py(), cells.offsets[-1].as_py()
        return parts + sum(_size(inner.slice(first, last - first)) for inner in (cells.keys, cells.items))
    if pa.types.is_struct(kind):
        return parts + sum(map(_size, cells.flatten()))
    if pa.types.is_nested(kind):
        return parts + _size(cells.flatten())
    return parts + (pc.sum(lengths).as_py() or 0 if (lengths := _lengths(cells)) else 0)


def _lengths(cells: Any) -> Any:
    """Bytes of each text; nothing where the values are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        cells = cells.cast(pa.large_binary())
    elif kind.id not in {getattr(pa.lib, f"Type_{name}") for name in _TEXTS}:
        return None
    return pc.binary_length(cells)


def _is_plain(kind: Any) -> bool:
    """Whether no value of a kind stands for others: views may share what they show, and runs repeat it."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _is_plain(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return not pa.types.is_nested(kind.value_type) and _is_plain(kind.value_type)
    if pa.types.is_nested(kind):
        is_known = kind.id in {getattr(pa.lib, f"Type_{name}") for name in _NESTED}
        return is_known and all(_is_plain(kind.field(index).type) for index in range(kind.num_fields))
    views = (pa.types.is_string_view, pa.types.is_binary_view, pa.types.is_run_end_encoded)
    return not any(is_view(kind) for is_view in views)


def _after_magic(file: Any) -> Any:
    """The file where its messages begin."""
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        file.seek(0)
    return file


def _check_buffers(file: Any, name: str) -> None:
    """Refuse columns that are packed, which `datasets` never writes: they would be unpacked as a whole."""
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(file):
        if _is_packed(message.metadata.to_pybytes()):
            raise ValueError(f"{name} holds packed columns; write it as Parquet, or without compression")


def _is_packed(header: bytes) -> bool:
    """Whether the header of a message has the field `compression` of `RecordBatch`, in the layout of FlatBuffers."""

    def follow(place: int) -> int:
        (offset,) = struct.unpack_from("<I", header, place)
        return place + int(offset)

    def field(table: int, number: int) -> int | None:
        (back,) = struct.unpack_from("<i", header, table)
        (size,) = struct.unpack_from("<H", header, table - back)
        entry = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", header, table - back + entry) if entry < size else (0,)
        return table + offset if offset else None

    message = follow(0)
    kind, content = field(message, 1), field(message, 2)
    if kind is None or content is None or header[kind] not in (_OF_DICTIONARY, _OF_ROWS):
        return False
    rows: int | None = follow(content)
    if header[kind] == _OF_DICTIONARY:
        rows = follow(data) if (data := field(follow(content), 1)) is not None else None
    return rows is not None and field(rows, 3) is not None
