"""Inputs and outputs of a model in columns of their own, of which one holds messages: logs by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import call

_PAIRS = (("input", "output"), ("inputs", "outputs"), ("prompt", "completion"), ("prompt", "response"))


def _sides(row: Row) -> tuple[Any, Any] | None:
    asked, answered = next((pair for pair in _PAIRS if set(pair) <= row.keys()), ("", ""))
    sides = as_json(row.get(asked)), as_json(row.get(answered))
    return sides if any(map(_holds_objects, sides)) and all(sides) else None


def _holds_objects(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(item, Mapping) for item in value))


def matches(row: Row) -> bool:
    """Two columns of a pair, one of them an object or a list of objects."""
    return _sides(row) is not None


def turns(row: Row) -> Turns:
    """What went in and what came out."""
    asked, answered = _sides(row) or ("", "")
    return call(asked, answered, id=row.get("id"))
