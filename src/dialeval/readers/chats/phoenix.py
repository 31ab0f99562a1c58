"""Phoenix and whatever else writes OpenInference's spans."""

from __future__ import annotations

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import NO_CALL, call
from dialeval.readers.chats.spans import attributes, is_span, numbered, trace_of

_KEYS = ("openinference.", "llm.", "input.value")


def matches(row: Row) -> bool:
    """Attributes of its names."""
    return (is_span(row) or "attributes" in row or any(str(key).startswith("attributes.") for key in row)) and any(
        key.startswith(_KEYS) for key in attributes(row)
    )


def turns(row: Row) -> Turns:
    """A model's messages; of other spans the first of the trace, by its input and output."""
    values = attributes(row)
    sides = [
        as_json(values.get(f"llm.{side}_messages")) or numbered(values, f"llm.{side}_messages")
        for side in ("input", "output")
    ]
    if not all(sides):
        if row.get("parent_id") or row.get("parentSpanId"):
            return NO_CALL
        sides = [values.get("input.value"), values.get("output.value")]
    return call(*sides, trace=trace_of(row)) if all(sides) else NO_CALL
