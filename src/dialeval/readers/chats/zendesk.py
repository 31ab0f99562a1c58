"""Zendesk's tickets: comments by number of author; those that are not public are notes of the team."""

from __future__ import annotations

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message, some


def matches(row: Row) -> bool:
    """Comments with an author's number."""
    return some(messages_in(row, "comments"), "author_id", "body")


def turns(row: Row) -> Turns:
    """What the customer reads."""
    return Turns(each(messages_in(row, "comments"), _message))


def _message(raw: Row) -> Message | None:
    if not (who := raw.get("author_id")):
        return None
    is_public = raw.get("public") is not False
    return read_message(raw, str(who), raw.get("body")) if is_public else Message(str(who), None)
