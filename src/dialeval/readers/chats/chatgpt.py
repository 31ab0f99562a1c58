"""ChatGPT's export: a tree of messages, of which those count that lead to the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Message, Row, Turns, each, messages_in, read_content

#: Contents that its user reads as a reply; others are thoughts, code, and what that gave.
_SAID = frozenset({"text", "multimodal_text"})


def matches(row: Row) -> bool:
    """A tree, or messages of its kind."""
    return (isinstance(row.get("mapping"), Mapping) and "current_node" in row) or any(
        isinstance(node.get("author"), Mapping) and isinstance(node.get("content"), Mapping)
        for node in messages_in(row, "messages")
    )


def turns(row: Row) -> Turns:
    """The branch that was read last."""
    if "mapping" not in row:
        return Turns(each(messages_in(row, "messages"), _message))
    path: list[Any] = []
    tree, node = row["mapping"], row["mapping"].get(row["current_node"])
    while isinstance(node, Mapping) and len(path) < len(tree):
        path.append(node.get("message"))
        node = tree.get(node.get("parent"))
    return Turns(each([node for node in reversed(path) if node], _message))


def _message(raw: Row) -> Message | None:
    author, content = raw.get("author"), raw.get("content")
    who = author.get("role") if isinstance(author, Mapping) else None
    if not who:
        return None
    # It leaves a blank where it thinks or calls a tool.
    if not isinstance(content, Mapping) or content.get("content_type", "text") not in _SAID:
        return Message(who, None)
    parts = content.get("parts")
    return Message(who, None if parts in ([], [""], None) else read_content(parts, "")[0])
