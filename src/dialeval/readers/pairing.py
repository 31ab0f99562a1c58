"""Which rows of two systems answer the same context."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialeval.core.cautions import ENGLISH, language_of
from dialeval.core.exchange import Dialogue, Exchange, check_kind
from dialeval.readers import Source, matching_ids, reply_text
from dialeval.readers.frames import is_table, source_of
from dialeval.statistics.bootstrap import number_groups

#: A file, standard input, a data set, a data frame, rows as mappings, or exchanges.
Rows = str | Path | Source | Iterable[Mapping[str, Any]] | Sequence[Exchange] | Any


#: `turn` compares replies, `dialogue` whole conversations.
ItemLevel = Literal["turn", "dialogue"]
#: Share of the rows of either side that has to have a partner.
MIN_COVERAGE = 0.9


@dataclass(frozen=True)
class Side:
    """One of two systems: its rows' ids, or None where not all have one, and their contexts, None where not known."""

    name: str
    ids: Sequence[str] | None
    contexts: Sequence[Hashable | None]

    @classmethod
    def of(cls, rows: Sequence[Exchange], name: str) -> Side:
        """Of checked rows."""
        ids = [row.id for row in rows if row.id is not None]
        return cls(name, ids if len(ids) == len(rows) else None, [(row.context, row.facts) for row in rows])


@dataclass(frozen=True)
class Pairs:
    """Positions of rows that belong together, and which of them share a context."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    #: A number per pair; equal numbers, equal contexts.
    groups: NDArray[np.intp]
    #: `id`, `position` or `context`.
    by: str
    #: Rows of both sides.
    n_rows: tuple[int, int]
    names: tuple[str, str]

    def keep(self, known: NDArray[np.bool_]) -> Pairs:
        """Only these pairs."""
        groups = np.unique(self.groups[known], return_inverse=True)[1].astype(np.intp)
        return replace(self, first=self.first[known], second=self.second[known], groups=groups)

    @property
    def n_groups(self) -> int:
        """How many different contexts there are."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def alone(self) -> int:
        """Rows of either side that have no partner."""
        return sum(self.n_rows) - 2 * len(self.first)

    @property
    def note(self) -> str:
        """How many rows were left out; empty where all have a partner."""
        counts = " and ".join(
            f"{n - len(self.first)} of {n} in {name}" for n, name in zip(self.n_rows, self.names, strict=True)
        )
        return f"rows without a partner were left out: {counts}" if self.alone else ""

    def check(self, allow_missing: bool = False) -> Pairs:
        """Refuse pairs that leave out more than a tenth of the rows of one side."""
        if not allow_missing and len(self.first) < MIN_COVERAGE * max(self.n_rows):
            raise ValueError(
                f"{self.note}; more than {1 - MIN_COVERAGE:.0%} are missing. Give both the same rows, or allow it "
                "(allow_missing; in the command --allow-missing)"
            )
        return self


def lost(present: NDArray[np.bool_], what: str, allow_missing: bool) -> list[str]:
    """What to tell of rows that lack something; more than a tenth are refused as rows without a partner are."""
    message = f"{what}: {int((~present).sum())} of {len(present)}"
    if present.sum() < MIN_COVERAGE * len(present) and not allow_missing:
        raise ValueError(
            f"{message}; more than {1 - MIN_COVERAGE:.0%} are missing. Add them, or allow it (allow_missing; in the "
            "command --allow-missing)"
        )
    return [] if present.all() else [message]


def check_level(level: object) -> None:
    """Refuse what is none."""
    if not isinstance(level, str) or level not in get_args(ItemLevel):
        raise ValueError(f"level is {level!r:.60}; it must be {' or '.join(get_args(ItemLevel))}")


def read_items(rows: Rows, level: ItemLevel = "turn", columns: Mapping[str, str] | None = None) -> list[Any]:
    """Checked replies, or whole conversations. Blank ones are scored: who falls silent must not pass for want of rows.

    `columns` maps a field to the column that holds it where names differ; a `Source` has such a mapping of its own.
    """
    check_level(level)
    if isinstance(rows, Source):
        items = rows.dialogues(empty="score") if level == "dialogue" else rows.exchanges(empty="score")
        return [item for _, item in items]
    if is_table(rows):
        return read_items(source_of(rows, columns), level)
    check_kind("rows", rows, Iterable, "a file, a data frame, mappings or exchanges")
    held: list[Any] = list(rows)  # type: ignore[arg-type]  # checked above
    if held and all(isinstance(row, Dialogue if level == "dialogue" else Exchange) for row in held):
        return held
    return read_items(Source(held, columns={} if columns is None else columns), level)


def read_counted(rows: Rows, level: ItemLevel, columns: Mapping[str, str] | None = None) -> tuple[list[Any], int]:
    """The same, and how many there are with those that the source leaves out for their language."""
    if not (isinstance(rows, Source) and rows.other_languages == "skip"):
        items = read_items(rows, level, columns)
        return items, len(items)
    items = read_items(replace(rows, other_languages="mark"), level)
    return [item for item in items if language_of(reply_text(item)) in ("", ENGLISH)], len(items)


def pair_conversations(first: Sequence[Dialogue], second: Sequence[Dialogue], names: tuple[str, str]) -> Pairs | None:
    """Pair conversations where any id stands on both sides; else none belong together, and each stands for itself.

    What pairs leave out counts as with replies: a system must not pass for want of its worst conversations.
    """
    ids = [[row.id for row in rows if row.id is not None] for rows in (first, second)]
    if any(len(set(keys)) < len(rows) for keys, rows in zip(ids, (first, second), strict=True)):
        return None
    matched = matching_ids(*ids)
    if not set(matched[0]) & set(matched[1]):
        return None
    return pair_sides(*(Side(name, keys, [None] * len(keys)) for name, keys in zip(names, ids, strict=True)))


def files_by_name(texts: Iterable[str | Path]) -> dict[str, str]:
    """Files by the names of their systems: each text is NAME=FILE, or a file that is named up to its first dot."""
    files: dict[str, str] = {}
    for text in map(str, texts):
        name, equals, file = text.partition("=")
        if not (equals and name and "/" not in name):
            name, file = Path(text).name.split(".")[0], text
        if name in files:
            raise ValueError("two files have the same name; name each system: NAME=FILE")
        files[name] = file
    return files


def pair(first: Sequence[Exchange], second: Sequence[Exchange], names: tuple[str, str]) -> Pairs:
    """Pair rows by their ids where all have one, else by position, where all contexts must be equal.

    Raises ValueError where it is not sure that two rows answer the same context.
    """
    return pair_sides(Side.of(first, names[0]), Side.of(second, names[1]))


def pair_by_context(first: Sequence[Exchange], second: Sequence[Exchange], names: tuple[str, str]) -> Pairs:
    """Pair rows by their contexts; of several replies to one context the first with the first."""
    first_side, second_side = Side.of(first, names[0]), Side.of(second, names[1])
    waiting: dict[Hashable, list[int]] = {}
    for place, context in enumerate(second_side.contexts):
        waiting.setdefault(context, []).append(place)
    matched: list[tuple[int, int]] = []
    for index, context in enumerate(first_side.contexts):
        if left := waiting.get(context):
            matched.append((index, left.pop(0)))
    if not matched:
        raise ValueError(f"{names[0]} and {names[1]} share no context; compare systems on the same contexts")
    return _pairs(first_side, second_side, matched, "context")


def pair_sides(first: Side, second: Side) -> Pairs:
    """The same for whatever has ids or contexts; contexts that only one side knows are not compared."""
    if first.ids is not None and second.ids is not None:
        return _by_id(first, second)
    if len(first.contexts) != len(second.contexts):
        raise ValueError(
            f"{first.name} has {len(first.contexts)} rows and {second.name} has {len(second.contexts)}, and not all of "
            "them have an id; give rows that answer the same context the same id"
        )
    if None in first.contexts or None in second.contexts:
        raise ValueError(
            f"{first.name} and {second.name} have no ids, and score files have no contexts; pass the files that were "
            "scored (rows; in the command --rows OLD_ROWS --rows NEW_ROWS), or add ids"
        )
    for row, (context, other) in enumerate(zip(first.contexts, second.contexts, strict=True)):
        if context != other:
            raise ValueError(
                f"row {row} of {first.name} and of {second.name} have different contexts; give rows that answer the "
                "same context the same id"
            )
    return _pairs(first, second, [(index, index) for index in range(len(first.contexts))], "position")


def _by_id(first: Side, second: Side) -> Pairs:
    ids = matching_ids(first.ids or (), second.ids or ())
    places = [_places(keys, side.name) for keys, side in zip(ids, (first, second), strict=True)]
    matched = [(row, places[1][key]) for key, row in places[0].items() if key in places[1]]
    if not matched:
        raise ValueError(
            f"{first.name} and {second.name} share no row id; give rows that answer the same context the same id"
        )
    for row, other in matched:
        contexts = first.contexts[row], second.contexts[other]
        if None not in contexts and contexts[0] != contexts[1]:
            raise ValueError(
                f"the rows with the id {ids[0][row]!r} of {first.name} and {second.name} have different contexts; "
                "conversations that went on differently are compared as a whole (level dialogue)"
            )
    return _pairs(first, second, matched, "id")


def _pairs(first: Side, second: Side, matched: Sequence[tuple[int, int]], by: str) -> Pairs:
    left, right = np.array(matched, dtype=np.intp).reshape(-1, 2).T
    keys: list[Hashable] = []
    for a, b in matched:
        context = second.contexts[b] if first.contexts[a] is None else first.contexts[a]
        keys.append(("row", a) if context is None else ("context", context))  # one of its own where it is not known
    n_rows = len(first.contexts), len(second.contexts)
    return Pairs(left, right, number_groups(keys), by, n_rows, (first.name, second.name))


def _places(ids: Sequence[str], name: str) -> dict[str, int]:
    places: dict[str, int] = {}
    for index, key in enumerate(ids):
        if key in places:
            raise ValueError(f"rows {places[key]} and {index} of {name} have the same id {key!r}; ids must differ")
        places[key] = index
    return places


def context_numbers(rows: Sequence[Exchange | Dialogue]) -> NDArray[np.intp]:
    """A number per row; equal numbers, equal contexts and facts. Every conversation is one of its own."""
    return number_groups([n if isinstance(row, Dialogue) else (row.context, row.facts) for n, row in enumerate(rows)])
