"""Frames of pandas, polars and Arrow, `datasets.Dataset`, lists of mappings as rows; and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.core.exchange import EmptyPolicy, Exchange
from dialeval.readers import Source
from dialeval.readers.table_rows import check_rows, is_frame

if TYPE_CHECKING:
    import pandas as pd


def is_table(value: Any) -> bool:
    """Whether a value holds whole rows, or names a file of them, rather than one column."""
    if is_frame(value) or isinstance(value, str | Path | Source):
        return True
    return isinstance(value, Sequence) and len(value) > 0 and all(isinstance(row, Mapping) for row in value)


def source_of(table: Any, columns: Mapping[str, str] | None = None) -> Source:
    """How a table is read: as a file of the same rows would be, names guessed and conversations unfolded.

    A missing cell, NaN in a data frame, is no value. A text that holds several is split as a cell of a CSV file.
    """
    if isinstance(table, Source):
        return table
    if not (is_path := isinstance(table, str | Path)):
        check_rows("the table", table)
    return Source(table, columns={} if columns is None else columns, cells=not is_path)


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
