"""Tables of the Python world as rows: pandas data frames, `datasets.Dataset`, lists of mappings; and files by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.exchange import EmptyPolicy, Exchange
from dialeval.readers import Source


def is_table(value: Any) -> bool:
    """Whether a value holds whole rows, or names a file of them, rather than one column."""
    if hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "iloc")):
        return True
    if isinstance(value, str | Path | Source):
        return True
    return isinstance(value, Sequence) and len(value) > 0 and all(isinstance(row, Mapping) for row in value)


def source_of(table: Any, columns: Mapping[str, str] | None = None) -> Source:
    """How a table is read: as a file of the same rows would be, names guessed and conversations unfolded.

    A missing cell, NaN in a data frame, is no value. A text that holds several is split as a cell of a CSV file.
    """
    if isinstance(table, Source):
        return table
    if isinstance(table, str | Path):
        return Source(table, columns=columns or {})
    return Source(_Rows(table), columns=columns or {}, cells=True)


def exchanges_of(
    table: Any, columns: Mapping[str, str] | None = None, *, empty: EmptyPolicy = "error"
) -> list[Exchange]:
    """The checked replies of a table; `columns` maps a field to the column that holds it where names differ."""
    return [exchange for _, exchange in source_of(table, columns).exchanges(empty=empty)]


class _Rows:
    """The rows of a table as mappings, as often as they are asked for."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        table = self._table
        names: Any = getattr(table, "column_names", getattr(table, "columns", None))
        if names is None:
            for row in table:
                yield {name: _plain(cell) for name, cell in row.items()}
            return
        columns = [table[name] for name in names]
        cells = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        for row in zip(*cells, strict=True):
            yield {str(name): _plain(cell) for name, cell in zip(names, row, strict=True)}


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.tolist() if hasattr(cell, "tolist") else cell
