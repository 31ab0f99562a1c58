"""Azure Bot Service: a list of activities, of which those of the type `message` are said."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message


def matches(row: Row) -> bool:
    """Activities name their sender by an object."""
    return any(
        isinstance(activity.get("from"), Mapping) and "type" in activity
        for activity in messages_in(row, "activities", "messages")
    )


def turns(row: Row) -> Turns:
    """Typing, traces and news of members are nobody's turn."""
    return Turns(each(messages_in(row, "activities", "messages"), _message))


def _message(raw: Row) -> Message:
    sender = raw.get("from") or {}
    who = sender.get("role") or sender.get("name") or "user" if isinstance(sender, Mapping) else sender
    return Message(who, None) if raw.get("type") != "message" else read_message(raw, who, raw.get("text"))
