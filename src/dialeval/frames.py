"""Tables of the Python world as columns: pandas data frames, `datasets.Dataset`, lists of mappings."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.exchange import BadRow
from dialeval.readers.chats import Chats
from dialeval.readers.messages import FORMS, form_of, message_columns
from dialeval.readers.rows import RawRow
from dialeval.readers.text import LISTS, split_cell

#: Fields of a row, and the argument of `score` that takes each.
ARGUMENTS: Mapping[str, str] = {
    "response": "responses",
    "context": "contexts",
    "reference": "references",
    "references": "references",
    "facts": "facts",
    "system": "systems",
    "id": "ids",
    "following": "following",
    "speakers": "speakers",
}


def is_table(value: Any) -> bool:
    """Whether a value holds whole rows rather than one column."""
    if hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "iloc")):
        return True
    return isinstance(value, Sequence) and len(value) > 0 and all(isinstance(row, Mapping) for row in value)


def arguments_of(table: Any, columns: Mapping[str, str] | None = None) -> dict[str, list[Any]]:
    """What `score` takes, from a table; `columns` maps a field to the column that holds it where names differ.

    Columns that are no field are left aside. A missing cell, NaN in a data frame, is no value. A text that holds
    several is split as a cell of a CSV file; conversations (`messages`, `conversations`) are unfolded, as in a file.
    """
    names = _names(table)
    mapping = dict(columns or {})
    if not mapping and "response" not in names and (unfolded := _unfolded(table, names)):
        return arguments_of(unfolded)
    for field, column in mapping.items():
        if field not in ARGUMENTS:
            raise ValueError(f"{field!r} is not a field; the fields are {', '.join(ARGUMENTS)}")
        if column not in names:
            close = difflib.get_close_matches(column, names, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"there is no column {column!r}{hint}; the columns are: {', '.join(names) or 'none'}")
    found: dict[str, list[Any]] = {}
    for field, argument in ARGUMENTS.items():
        column = mapping.get(field, field)
        if column not in names:
            if field in ("response", "context"):
                raise ValueError(
                    f"there is no column {column!r}; the columns are: {', '.join(names) or 'none'}; "
                    f"name it by columns={{{field!r}: ...}}{_hint_of_chats(names)}"
                )
            continue
        if argument in found:
            raise ValueError("both reference and references are columns; keep one of them")
        found[argument] = [_cell(row, field, cell) for row, cell in enumerate(_column(table, column))]
    return found


def _unfolded(table: Any, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The replies in a table of conversations, a row each; none if it holds no conversations."""
    if not (set(FORMS) & set(names) or message_columns(names)):
        return []
    cells = [[_plain(cell) for cell in _column(table, name)] for name in names]
    rows = [
        RawRow(number, f"conversation {number}", dict(zip(names, row, strict=True)))
        for number, row in enumerate(zip(*cells, strict=True))
    ]
    if not rows or not (form_of(rows[0].values or {}) or message_columns(names)):
        return []
    replies: list[Mapping[str, Any]] = []
    for reply in Chats().unfold(iter(rows), level="turn"):
        if reply.values is None:
            raise reply.bad(reply.problem)
        replies.append(reply.values)
    return replies


def _hint_of_chats(names: Sequence[str]) -> str:
    if (form := next((form for form in FORMS if form in names), None)) is None:
        return ""
    return f", or make each of {form} a list of {{'role': ..., 'content': ...}} and leave columns out"


def _names(table: Any) -> list[str]:
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    return list(dict.fromkeys(name for row in table for name in row))


def _column(table: Any, name: str) -> list[Any]:
    if hasattr(table, "column_names"):
        return list(table[name])
    if hasattr(table, "columns"):
        return list(table[name].tolist())
    return [row.get(name) for row in table]


def _cell(row: int, field: str, cell: Any) -> Any:
    """A cell; what holds several texts in one is split as in a CSV file."""
    value = _plain(cell)
    if field not in LISTS or not isinstance(value, str) or not value.strip():
        return value
    try:
        return split_cell(value, field)
    except ValueError as error:
        raise BadRow(row, str(error)) from None


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.tolist() if hasattr(cell, "tolist") else cell
