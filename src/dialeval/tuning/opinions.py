"""What people said of replies: ratings, or which of two replies they prefer. Read, checked, and laid out to fit on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.benchmarks.rowfile import main_aspect
from dialeval.core.exchange import EmptyPolicy, Exchange, a_kind, check_kind, is_absent, zipped
from dialeval.io.files import parse_json
from dialeval.judge import fitting
from dialeval.judge.rule import Vector
from dialeval.readers import Source
from dialeval.readers.rows import Columns, RawRow, required_fields, to_exchange
from dialeval.statistics.bootstrap import Resampled, mean_of, number_groups, spearman_of

#: Fewer opinions, or opinions about fewer contexts, cannot be divided into folds that say anything.
FEWEST, FEWEST_CONTEXTS = 30, 10
#: With fewer, what is found depends on which rows happened to be rated.
ADVISED = 100


@dataclass(frozen=True)
class _Opinions:
    """People's opinions, one per reply or per pair of replies."""

    #: The replies; of pairs all the first ones, then all the second ones.
    exchanges: tuple[Exchange, ...]
    #: What is to be predicted of each opinion.
    targets: Vector
    #: Which opinions are about one context (or one dialogue, where rows name theirs): folds never divide these.
    groups: NDArray[np.intp]
    #: Rows that were left out, by reason.
    dropped: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.groups.max()) + 1


@dataclass(frozen=True)
class Ratings(_Opinions):
    """Rated replies; `targets` are the ratings' mid-ranks, so that any scale will do."""

    #: Single ratings, where there are several of a reply.
    raters: tuple[tuple[float, ...], ...] = ()

    unit = "rated replies"
    measure = "Spearman"
    #: The agreement of a judge that knows nothing.
    chance = 0.0

    def rows_of(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the replies behind some of the opinions: one each."""
        return chosen

    def of_opinions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is known of each reply, as something known of each opinion: the same."""
        return values

    @property
    def outputs(self) -> Vector:
        """What a correction fits to, around zero: the ratings' ranks."""
        return self.targets - 0.5

    def agreement(self, values: Vector, chosen: NDArray[np.intp]) -> Resampled:
        """How far the judge agrees on some, as a function of how often every context is drawn: rank correlation."""
        return spearman_of(values[chosen], self.targets[chosen], self.groups[chosen], self.contexts)


@dataclass(frozen=True)
class Preferences(_Opinions):
    """Pairs of replies; `targets` are 1 where the first is preferred, -1 where the second is, 0 for a tie."""

    unit = "pairs of replies"
    measure = "share of decided pairs ordered alike"
    chance = 0.5

    def rows_of(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Both replies of each pair."""
        return np.concatenate([chosen, chosen + len(self)])

    def of_opinions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much the first reply leads."""
        lead: NDArray[np.float64] = values[: len(self)] - values[len(self) :]
        return lead

    @property
    def outputs(self) -> Vector:
        """Two replies drawn by chance lie a third apart in rank."""
        return self.targets / 3

    def agreement(self, values: Vector, chosen: NDArray[np.intp]) -> Resampled:
        """Share of the pairs that people could decide; a tie of the judge is half right."""
        decided = chosen[self.targets[chosen] != 0]
        right = (1 + np.sign(values[decided]) * self.targets[decided]) / 2
        return mean_of(right, self.groups[decided], self.contexts)


Opinions = Ratings | Preferences


def read_opinions(source: Source, *, empty: EmptyPolicy = "error") -> Opinions:
    """Rows with `rating` or `ratings`, or pairs with `response_a`, `response_b` and `preferred`."""
    columns, rows = source.rated()
    first = next(iter(rows))
    if first.values is not None and columns.name("preferred") in first.values:
        return _pairs(chain([first], rows), columns, empty)
    return _ratings(chain([first], rows), columns, empty)


def enough(opinions: Opinions) -> None:
    """Refuse what nothing can be learned from."""
    if len(opinions) < FEWEST or opinions.contexts < FEWEST_CONTEXTS:
        raise ValueError(
            f"there are {len(opinions)} {opinions.unit} to {opinions.contexts} contexts; "
            f"tuning needs at least {FEWEST} to {FEWEST_CONTEXTS} contexts, better {ADVISED}"
        )
    if isinstance(opinions, Preferences) and not opinions.targets.any():
        raise ValueError("every pair is a tie, so nothing can be learned from them; add pairs with a preference")
    if isinstance(opinions, Ratings) and np.ptp(opinions.targets) == 0:
        raise ValueError(
            "all ratings are the same, so nothing can be learned from them; add replies with other ratings"
        )


@dataclass
class RatedReply:
    """A reply that was judged, in one row or in a row for each rater."""

    exchange: Exchange
    group: str
    #: One number for each row, and everybody's own.
    means: list[float] = field(default_factory=list)
    singles: list[float] = field(default_factory=list)


def _ratings(rows: Iterable[RawRow], columns: Columns, empty: EmptyPolicy) -> Ratings:
    """A reply that stands in several rows is one with several ratings."""
    replies: dict[Any, RatedReply] = {}
    n_rows = 0
    for row in rows:
        _check_row(row, columns, pairs=False)
        exchange = to_exchange(row, columns, empty=empty)
        same = (exchange.context, exchange.response, exchange.facts, exchange.following)
        reply = replies.setdefault(same, RatedReply(exchange, _group(row, columns, exchange)))
        single, several = columns.value(row, "rating"), _several(row, columns.value(row, "ratings"))
        alone = is_absent(single) and several
        reply.means.append(float(np.mean(several)) if alone else _number(row, "rating", single))
        reply.singles.extend(several or reply.means[-1:])
        n_rows += 1
    kept = list(replies.values())
    raters = tuple(tuple(row.singles) for row in kept)
    repeated = n_rows - len(kept)
    return Ratings(
        tuple(row.exchange for row in kept),
        fitting.within_source_ranks(np.array([float(np.mean(row.means)) for row in kept]), ["rated"] * len(kept)),
        number_groups([row.group for row in kept]),
        raters if any(len(given) > 1 for given in raters) else (),
        dropped={"the same reply to the same context, counted as further ratings of it": repeated} if repeated else {},
    )


def _pairs(rows: Iterable[RawRow], columns: Columns, empty: EmptyPolicy) -> Preferences:
    sides = [
        Columns({**columns.mapping, "response": columns.name(name)}, columns.fields)
        for name in ("response_a", "response_b")
    ]
    pairs: list[tuple[Exchange, Exchange, float, str]] = []
    for row in rows:
        _check_row(row, columns, pairs=True)
        first, second = (to_exchange(row, side, empty=empty) for side in sides)
        value = columns.value(row, "preferred")
        preferred = {"a": 1.0, "b": -1.0, "tie": 0.0}.get(str(value).strip().lower())
        if preferred is None:
            raise row.bad(f"preferred is {str(value)[:40]!r}; write a, b or tie")
        pairs.append((first, second, preferred, _group(row, columns, first)))
    return Preferences(
        tuple(first for first, *_ in pairs) + tuple(second for _, second, *_ in pairs),
        np.array([preferred for _, _, preferred, _ in pairs]),
        number_groups([group for *_, group in pairs]),
    )


def _check_row(row: RawRow, columns: Columns, *, pairs: bool) -> None:
    """Refuse a row of the other kind, or one that lacks a column."""
    if row.values is None:
        raise row.bad(row.problem)
    if (columns.name("preferred") in row.values) != pairs:
        problem = "has no preferred" if pairs else "has preferred"
        raise row.bad(f"the row {problem}, unlike the first one; give ratings in one file and preferences in another")
    if absent := columns.missing(row.values, required_fields(columns, row.values, "rated")):
        raise row.bad(absent)


def _group(row: RawRow, columns: Columns, exchange: Exchange) -> str:
    """Rows about one context stay together; where rows name their dialogue, all rows of a dialogue."""
    dialogue = columns.value(row, "dialogue")
    return json.dumps(exchange.context if is_absent(dialogue) else ["dialogue", str(dialogue)])


def _several(row: RawRow, value: Any) -> list[float]:
    """Single ratings: a list or, by aspect, lists or numbers; in a cell of CSV as JSON, or numbers between semicolons.

    Gaps are left out.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = parse_json(value) if value.strip().startswith(("[", "{")) else value.split(";")
        except ValueError:
            raise row.bad("ratings is no JSON; write [4, 5, 3] or 4;5;3") from None
    if is_absent(value):
        return []
    if isinstance(value, Mapping):  # of several aspects the one that stands for the whole, as `agreement` takes it
        rated = {str(aspect): given for aspect, given in value.items() if not is_absent(given) and given != []}
        value = rated[main_aspect(rated)] if rated else []
        value = [value] if isinstance(value, int | float) else value
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise row.bad(f"ratings is {a_kind(value)}; pass a list of numbers, one for each rater")
    given = [(f"ratings[{position}]", rating) for position, rating in enumerate(list(value)) if not is_absent(rating)]
    return [_number(row, name, rating) for name, rating in given]


def _number(row: RawRow, field: str, value: Any) -> float:
    if is_absent(value):
        raise row.bad(f"{field} is missing; give the row a number, or leave it out")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise row.bad(f"{field} is {str(value)[:40]!r}; pass a number") from None
    if not math.isfinite(number):
        raise row.bad(f"{field} is {number}; pass a finite number")
    return number


def as_rows(rows: Any) -> Any:
    """A mapping of columns as a list of rows; anything else as it is."""
    if not isinstance(rows, Mapping):
        return rows
    for name, column in rows.items():
        check_kind(f"the column {name!r}", column, Iterable, "a list with an entry for each row")
    return list(zipped(rows, {}))
