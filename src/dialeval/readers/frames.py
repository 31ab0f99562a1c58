"""Tables of the Python world as rows: frames of pandas and polars, `datasets.Dataset`, lists of mappings; and files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.core.exchange import EmptyPolicy, Exchange, check_kind
from dialeval.readers import Source
from dialeval.readers.text import check_header

if TYPE_CHECKING:
    import pandas as pd


def is_table(value: Any) -> bool:
    """Whether a value holds whole rows, or names a file of them, rather than one column."""
    if hasattr(value, "column_names") or (hasattr(value, "columns") and (hasattr(value, "iloc") or _is_polars(value))):
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
        return Source(table, columns={} if columns is None else columns)
    check_kind("the table", table, Iterable, "a file, a data frame, or a list of mappings")
    return Source(_Rows(table), columns={} if columns is None else columns, cells=True)


def exchanges_of(
    table: Any, columns: Mapping[str, str] | None = None, *, empty: EmptyPolicy = "error"
) -> list[Exchange]:
    """The checked replies of a table; `columns` maps a field to the column that holds it where names differ."""
    return [exchange for _, exchange in source_of(table, columns).exchanges(empty=empty)]


def read(table: Any, *, columns: Mapping[str, str] | None = None, empty: EmptyPolicy = "error") -> pd.DataFrame:
    """A file, or any table, as a frame of checked rows: a reply each, with what was said before.

    Chat logs, traces and tables are understood as in the command, where `dialeval show FILE` prints the same. The frame
    has `context` and `response`, and what is known of `references`, `facts`, `system`, `id`, `following` and
    `speakers`; every metric's `score` takes it.
    """
    import pandas as pd

    rows = exchanges_of(table, columns, empty=empty)
    cells = {name: [getattr(row, name) for row in rows] for name in _FIELDS}
    kept = {name: column for name, column in cells.items() if name in _FIELDS[:2] or any(column)}
    return pd.DataFrame(
        {name: [list(cell) if isinstance(cell, tuple) else cell for cell in column] for name, column in kept.items()}
    )


_FIELDS = ("context", "response", "references", "facts", "system", "id", "following", "speakers")


class _Rows:
    """The rows of a table as mappings, as often as they are asked for."""

    def __init__(self, table: Any) -> None:
        self._table, self.kind = table, type(table).__name__

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        table = self._table
        names: Any = getattr(table, "column_names", getattr(table, "columns", None))
        if names is None or _is_polars(table):
            for row in table if names is None else table.to_dicts():
                yield {name: _plain(cell) for name, cell in row.items()} if isinstance(row, Mapping) else row
            return
        check_header(list(map(str, names)), self.kind)
        columns = [table[name] for name in names]
        cells = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        for row in zip(*cells, strict=True):
            yield {str(name): _plain(cell) for name, cell in zip(names, row, strict=True)}


def _is_polars(table: Any) -> bool:
    return hasattr(table, "to_dicts")


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.tolist() if hasattr(cell, "tolist") else cell
