"""Intercom: the first message as `source`, later ones as `conversation_parts`, texts as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Message, Row, Turns, each, read_message, without_tags

_TEAM = dict.fromkeys(("admin", "bot", "team"), "assistant")


def matches(row: Row) -> bool:
    """A conversation with its parts."""
    return isinstance(row.get("source"), Mapping) and "conversation_parts" in row


def turns(row: Row) -> Turns:
    """Without what the team notes for itself and what it does beside talking."""
    found = row["conversation_parts"]
    found = found.get("conversation_parts") if isinstance(found, Mapping) else found
    parts = [row["source"], *(found if isinstance(found, list) else [])]
    return Turns(each([part for part in parts if _is_said(part)], _message))


def _is_said(part: Any) -> bool:
    if not (isinstance(part, Mapping) and isinstance(part.get("author"), Mapping)):
        return False
    hidden = str(part.get("part_type")).startswith("note") or part.get("redacted")
    return not hidden and bool(part.get("body") or part.get("part_type") == "comment")


def _message(part: Row) -> Message:
    body = str(part.get("body") or "")
    beside = {"attachments": part.get("attachments") or re.findall("<img", body)}
    return read_message(beside, _TEAM.get(str(part["author"].get("type")), "user"), _lines_of(body))


def _lines_of(text: str) -> str:
    """HTML as it reads: a line for each paragraph."""
    lines = re.sub(r"<br\s*/?>|</(?:p|div|li|h\d)>", "\n", text, flags=re.IGNORECASE)
    return without_tags(lines)
