"""How much an input may come to once it is unpacked, whatever its format: a small file can hold a very large one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dialeval.readers.rows import RawRow


@dataclass(frozen=True)
class Bounds:
    """What is read of one input; more stops the run."""

    #: Bytes or characters after unpacking, of all rows together.
    data: int = 64 * 2**30
    rows: int = 10**9
    #: Bytes of what cannot be read row by row: a JSON array, a transcript.
    whole: int = 64 * 2**20
    #: Bytes of the parts of an Excel file.
    workbook: int = 2**30

    def check(self, name: str, *, data: int = 0, rows: int = 0) -> None:
        """Refuse an input that is larger."""
        if data > self.data:
            raise ValueError(f"{name} unpacks to more than {megabytes(self.data)}; split it, or take fewer rows")
        if rows > self.rows:
            raise ValueError(f"{name} has more than {self.rows:,} rows; split it, or take fewer rows")


#: What everything but a page for the public reads.
USUAL = Bounds()


def megabytes(count: int) -> str:
    """A bound in words."""
    return f"{count // 2**20:,} MB"


def bounded(rows: Iterator[RawRow], name: str, bounds: Bounds) -> Iterator[RawRow]:
    """The rows, as long as they are not too many and their texts not too long together."""
    data = 0
    for count, row in enumerate(rows, start=1):
        data += _size(row.values or row.raw)
        bounds.check(name, data=data, rows=count)
        yield row


def _size(value: object) -> int:
    """Characters of all texts in a value, and one for anything else; nothing here can be nested too deeply."""
    total, left = 0, [value]
    while left:
        inner = left.pop()
        if isinstance(inner, str | bytes):
            total += len(inner)
        elif isinstance(inner, Mapping):
            left += inner.keys()
            left += inner.values()
        elif isinstance(inner, list | tuple):
            left += inner
        total += 1
    return total
