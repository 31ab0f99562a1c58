"""Which rows of two systems answer the same context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.exchange import EmptyPolicy, Exchange, exchanges_from_columns
from dialeval.frames import arguments_of, is_table
from dialeval.readers import Source

#: A file, standard input, a data set, a data frame, rows as mappings, or exchanges.
Rows = str | Path | Source | Iterable[Mapping[str, Any]] | Sequence[Exchange] | Any


@dataclass(frozen=True)
class Pairs:
    """Positions of rows that belong together, and which of them share a context."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    #: A number per pair; equal numbers, equal contexts.
    groups: NDArray[np.intp]
    #: `id`, `position` or `context`.
    by: str
    #: Rows of either side that have no partner.
    alone: int

    @property
    def n_groups(self) -> int:
        """How many different contexts there are."""
        return int(self.groups.max()) + 1


def read_rows(rows: Rows, *, columns: Mapping[str, str] | None = None, empty: EmptyPolicy = "score") -> list[Exchange]:
    """Checked exchanges. Blank replies are scored: a system that falls silent must not pass for want of rows.

    `columns` maps a field to the column that holds it where names differ; a `Source` has such a mapping of its own.
    """
    if isinstance(rows, Source):
        return [exchange for _, exchange in rows.exchanges(empty=empty)]
    if isinstance(rows, str | Path):
        return read_rows(Source(rows, columns=columns or {}), empty=empty)
    if is_table(rows) and not isinstance(next(iter(rows), None), Mapping):  # a data frame gives names of columns
        return exchanges_from_columns(**arguments_of(rows, columns), empty=empty)
    held: list[Any] = list(rows)
    if held and all(isinstance(row, Exchange) for row in held):
        return held
    return read_rows(Source(held, columns=columns or {}), empty=empty)


def files_by_name(texts: Iterable[str | Path]) -> dict[str, str]:
    """Files by the names of their systems: each text is NAME=FILE, or a file that is named up to its first dot."""
    found: dict[str, str] = {}
    for text in map(str, texts):
        name, equals, file = text.partition("=")
        if not (equals and name and "/" not in name):
            name, file = Path(text).name.split(".")[0], text
        if name in found:
            raise ValueError("two files have the same name; give each system a name of its own as NAME=FILE")
        found[name] = file
    return found


def pair(first: Sequence[Exchange], second: Sequence[Exchange], names: tuple[str, str]) -> Pairs:
    """Pair rows by their ids where all have one, else by position, where all contexts must be equal.

    Raises ValueError where it is not sure that two rows answer the same context.
    """
    if all(row.id is not None for row in (*first, *second)):
        return _by_id(first, second, names)
    if len(first) != len(second):
        raise ValueError(
            f"{names[0]} has {len(first)} rows and {names[1]} has {len(second)}, and not all of them have an id; "
            "give rows that answer the same context the same id"
        )
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        if _context(one) != _context(other):
            raise ValueError(
                f"row {at} of {names[0]} and of {names[1]} have different contexts; give rows that answer the same "
                "context the same id"
            )
    places = np.arange(len(first), dtype=np.intp)
    return Pairs(places, places, context_numbers(first), "position", 0)


def pair_by_context(first: Sequence[Exchange], second: Sequence[Exchange], names: tuple[str, str]) -> Pairs:
    """Pair rows by their contexts; of several replies to one context the first with the first."""
    waiting: dict[Any, list[int]] = {}
    for at, row in enumerate(second):
        waiting.setdefault(_context(row), []).append(at)
    matched: list[tuple[int, int]] = []
    for place, row in enumerate(first):
        if left := waiting.get(_context(row)):
            matched.append((place, left.pop(0)))
    if not matched:
        raise ValueError(f"{names[0]} and {names[1]} share no context; compare systems on the same contexts")
    at, other = np.array(matched, dtype=np.intp).T
    alone = len(first) + len(second) - 2 * len(matched)
    return Pairs(at, other, context_numbers([first[place] for place in at]), "context", alone)


def _by_id(first: Sequence[Exchange], second: Sequence[Exchange], names: tuple[str, str]) -> Pairs:
    places = [_places(rows, name) for rows, name in zip((first, second), names, strict=True)]
    shared = [key for key in places[0] if key in places[1]]
    if not shared:
        raise ValueError(f"{names[0]} and {names[1]} share no id; give rows that answer the same context the same id")
    at = np.array([places[0][key] for key in shared], dtype=np.intp)
    other = np.array([places[1][key] for key in shared], dtype=np.intp)
    for key in shared:
        if _context(first[places[0][key]]) != _context(second[places[1][key]]):
            raise ValueError(f"the rows with the id {key!r} of {names[0]} and {names[1]} have different contexts")
    alone = len(first) + len(second) - 2 * len(shared)
    return Pairs(at, other, context_numbers([first[place] for place in at]), "id", alone)


def _places(rows: Sequence[Exchange], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for at, row in enumerate(rows):
        assert row.id is not None
        if row.id in found:
            raise ValueError(f"rows {found[row.id]} and {at} of {name} have the same id {row.id!r}; ids must differ")
        found[row.id] = at
    return found


def _context(row: Exchange) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return row.context, row.facts


def context_numbers(rows: Sequence[Exchange]) -> NDArray[np.intp]:
    """A number per row; equal numbers, equal contexts and facts."""
    numbers: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    return np.array([numbers.setdefault(_context(row), len(numbers)) for row in rows], dtype=np.intp)
