"""A raw row, the names of its columns, and how it becomes a checked exchange."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dialeval.exchange import (
    BadRow,
    Dialogue,
    EmptyPolicy,
    Exchange,
    check_exchange,
    check_speakers,
    is_blank,
    one_line,
)

FIELDS = (
    "context",
    "response",
    "reference",
    "references",
    "facts",
    "system",
    "id",
    "following",
    "speakers",
    "dialogue",
)
#: What people said of a row; only rated rows have these beside the others.
RATED_FIELDS = ("rating", "ratings", "response_a", "response_b", "preferred")


#: More columns are no table of rows; whoever has them can leave most of them out.
MAX_COLUMNS = 4096
#: Names that are looked through for what somebody may have meant, and how much of each.
_LIKELY_NAMES, _LIKELY_LENGTH = 1000, 100


def check_width(name: str, count: int) -> None:
    """Refuse a table of more columns than tables have, before anything is done for each of them."""
    if count > MAX_COLUMNS:
        raise ValueError(f"{name} has {count} columns, more than {MAX_COLUMNS}; leave out those that are not needed")


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as it was found: its values, or what kept them from being read."""

    number: int
    where: str
    values: Mapping[str, Any] | None = None
    problem: str = ""
    raw: Any = None

    @property
    def place(self) -> str:
        """How messages name the row: its number from 0, and where to find it."""
        return f"{self.number} ({self.where})"

    def bad(self, problem: str) -> BadRow:
        """The error that says what is wrong with this row."""
        return BadRow(self.place, problem)

    @property
    def original(self) -> Any:
        """What a reject file keeps of the row."""
        return self.raw if self.values is None else dict(self.values)


@dataclass(frozen=True)
class Columns:
    """Which column holds which field; a field that is not mapped sits in the column of its own name."""

    mapping: Mapping[str, str]
    fields: tuple[str, ...] = FIELDS

    def __post_init__(self) -> None:
        for field in self.mapping:
            if field not in self.fields:
                hint = f"{_suggest(field, self.fields)}; fields are {', '.join(self.fields)}"
                raise ValueError(f"columns map {field!r}, which is no field{hint}")

    def name(self, field: str) -> str:
        """The column of a field."""
        return self.mapping.get(field, field)

    def wanted(self) -> list[str]:
        """Every column that may be read."""
        return [self.name(field) for field in self.fields]

    def value(self, row: RawRow, field: str) -> Any:
        """The field's value in a row, None if the row has no such column."""
        return None if row.values is None else row.values.get(self.name(field))

    def missing(self, present: Collection[str], required: Collection[str]) -> str:
        """What to say if a required column, or one that was mapped by hand, is absent; else nothing."""
        for field in (*required, *self.mapping):
            column = self.name(field)
            if column not in present:
                there = ", ".join(str(name)[:40] for name in islice(present, 20)) or "none"
                hint = _suggest(column, [str(name) for name in islice(present, _LIKELY_NAMES)])
                return one_line(
                    f"column {column!r} is missing{hint}; there are: {there}; rename it or map it: {field}=COLUMN"
                )
        return ""


def required_fields(columns: Columns, present: Collection[str], level: str) -> tuple[str, ...]:
    """What a row must have: a dialogue may also come as a context and the response that ends it.

    A rated row has one reply with a rating or several, or two replies and which of them is preferred.
    """
    if level == "rated":
        if columns.name("preferred") in present:
            return ("context", "response_a", "response_b", "preferred")
        return ("context", "response", "ratings" if columns.name("ratings") in present else "rating")
    if level == "dialogue" and columns.name("response") not in present:
        return ("dialogue",)
    return ("context", "response")


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
        raise row.bad("there is no reference, and a metric that was asked for compares with one; add it")
    return exchange


def to_dialogue(row: RawRow, columns: Columns, *, empty: EmptyPolicy) -> Dialogue:
    """Check a row that holds a dialogue, or a context and the response that ends it."""
    values = _present(row, columns, "dialogue")
    turns = values["dialogue"]
    if turns is None:
        context, last = values["context"], values["response"]
    elif isinstance(turns, list | tuple):
        if len(turns) < 2:
            raise row.bad(f"the dialogue has {len(turns)} turns; it needs at least two")
        context, last = turns[:-1], turns[-1]
    else:
        raise row.bad(f"dialogue is a {type(turns).__name__}; pass a list of strings, one per turn")
    checked = check_exchange(
        row.place,
        response=last,
        context=context,
        facts=values["facts"],
        system=values["system"],
        id=values["id"],
        empty=empty,
    )
    whole = (*checked.context, checked.response)
    if len(whole) < 2:
        raise row.bad("the dialogue has 1 turn; it needs at least two")
    blank = next((at for at, turn in enumerate(whole) if is_blank(turn)), None)
    if empty == "error" and blank is not None:
        raise row.bad(f'turn {blank} of the dialogue is empty; give it text, or pass empty="score"')
    speakers = check_speakers(row.place, values["speakers"], len(whole), "dialogue")
    return Dialogue(whole, checked.facts, checked.system, checked.id, speakers)


def _present(row: RawRow, columns: Columns, level: str) -> dict[str, Any]:
    if row.values is None:
        raise row.bad(row.problem)
    if absent := columns.missing(row.values, required_fields(columns, row.values, level)):
        raise row.bad(absent)
    return {field: columns.value(row, field) for field in FIELDS}


def _references(row: RawRow, values: Mapping[str, Any]) -> Any:
    one, several = values["reference"], values["references"]
    if one is not None and several is not None:
        raise row.bad("both reference and references are given; keep one of them")
    return several if one is None else one


def _suggest(name: str, known: Collection[str]) -> str:
    there = [one[:_LIKELY_LENGTH] for one in islice(known, _LIKELY_NAMES)]
    close = difflib.get_close_matches(name[:_LIKELY_LENGTH], there, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
