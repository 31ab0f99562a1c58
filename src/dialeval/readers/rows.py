"""A raw row: its columns, guessed where need be, its bounds, the checked exchange it becomes, where bad rows go."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from dialeval.core.exchange import BadRow, Dialogue, EmptyPolicy, Exchange, check_dialogue, check_exchange, check_kind
from dialeval.io.harmless import one_line
from dialeval.readers.chats import messages_of, product_of
from dialeval.readers.chats.messages import as_json, holds_objects, role_of
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

    def spoilt(self, problem: str) -> RawRow:
        """The same row, which this keeps from being read."""
        return RawRow(self.number, self.where, problem=problem, raw=self.original)

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


def ending(path: Path) -> str:
    """The ending of a file's name in small letters, packed or not; empty where it has none."""
    return next((suffix for suffix in map(str.lower, reversed(path.suffixes)) if suffix != ".gz"), "")


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
        check_kind("columns", self.mapping, Mapping, "a mapping of fields to columns, such as {'response': 'reply'}")
        for field, column in self.mapping.items():
            check_kind(f"the column of {field}", column, str, "its name")
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
                listed = ", ".join(str(name)[:40] for name in list(present)[:20]) or "none"
                hint = _suggest(column, [str(name)[:100] for name in present])
                level = _CONVERSATIONS if field == "dialogue" else _NO_REPLIES if "dialogue" in present else ""
                level = level or (_MESSAGES if _OF_LOGS & set(present) else "")
                return one_line(
                    f"column {column!r} is missing{hint}; the columns are: {listed}; rename one or map it: "
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
    reference = values.pop("reference")
    if reference is not None and values["references"] is not None:
        raise row.bad("both reference and references are given; keep one of them")
    fields = ("response", "context", "facts", "system", "id", "following", "speakers", "references")
    values["references"] = values["references"] if reference is None else reference
    exchange = check_exchange(row.place, **{field: values[field] for field in fields}, empty=empty)
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
            messages = [(message.role, message.text) for message in messages_of(context)]
        except ValueError:  # a turn that is no message is told by its place
            messages = []
        if not messages and all(isinstance(turn, list | tuple) and len(turn) == 2 for turn in context):
            messages = [(who, turn) for pair in context for who, turn in zip(("user", "assistant"), pair, strict=True)]
        if messages:
            return [turn for _, turn in messages if turn], [role_of(who) for who, turn in messages if turn]
    return context, []


def reply_in(value: Any) -> str | None:
    """The text of a list that holds one message, as data sets for training hold a reply."""
    try:
        (message,) = messages_of(value)
    except ValueError:
        return None
    return message.text


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
            # ASCII only, so that lone surrogates survive; NaN and infinities, which JSON lacks, become text.
            text = json.dumps(json.loads(json.dumps(record, default=repr), parse_constant=str))
            self._stream.write(text.encode() + b"\n")

    def close(self) -> None:
        """Write out what is buffered."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> Rejects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: Which of the columns that are there are to be read.
Choice = Callable[[Sequence[str]], Sequence[str]]
#: A row that differs from others takes a byte at least; so many may be alike.
MANY = 1_000_000


@dataclass(frozen=True)
class Bounds:
    """What is read of one input; more stops the run."""

    #: Bytes or characters after unpacking, of all rows together.
    data: int = 64 * 2**30
    rows: int = 10**9
    #: Bytes or characters of a row, and of what cannot be read row by row: a JSON array, one conversation of a text.
    whole: int = 64 * 2**20
    #: Bytes of the parts of an Excel file.
    workbook: int = 2**30

    def check(self, name: str, *, data: int = 0, rows: int = 0) -> None:
        """Refuse an input that is larger."""
        if data > self.data:
            raise ValueError(f"{name} unpacks to more than {megabytes(self.data)}; split it, or take fewer rows")
        if rows > self.rows:
            raise ValueError(f"{name} has more than {self.rows:,} rows; split it, or take fewer rows")

    @property
    def too_long(self) -> str:
        """What is said of a row."""
        return f"takes more than {megabytes(self.whole)}; is it one conversation?"


#: What everything but a page for the public reads.
USUAL = Bounds()
#: What is read of a file that is held as a whole: scores, a benchmark.
HELD = Bounds(data=2**31, rows=2_000_000)


def megabytes(count: int) -> str:
    """A bound in words."""
    return f"{count // 2**20:,} MB"


def bounded(rows: Iterator[RawRow], name: str, bounds: Bounds) -> Iterator[RawRow]:
    """The rows, as long as they are not too many and their texts not too long together."""
    data = 0
    for count, row in enumerate(rows, start=1):
        data += (size := size_of(row.values or row.raw))
        bounds.check(name, data=data, rows=count)
        yield row if size <= bounds.whole else RawRow(row.number, row.where, problem=f"the row {bounds.too_long}")


#: What a part of a row counts for beside its characters: as a value of Python it takes some times as much.
PART = 16


def size_of(value: object) -> int:
    """Characters of all texts in a value, and what each part takes; nothing here can be nested too deeply."""
    total, left = 0, [value]
    while left:
        inner = left.pop()
        if isinstance(inner, str | bytes):
            total += len(inner)
        elif isinstance(inner, Mapping):
            left += inner.keys()
            left += inner.values()
        elif isinstance(inner, list | tuple):
            left += inner
        total += PART
    return total


#: Names of a field in the files of common tools, the likeliest first; compared without case, blanks and marks.
_NAMES: Mapping[str, str] = {
    "response": "response reply botreply botresponse botmsg botmessage modelresponse modeloutput assistant "
    "modelanswer predictedanswer generatedanswer assistantresponse assistantmessage bot fulfillmenttext completion "
    "prediction predicted generation generated output hypothesis answer",
    MESSAGE: "usermsg usermessage userinput userquery user message prompt question query querytext input instruction "
    "utterance",
    "context": "context contexts history chathistory dialoghistory dialoguehistory conversationhistory messages prompt",
    "reference": "reference groundtruth gold expected expectedoutput target referenceanswer goldanswer answer",
    "references": "references",
    "system": "system model modelname botname",
    "id": "id rowid conversationid messageid uid",
    "facts": "facts persona knowledge",
    "following": "following nextturn nextusermessage",
    "speakers": "speakers",
}


_TEXTS = ("content", "text", "output", "answer", "message", "messages", "choices", "response", "value")


def guess_columns(names: Sequence[str], first_rows: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Field to column, for the fields that the names tell; empty where no context or no response can be told.

    `message` is the last turn of the context where the history has a column of its own, or where there is no history.
    Cells of `first_rows` that cannot be what the name says (a number as a reply) keep a column from being taken.

    >>> guess_columns(["history", "user_msg", "bot_reply"])
    {'response': 'bot_reply', 'message': 'user_msg', 'context': 'history'}
    """
    plain = ((name, "".join(filter(str.isalnum, name.casefold()))) for name in reversed(names) if name.isprintable())
    known = {letters: name for name, letters in plain}
    guessed: dict[str, str] = {}
    for field, aliases in _NAMES.items():
        for alias in aliases.split():
            column = known.get(alias)
            if column is not None and column not in guessed.values() and _fits(field, alias, column, first_rows):
                guessed[field] = column
                break
    if "response" not in guessed or not {"context", MESSAGE} & guessed.keys():
        return {}
    if guessed.get("context") in ("context", "contexts") and MESSAGE in guessed:
        del guessed[MESSAGE]  # a context is whole; only a history lacks the message that was answered
    if "reference" in guessed and "references" in guessed:
        del guessed["reference"]
    return guessed


def _fits(field: str, alias: str, column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    cells = [cell for row in rows if (cell := row.get(column)) is not None]
    if field == "response":
        return all(isinstance(cell, str) or reply_in(cell) for cell in cells)
    if field in (MESSAGE, "following"):
        return all(isinstance(cell, str) for cell in cells) and (not cells or any(map(str.strip, cells)))
    if field in ("system", "id"):
        return all(isinstance(cell, str | int) for cell in cells)
    if alias in ("messages", "prompt"):  # a history only where it holds messages
        return bool(cells) and all(isinstance(cell, list | tuple) for cell in cells)
    return all(isinstance(cell, str | list | tuple) for cell in cells)


_LABEL = re.compile(r"\A\s*(\w{2,20}):(?!//)\s?\S")


def not_a_text(texts: Sequence[str], field: str, column: str) -> str:
    """What to say where all of these are JSON, or begin with one label; empty where they are what somebody said."""
    texts = [text for text in texts if text.strip()]
    inside = [as_json(text) for text in texts]
    if texts and all(map(holds_objects, inside)):
        path = _path_of_text(inside[0])
        way = f"name the text in it: --columns {field}={column}{path}" if path else "write its text into a column"
        return f"{field} is JSON, not a text; {way}"
    labels = {label[1] if (label := _LABEL.match(text)) else "" for text in texts}
    if len(labels) == 1 and "" not in labels:
        (name,) = labels
        if len(texts) > 2 or name.casefold() in {"text", *_NAMES["response"].split()}:
            return (
                f"every {field} begins with {name + ':'!r}, which nobody said; take the label away, or write each "
                "conversation as lines of `User: ...` and `Bot: ...` in a file .txt"
            )
    return ""


def _path_of_text(value: Any) -> str:
    """Where the text stands in what JSON holds, if there is one; the last entry of a list answers."""
    if isinstance(value, list):
        return f"[-1]{_path_of_text(value[-1])}" if value and isinstance(value[-1], Mapping) else ""
    for name in _TEXTS:
        if isinstance(value.get(name), str):
            return f".{name}"
        if isinstance(value.get(name), Mapping | list) and (path := _path_of_text(value[name])):
            return f".{name}{path}"
    return ""
