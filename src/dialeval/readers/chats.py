"""Chat logs as they are: exports and logs of common products, see `messages`, and transcripts.

A row holds a whole conversation, or one message of it, beside the conversation's id. At the level of replies it becomes
one row per message of the judged role, with what was said before as context and the other side's next message as
`following`; at the level of dialogues one row. Messages without text (calls of tools, their results, pictures) are
passed over: nobody read them as a reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dialeval.exchange import MAX_TEXTS, BadRow, CheckedTexts, check_text, one_line
from dialeval.readers.messages import (
    aside,
    form_of,
    known_roles,
    message_columns,
    message_text,
    messages_of,
    role_of,
    said_by,
)
from dialeval.readers.rows import RawRow

#: Which message of a conversation a reply is, behind the conversation's id.
_NUMBER = re.compile(r"(?<=.)#\d+$")
#: Names of the time of a message.
_WHEN = frozenset({"timestamp", "time", "created_at", "created", "date", "sent_at", "ts"})
#: Names of a conversation's id.
_IDS = ("id", "conversation_id", "uuid")


@dataclass(frozen=True)
class Chats:
    """How conversations become rows."""

    #: Whose messages are judged.
    judge_role: str = "assistant"
    #: Whether what the system prompt says counts as facts that a reply may use.
    system_as_facts: bool = False

    def unfold(self, rows: Iterator[RawRow], *, level: str) -> Iterator[RawRow]:
        """Rows of conversations unfolded; other rows pass as they are. What a file holds is told by its first row."""
        first = next(rows, None)
        if first is None:
            return
        rows = chain([first], rows)
        names = list(first.values or ())
        form = form_of(first.values or {})
        if form is None and (columns := message_columns(names)):
            form, rows = "messages", _together(rows, columns)
        if form is None:
            yield from rows
            return
        number = 0
        for row in rows:
            for one in self._rows_of(row, form, level):
                yield RawRow(number, one.where, one.values, one.problem, one.raw, one.duplicate)
                number += 1

    def _rows_of(self, row: RawRow, form: str, level: str) -> Iterator[RawRow]:
        if row.values is None:
            yield row
            return
        try:
            turns, prompts = _turns(row, form)
        except BadRow as error:
            yield RawRow(row.number, row.where, problem=error.problem, raw=dict(row.values))
            return
        spoke = {role for role, _ in turns}
        if role_of(self.judge_role) not in spoke and ("user" not in spoke or "system" in spoke):
            known = known_roles(role for role, _ in turns)
            turns = [(known[role], text) for role, text in turns]
        shared = {key: row.values[key] for key in ("facts", "system") if row.values.get(key) is not None}
        if _is_prompt(shared.get("system")):
            prompts = [message_text(shared.pop("system")), *prompts]
        shared.setdefault("system", row.values.get("model") if isinstance(row.values.get("model"), str) else None)
        if self.system_as_facts and prompts:
            shared["facts"] = [*(shared.get("facts") or ()), *prompts]
        name = next((row.values[key] for key in _IDS if row.values.get(key) is not None), None)
        if level == "dialogue":
            fields = {"dialogue": [text for _, text in turns], "speakers": [self._side(role) for role, _ in turns]}
            # An id that nobody gave would pair conversations that have nothing to do with each other.
            values = {**shared, **fields, "id": None if name is None else str(name)}
            yield RawRow(row.number, row.where, values, duplicate=row.duplicate)
            return
        judged = [at for at, (role, _) in enumerate(turns) if at and role == role_of(self.judge_role)]
        if not judged:
            there = ", ".join(dict.fromkeys(role for role, _ in turns)) or "none"
            problem = f"the conversation has no answer of the role {self.judge_role!r}; its roles are: {there}"
            yield RawRow(row.number, row.where, problem=problem, raw=dict(row.values))
        roles, texts = zip(*turns, strict=True) if judged else ((), ())
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
    """Rows of one message each as rows of one conversation each."""
    whose, who, what = columns
    found: dict[str, list[Any]] = {}
    times: dict[str, list[str]] = {}
    for row in rows:
        if row.values is None:
            yield row
            continue
        message = {"role": str(row.values.get(who) or ""), "content": row.values.get(what)}
        name = str(row.values.get(whose))
        found.setdefault(name, []).append(message)
        when = next((cell for key, cell in row.values.items() if str(key).casefold() in _WHEN), None)
        times.setdefault(name, []).append("" if when is None else str(when))
    for number, (name, messages) in enumerate(found.items()):
        if times[name][0] > times[name][-1] and times[name] == sorted(times[name], reverse=True):
            messages.reverse()  # exports of help desks begin with the newest
        yield RawRow(number, f"conversation {one_line(name)[:100]}", {"messages": messages, "id": name})


def _turns(row: RawRow, form: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Who said what, and what the system prompts say."""
    assert row.values is not None
    messages = messages_of(row.values, form)
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not len(messages):
        raise row.bad(f"{form} is not a list of messages; each row is one conversation")
    if len(messages) > MAX_TEXTS:
        raise row.bad(f"{form} has more than {MAX_TEXTS} entries; is this one conversation?")
    turns, prompts = [], []
    spoke = [role_of(found[0]) for message in messages if (found := said_by(message))]
    nobody = aside(spoke)
    for at, message in enumerate(messages):
        if (found := said_by(message)) is None:
            raise row.bad(f"message {at} has no 'role'; a message is an object with 'role' and 'content'")
        role = role_of(check_text(row.place, f"the role of message {at}", found[0]))
        text = _text(row, found[1], at)
        if role in nobody & {"system", "developer"} and text.strip():
            prompts.append(text)
        if role not in nobody and text.strip():
            turns.append((role, text))
    return turns, prompts


def _is_prompt(system: Any) -> bool:
    """Whether what stands beside the messages instructs a system, as in requests to Claude, and does not name it."""
    if not isinstance(system, str):
        return isinstance(system, list | tuple) and bool(message_text(system))
    return len(system.split()) > 5 or system.rstrip().endswith((".", "!", "?", ":"))


def _text(row: RawRow, content: Any, at: int) -> str:
    """The text of a message; none where a tool was called."""
    if content is None:
        return ""
    field = f"the content of message {at}"
    if isinstance(content, str) or (
        isinstance(content, list | tuple) and all(isinstance(part, Mapping) for part in content)
    ):
        return check_text(row.place, field, message_text(content))
    raise row.bad(f"{field} is a {type(content).__name__}; it is a text or a list of parts")
