"""Chat logs as they are: exports and logs of common products, see `chats`, and transcripts.

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
from dataclasses import dataclass, replace
from itertools import chain, cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import MAX_TEXTS, BadRow, CheckedTexts, Dialogue, check_text, is_blank
from dialeval.io.files import parse_json
from dialeval.io.harmless import one_line
from dialeval.readers.chats import product_of, reader_of
from dialeval.readers.chats.messages import (
    Message,
    Product,
    Turns,
    aside,
    known_roles,
    read_content,
    role_of,
    snake_case,
)
from dialeval.readers.rows import RawRow, guess_columns
from dialeval.readers.transcripts import conversations, lines_of

#: Which message of a conversation a reply is, behind the conversation's id.
_NUMBER = re.compile(r"(?<=.)#\d+$")
#: Names of a conversation's id.
_IDS = ("id", "conversation_id", "conversationId", "uuid", "sender_id")
Tell = Callable[..., None]


@dataclass(frozen=True)
class Chats:
    """How conversations become rows."""

    #: Whose messages are judged: a role, or the name of a speaker.
    judge_role: str = "assistant"
    #: Whether what the system prompt says counts as facts that a reply may use.
    system_as_facts: bool = False
    #: Whether what is said before a call of a tool ("Let me look") is a reply.
    keep_preambles: bool = False

    def unfold(self, rows: Iterable[RawRow], *, level: str, tell: Tell = lambda *_: None) -> Iterator[RawRow]:
        """Rows of conversations unfolded; other rows pass as they are. What a file holds is told by its first row."""
        rows = (inner for row in rows for inner in opened(row))
        first = next(rows, None)
        if first is None:
            return
        rows = chain([first], rows)
        values = first.values or {}
        product = reader_of(values)
        if product is None and (columns := message_columns(list(values))):
            rows = together(rows, columns)
            if not columns[0]:
                tell("no column names the conversation, so all messages are read as one; add conversation_id")
        elif product is None:
            yield from rows
            return
        number, passed, traced = 0, 0, set[tuple[str, str]]()
        for row in rows:
            for inner in self._rows_of(row, product, level, tell):
                if inner is None or (known := inner[0]) in traced:
                    passed += 1
                    continue
                if known is not None:
                    traced.add(known)
                yield replace(inner[1], number=number)
                number += 1
        if passed:
            what = f"{passed} {'row holds' if passed == 1 else 'rows hold'} no reply, or that of another row"
            if not number:
                raise ValueError(f"{what}, such as calls of tools; there is nothing to score")
            tell(f"{what}, and {'was' if passed == 1 else 'were'} passed over")

    def _rows_of(
        self, row: RawRow, product: Product | None, level: str, tell: Tell
    ) -> Iterator[tuple[tuple[str, str] | None, RawRow] | None]:
        """The rows of one conversation, each with what tells that a trace repeats it; None for what holds no reply."""
        if row.values is None:
            yield None, row
            return
        judge = role_of(self.judge_role)
        product = product if product and product.matches(row.values) else reader_of(row.values)
        try:
            if product is None:
                raise row.bad("the row has another shape than those before; each row is one conversation")
            parsed = _parse(row, product)
            turns, prompts, names = self._turns(row, parsed, judge)
        except BadRow as error:
            yield None, row.spoilt(error.problem)
            return
        spoke = dict.fromkeys(role for role, _ in turns)
        if judge not in spoke and ("user" not in spoke or "system" in spoke):
            known = known_roles(role for role, _ in turns)
            turns = [(known[role], text) for role, text in turns]
            names = {known[role]: name for role, name in names.items()}
        turns = [(role, text) for role, text in turns if role == judge or text.strip()]
        self._tell_judged(names, judge, tell)
        fields = {key: row.values[key] for key in ("facts", "system") if row.values.get(key) is not None}
        if _is_prompt(fields.get("system")):
            prompts = [read_content(fields.pop("system"))[0] or "", *prompts]
        fields.setdefault("system", row.values.get("model") if isinstance(row.values.get("model"), str) else None)
        fields |= {key: value for key, value in parsed.fields.items() if value is not None}
        if self.system_as_facts and prompts:
            fields["facts"] = [*(fields.get("facts") or ()), *prompts]
        name = next((row.values[key] for key in _IDS if row.values.get(key) is not None), None)
        name = parsed.fields.get("id") or name
        judged = [index for index, (role, _) in enumerate(turns) if role == judge and (index or level == "dialogue")]
        if parsed.last_only:  # what was answered before has a row of its own
            last = parsed.messages[-1] if parsed.messages else Message("", None)
            is_reply = last.text is not None and (self.keep_preambles or not last.calls)
            judged = [turn for turn in judged if is_reply and turn == len(turns) - 1]
            if not judged:
                yield None
                return
        if not judged:
            spoke = dict.fromkeys(role for role, _ in turns)
            way = f"; choose a --judge-role of: {', '.join(spoke) or 'none'}"
            way = ", only an opening turn; drop the conversation" if judge in spoke else way
            yield None, row.spoilt(f"the conversation has no answer of the role {self.judge_role!r}{way}")
            return
        if level == "dialogue":
            sides = {"dialogue": [text for _, text in turns], "speakers": [self._side(role) for role, _ in turns]}
            # An id that nobody gave would pair conversations that have nothing to do with each other.
            values = {**fields, **sides, "id": None if name is None else str(name)}
            yield None, replace(row, values=values)
            return
        roles, texts = zip(*turns, strict=True)
        for index in judged:
            values = {
                **fields,
                "id": name if parsed.last_only else f"{row.number if name is None else name}#{index}",
                "context": CheckedTexts(texts[:index]),
                "speakers": CheckedTexts(roles[:index]),
                "response": turns[index][1],
            }
            if index + 1 < len(turns) and turns[index + 1][0] != turns[index][0]:
                values["following"] = turns[index + 1][1]
            trace = (parsed.trace, turns[index][1]) if parsed.trace else None
            where = row.where if parsed.last_only else f"{row.where}, message {index}"
            yield trace, replace(row, where=where, values=values)

    def _tell_judged(self, names: Mapping[str, str], judge: str, tell: Tell) -> None:
        """Who was taken for the one to judge, where that was guessed, and who else speaks."""
        name = names.get(judge, judge)
        if judge == "assistant" and known_roles([name])[name] not in (judge, "system"):
            others = " or ".join(f"--judge-role {other!r}" for role, other in names.items() if role != judge)
            tell(f"{name!r} is taken for the one to judge; for another speaker pass {others}", "judged")
        further = [repr(other) for role, other in names.items() if role not in (judge, "user") and judge in names]
        if judge == "assistant" and further:
            tell(f"what {' and '.join(further)} says is read as context; to judge it choose a --judge-role", "unjudged")

    def _turns(self, row: RawRow, parsed: Turns, judge: str) -> tuple[list[tuple[str, str]], list[str], dict[str, str]]:
        """Who said what, what the system prompts say, and the name behind each role."""
        if len(parsed.messages) > MAX_TEXTS:
            raise row.bad(f"the conversation has more than {MAX_TEXTS} messages; is this one conversation?")
        turns, prompts, names = [], [], dict[str, str]()
        nobody = aside([role_of(message.role) for message in parsed.messages])
        by_name = judge not in ("user", "assistant") and judge in (role_of(message.name) for message in parsed.messages)
        for index, message in enumerate(parsed.messages):
            who = (by_name and role_of(message.role) not in nobody and message.name) or message.role
            role = role_of(check_text(row.place, f"the role of message {index}", who))
            if message.text is None or (message.calls and not self.keep_preambles):
                continue
            text = check_text(row.place, f"the content of message {index}", message.text)
            if role in nobody & {"system", "developer"} and text.strip():
                prompts.append(text)
            if role not in nobody:
                turns.append((role, text))
                names.setdefault(role, message.name if message.name and not by_name else who)
        return turns, prompts, names

    def _side(self, role: str) -> str:
        """What metrics of conversations know the judged role by; an assistant that is not judged is the other side."""
        if role == role_of(self.judge_role):
            return "assistant"
        return "user" if role == "assistant" else role


def _parse(row: RawRow, product: Product) -> Turns:
    try:
        return product.turns(row.values or {})
    except ValueError as error:
        raise row.bad(str(error)) from None
    except (AttributeError, KeyError, TypeError, IndexError) as error:  # a row of this product that lacks what it has
        raise row.bad(f"the conversation cannot be read ({type(error).__name__}: {error})") from None


def opened(row: RawRow, counts: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[RawRow]:
    """The rows in an export that is one object: an account of chats, a page of traces, the results of a run."""
    counts = counts or is_row
    if row.values is None or counts(row.values):
        yield row
        return
    entries = [entry for listed in _lists(row.values, counts) for entry in listed if isinstance(entry, Mapping)]
    entries = [entry for entry in entries if entry.get("messages") != []]
    if not entries:
        yield row
    for index, entry in enumerate(entries):
        yield RawRow(index, f"{row.where}, chat {index}", entry)


def _lists(
    values: Mapping[str, Any], counts: Callable[[Mapping[str, Any]], bool], depth: int = 4
) -> Iterator[list[Any]]:
    """The lists in an object whose entries are rows; where there are none, those that are nested in it."""
    inside = [value for value in values.values() if isinstance(value, list | Mapping)]
    lists = [value for value in inside if isinstance(value, list)]
    lists = [value for value in lists if any(isinstance(entry, Mapping) and counts(entry) for entry in value[:50])]
    if lists or not depth:
        yield from lists
        return
    for value in inside:
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, Mapping):
                yield from _lists(entry, counts, depth - 1)


def holds_rows(row: RawRow) -> bool:
    """Whether a row is one that is read, or an export of such rows."""
    values = row.values or {}
    return is_row(values) or next(_lists(values, is_row), None) is not None


def is_row(values: Mapping[str, Any]) -> bool:
    """Whether an object is a conversation, a message with its conversation, or a reply."""
    if {"response", "dialogue"} & values.keys() or message_columns(list(values)) or product_of(values):
        return True  # in this order: a hundred products look at a row, and an archive has a first one in each file
    return bool(guess_columns(list(values), [values]))


def read_transcript(text: str) -> Dialogue:
    """One conversation from pasted text; speakers are `user`, `assistant`, or the names that stand there.

    It reads lines that begin with a name (`User: Hi`; lines without one go on with the turn), one turn a line where no
    names stand, and JSON: one conversation of a chat log, as `chats` names its kinds, or its messages alone.

    >>> read_transcript("User: Hi!\\nBot: Hello.").speakers
    ('user', 'assistant')
    """
    value: Any = None
    with suppress(ValueError):
        value = parse_json(text)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping) and product_of(value[0]):
        value = value[0]  # an export of one conversation
    if isinstance(value, list):
        sides = zip(cycle(("user", "assistant")), value, strict=False)
        value = {"messages": [{"role": who, "content": side} if isinstance(side, str) else side for who, side in sides]}
    few = ValueError("the text holds fewer than two turns; write one turn a line, such as User: Hi!")
    if not (isinstance(value, Mapping) and product_of(value)):
        value = {"messages": list(chain.from_iterable(conversations(lines_of(text))))}
        if len(value["messages"]) < 2:
            raise few
    (row,) = Chats().unfold(iter([RawRow(0, "the text", value)]), level="dialogue")
    if row.values is None:
        raise row.bad(row.problem)
    both = zip(row.values["speakers"], row.values["dialogue"], strict=True)
    turns = [(who, text) for who, text in both if text.strip()]
    if len(turns) < 2:
        raise few
    return Dialogue(tuple(text for _, text in turns), speakers=tuple(who for who, _ in turns))


def matching_ids(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ids of two files as they belong together: where none is shared, without the `#4` that a reply of a chat log has.

    The ids stay as they are if they would not meet then either, or would no longer differ within a file.
    """
    if not set(first) & set(second):
        left, right = ([_NUMBER.sub("", name) for name in ids] for ids in (first, second))
        if set(left) & set(right) and len(set(left)) == len(left) and len(set(right)) == len(right):
            return left, right
    return list(first), list(second)


def _is_prompt(system: Any) -> bool:
    """Whether what stands beside the messages instructs a system, as in requests to Claude, and does not name it."""
    if not isinstance(system, str):
        return isinstance(system, list | tuple) and bool(read_content(system)[0])
    return len(system.split()) > 5 or system.rstrip().endswith((".", "!", "?", ":"))


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
    columns_of = [next((known[key] for key in keys if key in known), None) for keys in (_WHOSE, _WHO, _WHAT)]
    columns = known.keys() - {"name", "timestamp", "tool_calls", "attachments"}
    if columns >= {"type", "from", "conversation"}:  # Azure
        return known["conversation"], known["from"], "text"
    others = columns >= {"type", "text", "ts"} or columns >= {"author_id", "author", "content"}  # Slack, Discord
    if others or columns in ({"role", "content"}, {"type", "data"}):
        return columns_of[0] or "", columns_of[1] or known["type"], str(columns_of[2])
    return None if None in columns_of else (columns_of[0], columns_of[1], columns_of[2])  # type: ignore[return-value]


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
            yield replace(row.spoilt(problem), where=f"{row.where}, message {row.number}")
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
    orders_of = {}
    for name, places in whose.groupby(whose).indices.items():
        orders = {_order(way.to_numpy()[places], bool(clocks[places].any())) for way in ways}
        if len(orders) == 1:
            orders_of[str(name)] = orders.pop()
    return orders_of


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
