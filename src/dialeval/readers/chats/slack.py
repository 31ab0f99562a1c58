"""Slack's channels: messages with `ts`, of bots with `bot_id`; joins and topics are news of the channel."""

from __future__ import annotations

import re

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_message

_OF_CHANNEL = re.compile(
    r"(?:channel|group|bot)_(?:join|leave|topic|purpose|name|archive|unarchive|add|remove)|pinned_item"
)


def matches(row: Row) -> bool:
    """Messages of the type `message` with a time of its kind."""
    return any(
        message.get("type") == "message" and "ts" in message and "text" in message
        for message in messages_in(row, "messages")
    )


def turns(row: Row) -> Turns:
    """What members and bots say."""
    return Turns(each(messages_in(row, "messages"), _message))


def _message(raw: Row) -> Message:
    who = "assistant" if raw.get("bot_id") else str(raw.get("user") or raw.get("username") or "message")
    if raw.get("type") != "message" or _OF_CHANNEL.fullmatch(str(raw.get("subtype"))):
        return Message(who, None)
    profile = raw.get("user_profile")
    name = profile.get("real_name") if isinstance(profile, dict) else ""
    return read_message(raw, who, raw.get("text"), name=name)
