"""Spans of OpenTelemetry: their attributes, however an exporter nests them, and messages that are numbered keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dialeval.readers.chats.base import Row, as_json


def attributes(row: Row) -> dict[str, Any]:
    """The attributes of a span by dotted names: from a mapping, flat or nested, a list of OTLP, or columns."""
    values = as_json(row.get("attributes", row.get("span_attributes")))
    if isinstance(values, list):  # OTLP
        values = {
            attribute["key"]: _value(attribute.get("value"))
            for attribute in values
            if isinstance(attribute, Mapping) and "key" in attribute
        }
    of_columns = {str(key).removeprefix("attributes."): value for key, value in row.items() if "." in str(key)}
    return of_columns | (dict(_flat(values)) if isinstance(values, Mapping) else {})


def is_span(row: Row) -> bool:
    """Whether a row is a span of any kind."""
    inner = row.get("context")
    return bool({"spanId", "span_id", "context.span_id"} & row.keys()) or (
        isinstance(inner, Mapping) and "span_id" in inner
    )


def trace_of(row: Row) -> str:
    """The trace of a span; empty where it names none."""
    inner = row.get("context")
    places = [row, inner if isinstance(inner, Mapping) else {}]
    keys = ("traceId", "trace_id", "context.trace_id")
    return str(next((place[key] for place in places for key in keys if place.get(key)), ""))


def numbered(values: Row, prefix: str) -> list[dict[str, Any]]:
    """The messages that stand as `prefix.0.role`, `prefix.0.content`."""
    messages: dict[int, dict[str, Any]] = {}
    for key, value in values.items():
        number, _, name = key.removeprefix(f"{prefix}.").partition(".")
        if key.startswith(f"{prefix}.") and number.isdigit() and name:
            messages.setdefault(int(number), {})[name] = value
    return [messages[number] for number in sorted(messages)]


def _flat(nested: Row, before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _value(value: Any) -> Any:
    """A value of OTLP, which says its type beside it."""
    if not isinstance(value, Mapping):
        return value
    inner: Any
    kind, inner = next(iter(value.items()), ("", {}))
    if kind == "arrayValue":
        return [_value(value) for value in inner.get("values", [])]
    if kind == "kvlistValue":
        return {pair["key"]: _value(pair.get("value")) for pair in inner.get("values", [])}
    return inner
