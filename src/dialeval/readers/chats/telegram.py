"""Telegram's export: texts of pieces, and service messages that nobody said."""

from __future__ import annotations

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message, some


def matches(row: Row) -> bool:
    """Messages with `from` and `text`."""
    return some(messages_in(row, "messages"), "from", "text")


def turns(row: Row) -> Turns:
    """What is said in the chat."""
    return Turns(each(messages_in(row, "messages"), _message))


def _message(raw: Row) -> Message | None:
    who = raw.get("from")
    if raw.get("type", "message") != "message":
        return Message(str(who or "service"), None)
    return read_message(raw, who, raw.get("text"), joint="") if who else None
