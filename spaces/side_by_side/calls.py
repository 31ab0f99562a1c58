"""Rows that a program sends, checked and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limits import MAX_CALL_ROWS, MAX_CALL_TURNS, Refused, taken, taken_all
from models import human_percentile, info_of, judge, ready

from dialeval.exchange import BadRow, check_exchange
from dialeval.metric import Level

_FIELDS = ("context", "response", "reference", "references", "facts", "system", "id", "following", "speakers")


def scored(rows: Any, metrics: Any) -> dict[str, Any]:
    """What every metric says about every row."""
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
        raise Refused("rows is not a list of objects; pass at least one row with context and response")
    if len(rows) > MAX_CALL_ROWS:
        raise Refused(f"there are {len(rows):,} rows; one call takes {MAX_CALL_ROWS}, so make several")
    offered = ready()
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise Refused(f"metrics is not a list of names; choose from {', '.join(offered)}")
    if unknown := next((name for name in metrics if name not in offered), None):
        raise Refused(f"there is no metric {str(unknown)[:40]!r} here; there are {', '.join(offered)}")
    exchanges = [check_exchange(number, **_row(number, row)) for number, row in enumerate(rows)]
    found = {}
    for name in dict.fromkeys(metrics):
        scores = judge(name, exchanges)
        shares = human_percentile(name, scores.values) if info_of(name).level is Level.TURN else None
        beside = {} if shares is None else {"human_percentile": [float(share) for share in shares]}
        found[name] = {**scores.to_dict(), **beside}
    return found


def _row(number: int, row: Any) -> dict[str, Any]:
    """One row within the limits; whether its values are of the right kind the library says."""
    if not isinstance(row, Mapping):
        raise BadRow(number, f"the row is a {type(row).__name__}; pass an object with context and response")
    if unknown := next((key for key in row if key not in _FIELDS), None):
        raise BadRow(number, f"there is no field {str(unknown)[:40]!r}; fields are {', '.join(_FIELDS)}")
    if "reference" in row and "references" in row:
        raise BadRow(number, "both reference and references are given; keep one of them")
    values = {key: _within(number, key, value) for key, value in row.items()}
    references = values.pop("reference", None)
    return {"response": None, "context": None, "references": references, **values}


def _within(number: int, key: str, value: Any) -> Any:
    try:
        if isinstance(value, str):
            return taken(key, value)[0]
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return taken_all(f"{key} text", f"texts in {key}", value, MAX_CALL_TURNS)[0]
    except Refused as error:
        raise BadRow(number, str(error)) from None
    return value
