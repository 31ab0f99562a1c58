"""Inspect's logs: samples, each the conversation of a model with its task."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Row, Turns
from dialeval.readers.chats.calls import messages_from


def matches(row: Row) -> bool:
    """A sample with its target and the output."""
    return {"messages", "target", "output"} <= row.keys() and isinstance(row["output"], Mapping)


def turns(row: Row) -> Turns:
    """All messages of the sample."""
    name = f"{row.get('id')}/{row.get('epoch', 1)}" if row.get("id") is not None else None
    return Turns(messages_from(row["messages"], "user"), {"id": name, "system": row["output"].get("model")})
