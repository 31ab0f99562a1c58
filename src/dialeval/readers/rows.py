"""A raw row, the names of its columns, how it becomes a checked exchange, and where bad rows go."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from dialeval.core.exchange import (
    BadRow,
    Dialogue,
    EmptyPolicy,
    Exchange,
    check_dialogue,
    check_exchange,
)
from dialeval.io.harmless import one_line
from dialeval.readers.chats import messages_of, product_of
from dialeval.readers.chats.base import as_json, role_of
from dialeval.readers.transcripts import is_transcript, turns_of

FIELDS = (
    "context", "response", "reference", "references", "facts", "system", "id", "following", "speakers", "dialogue",
)  # fmt: skip
#: The last turn of the context where it has a column of its own, beside the history; read only where it is mapped.
MESSAGE = "message"
#: Where the messages of a conversation stand, if that is mapped.
MESSAGES = "messages"
#: What to do about rows without conversations where these are to be judged.
_CONVERSATIONS = (
    "; for single replies leave out the level dialogue; a conversation is one row with a list dialogue or messages, "
    "or a row for each message with conversation_id, role and content"
)
#: The other way round.
_NO_REPLIES = "; for whole conversations choose the level dialogue"
#: What to do about logs that are read in no other way.
_MESSAGES = "; a chat log is one row with a list messages of {role, content}, or a row for each message"
#: By which columns such a log is known.
_OF_LOGS = frozenset("text content type data kwargs turns queryResult".split())
#: Ratings; only rated rows have these beside the others.
RATED_FIELDS = ("rating", "ratings", "response_a", "response_b", "preferred")


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as it was found: its values, or what kept them from being read."""

    number: int
    where: str
    values: Mapping[str, Any] | None = None
    problem: str = ""
    raw: Any = None
    #: A key that stands twice in the JSON object; the last value counts.
    duplicate: str = ""

    @property
    def place(self) -> str:
        """How messages name the row: its number from 0, and where to find it."""
        return f"{self.number} ({self.where})"

    def bad(self, problem: str) -> BadRow:
        """The error that says what is wrong with this row."""
        return BadRow(self.place, problem)

    @property
    def is_reply(self) -> bool:
        """Whether the row has the fields of a reply or a dialogue, and is not a conversation of a chat log."""
        names = set(self.values or ())
        if "dialogue" in names or {"context", "response"} <= names:
            return True
        return "response" in names and product_of(self.values or {}) is None

    @property
    def original(self) -> Any:
        """What a reject file keeps of the row."""
        return self.raw if self.values is None else dict(self.values)


_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")


def root_of(path: str) -> str:
    """The column in which a path begins: `outputs` of `outputs.messages[-1].content`."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def lookup(values: Mapping[str, Any], path: str) -> Any:
    """What stands in a column, or where a path leads through objects, lists and cells of JSON; None for nothing."""
    if path in values or root_of(path) == path:
        return values.get(path)
    value: Any = values
    for name, place in _STEP.findall(path):
        value = as_json(value)
        if place and isinstance(value, list | tuple) and -len(value) <= int(place) < len(value):
            value = value[int(place)]
        else:
            value = value.get(name) if name and isinstance(value, Mapping) else None
    return value


@dataclass(frozen=True)
class Columns:
    """Which column holds which field; a field that is not mapped sits in the column of its own name."""

    mapping: Mapping[str, str]
    fields: tuple[str, ...] = FIELDS

    def __post_init__(self) -> None:
        for field in self.mapping:
            if field not in (*self.fields, MESSAGE, MESSAGES):
                hint = f"{_suggest(field, self.fields)}; the fields are {', '.join((*self.fields, MESSAGES))}"
                raise ValueError(f"{field!r} is not a field{hint}")

    @cached_property
    def names(self) -> dict[str, str]:
        """The column of every field."""
        return {field: self.name(field) for field in (*self.fields, *({MESSAGE} & self.mapping.keys()))}

    def name(self, field: str) -> str:
        """The column of a field."""
        return self.mapping.get(field, field)

    @cached_property
    def wanted(self) -> frozenset[str]:
        """Every column that may be read; of a path, where it begins."""
        return frozenset({*self.names.values(), *map(root_of, self.names.values())})

    def value(self, row: RawRow, field: str) -> Any:
        """The field's value in a row, None if the row has no such column."""
        return None if row.values is None else lookup(row.values, self.names.get(field) or self.name(field))

    def missing(self, present: Collection[str], required: Collection[str]) -> str:
        """What to say if a required column, or one that was mapped by hand, is absent; else nothing."""
        for field in (*required, *self.mapping):
            column = self.name(field)
            if column not in present and root_of(column) not in present:
                there = ", ".join(str(name)[:40] for name in list(present)[:20]) or "none"
                hint = _suggest(column, [str(name)[:100] for name in present])
                level = _CONVERSATIONS if field == "dialogue" else _NO_REPLIES if "dialogue" in present else ""
                level = level or (_MESSAGES if _OF_LOGS & set(present) else "")
                return one_line(
                    f"column {column!r} is missing{hint}; the columns are: {there}; rename one or map it: "
                    f"{field}=COLUMN{level}"
                )
        return ""


def required_fields(columns: Columns, present: Collection[str], level: str) -> tuple[str, ...]:
    """What a row must have. A rated one has one reply with a rating or several, or two replies and which is preferred.

    A context and a response are a single reply, never a conversation.
    """
    if level == "dialogue":
        return ("dialogue",)
    context = MESSAGE if MESSAGE in columns.mapping and columns.name("context") not in present else "context"
    if level == "rated":
        if columns.name("preferred") in present:
            return (context, "response_a", "response_b", "preferred")
        return (context, "response", "ratings" if columns.name("ratings") in present else "rating")
    return (context, "response")


def to_exchange(row: RawRow, columns: Columns, *, empty: EmptyPolicy, needs: Collection[str] = ()) -> Exchange:
    """Check a raw row, or raise `BadRow`."""
    values = _present(row, columns, "turn")
    exchange = check_exchange(
        row.place,
        response=values["response"],
        context=values["context"],
        references=_references(row, values),
        facts=values["facts"],
        system=values["system"],
        id=values["id"],
        following=values["following"],
        speakers=values["speakers"],
        empty=empty,
    )
    if "references" in needs and not exchange.references:
        raise row.bad("the reference is missing, and one of the metrics needs it; add it")
    return exchange


def to_dialogue(row: RawRow, columns: Columns, *, empty: EmptyPolicy) -> Dialogue:
    """Check a row that holds a dialogue."""
    values = _present(row, columns, "dialogue")
    fields = ("dialogue", "facts", "system", "id", "speakers")
    checked = check_dialogue(row.place, **{field: values[field] for field in fields}, empty=empty)
    if len(set(checked.speakers)) == 1:
        raise row.bad(f"only {checked.speakers[0]!r} speaks in the dialogue; a conversation has two sides")
    return checked


def _present(row: RawRow, columns: Columns, level: str) -> dict[str, Any]:
    if row.values is None:
        raise row.bad(row.problem)
    if absent := columns.missing(row.values, required_fields(columns, row.values, level)):
        raise row.bad(absent)
    values = {field: columns.value(row, field) for field in FIELDS}
    for field in ("response", "context", MESSAGE):
        path = columns.mapping.get(field, "")
        if path and path not in row.values and columns.value(row, field) is None:
            raise row.bad(f"{field}: {path} leads nowhere in this row; name where its text stands")
    if isinstance(values["response"], list | tuple) and (reply := reply_in(values["response"])) is not None:
        values["response"] = reply
    values["context"], speakers = _turns(values["context"])
    if MESSAGE in columns.mapping:
        message = columns.value(row, MESSAGE)
        if not values["context"] and isinstance(message, str) and is_transcript(message):  # a prompt with its history
            values["context"], speakers = _turns(message)
        else:
            values["context"] = [*(values["context"] or ()), message]
            speakers = [*speakers, "user"] if speakers else []
    values["speakers"] = values["speakers"] or speakers or None
    return values


def _turns(context: Any) -> tuple[Any, list[str]]:
    """A history as chat libraries hold it, as turns and speakers: messages with roles, pairs of turns, a transcript."""
    text = context[0] if isinstance(context, list | tuple) and len(context) == 1 else context  # a CSV cell
    if isinstance(text, str) and is_transcript(text):
        turns = turns_of(text)
        if not turns[-1][1]:  # "Assistant:" asks for the reply
            turns = turns[:-1]
        return [turn for _, turn in turns], [who for who, _ in turns]
    if isinstance(context, list | tuple) and context and not isinstance(context[0], str):
        try:
            said = [(message.role, message.text) for message in messages_of(context)]
        except ValueError:  # a turn that is no message is told by its place
            said = []
        if not said and all(isinstance(turn, list | tuple) and len(turn) == 2 for turn in context):
            said = [(who, turn) for pair in context for who, turn in zip(("user", "assistant"), pair, strict=True)]
        if said:
            return [turn for _, turn in said if turn], [role_of(who) for who, turn in said if turn]
    return context, []


def reply_in(value: Any) -> str | None:
    """The text of a list that holds one message, as data sets for training hold a reply."""
    try:
        (message,) = messages_of(value)
    except ValueError:
        return None
    return message.text


def _references(row: RawRow, values: Mapping[str, Any]) -> Any:
    single, several = values["reference"], values["references"]
    if single is not None and several is not None:
        raise row.bad("both reference and references are given; keep one of them")
    return several if single is None else single


def _suggest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:100], known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


class Rejects:
    """Counts bad rows and, given a path or a stream, writes each as a JSON line: number, place, problem, values.

    The file is there from the beginning, so that an empty one says that nothing was set aside.
    """

    def __init__(self, target: str | Path | BinaryIO | None = None) -> None:
        self.count = 0
        self.first: str | None = None
        self._stream = Path(target).open("wb") if isinstance(target, str | Path) else target  # noqa: SIM115

    def add(self, row: RawRow, error: BadRow) -> None:
        """Set one row aside."""
        self.count += 1
        self.first = self.first or str(error)
        if self._stream is not None:
            record = {"row": row.number, "where": row.where, "problem": error.problem, "raw": row.original}
            self._stream.write(_strict_json(record).encode() + b"\n")

    def close(self) -> None:
        """Write out what is buffered."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> Rejects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _strict_json(value: Any) -> str:
    # ASCII only, so that lone surrogates survive; NaN and infinities, which JSON lacks, become text.
    text = json.dumps(value, default=repr)
    try:
        json.dumps(value, default=repr, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(text, parse_constant=str))
    return text
