"""Scores that somebody already computed, read from a file.

Understood are JSON lines `{"id": …, "scores": {name: value}}` (optionally with `dataset`), JSON lines
or CSV or Parquet with an `id` column and one numeric column per metric. Each also as .gz where it is text. A missing
value (null, NaN, an empty cell, NA) is kept as NaN, so that the harness can count it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from dialeval.core.exchange import a_kind, check_kind
from dialeval.core.specs import LARGEST
from dialeval.io.files import is_stream
from dialeval.readers.rows import HELD, bounded, ending
from dialeval.readers.table_rows import check_rows, mappings

_NUMBERS = int | float | Decimal  # the last as data bases give them
_TABLES = (".csv", ".tsv")
#: Columns that are numbers but no scores.
_NOT_SCORES = frozenset({"id", "dataset", "label", "row", "system", "language", "index", "context", "response", ""})


class BadScoreFile(ValueError):
    """A score file cannot be used; the message names the file and row and says what to do."""


@dataclass(frozen=True)
class ScoreTable:
    """The columns of a score file, each from row id to value."""

    path: Path
    sha256: str
    columns: Mapping[str, Mapping[str, float]]
    #: Whether all rows have an id; those without are known by their numbers.
    has_ids: bool = True
    #: The contexts of rows, as JSON, where the file has a column `context`.
    contexts: Mapping[str, str] = field(default_factory=dict)


def read_scores(path: str | Path) -> ScoreTable:
    """Read every column of scores in a file."""
    file = Path(path)
    if is_stream(file):
        raise BadScoreFile(f"score file {file} is a device or a pipe, and is read twice; name a file")
    rows = records(file, str(file))
    if ending(file) in _TABLES and rows and not {"id", "row"} & rows[0][1].keys():
        raise BadScoreFile(f"{file} has no column id; its first line names the columns, for example id,score")
    return _table(rows, file, hashlib.sha256(file.read_bytes()).hexdigest())


def scores_in(rows: Any, name: str, columns: Mapping[str, str] | None = None) -> ScoreTable:
    """The same from a data frame, a data set or mappings, which are known by their numbers where they have no id.

    `columns` maps `id` and `context` to the columns that hold them where names differ.
    """
    columns = {} if columns is None else columns
    check_kind("columns", columns, Mapping, "a mapping of id and context to their columns")
    listed, tables = records(rows, name), []
    check_columns(columns, ("id", "context"), listed)
    for number, (where, row) in enumerate(listed):
        named = {field: row.get(column) for field, column in columns.items()}
        tables.append((where, {"row": number, **row, **named}))
    return _table(tables, Path(name), "")


def records(rows: Any, name: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Every row of a file of scores, a data frame, a data set or mappings, and where it stands."""
    if isinstance(rows, str | Path):
        try:
            return _rows(Path(rows), ending(Path(rows)))
        except OSError as error:
            raise BadScoreFile(f"score file {rows} cannot be read ({error.strerror}); check the path") from None
    check_rows(name, rows)
    numbered = [(f"row {number} of {name}", row) for number, row in enumerate(mappings(rows))]
    if odd := next((where for where, row in numbered if not isinstance(row, Mapping)), None):
        raise BadScoreFile(f"{odd} is no mapping; pass a file, a data frame or mappings")
    return numbered


def check_columns(
    columns: Mapping[str, str], fields: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Refuse a mapping of fields to columns that names what is not there."""
    if unknown := next((field for field in columns if field not in fields), None):
        raise ValueError(f"{unknown!r} is not a field of scores; the fields are {', '.join(fields)}")
    present = dict.fromkeys(column for _, row in rows for column in row)
    if lost := next((column for column in columns.values() if column not in present), None):
        raise ValueError(f"there is no column {lost!r}; the columns are: {', '.join(map(str, present)) or 'none'}")


def _table(rows: Iterable[tuple[str, Mapping[str, Any]]], file: Path, digest: str) -> ScoreTable:
    columns: dict[str, dict[str, float]] = {}
    contexts: dict[str, str | None] = {}
    has_ids = True
    for where, row in rows:
        row_id = row.get("id")
        if row_id in (None, ""):  # `dialeval score` numbers the rows of an input without ids
            row_id, has_ids = row.get("row"), False
        if row_id in (None, ""):
            raise BadScoreFile(f"{where} has no id; give every row the id of its benchmark row")
        key, context = str(row_id), row.get("context")
        if key in contexts:
            raise BadScoreFile(f"{where} repeats the id {row_id!r}; keep one score per row")
        contexts[key] = None if context in (None, "") else json.dumps(context, default=str)
        for name, value in row_scores(where, row).items():
            columns.setdefault(name, {})[key] = value
    # A column of nothing but null is some other field that was left empty.
    columns = {name: column for name, column in columns.items() if any(map(math.isfinite, column.values()))}
    if not columns:
        raise BadScoreFile(f'{file} holds no scores; write rows such as {{"id": "…", "scores": {{"mine": 0.5}}}}')
    known = {key: context for key, context in contexts.items() if context is not None}
    return ScoreTable(file, digest, columns, has_ids=has_ids, contexts=known)


def row_scores(where: str, row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row that are scores, by their columns."""
    scores = row.get("scores")
    if isinstance(scores, Mapping):
        return {str(name): _number(where, str(name), value) for name, value in scores.items()}
    return {
        str(name): _number(where, str(name), value)
        for name, value in row.items()
        if name not in _NOT_SCORES and (value is None or isinstance(value, _NUMBERS)) and not isinstance(value, bool)
    }


def _number(where: str, name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise BadScoreFile(f"{where}: {name} is {a_kind(value)}; a score is a number, or null if there is none")
    try:
        number = float(value)
    except OverflowError:
        number = sys.float_info.max
    if LARGEST < abs(number) < math.inf:
        raise BadScoreFile(f"{where}: {name} is too large a number")
    return number


def _rows(file: Path, kind: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Every row and where it stands; the cells of CSV as numbers where the whole column has them."""
    from dialeval.readers.parquet import parquet_rows
    from dialeval.readers.text import csv_rows, json_rows

    rows: list[tuple[str, Mapping[str, Any]]] = []
    try:
        with file.open("rb") as stream:
            if kind == ".parquet":
                read = parquet_rows(file, str(file), lambda names: names, HELD)
            elif kind in _TABLES:
                read = csv_rows(stream, str(file), delimiter="\t" if kind == ".tsv" else ",", bounds=HELD)
            else:
                read = json_rows(stream, str(file), HELD)
            for row in bounded(read, str(file), HELD):
                if row.values is None:
                    raise BadScoreFile(f"{row.where}: {row.problem}")
                rows.append((row.where, row.values))
    except BadScoreFile:
        raise
    except ValueError as error:
        raise BadScoreFile(str(error)) from None
    return _typed(rows) if kind in _TABLES else rows


def _typed(rows: list[tuple[str, Mapping[str, Any]]]) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Columns of numbers as numbers. One that holds texts beside them is refused, unless most cells are texts."""
    typed = [(where, cast(dict[str, Any], row)) for where, row in rows]
    for name in [name for name in (rows[0][1] if rows else ()) if name not in _NOT_SCORES]:
        cells = [_cell(row[name]) for _, row in rows]
        texts = [place for place, cell in enumerate(cells) if cell is None]
        if commas := [place for place in texts if _WITH_COMMA.fullmatch(rows[place][1][name].strip())]:
            where, row = rows[commas[0]]
            raise BadScoreFile(f"{where}: {name} is {row[name]!r:.60}; write numbers with a point and no comma: 0.5")
        if texts and len(texts) >= sum(cell is not None and math.isfinite(cell) for cell in cells):
            continue
        if texts:
            where, row = rows[texts[0]]
            raise BadScoreFile(f"{where}: {name} is {row[name]!r:.60}; give a number, or leave the cell empty")
        for (_, values), cell in zip(typed, cells, strict=True):
            values[name] = cell
    return typed


#: How spreadsheets and programs write that there is no value, in small letters.
_NO_VALUE = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"})
#: A number with a comma in it. Bound to both ends, so that it cannot be sought at every place of a long text.
_WITH_COMMA = re.compile(r"\A[+-]?\d+(?:[.,]\d+)*,\d+\Z")


def _cell(text: str) -> float | None:
    """A cell's number, NaN where it has none; None for a text."""
    try:
        return math.nan if text.strip().lower() in _NO_VALUE else float(text)
    except ValueError:
        return None
