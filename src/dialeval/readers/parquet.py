"""Rows of Parquet files. A few bytes may stand for any number: what comes of them is counted before it is made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from dialeval.io.files import first_line
from dialeval.readers.arrow import table_rows
from dialeval.readers.parquet_pages import Chunk, Damaged, chunks_of, columns_of
from dialeval.readers.rows import MANY, USUAL, Bounds, Choice, RawRow
from dialeval.readers.text import check_header

#: Rows in memory at once.
_BATCH = 64
#: What is read ahead of each column.
_AHEAD = 2**16
#: Pages may take so many times the bytes of a row: a page may hold a thousand rows.
_PAGES = 8


def parquet_rows(path: Path, name: str, choose: Choice, bounds: Bounds = USUAL) -> Iterator[RawRow]:
    """Rows of one Parquet file, a batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as stream:
        try:
            metadata = pq.read_metadata(stream)
            names = metadata.schema.to_arrow_schema().names
        except (pa.ArrowException, OSError):
            raise ValueError(f"{name} is not a Parquet file, or is damaged; write it again") from None
        _check_footer(metadata, path.stat().st_size, name, bounds)
        wanted = choose(names)
        check_header([column for column in names if column in wanted], name)
        number = 0
        try:
            groups = chunks_of(stream)
            if len(groups) != metadata.num_row_groups:
                raise Damaged
            for group, chunks in enumerate(groups):
                for batch in _batches(stream, metadata, group, chunks, list(wanted), name, bounds):
                    for row in table_rows(batch, name, number, bounds):
                        yield row
                        number += 1
        except (pa.ArrowException, OSError, Damaged) as error:
            raise ValueError(f"{name} is damaged from row {number} on ({first_line(error)}); write it again") from None


def _check_footer(metadata: Any, packed: int, name: str, bounds: Bounds) -> None:
    """Refuse before anything is read what the file itself says is too much."""
    groups = list(map(metadata.row_group, range(metadata.num_row_groups)))
    bounds.check(name, rows=metadata.num_rows, data=sum(group.total_byte_size for group in groups))
    if any(group.total_byte_size > bounds.whole * max(1, group.num_rows) for group in groups):
        raise ValueError(f"{name}: a row {bounds.too_long}")
    if metadata.num_rows > max(packed, MANY):
        raise ValueError(
            f"{name} has {metadata.num_rows:,} rows in {packed:,} bytes, nearly all the same; keep each once"
        )


def _batches(
    stream: BinaryIO, metadata: Any, group: int, chunks: list[Chunk], wanted: list[str], name: str, bounds: Bounds
) -> Iterator[Any]:
    """Some rows of a group at a time, equal texts held once, as long as their pages are within bounds."""
    import pyarrow.parquet as pq

    columns = list(columns_of(stream, metadata.schema, chunks, frozenset(wanted)))
    unpacked = sum(page.unpacked for column in columns for page in column.pages)
    average = unpacked // max(1, metadata.row_group(group).num_rows)
    most = bounds.whole * _PAGES
    for at_once in (_BATCH, 1):
        once = {
            column.path: column.largest(at_once, False) > most // 2 and column.once is not None for column in columns
        }
        together = sum(column.largest(at_once, once[column.path]) for column in columns)
        if at_once * average <= bounds.whole and together <= most:
            break
    else:
        raise ValueError(f"{name}: a row {bounds.too_long}")
    sizes = sorted(size for column in columns for size in column.sizes(at_once, once[column.path]))
    file = _Counted(stream, sizes, most, f"{name}: a row {bounds.too_long}")
    texts = [path for path, is_once in once.items() if is_once]
    parquet = pq.ParquetFile(file, metadata=metadata, read_dictionary=texts, pre_buffer=False, buffer_size=_AHEAD)
    for batch in parquet.iter_batches(at_once, row_groups=[group], columns=wanted, use_threads=False):
        file.taken = 0
        yield batch


class _Counted:
    """A file that refuses to be read further than a batch of rows may take, since a row may go on over any pages."""

    closed = False

    def __init__(self, stream: BinaryIO, sizes: list[tuple[int, int]], most: int, problem: str) -> None:
        self._stream, self._most, self._problem = stream, most, problem
        self._offsets = [offset for offset, _ in sizes]
        self._totals = [0, *accumulate(size for _, size in sizes)]
        self.taken = 0
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, count: int = -1) -> bytes:
        start = self._stream.tell()
        content = self._stream.read(count)
        first, last = (bisect_left(self._offsets, place) for place in (start, start + len(content)))
        self.taken += self._totals[last] - self._totals[first]
        if self.taken > self._most:
            raise ValueError(self._problem)
        return content

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """The stream is its maker's."""
