"""Chatwoot: types of messages are numbers, and notes of the team are private."""

from __future__ import annotations

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message, some

_TYPES = {"0": "user", "1": "assistant", "2": "service", "3": "assistant"}


def matches(row: Row) -> bool:
    """Messages whose type is a number."""
    messages = messages_in(row, "messages", "payload")
    return some(messages, "message_type", "content") and str(messages[0].get("message_type")) in _TYPES


def turns(row: Row) -> Turns:
    """What the customer reads."""
    return Turns(each(messages_in(row, "messages", "payload"), _message))


def _message(raw: Row) -> Message | None:
    if (role := _TYPES.get(str(raw.get("message_type")))) is None:
        return None
    return Message(role, None) if raw.get("private") is True else read_message(raw, role, raw.get("content"))
