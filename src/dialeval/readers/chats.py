"""Chat logs as they are: exports and logs of common products, see `messages`, and transcripts.

A row holds a whole conversation, or one message of it, beside the conversation's id. At the level of replies it becomes
one row per message of the judged role, with what was said before as context and the other side's next message as
`following`; at the level of dialogues one row. Calls of tools, their results and pictures are passed over: nobody read
them as a reply. A blank message of the judged role is a reply like any other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.exchange import MAX_TEXTS, BadRow, CheckedTexts, Dialogue, check_text, is_blank, one_line
from dialeval.io import parse_json
from dialeval.readers.messages import (
    aside,
    conversations_in,
    form_of,
    known_roles,
    message_columns,
    message_text,
    messages_of,
    name_of,
    role_of,
    said_by,
    snake_case,
)
from dialeval.readers.rows import RawRow
from dialeval.readers.transcripts import conversations

#: Which message of a conversation a reply is, behind the conversation's id.
_NUMBER = re.compile(r"(?<=.)#\d+$")
#: Names of the time of a message.
_WHEN = frozenset({"timestamp", "time", "created_at", "created", "date", "sent_at", "ts"})
#: Names of its place in the conversation, which goes before the time.
_PLACE = frozenset("turn turn_id turn_index turn_number position message_index seq sequence order step".split())
#: Names of a conversation's id.
_IDS = ("id", "conversation_id", "conversationId", "uuid", "sender_id")
Tell = Callable[..., None]
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?\s*([ap]m)?", re.IGNORECASE)


@dataclass(frozen=True)
class Chats:
    """How conversations become rows."""

    #: Whose messages are judged: a role, or the name of a speaker.
    judge_role: str = "assistant"
    #: Whether what the system prompt says counts as facts that a reply may use.
    system_as_facts: bool = False

    def unfold(self, rows: Iterator[RawRow], *, level: str, tell: Tell = lambda *_: None) -> Iterator[RawRow]:
        """Rows of conversations unfolded; other rows pass as they are. What a file holds is told by its first row."""
        first = next(rows, None)
        if first is None:
            return
        if (listed := conversations_in(first.values or {})) is not None:
            rows = (RawRow(at, f"{first.where}, chat {at}", one) for at, one in enumerate(listed))
            first = next(rows, first)
        rows = chain([first], rows)
        form = form_of(first.values or {})
        if form is None and (columns := message_columns(list(first.values or ()))):
            form, rows = "messages", _together(rows, columns)
            if not columns[0]:
                tell("no column names the conversation, so all messages are read as one; add conversation_id")
        if form is None:
            yield from rows
            return
        number = 0
        for row in rows:
            for one in self._rows_of(row, form, level, tell):
                yield RawRow(number, one.where, one.values, one.problem, one.raw, one.duplicate)
                number += 1

    def _rows_of(self, row: RawRow, form: str, level: str, tell: Tell) -> Iterator[RawRow]:
        if row.values is None:
            yield row
            return
        judge = role_of(self.judge_role)
        try:
            turns, prompts, names = _turns(row, form, judge)
        except BadRow as error:
            yield RawRow(row.number, row.where, problem=error.problem, raw=dict(row.values))
            return
        spoke = {role for role, _ in turns}
        if judge not in spoke and ("user" not in spoke or "system" in spoke):
            known = known_roles(role for role, _ in turns)
            turns = [(known[role], text) for role, text in turns]
            names = {known[role]: name for role, name in names.items()}
        turns = [(role, text) for role, text in turns if role == judge or text.strip()]
        judged_name = names.get(judge, judge)
        if judge == "assistant" and known_roles([judged_name])[judged_name] not in (judge, "system"):
            others = " or ".join(f"--judge-role {name!r}" for role, name in names.items() if role != judge)
            tell(f"{judged_name!r} is taken for the one to judge; for another speaker pass {others}", "judged")
        unjudged = [repr(name) for role, name in names.items() if role not in (judge, "user") and judge in spoke]
        if judge == "assistant" and unjudged:
            tell(
                f"what {' and '.join(unjudged)} says is read as context; to judge it choose a --judge-role", "unjudged"
            )
        shared = {key: row.values[key] for key in ("facts", "system") if row.values.get(key) is not None}
        if _is_prompt(shared.get("system")):
            prompts = [message_text(shared.pop("system")), *prompts]
        shared.setdefault("system", row.values.get("model") if isinstance(row.values.get("model"), str) else None)
        if self.system_as_facts and prompts:
            shared["facts"] = [*(shared.get("facts") or ()), *prompts]
        name = next((row.values[key] for key in _IDS if row.values.get(key) is not None), None)
        judged = [at for at, (role, _) in enumerate(turns) if role == judge and (at or level == "dialogue")]
        if not judged:
            there = ", ".join(dict.fromkeys(role for role, _ in turns)) or "none"
            problem = f"the conversation has no answer of the role {self.judge_role!r}"
            if judge in {role for role, _ in turns}:
                problem += ": it only opens it; leave the conversation out"
            else:
                problem += f"; choose a --judge-role of: {there}"
            yield RawRow(row.number, row.where, problem=problem, raw=dict(row.values))
            return
        if level == "dialogue":
            fields = {"dialogue": [text for _, text in turns], "speakers": [self._side(role) for role, _ in turns]}
            # An id that nobody gave would pair conversations that have nothing to do with each other.
            values = {**shared, **fields, "id": None if name is None else str(name)}
            yield RawRow(row.number, row.where, values, duplicate=row.duplicate)
            return
        roles, texts = zip(*turns, strict=True)
        for at in judged:
            values = {
                **shared,
                "id": f"{row.number if name is None else name}#{at}",
                "context": CheckedTexts(texts[:at]),
                "speakers": CheckedTexts(roles[:at]),
                "response": turns[at][1],
            }
            if at + 1 < len(turns) and turns[at + 1][0] != turns[at][0]:
                values["following"] = turns[at + 1][1]
            yield RawRow(row.number, f"{row.where}, message {at}", values, duplicate=row.duplicate)

    def _side(self, role: str) -> str:
        """What metrics of conversations know the judged role by; an assistant that is not judged is the other side."""
        if role == role_of(self.judge_role):
            return "assistant"
        return "user" if role == "assistant" else role


def read_transcript(text: str) -> Dialogue:
    """One conversation from pasted text; speakers are `user`, `assistant`, or the names that stand there.

    It reads lines that begin with a name (`User: Hi`; lines without one go on with the turn), one turn a line where no
    names stand, and JSON: one conversation of a chat log, as `messages` names its kinds, or its messages alone.

    >>> read_transcript("User: Hi!\\nBot: Hello.").speakers
    ('user', 'assistant')
    """
    value: Any = None
    with suppress(ValueError):
        value = parse_json(text)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping) and form_of(value[0]):
        value = value[0]  # an export of one conversation
    if isinstance(value, list):
        sides = zip(cycle(("user", "assistant")), value, strict=False)
        value = {"messages": [{"role": who, "content": one} if isinstance(one, str) else one for who, one in sides]}
    few = ValueError("the text holds fewer than two turns; write one turn a line, such as User: Hi!")
    if not (isinstance(value, Mapping) and form_of(value)):
        value = {"messages": list(chain.from_iterable(conversations(text.splitlines())))}
        if len(value["messages"]) < 2:
            raise few
    (row,) = Chats().unfold(iter([RawRow(0, "the text", value)]), level="dialogue")
    if row.values is None:
        raise row.bad(row.problem)
    both = zip(row.values["speakers"], row.values["dialogue"], strict=True)
    turns = [(who, said) for who, said in both if said.strip()]
    if len(turns) < 2:
        raise few
    return Dialogue(tuple(said for _, said in turns), speakers=tuple(who for who, _ in turns))


def matching_ids(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ids of two files as they belong together: where none is shared, without the `#4` that a reply of a chat log has.

    The ids stay as they are if they would not meet then either, or would no longer differ within a file.
    """
    if not set(first) & set(second):
        one, other = ([_NUMBER.sub("", name) for name in ids] for ids in (first, second))
        if set(one) & set(other) and len(set(one)) == len(one) and len(set(other)) == len(other):
            return one, other
    return list(first), list(second)


def _together(rows: Iterable[RawRow], columns: tuple[str, str, str]) -> Iterator[RawRow]:
    """Rows of one message each as rows of one conversation each, in the order of their times."""
    whose, who, what = columns
    found: dict[str, list[Any]] = {}
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
        found.setdefault(name, []).append(message)
        when = next(
            (cell for names in (_PLACE, _WHEN) for key, cell in row.values.items() if snake_case(key) in names), None
        )
        times.append((name, "" if when is None else str(when)))
    orders = _orders(times) if any(when for _, when in times) else {}
    for number, (name, messages) in enumerate(found.items()):
        in_order = [messages[at] for at in orders.get(name, range(len(messages)))]
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


def _turns(row: RawRow, form: str, judge: str) -> tuple[list[tuple[str, str]], list[str], dict[str, str]]:
    """Who said what, what the system prompts say, and the name behind each role."""
    assert row.values is not None
    messages = messages_of(row.values, form)
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not len(messages):
        raise row.bad(f"{form} is not a list of messages; each row is one conversation")
    if len(messages) > MAX_TEXTS:
        raise row.bad(f"{form} has more than {MAX_TEXTS} entries; is this one conversation?")
    turns, prompts, names = [], [], dict[str, str]()
    by_name = judge not in ("user", "assistant") and judge in map(role_of, map(name_of, messages))
    spoke = [role_of(found[0]) for message in messages if (found := said_by(message))]
    nobody = aside(spoke)
    for at, message in enumerate(messages):
        if (found := said_by(message)) is None:
            raise row.bad(f"message {at} has no 'role'; a message is an object with 'role' and 'content'")
        who = (by_name and role_of(found[0]) not in nobody and name_of(message)) or found[0]
        role = role_of(check_text(row.place, f"the role of message {at}", who))
        if found[1] is None:
            continue
        if not isinstance(found[1], str):
            raise row.bad(f"the content of message {at} is a {type(found[1]).__name__}; pass a text or a list of parts")
        text = check_text(row.place, f"the content of message {at}", found[1])
        if role in nobody & {"system", "developer"} and text.strip():
            prompts.append(text)
        if role not in nobody:
            turns.append((role, text))
            names.setdefault(role, str(message.get("speaker") or who))
    return turns, prompts, names


def _is_prompt(system: Any) -> bool:
    """Whether what stands beside the messages instructs a system, as in requests to Claude, and does not name it."""
    if not isinstance(system, str):
        return isinstance(system, list | tuple) and bool(message_text(system))
    return len(system.split()) > 5 or system.rstrip().endswith((".", "!", "?", ":"))
