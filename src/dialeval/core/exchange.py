"""An exchange: a context, the response to judge, and what may be known beside them.

This is the one place where input enters. Whatever passes it is well formed, so nothing
behind it checks again; whatever does not is refused with one sentence that names the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from dialeval.io.harmless import VISIBLE, one_line

EmptyPolicy = Literal["error", "score"]
_EMPTY_POLICIES = get_args(EmptyPolicy)
#: How what is blank is let through.
OR_EMPTY = "or score it anyway (empty=score; score, llm-score and tune have --empty)"

#: Turns of a conversation, references of a reply, facts. A dialogue of n turns is judged n times over.
MAX_TEXTS = 5000

#: Python itself refuses to write out integers of some thousand digits.
_LABEL_BITS = 4096


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: a reply of zero-width characters is as silent as one of spaces."""
    return VISIBLE.search(text) is None


def counted(count: int, what: str) -> str:
    """A number of things in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def listing(names: Sequence[str]) -> str:
    """Names in words: "A, B and C"."""
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def a_kind(thing: object) -> str:
    """What a value is, for a sentence: "an int"."""
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument of another kind than is wanted."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {a_kind(value)}; pass {wanted}")


def several_names(name: str, value: object) -> list[str]:
    """An argument that names one thing, or several."""
    check_kind(name, value, Iterable, "a name, or a list of names")
    given = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]  # checked above
    for each in given:
        check_kind(f"a name in {name}", each, str, "texts")
    return given


class BadRow(ValueError):
    """One row of the input cannot be scored; the message names the row and says what to do."""

    def __init__(self, row: int | str, problem: str) -> None:
        self.row = row
        self.problem = one_line(problem)
        super().__init__(one_line(f"row {row}: {problem}"))

    def __reduce__(self) -> tuple[type[BadRow], tuple[int | str, str]]:
        return type(self), (self.row, self.problem)


class CheckedTexts(tuple[str, ...]):
    """Texts that were checked one by one already: of a long conversation each turn is looked at once, not once for each
    reply behind it."""

    __slots__ = ()


def _settle(row: Exchange | Dialogue, *several: str) -> None:
    """Refuse one text where several belong, whose letters would be taken for texts, and drop blank facts, which would
    take a place among the others and move values."""
    if wrong := next((name for name in several if isinstance(getattr(row, name), str)), None):
        raise TypeError(f"{wrong} is a str; pass a tuple of strings")
    facts = tuple(fact for fact in row.facts if not (isinstance(fact, str) and is_blank(fact)))
    if len(facts) < len(row.facts):
        object.__setattr__(row, "facts", facts)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A context, the response to judge, and optionally references, persona facts, system and id.

    `following` is what the other side said next, `speakers` who said each turn of the context. A blank fact is none.
    """

    context: tuple[str, ...]
    response: str
    references: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    system: str | None = None
    id: str | None = None
    following: str | None = None
    speakers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _settle(self, "context", "references", "facts", "speakers")

    @property
    def is_empty(self) -> bool:
        """Whether the response or the whole context is blank."""
        return is_blank(self.response) or all(map(is_blank, self.context))


#: What the judged side is called where speakers are named.
_BOTS = frozenset("system assistant bot model chatbot agent gpt".split())


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A whole dialogue, judged turn by turn unless a metric reads it as a whole."""

    turns: tuple[str, ...]
    facts: tuple[str, ...] = ()
    system: str | None = None
    id: str | None = None
    speakers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _settle(self, "turns", "facts", "speakers")

    @property
    def answers(self) -> list[int]:
        """Places of the turns of the judged side: the bot, if the speakers are named so, else who speaks second."""
        speakers = [name.strip().lower() for name in self.speakers] or [str(n % 2) for n, _ in enumerate(self.turns)]
        names = list(dict.fromkeys(speakers))
        judged = _BOTS.intersection(names) or names[1:2]
        return [turn for turn, name in enumerate(speakers) if name in judged]

    def exchanges(self) -> Iterator[Exchange]:
        """Every turn after the first, by both speakers, with its prefix as context."""
        for turn in range(1, len(self.turns)):
            yield Exchange(self.turns[:turn], self.turns[turn], facts=self.facts, speakers=self.speakers[:turn])


def turn_at(row: Exchange | Dialogue, number: int = -1) -> tuple[str, str]:
    """A turn, the last one unless another is asked for, behind the one before it."""
    turns = row.turns if isinstance(row, Dialogue) else (*row.context, row.response)
    return turns[number - 1] if number % len(turns) else "", turns[number]


def check_empty(empty: object) -> None:
    """Refuse what is no way to treat blank texts."""
    if not isinstance(empty, str) or empty not in _EMPTY_POLICIES:
        raise ValueError(f"empty is {empty!r:.60}; it must be 'error' or 'score'")


def check_exchange(
    row: int | str,
    *,
    response: Any,
    context: Any,
    references: Any = None,
    facts: Any = None,
    system: Any = None,
    id: Any = None,
    following: Any = None,
    speakers: Any = None,
    empty: EmptyPolicy = "error",
) -> Exchange:
    """Turn one row of raw values into an `Exchange`, or raise `BadRow`.

    A context given as a plain string is one turn. `references` may be one string or several. A blank
    `following` is none: nobody said anything. `speakers` are none, or one for each turn of the context.
    With `empty="error"` a blank response or context is refused; with `empty="score"` it passes
    and is counted, because some benchmarks contain systems that stay silent.
    """
    check_empty(empty)
    turns = _texts(row, "context", context, required=True)
    exchange = Exchange(
        context=turns,
        response=check_text(row, "response", response),
        references=_texts(row, "references", references),
        facts=_texts(row, "facts", facts),
        system=_label(row, "system", system),
        id=_label(row, "id", id),
        following=_following(row, following),
        speakers=check_speakers(row, speakers, len(turns), "context"),
    )
    if empty == "error":
        if is_blank(exchange.response):
            raise BadRow(row, f"response is empty; give it text, {OR_EMPTY}")
        if all(map(is_blank, exchange.context)):
            raise BadRow(row, f"context is empty; give at least one turn, {OR_EMPTY}")
    return exchange


def check_dialogue(
    row: int | str,
    *,
    dialogue: Any,
    facts: Any = None,
    system: Any = None,
    id: Any = None,
    speakers: Any = None,
    empty: EmptyPolicy = "error",
) -> Dialogue:
    """Turn raw values into a `Dialogue`, or raise `BadRow`; `empty` is as in `check_exchange`, of every turn."""
    if isinstance(dialogue, str):
        raise BadRow(row, "dialogue is a str; pass a list of strings, one per turn")
    turns = _texts(row, "dialogue", dialogue, required=True)
    if len(turns) < 2:
        raise BadRow(row, f"the dialogue has {counted(len(turns), 'turn')}; it needs at least two")
    blank = next((place for place, turn in enumerate(turns) if is_blank(turn)), None)
    if empty == "error" and blank is not None:
        raise BadRow(row, f"turn {blank} of the dialogue is empty; give it text, {OR_EMPTY}")
    who = check_speakers(row, speakers, len(turns), "dialogue")
    return Dialogue(turns, _texts(row, "facts", facts), _label(row, "system", system), _label(row, "id", id), who)


#: Columns whose field has another name.
_FIELDS = {
    "responses": "response", "contexts": "context", "systems": "system", "ids": "id", "dialogues": "dialogue",
}  # fmt: skip


def exchanges_from_columns(
    responses: Iterable[Any],
    contexts: Iterable[Any],
    references: Iterable[Any] | None = None,
    *,
    facts: Iterable[Any] | None = None,
    systems: Iterable[Any] | None = None,
    ids: Iterable[Any] | None = None,
    following: Iterable[Any] | None = None,
    speakers: Iterable[Any] | None = None,
    empty: EmptyPolicy = "error",
) -> list[Exchange]:
    """Zip parallel columns into checked exchanges; columns of different length are refused."""
    given = {
        "responses": responses, "contexts": contexts, "references": references, "facts": facts, "systems": systems,
        "ids": ids, "following": following, "speakers": speakers,
    }  # fmt: skip
    return [check_exchange(row, **cells, empty=empty) for row, cells in enumerate(zipped(given))]


def zipped(
    given: Mapping[str, Iterable[Any] | None], field_of: Mapping[str, str] = _FIELDS
) -> Iterator[dict[str, Any]]:
    """Parallel columns as one mapping of fields per row; columns of different length are refused."""
    columns = {name: column for name, values in given.items() if (column := _column(name, values)) is not None}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise ValueError(f"columns differ in length: {counts}; give one of each per row")
    fields = [field_of.get(name, name) for name in columns]
    return (dict(zip(fields, cells, strict=True)) for cells in zip(*columns.values(), strict=True))


def check_speakers(row: int | str, speakers: Any, turns: int, of: str) -> tuple[str, ...]:
    """Who said each of so many turns: texts or whole numbers, one for each turn, or none at all."""
    if isinstance(speakers, str | CheckedTexts) or _missing(speakers):
        checked = _texts(row, "speakers", speakers)
    else:
        named = [(f"speakers[{place}]", name) for place, name in enumerate(_items(row, "speakers", speakers))]
        checked = tuple(check_text(row, place, _label(row, place, name)) for place, name in named)
    if checked and len(checked) != turns:
        raise BadRow(row, f"speakers has {len(checked)} entries for {turns} turns of the {of}; give one for each turn")
    return checked


def _following(row: int | str, value: Any) -> str | None:
    if _missing(value):
        return None
    text = check_text(row, "following", value)
    return None if is_blank(text) else text


def _column(name: str, values: Iterable[Any] | None) -> Sequence[Any] | None:
    if values is None:
        if name in ("responses", "contexts", "dialogues"):
            raise ValueError(f"{name} are missing; pass one per row")
        return None
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} is one {type(values).__name__}; pass a list with one entry per row")
    # Mappings and data frames would give their keys, sets an order of their own.
    if not isinstance(values, Iterable) or isinstance(values, Mapping | AbstractSet) or hasattr(values, "columns"):
        raise ValueError(f"{name} is {a_kind(values)}; pass a list with one entry per row")
    try:
        return list(values)
    except TypeError:  # a numpy array without dimensions claims to be iterable
        raise ValueError(f"{name} cannot be iterated over; pass a list with one entry per row") from None


def _missing(value: Any) -> str:
    """What sentences call a value that is none; of others nothing."""
    if value is None:
        return "None"
    return "NaN (a missing value)" if isinstance(value, float) and math.isnan(value) else ""


def is_absent(value: Any) -> bool:
    """Whether a cell of a table holds nothing: None, NaN or no more than white space."""
    return bool(_missing(value)) or (isinstance(value, str) and not value.strip())


def check_text(row: int | str, field: str, value: Any) -> str:
    """A plain string that any file can hold, or `BadRow`."""
    if not isinstance(value, str):
        raise BadRow(row, f"{field} is {_missing(value) or a_kind(value)}; pass a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRow(row, f"{field} holds a lone surrogate at character {error.start}; repair its encoding") from None
    # Sub-classes of str (numpy's, for one) would travel through pickles and JSON differently. An enumeration's
    # own str() is its name, not its text.
    return value if type(value) is str else str.__str__(value)


def _texts(row: int | str, field: str, value: Any, *, required: bool = False) -> tuple[str, ...]:
    if missing := _missing(value):
        if required:
            raise BadRow(row, f"{field} is {missing}; pass a list of strings, one per turn")
        return ()
    if isinstance(value, str):
        return (check_text(row, field, value),)
    if isinstance(value, CheckedTexts):
        return tuple(value)
    return tuple(check_text(row, f"{field}[{place}]", item) for place, item in enumerate(_items(row, field, value)))


def _items(row: int | str, field: str, value: Any) -> list[Any]:
    # A set has no order, and an order that changes from run to run would change the score.
    if not isinstance(value, Iterable) or isinstance(value, Mapping | AbstractSet | bytes | bytearray):
        raise BadRow(row, f"{field} is {a_kind(value)}; pass a list of strings")
    try:
        # One more than are taken, so that what never ends is noticed as well.
        items = list(islice(value, MAX_TEXTS + 1))
    except TypeError:  # a numpy array without dimensions claims to be iterable
        raise BadRow(row, f"{field} is {a_kind(value)} without items; pass a list of strings") from None
    if len(items) > MAX_TEXTS:
        raise BadRow(row, f"{field} has more than {MAX_TEXTS} entries; is this one conversation?")
    return items


def _label(row: int | str, field: str, value: Any) -> str | None:
    if _missing(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > _LABEL_BITS:
            raise BadRow(row, f"{field} is an integer of {value.bit_length()} bits; pass a string")
        return str(value)
    return check_text(row, field, value)
