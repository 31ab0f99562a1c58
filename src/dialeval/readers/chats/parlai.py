"""ParlAI's logs of conversations: acts with `id` and `text`, alone or in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, each, known_roles, read_message


def _acts(row: Row) -> list[Any]:
    dialog = row.get("dialog")
    if not isinstance(dialog, list):
        return []
    return [act for episode in dialog for act in (episode if isinstance(episode, list) else [episode])]


def matches(row: Row) -> bool:
    """Acts that name their agent."""
    return any(isinstance(act, Mapping) and "id" in act and "text" in act for act in _acts(row))


def turns(row: Row) -> Turns:
    """What the agents say; contexts that a task sets are none of it."""
    acts = [act for act in _acts(row) if act.get("id") not in (None, "context")]
    roles = known_roles(str(act["id"]) for act in acts)
    return Turns(each(acts, lambda raw: read_message(raw, roles[str(raw["id"])], raw.get("text"), name=raw["id"])))
