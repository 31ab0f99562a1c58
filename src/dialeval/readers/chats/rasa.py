"""Rasa's trackers: events, of which those of `user` and `bot` are said."""

from __future__ import annotations

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message, some

_SAID = {"user": "user", "bot": "assistant", "agent": "agent"}


def matches(row: Row) -> bool:
    """Events with a kind."""
    return some(messages_in(row, "events"), "event")


def turns(row: Row) -> Turns:
    """Slots, actions and listening are nobody's turn."""
    events = [event for event in messages_in(row, "events") if event.get("event") in _SAID]
    return Turns(each(events, _message))


def _message(raw: Row) -> Message:
    return read_message(raw, _SAID[raw["event"]], raw.get("text"))
