"""LangChain's messages: `type` and `data`, as they were dumped (`lc`, `kwargs`), or flat."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Message, Row, Turns, as_json, each, messages_in, read_message

_TYPES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def matches(row: Row) -> bool:
    """Messages whose type is a side."""
    return any(message(raw) is not None for raw in messages_in(row, "messages")[:50])


def turns(row: Row) -> Turns:
    """The messages in their order."""
    return Turns(each(as_json(row["messages"]), message))


def message(raw: Row) -> Message | None:
    """One message; None where it is of another kind."""
    holds = next((raw[key] for key in ("kwargs", "data") if isinstance(raw.get(key), Mapping)), raw)
    named = raw.get("id") if raw.get("lc") else None
    kind = str(holds.get("type") or raw.get("type") or "")
    if kind not in _TYPES:  # AIMessageChunk, or the class whose message it is
        kind = str(named[-1] if isinstance(named, list) else kind).partition("Message")[0].lower()
    role = _TYPES.get(kind)
    if role is None or "content" not in holds:
        return None
    return read_message(holds, role, holds["content"])
