"""Scores that some other judge made of several systems: a frame, or files, of context, system and value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange, check_kind, is_absent, several_names
from dialeval.core.specs import Declared
from dialeval.readers.pairing import Rows, files_by_name
from dialeval.readers.score_files import check_columns, records, row_scores
from dialeval.registry.functions import FunctionMetric


@dataclass(frozen=True)
class Given:
    """Rows by system, without their replies, and their values by column."""

    rows: dict[str, list[Exchange]]
    columns: dict[str, dict[str, NDArray[np.float64]]]
    #: Whether contexts are known; else every id counts as a context of its own.
    knows_contexts: bool

    def metric(self, column: str, *, lower_is_better: bool) -> FunctionMetric:
        """What stands for the judge that made a column."""
        return FunctionMetric(_never, column, Declared(lower_is_better=lower_is_better))


def read_given(
    systems: Rows | Mapping[str, Rows] | Sequence[str | Path],
    values: str | Sequence[str],
    columns: Mapping[str, str] | None = None,
) -> Given:
    """Scores from one table whose rows name their system, or from one for each; `values` names columns, or none for
    every column of numbers.
    """
    if isinstance(systems, list | tuple) and systems and all(isinstance(system, str | Path) for system in systems):
        systems = files_by_name(systems)
    parts: dict[str, Any] = dict(systems) if isinstance(systems, Mapping) else {"": systems}
    columns = {} if columns is None else columns
    check_kind("columns", columns, Mapping, "a mapping of fields to columns")
    mapping = {field: field for field in ("context", "system", "id")} | dict(columns)
    wanted = several_names("values", values) or list(filter(None, [mapping.get("value")]))
    rows: dict[str, list[Exchange]] = {}
    by_system: dict[str, list[dict[str, float]]] = {}
    knows_contexts = False
    for name, table in parts.items():
        listed = records(table, name or "the scores")
        check_columns(columns, ("context", "system", "id", "value"), listed)
        for where, row in listed:
            system = name or _text(row.get(mapping["system"]))
            context, key = row.get(mapping["context"]), _text(row.get(mapping["id"]))
            context_text = "" if is_absent(context) else json.dumps(context, default=str)
            if not system:
                raise ValueError(f"{where} has no system; name its column (columns, system=...), or give a file each")
            if not (context_text or key):
                raise ValueError(f"{where} has neither a context nor an id; scores are compared on the same contexts")
            knows_contexts = knows_contexts or bool(context_text)
            rows.setdefault(system, []).append(Exchange((context_text or key,), "", id=key or None, system=system))
            here = row_scores(where, row)
            if no_number := next((name for name in wanted if name not in here), None):
                raise ValueError(f"{where} has no number {no_number!r}; its numbers are: {', '.join(here) or 'none'}")
            by_system.setdefault(system, []).append(here)
    names = wanted or list(dict.fromkeys(name for rows in by_system.values() for row in rows for name in row))
    if not names:
        raise ValueError("there is no column of numbers; name the one that holds the values (values=...)")
    columns_of = {
        name: {system: np.array([row.get(name, math.nan) for row in rows]) for system, rows in by_system.items()}
        for name in names
    }
    return Given(rows, columns_of, knows_contexts)


def _text(cell: Any) -> str:
    return "" if is_absent(cell) else str(cell)


def _never(exchanges: list[Exchange]) -> list[float]:
    raise ValueError("these scores were made elsewhere; nothing is scored again")
