"""Logs in which every row is one message: put together to conversations, in the order of their times."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import is_blank
from dialeval.io.harmless import one_line
from dialeval.readers.chats.base import snake_case
from dialeval.readers.rows import RawRow

#: Names of the time of a message.
_WHEN = frozenset({"timestamp", "time", "created_at", "created", "date", "sent_at", "ts"})
#: Names of its place in the conversation, which goes before the time.
_PLACE = frozenset("turn turn_id turn_index turn_number position message_index seq sequence order step".split())
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?\s*([ap]m)?", re.IGNORECASE)
#: Names of the conversation, the speaker and the text where every row is one message.
_WHOSE = "conversation_id session_id ticket_id thread_id chat_id dialogue_id dialog_id session thread".split()
_WHO = "role direction from sender author speaker author_id".split()
_WHAT = "content value text parts utterance message data body payload".split()


def message_columns(names: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of conversation (empty where all is one), speaker and text where every row is one message."""
    known = {snake_case(name): str(name) for name in reversed(names)}
    found = [next((known[key] for key in keys if key in known), None) for keys in (_WHOSE, _WHO, _WHAT)]
    columns = known.keys() - {"name", "timestamp", "tool_calls", "attachments"}
    if columns >= {"type", "from", "conversation"}:  # Azure
        return known["conversation"], known["from"], "text"
    others = columns >= {"type", "text", "ts"} or columns >= {"author_id", "author", "content"}  # Slack, Discord
    if others or columns in ({"role", "content"}, {"type", "data"}):
        return found[0] or "", found[1] or known["type"], str(found[2])
    return None if None in found else (found[0], found[1], found[2])  # type: ignore[return-value]


def together(rows: Iterable[RawRow], columns: tuple[str, str, str]) -> Iterator[RawRow]:
    """Rows of one message each as rows of one conversation each, in the order of their times."""
    whose, who, what = columns
    conversations: dict[str, list[Any]] = {}
    times: list[tuple[str, str]] = []
    for row in rows:
        if row.values is None:
            yield row
            continue
        name, speaker = row.values.get(whose), row.values.get(who)
        name = str(name.get("id") if isinstance(name, Mapping) else name)
        if whose and (is_blank(name) or name in ("None", "nan")):
            problem = f"{whose} is empty; write there to which conversation the message belongs"
            yield RawRow(row.number, f"{row.where}, message {row.number}", problem=problem, raw=dict(row.values))
            continue
        speaker = speaker if isinstance(speaker, Mapping) else str(speaker or "")
        message = {**row.values, "role": speaker, "content": row.values.get(what)}
        conversations.setdefault(name, []).append(message)
        when = next(
            (cell for names in (_PLACE, _WHEN) for key, cell in row.values.items() if snake_case(key) in names), None
        )
        times.append((name, "" if when is None else str(when)))
    orders = _orders(times) if any(when for _, when in times) else {}
    for number, (name, messages) in enumerate(conversations.items()):
        in_order = [messages[place] for place in orders.get(name, range(len(messages)))]
        values = {"messages": in_order, "id": name if whose else None}
        yield RawRow(number, f"conversation {one_line(name)[:100]}" if whose else "all messages", values)


def _orders(times: list[tuple[str, str]]) -> dict[str, tuple[int, ...]]:
    """The order of each conversation's messages by their times, as numbers or dates, where it is the same whichever
    way a day is written."""
    import pandas as pd

    whose, texts = (pd.Series(column) for column in zip(*times, strict=True))
    with warnings.catch_warnings(action="ignore"):  # that a day may be a month
        iso, *ways = (
            (pd.to_datetime(texts, errors="coerce", utc=True, **way) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(1, "s")
            for way in ({"format": "ISO8601"}, {}, {"dayfirst": True})
        )
    sure = pd.to_numeric(texts, errors="coerce").fillna(iso)
    ways = [sure.fillna(way) for way in ways]
    ways = [way for way in ways if way.notna().all()] or ways
    clocks = texts.str.fullmatch(_CLOCK).to_numpy()
    found = {}
    for name, places in whose.groupby(whose).indices.items():
        orders = {_order(way.to_numpy()[places], bool(clocks[places].any())) for way in ways}
        if len(orders) == 1:
            found[str(name)] = orders.pop()
    return found


def _order(when: NDArray[np.float64], of_clocks: bool) -> tuple[int, ...]:
    """Places by their times; exports of help desks begin with the newest, and are turned with what has equal times.

    Nothing moves where a time is missing, or may be of another day.
    """
    step = np.diff(when)
    if np.isnan(when).any() or (of_clocks and np.ptp(when) > 43200):
        return tuple(range(len(when)))
    if step.any() and (step <= 0).all():
        return tuple(range(len(when)))[::-1]
    return tuple(map(int, when.argsort(kind="stable")))
