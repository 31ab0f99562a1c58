"""Rows of any iterable of mappings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialeval.core.exchange import a_kind, check_kind
from dialeval.readers.rows import RawRow
from dialeval.readers.text import check_header


def mapping_rows(rows: Iterable[Any], name: str) -> Iterator[RawRow]:
    """Rows that are mappings already."""
    check_rows("what holds the rows", rows)
    for number, values in enumerate(mappings(rows)):
        if isinstance(values, Mapping):
            yield RawRow(number, name, values)
        else:
            problem = f"the row is {a_kind(values)}; pass a mapping of column names to values"
            yield RawRow(number, name, problem=problem, raw=repr(values)[:1000])


def is_frame(table: Any) -> bool:
    """Whether something has columns of its own: a frame of pandas, polars or Arrow, or a data set."""
    held = any(hasattr(table, name) for name in ("iloc", "iter_rows"))
    return hasattr(table, "column_names") or (held and hasattr(table, "columns"))


def check_rows(name: str, rows: object) -> None:
    """Refuse what holds no rows; tables of Arrow do, and cannot be iterated over."""
    if not is_frame(rows):
        check_kind(name, rows, Iterable, "a file, a data frame, mappings or exchanges")


def mappings(table: Any) -> Iterator[Any]:
    """The rows of a frame, or of anything that holds mappings, whose missing cells, NaN in frames, are no values."""
    rows: Iterable[Any] = table
    if is_frame(table):
        names = table.column_names if hasattr(table, "column_names") else table.columns
        check_header([] if names is None else list(map(str, names)), type(table).__name__)
        if hasattr(table, "iloc"):  # pandas, whose own ways make all cells of a row one type
            columns = [table[name].tolist() for name in names]
            rows = (dict(zip(map(str, names), cells, strict=True)) for cells in zip(*columns, strict=True))
        elif hasattr(table, "iter_rows"):  # polars
            rows = table.iter_rows(named=True)
        elif hasattr(table, "to_pylist"):  # Arrow
            rows = table.to_pylist()
        else:  # a data set, which may give its cells as tensors
            rows = table.with_format(None)
    for row in rows:
        yield {name: _plain(cell) for name, cell in row.items()} if isinstance(row, Mapping) else row


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.tolist() if hasattr(cell, "tolist") else cell
