"""Discord's channels, as exporters write them: JSON, or a CSV file of AuthorID, Author and Content."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message, some

#: What it says of a channel in a member's name.
_NEWS = frozenset("RecipientAdd RecipientRemove Call ChannelPinnedMessage GuildMemberJoin ThreadCreated".split())


def matches(row: Row) -> bool:
    """Authors that say whether they are a bot, or have an id of their own."""
    messages = messages_in(row, "messages")
    of_bots = any(isinstance(message.get("author"), Mapping) and "isBot" in message["author"] for message in messages)
    return of_bots or some(messages, "AuthorID", "Author") or some(messages, "author_id", "author", "content")


def turns(row: Row) -> Turns:
    """What members and bots say."""
    return Turns(each(messages_in(row, "messages"), _message))


def _message(raw: Row) -> Message | None:
    author = raw.get("author", raw.get("Author"))
    who = author.get("name") if isinstance(author, Mapping) else author
    if not who:
        return None
    role = "assistant" if isinstance(author, Mapping) and author.get("isBot") else str(who)
    unsaid = raw.get("type") in _NEWS
    return Message(role, None) if unsaid else read_message(raw, role, raw.get("content", raw.get("Content")), name=who)
