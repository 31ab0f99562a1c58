"""What a metric returns: values, an aggregate, a signature, and how much was cut or empty."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from dialeval.core.cautions import ENGLISH, cautions, language_of
from dialeval.core.exchange import Exchange
from dialeval.io.files import plain

if TYPE_CHECKING:
    import pandas as pd


class Signature(dict[str, str]):
    """What a reader needs to reproduce a number, as ordered `key:value` parts.

    The long form is meant for files, the short form (abbreviated hashes, no library versions)
    for tables.
    """

    def __str__(self) -> str:
        return "|".join(f"{key}:{value}" for key, value in self.items())

    @classmethod
    def parse(cls, text: str) -> Signature:
        """A signature from its long form."""
        pairs = (part.partition(":") for part in text.split("|"))
        return cls({key: value for key, _, value in pairs})

    @property
    def short(self) -> str:
        """The signature without library versions, hashes cut to eight digits."""
        kept = {key: value for key, value in self.items() if key not in {"torch", "transformers", "python"}}
        return "|".join(f"{key}:{_shorten(value)}" for key, value in kept.items())


def _shorten(value: str) -> str:
    name, sign, revision = value.partition("@")
    return f"{name}@{revision[:8]}" if sign else value


@dataclass(frozen=True)
class Statement:
    """What an aspect says of a row, as a predicate ("is rude"), and by how much it moved the value."""

    aspect: str
    amount: float
    words: str


@dataclass(frozen=True)
class Scores:
    """The outcome of one metric on one set of exchanges.

    `values` holds one number per exchange for turn-level metrics, one per dialogue or per system
    for the others; `aggregate` is the number that stands for the whole set. `aspects` holds a column as
    long as `values` for everything else that the metric judges, NaN where a row lacks what it looks at.
    Metrics that explain themselves give `reasons`, a sentence per value, and `interval`, `[values, 2]`.
    `problems` says why a row has no value, by its place; those in `passing` may have one another time.
    """

    metric: str
    values: NDArray[np.float64]
    aggregate: float
    signature: Signature
    higher_is_better: bool
    n_truncated: int = 0
    n_empty: int = 0
    ids: tuple[str | None, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    aspects: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    interval: NDArray[np.float64] | None = None
    #: Further columns of text by name, such as what a language model answered.
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Of dialogues, a value for each of their turns, NaN for those that are not judged.
    turns: tuple[NDArray[np.float64], ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    passing: frozenset[int] = frozenset()
    #: All that moved the values, in words: what `reasons` are made of.
    statements: tuple[tuple[Statement, ...], ...] = field(default=(), repr=False, compare=False)
    #: Whether the metric learned from English.
    english: bool = field(default=True, repr=False, compare=False)
    #: What was scored, where every value belongs to one reply.
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False, compare=False)
    #: The index of the data frame that was scored.
    index: Any = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return (float(value) for value in self.values)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> float: ...

    @overload
    def __getitem__(self, key: slice | NDArray[Any] | Sequence[Any]) -> NDArray[np.float64]: ...

    def __getitem__(self, key: Any) -> float | NDArray[np.float64]:
        """The value of a row; the values of a slice, a list of rows or a mask."""
        part = self.values[key]
        return part if isinstance(part, np.ndarray) else float(part)

    def __float__(self) -> float:
        return float(self.aggregate)

    def __format__(self, form: str) -> str:
        """The aggregate in a number's format, as in `f"{scores:.3f}"`."""
        return format(float(self), form) if form else str(self)

    def __repr__(self) -> str:
        notes = f"n={len(self)}, truncated={self.n_truncated}, empty={self.n_empty}"
        return f"Scores({self.metric}={self.aggregate:.4f}, {notes}, signature={self.signature.short!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the aggregate, how the values spread, and the first rows."""
        from dialeval.io.tables import scores_as_html

        return scores_as_html(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the numbers mislead: other languages, many rows cut, replies that are all alike."""
        return cautions(self.exchanges, self.n_truncated, english=self.english)

    def explain(self, row: int) -> str:
        """Why a row has its value: what moved it, the largest first."""
        if not self.reasons:
            raise ValueError(f"{self.metric} gives no reasons for its values; the judge does: dialeval.load('judge')")
        if not 0 <= row < len(self.reasons):
            raise IndexError(f"there is no row {row}; rows go from 0 to {len(self.reasons) - 1}")
        return self.reasons[row]

    def weakest(self, count: int, by: NDArray[np.float64] | None = None) -> list[int]:
        """Places of the worst values, the worst first; rows without a value are left out.

        `by` takes the place of the values: a number per row, of which less is worse, such as the gain over a baseline.
        """
        turned = by if by is not None else self.values if self.higher_is_better else -self.values
        known = np.flatnonzero(np.isfinite(turned))
        return [int(row) for row in known[np.argsort(turned[known], kind="stable")][:count]]

    def weakest_turn(self, row: int) -> int:
        """The place of a conversation's worst turn; -1, the last one, where its turns have no values."""
        turned = (self.turns[row] if self.higher_is_better else -self.turns[row]) if self.turns else np.zeros(0)
        return int(np.nanargmin(turned)) if np.isfinite(turned).any() else -1

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; NaN becomes None because JSON has no NaN."""
        return {
            "metric": self.metric,
            "aggregate": plain(float(self.aggregate)),
            "values": plain(self.values),
            **({"aspects": {name: plain(column) for name, column in self.aspects.items()}} if self.aspects else {}),
            **({"intervals": plain(self.interval)} if self.interval is not None else {}),
            **({"reasons": list(self.reasons)} if self.reasons else {}),
            **({"texts": {name: list(text) for name, text in self.texts.items()}} if self.texts else {}),
            **({"turns": [plain(turn) for turn in self.turns]} if self.turns else {}),
            "signature": str(self.signature),
            "higher_is_better": self.higher_is_better,
            "n_truncated": self.n_truncated,
            "n_empty": self.n_empty,
            **({"ids": list(self.ids)} if self.ids is not None else {}),
            **({"problems": plain(self.problems)} if self.problems else {}),
            **({"details": plain(self.details)} if self.details else {}),
        }

    def to_json(self, **options: Any) -> str:
        """The same as `to_dict`, as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, **options)

    def columns(self, name: str | None = None) -> dict[str, NDArray[Any]]:
        """The values under the metric's name (or another), its aspects under NAME.ASPECT, ends and reasons likewise."""
        name = self.metric if name is None else name
        columns: dict[str, NDArray[Any]] = {name: self.values}
        columns |= {aspect_column(name, aspect): column for aspect, column in self.aspects.items()}
        columns |= {aspect_column(name, text): np.array(column, dtype=object) for text, column in self.texts.items()}
        if self.reasons:
            ends = np.full((len(self), 2), np.nan) if self.interval is None else self.interval
            reasons = np.array(self.reasons, dtype=object)
            columns |= dict(zip(explaining_columns(name), (ends[:, 0], ends[:, 1], reasons), strict=True))
        if self.turns:
            columns[turns_column(name)] = np.fromiter(map(plain, self.turns), dtype=object, count=len(self))
        return columns

    def to_pandas(self) -> pd.DataFrame:
        """One row per value: id, system and texts of the input, then all `columns`; the signature in `attrs`.

        The index is that of the data frame that was scored. `language` is there if not all replies are English.
        """
        import pandas as pd

        frame = pd.DataFrame(self.columns(), index=self.index)
        texts: dict[str, list[Any]] = {}
        if self.exchanges:
            texts = {"context": [list(row.context) for row in self.exchanges],
                     "response": [row.response for row in self.exchanges]}  # fmt: skip
            if any(row.system is not None for row in self.exchanges):
                texts = {"system": [row.system for row in self.exchanges], **texts}
            languages = [language_of(row.response) or None for row in self.exchanges]
            if set(languages) - {ENGLISH, None}:
                texts["language"] = languages
        if self.ids is not None:
            texts = {"id": list(self.ids), **texts}
        for index, (name, cells) in enumerate(texts.items()):
            frame.insert(index, name, pd.Series(cells, index=frame.index, dtype="object"))
        frame.attrs["signature"] = str(self.signature)
        return frame


def aspect_column(metric: str, aspect: str) -> str:
    """What the column of an aspect is called wherever scores stand in a table."""
    return f"{metric}.{aspect}"


def weakest_aspects(aspects: Mapping[str, float], *, higher_is_better: bool) -> str:
    """The two worst aspects of a row in words."""
    turned = 1 if higher_is_better else -1
    worst = sorted((pair for pair in aspects.items() if pair[1] == pair[1]), key=lambda pair: turned * pair[1])[:2]
    return ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in worst)


def turns_column(metric: str) -> str:
    """The values of a dialogue's turns."""
    return f"{metric}.turns"


def explaining_columns(metric: str) -> tuple[str, str, str]:
    """Both ends of the interval and the reason."""
    return f"{metric}.low", f"{metric}.high", f"{metric}.why"
