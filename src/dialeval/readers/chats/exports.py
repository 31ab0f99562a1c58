"""Channels, help desks and assistants, as they export conversations: a list of messages, each read by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.readers.chats.calls import langchain_message
from dialeval.readers.chats.messages import (
    Message,
    Product,
    Row,
    Turns,
    as_json,
    each,
    listed,
    messages_in,
    read_content,
    read_message,
    some,
    without_tags,
)

# ChatGPT: a tree of messages, of which those count that lead to the last one.

#: Contents that its user reads as a reply; others are thoughts, code, and what that gave.
_READ = frozenset({"text", "multimodal_text"})


def _of_chatgpt(row: Row) -> bool:
    return (isinstance(row.get("mapping"), Mapping) and "current_node" in row) or any(
        isinstance(node.get("author"), Mapping) and isinstance(node.get("content"), Mapping)
        for node in messages_in(row, "messages")
    )


def _branch_read_last(row: Row) -> Turns:
    if "mapping" not in row:
        return Turns(each(messages_in(row, "messages"), _chatgpt_message))
    path: list[Any] = []
    tree, node = row["mapping"], row["mapping"].get(row["current_node"])
    while isinstance(node, Mapping) and len(path) < len(tree):
        path.append(node.get("message"))
        node = tree.get(node.get("parent"))
    return Turns(each([node for node in reversed(path) if node], _chatgpt_message))


def _chatgpt_message(raw: Row) -> Message | None:
    author, content = raw.get("author"), raw.get("content")
    who = author.get("role") if isinstance(author, Mapping) else None
    if not who:
        return None
    # It leaves a blank where it thinks or calls a tool.
    if not isinstance(content, Mapping) or content.get("content_type", "text") not in _READ:
        return Message(who, None)
    parts = content.get("parts")
    return Message(who, None if parts in ([], [""], None) else read_content(parts, "")[0])


CHATGPT = Product(_of_chatgpt, _branch_read_last)


# LangChain's messages.

LANGCHAIN = Product(
    lambda row: any(langchain_message(raw) is not None for raw in messages_in(row, "messages")[:50]),
    lambda row: Turns(each(as_json(row["messages"]), langchain_message)),
)


# Slack: messages with `ts`, of bots with `bot_id`; joins and topics are news of the channel.

_NEWS_OF_SLACK = re.compile(
    r"(?:channel|group|bot)_(?:join|leave|topic|purpose|name|archive|unarchive|add|remove)|pinned_item"
)


def _of_slack(messages: Sequence[Row]) -> bool:
    return any(message.get("type") == "message" and "ts" in message and "text" in message for message in messages)


def _slack_message(raw: Row) -> Message:
    who = "assistant" if raw.get("bot_id") else str(raw.get("user") or raw.get("username") or "message")
    if raw.get("type") != "message" or _NEWS_OF_SLACK.fullmatch(str(raw.get("subtype"))):
        return Message(who, None)
    profile = raw.get("user_profile")
    name = profile.get("real_name") if isinstance(profile, dict) else ""
    return read_message(raw, who, raw.get("text"), name=name)


SLACK = listed("messages", matches=_of_slack, message=_slack_message)


# Azure Bot Service: activities, of which typing, traces and news of members are nobody's turn.


def _of_azure(activities: Sequence[Row]) -> bool:
    return any(isinstance(activity.get("from"), Mapping) and "type" in activity for activity in activities)


def _azure_message(raw: Row) -> Message:
    sender = raw.get("from") or {}
    who = sender.get("role") or sender.get("name") or "user" if isinstance(sender, Mapping) else sender
    return Message(who, None) if raw.get("type") != "message" else read_message(raw, who, raw.get("text"))


AZURE = listed("activities", "messages", matches=_of_azure, message=_azure_message)


# Discord's channels, as exporters write them: JSON, or a CSV file of AuthorID, Author and Content. Authors say whether
# they are a bot, or have an id of their own.

#: What it says of a channel in a member's name.
_NEWS_OF_DISCORD = "RecipientAdd RecipientRemove Call ChannelPinnedMessage GuildMemberJoin ThreadCreated".split()


def _of_discord(messages: Sequence[Row]) -> bool:
    of_bots = any(isinstance(message.get("author"), Mapping) and "isBot" in message["author"] for message in messages)
    return of_bots or some(messages, "AuthorID", "Author") or some(messages, "author_id", "author", "content")


def _discord_message(raw: Row) -> Message | None:
    author = raw.get("author", raw.get("Author"))
    who = author.get("name") if isinstance(author, Mapping) else author
    if not who:
        return None
    role = "assistant" if isinstance(author, Mapping) and author.get("isBot") else str(who)
    if raw.get("type") in _NEWS_OF_DISCORD:
        return Message(role, None)
    return read_message(raw, role, raw.get("content", raw.get("Content")), name=who)


DISCORD = listed("messages", matches=_of_discord, message=_discord_message)


# Chatwoot: types of messages are numbers, and notes of the team are private.

_TYPES_OF_CHATWOOT = {"0": "user", "1": "assistant", "2": "service", "3": "assistant"}


def _of_chatwoot(messages: Sequence[Row]) -> bool:
    return some(messages, "message_type", "content") and str(messages[0].get("message_type")) in _TYPES_OF_CHATWOOT


def _chatwoot_message(raw: Row) -> Message | None:
    if (role := _TYPES_OF_CHATWOOT.get(str(raw.get("message_type")))) is None:
        return None
    return Message(role, None) if raw.get("private") is True else read_message(raw, role, raw.get("content"))


CHATWOOT = listed("messages", "payload", matches=_of_chatwoot, message=_chatwoot_message)


# Intercom: the first message as `source`, later ones as `conversation_parts`, texts as HTML.

_TEAM = dict.fromkeys(("admin", "bot", "team"), "assistant")


def _public_parts(row: Row) -> Turns:
    """Without what the team notes for itself and what it does beside talking."""
    later = row["conversation_parts"]
    later = later.get("conversation_parts") if isinstance(later, Mapping) else later
    parts = [row["source"], *(later if isinstance(later, list) else [])]
    return Turns(each([part for part in parts if _is_public(part)], _intercom_message))


def _is_public(part: Any) -> bool:
    if not (isinstance(part, Mapping) and isinstance(part.get("author"), Mapping)):
        return False
    hidden = str(part.get("part_type")).startswith("note") or part.get("redacted")
    return not hidden and bool(part.get("body") or part.get("part_type") == "comment")


def _intercom_message(part: Row) -> Message:
    body = str(part.get("body") or "")
    beside = {"attachments": part.get("attachments") or re.findall("<img", body)}
    lines = re.sub(r"<br\s*/?>|</(?:p|div|li|h\d)>", "\n", body, flags=re.IGNORECASE)  # a line for each paragraph
    return read_message(beside, _TEAM.get(str(part["author"].get("type")), "user"), without_tags(lines))


INTERCOM = Product(lambda row: isinstance(row.get("source"), Mapping) and "conversation_parts" in row, _public_parts)


# Rasa's trackers: events, of which slots, actions and listening are nobody's turn.

_SIDES_OF_RASA = {"user": "user", "bot": "assistant", "agent": "agent"}


def _rasa_turns(row: Row) -> Turns:
    events = [event for event in messages_in(row, "events") if event.get("event") in _SIDES_OF_RASA]
    return Turns(each(events, lambda raw: read_message(raw, _SIDES_OF_RASA[raw["event"]], raw.get("text"))))


RASA = Product(lambda row: some(messages_in(row, "events"), "event"), _rasa_turns)


# Zendesk's tickets: comments by number of author; those that are not public are notes of the team.


def _zendesk_message(raw: Row) -> Message | None:
    if not (who := raw.get("author_id")):
        return None
    is_public = raw.get("public") is not False
    return read_message(raw, str(who), raw.get("body")) if is_public else Message(str(who), None)


ZENDESK = listed("comments", matches=lambda comments: some(comments, "author_id", "body"), message=_zendesk_message)


# Telegram: texts of pieces, and service messages that nobody said.


def _telegram_message(raw: Row) -> Message | None:
    who = raw.get("from")
    if raw.get("type", "message") != "message":
        return Message(str(who or "service"), None)
    return read_message(raw, who, raw.get("text"), joint="") if who else None


TELEGRAM = listed("messages", matches=lambda messages: some(messages, "from", "text"), message=_telegram_message)
