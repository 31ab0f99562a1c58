"""What a metric is.

A metric declares its level, direction, range and needs; nobody has to guess them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import (
    BadRow,
    Dialogue,
    EmptyPolicy,
    Exchange,
    check_dialogue,
    counted,
    exchanges_from_columns,
    zipped,
)
from dialeval.core.scores import Scores, Signature, Statement
from dialeval.readers.frames import exchanges_of, is_table

Scale = Literal["native", "human_percentile"]


class CannotGoOn(ValueError):
    """A metric has to stop: what kept it from judging these rows would keep it from judging any, for now."""


class Level(StrEnum):
    """What one value of a metric judges."""

    TURN = "turn"
    DIALOGUE = "dialogue"
    SYSTEM = "system"


@dataclass(frozen=True)
class MetricInfo:
    """What a user must know to read a metric's number."""

    name: str
    title: str
    level: Level
    higher_is_better: bool
    range: tuple[float, float]
    summary: str
    needs: frozenset[str] = frozenset({"contexts"})
    citation: str = ""
    #: What the metric judges beside its value, in the same direction: columns that are known before the first row.
    aspects: tuple[str, ...] = ()
    #: The aspects of whole dialogues, where they are others.
    dialogue_aspects: tuple[str, ...] | None = None
    #: Further columns that hold text.
    texts: tuple[str, ...] = ()
    #: Whether every value comes with a reason in words and an interval around it.
    explains: bool = False
    #: Whether it learned from English, so that its values mean little in other languages.
    english: bool = True
    #: Which turns of a whole dialogue are judged, where they are not all of those after the first.
    of_dialogues: str = ""

    def __post_init__(self) -> None:
        if self.level is not Level.TURN and (self.aspects or self.dialogue_aspects):
            raise ValueError(f"{self.name} judges a {self.level}; only a metric of turns has aspects")
        if self.level is not Level.TURN and self.explains:
            raise ValueError(f"{self.name} judges a {self.level}; only a metric of turns gives a reason for each value")

    def check_dialogues(self) -> None:
        """Refuse whole dialogues where the metric has no value for their turns."""
        if self.level is not Level.TURN:
            raise ValueError(f"{self.name} judges a {self.level}, so it has no dialogue-level value")
        if "references" in self.needs:
            raise ValueError(
                f"{self.name} compares with references, which turns of a dialogue do not have; take another"
            )

    def aspects_at(self, level: Level) -> tuple[str, ...]:
        """The aspects of single replies, or of whole dialogues."""
        whole = level is Level.DIALOGUE and self.dialogue_aspects is not None
        return self.dialogue_aspects or () if whole else self.aspects


@dataclass(frozen=True)
class Fault:
    """An aspect that is a fault where it lies below a bound: nothing else makes up for it."""

    below: float
    #: What a reply is that has it.
    adjective: str

    def in_words(self, count: int, level: Level) -> str:
        """How many rows have it, in words."""
        if level is Level.DIALOGUE:
            return f"{counted(count, 'conversation')} {'has' if count == 1 else 'have'} a {self.adjective} reply"
        return f"{count} {'reply is' if count == 1 else 'replies are'} {self.adjective}"


@dataclass(frozen=True)
class Judged:
    """Raw outcome of a metric before it is dressed as `Scores`.

    `aspects` holds a column as long as `values` for each declared aspect that was judged, NaN where a row
    lacks what the aspect looks at. `reasons` and `interval` (`[rows, 2]`, on the native scale) come from
    metrics that explain their values. `texts` holds the columns of text that the metric declares, `turns` of each
    dialogue a value for every turn (NaN where it is not judged). `problems` says why a row has no value, by its place;
    those in `passing` may have one another time. `seen` is what only judging could tell and the signature should.
    """

    values: NDArray[np.float64]
    n_truncated: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    aggregate: float | None = None
    ids: tuple[str | None, ...] | None = None
    aspects: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    interval: NDArray[np.float64] | None = None
    #: What the reasons are made of.
    statements: tuple[tuple[Statement, ...], ...] = ()
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    turns: Sequence[NDArray[np.float64]] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    passing: frozenset[int] = frozenset()
    seen: Mapping[str, str] = field(default_factory=dict)


class Metric(ABC):
    """The base of every metric: input checks, counts and signature are the same for all."""

    info: ClassVar[MetricInfo]
    scales: ClassVar[tuple[Scale, ...]] = ("native",)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.info.name!r})"

    @classmethod
    def checkpoints_by_default(cls) -> frozenset[str]:
        """The trained checkpoints that it loads when none is named; none for metrics without training."""
        return frozenset()

    @classmethod
    def info_with(cls, **options: Any) -> MetricInfo:
        """What `info` will be of a metric loaded with these options, where they change it."""
        return cls.info

    @abstractmethod
    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Raw values of exchanges that were checked: NaN where a row has none, with the reason in `Judged.problems`."""

    @abstractmethod
    def signature(self) -> Signature:
        """Everything that, if changed, may change a value."""

    def check_scale(self, scale: Scale) -> None:
        """Refuse a scale that is not there; asked before anything is judged."""
        if not isinstance(scale, str) or scale not in self.scales:
            raise ValueError(f"{self.info.name} has no scale {scale!r:.60}; it has {', '.join(self.scales)}")

    def rescale(self, values: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
        """Map native values to another scale; metrics without one refuse."""
        self.check_scale(scale)
        if scale != "native":
            raise NotImplementedError(f"{self.info.name} declares the scale {scale!r} and does not implement rescale")
        return values

    def scale_signature(self, scale: Scale) -> str:
        """What a signature says of a scale: all that moves its values."""
        return scale

    def rescale_aspect(self, aspect: str, values: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
        """Map an aspect to another scale, as `rescale` does the value."""
        if scale == "native":
            return values
        raise ValueError(f"{self.info.name} has no scale {scale!r} for its aspect {aspect!r}")

    def faults(self, level: Level = Level.TURN) -> Mapping[str, Fault]:
        """Aspects that are faults where they are very low, on the native scale; most metrics have none."""
        return {}

    def score(
        self,
        responses: Iterable[Any],
        contexts: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        facts: Iterable[Any] | None = None,
        systems: Iterable[Any] | None = None,
        ids: Iterable[Any] | None = None,
        following: Iterable[Any] | None = None,
        speakers: Iterable[Any] | None = None,
        scale: Scale = "native",
        empty: EmptyPolicy = "error",
        progress: bool = False,
    ) -> Scores:
        """Score parallel columns: one response, one context (list of turns), optional references per row.

        Optional, too: `following`, what the other side said next, and `speakers`, a list per row that names
        who said each turn of the context. Metrics that use neither ignore them. Or score a table, a
        data frame, a `datasets.Dataset`, a list of mappings, or a file: `score("chats.jsonl")`. It is read as the
        command reads a file; columns whose names tell nothing are named: `score(frame, columns={"response": "reply"})`.
        """
        beside: dict[str, Iterable[Any] | None] = {
            "references": references, "facts": facts, "systems": systems, "ids": ids, "following": following,
            "speakers": speakers,
        }  # fmt: skip
        if contexts is None and is_table(responses):
            if twice := [name for name, value in beside.items() if value is not None]:
                raise ValueError(f"{twice[0]} cannot be passed beside a table; make them a column of it")
            exchanges = exchanges_of(responses, columns, empty=empty)
            return indexed(self.score_exchanges(exchanges, scale=scale, progress=progress), responses)
        if columns is not None:
            raise ValueError("columns is for tables; pass the table alone, without contexts")
        # None as contexts is refused with a sentence.
        exchanges = exchanges_from_columns(responses, contexts, **beside, empty=empty)  # type: ignore[arg-type]
        return self.score_exchanges(exchanges, scale=scale, progress=progress)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], *, scale: Scale = "native", progress: bool = False
    ) -> Scores:
        """Score exchanges that were checked before."""
        self.check_scale(scale)
        self.check_needs(exchanges)
        judged = self._for_each(self.judge(exchanges, progress=progress), len(exchanges))
        return self.as_scores(judged, exchanges, scale=scale)

    def _for_each(self, judged: Judged, rows: int) -> Judged:
        """Refuse values of which nobody knows to which row they belong."""
        if self.info.level is Level.TURN and (count := len(judged.values)) != rows:
            values = f"more than {rows}" if count > rows else count
            raise CannotGoOn(f"{self.info.name} gave {values} values for {rows} rows; return one number for each row")
        return judged

    def as_scores(
        self, judged: Judged, exchanges: Sequence[Exchange] = (), *, scale: Scale = "native", level: Level = Level.TURN
    ) -> Scores:
        """Raw values with what a reader needs beside them."""
        values = self.rescale(np.asarray(judged.values, dtype=np.float64), scale)
        signature = Signature({**self.signature(), **judged.seen})
        if level is Level.DIALOGUE:
            signature["level"] = "dialogue"
        if scale != "native" or level is Level.DIALOGUE:
            signature["scale"] = self.scale_signature(scale)
        ids = judged.ids
        if ids is None and any(exchange.id is not None for exchange in exchanges):
            ids = tuple(exchange.id for exchange in exchanges)
        return Scores(
            metric=self.info.name,
            values=values,
            aggregate=_mean(values) if judged.aggregate is None else judged.aggregate,
            signature=signature,
            higher_is_better=self.info.higher_is_better,
            n_truncated=judged.n_truncated,
            n_empty=sum(exchange.is_empty for exchange in exchanges),
            ids=ids,
            details=judged.details,
            aspects=self._aspects(judged, self.info.aspects_at(level), scale),
            **self._explained(judged, scale),
            texts={name: judged.texts.get(name) or ("",) * len(values) for name in self.info.texts},
            turns=tuple(self.rescale(turn, scale) for turn in judged.turns),
            problems=judged.problems,
            passing=judged.passing,
            statements=judged.statements,
            english=self.info.english,
            exchanges=tuple(exchanges) if len(exchanges) == len(values) else (),
        )

    def score_dialogues(
        self,
        dialogues: Sequence[Sequence[str]],
        *,
        facts: Sequence[Sequence[str]] | None = None,
        speakers: Sequence[Sequence[str]] | None = None,
        ids: Sequence[str | None] | None = None,
        scale: Scale = "native",
        progress: bool = False,
    ) -> Scores:
        """Score whole dialogues: every turn after the first, by both speakers, with its prefix as context.

        `speakers` names, per dialogue, who said each of its turns; it stands on the turns, for metrics that
        look at it.
        """
        self.info.check_dialogues()
        rows = zipped({"dialogues": dialogues, "facts": facts, "speakers": speakers, "ids": ids})
        whole = [check_dialogue(number, **row, empty="score") for number, row in enumerate(rows)]
        if not whole:
            raise ValueError("there are no dialogues to score; pass at least one")
        self.check_scale(scale)
        judged = self._for_each(self.judge_dialogues(whole, progress=progress), len(whole))
        judged = replace(judged, ids=None if ids is None else tuple(row.id for row in whole))
        scores = self.as_scores(judged, scale=scale, level=Level.DIALOGUE)
        n_empty = sum(turn.is_empty for dialogue in whole for turn in dialogue.exchanges())
        return replace(scores, n_empty=n_empty)

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Raw values of whole dialogues: an aggregate of their turns, unless a metric reads them as a whole."""
        turns = [turn for dialogue in dialogues for turn in dialogue.exchanges()]
        ends = np.cumsum([len(dialogue.turns) - 1 for dialogue in dialogues])
        dialogue_of = np.searchsorted(ends, np.arange(len(turns)), side="right")
        try:
            judged = self._for_each(self.judge(turns, progress=progress), len(turns))
        except BadRow as error:
            raise BadRow(int(dialogue_of[int(error.row)]), f"of its turns, {error.problem}") from None

        def of_dialogues(values: NDArray[np.float64]) -> NDArray[np.float64]:
            parts = np.split(np.asarray(values, dtype=np.float64), ends[:-1])
            return np.array([self.aggregate_dialogue(part) for part in parts])

        shared = [aspect for aspect in self.info.aspects_at(Level.DIALOGUE) if aspect in judged.aspects]
        values = of_dialogues(judged.values)
        silent = {
            int(dialogue_of[turn]): f"of its turns, {problem}"
            for turn, problem in sorted(judged.problems.items(), reverse=True)
            if not np.isfinite(values[dialogue_of[turn]])
        }
        return Judged(
            values,
            n_truncated=judged.n_truncated,
            # Other details are about turns; what judging took is about all of them.
            details={name: value for name, value in judged.details.items() if name == "usage"},
            aspects={aspect: of_dialogues(judged.aspects[aspect]) for aspect in shared},
            turns=[np.concatenate([[np.nan], turn]) for turn in np.split(np.asarray(judged.values), ends[:-1])],
            problems=silent,
            passing=frozenset(int(dialogue_of[turn]) for turn in judged.passing) & silent.keys(),
            seen=judged.seen,
        )

    def _aspects(self, judged: Judged, declared: Sequence[str], scale: Scale) -> dict[str, NDArray[np.float64]]:
        """A column for every declared aspect, NaN where the metric gave none."""
        unknown = sorted(set(judged.aspects) - set(declared))
        if unknown:
            raise RuntimeError(f"{self.info.name} gave an aspect {unknown[0]!r} that its info does not declare")
        columns: dict[str, NDArray[np.float64]] = {}
        for aspect in declared:
            column = np.asarray(judged.aspects.get(aspect, np.full(len(judged.values), np.nan)), dtype=np.float64)
            if len(column) != len(judged.values):
                raise RuntimeError(
                    f"{self.info.name} gave {len(column)} values of {aspect} beside {len(judged.values)} of its own"
                )
            columns[aspect] = self.rescale_aspect(aspect, column, scale)
        return columns

    def _explained(self, judged: Judged, scale: Scale) -> dict[str, Any]:
        if not self.info.explains:
            return {}
        count = len(judged.values)
        if len(judged.reasons) != count or judged.interval is None or judged.interval.shape != (count, 2):
            raise RuntimeError(f"{self.info.name} did not give a reason and an interval for each of {count} values")
        # The ends are fitted on the native scale; no other scale knows where they would lie.
        return {"reasons": judged.reasons, "interval": judged.interval if scale == "native" else None}

    def aggregate_dialogue(self, values: NDArray[np.float64]) -> float:
        """One number for a dialogue from the values of its turns; the mean unless a paper says otherwise."""
        return _mean(values)

    def check_needs(self, exchanges: Sequence[Exchange]) -> None:
        """Refuse an empty set, and rows without the references that this metric needs."""
        if not exchanges:
            raise ValueError("there are no rows to score; pass at least one")
        if "references" in self.info.needs:
            for row, exchange in enumerate(exchanges):
                if not exchange.references:
                    raise BadRow(row, f"{self.info.name} compares with references and this row has none; add one")


def indexed(scores: Scores, table: Any) -> Scores:
    """The same with the index of the data frame that was scored, where that has as many rows."""
    is_frame = hasattr(table, "iloc") and len(table.index) == len(scores)
    return replace(scores, index=table.index) if is_frame else scores


def _mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
