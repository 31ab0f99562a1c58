"""Two files of scores, as `dialeval score` writes them for two systems: is one of them higher, and is that better?

Rows are paired by their ids. Where there are none, nobody can see from scores alone that two rows answer the same
context, so the contexts have to be shown: by a column `context` in the files, or by the rows that were scored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource, score_pairs
from dialeval.core.exchange import a_kind, check_kind, counted, several_names
from dialeval.core.scores import Scores
from dialeval.readers import Rejects
from dialeval.readers import Source as Rows
from dialeval.readers.pairing import Side, lost, pair_sides
from dialeval.registry import REGISTRY, metric_class
from dialeval.statistics.bootstrap import bootstrap, check_asked, interval, mean_of
from dialeval.statistics.paired_tests import paired_mean_test


@dataclass(frozen=True)
class Verdict:
    """One metric in both files: the means, their difference with its interval, the test, and what follows."""

    metric: str
    #: True, False, or None where nobody said which way is better.
    higher_is_better: bool | None
    first: str
    second: str
    mean_first: float
    mean_second: float
    #: First minus second.
    difference: float
    low: float
    high: float
    p: float
    n_rows: int
    n_contexts: int
    level: float
    #: Which rows have no partner and were left out.
    left_out: str = ""
    #: Without them every row counts as a context of its own.
    knows_contexts: bool = True

    @property
    def direction(self) -> str:
        """Which way is better."""
        if self.higher_is_better is None:
            return "direction not known"
        return "higher is better" if self.higher_is_better else "lower is better"

    def __str__(self) -> str:
        figures = f"{self.mean_first:.4g} against {self.mean_second:.4g}, difference {self.difference:+.4g}"
        interval = f"{self.low:+.4g} to {self.high:+.4g}"
        where = f"{counted(self.n_rows, 'row')} of {counted(self.n_contexts, 'context')}"
        return f"{self.metric}: {self.verdict}; {figures} ({interval}), p = {self.p:.3g}, {where}."

    @property
    def verdict(self) -> str:
        """The answer in a few words."""
        if not self.p < self.level or self.difference == 0:
            return "cannot be told apart"
        if self.higher_is_better is None:
            return f"{self.first if self.difference > 0 else self.second} is higher"
        return f"{self.first if (self.difference > 0) == self.higher_is_better else self.second} is better"


def compare(
    first: str | Path | Scores | Any,
    second: str | Path | Scores | Any,
    *,
    columns: Mapping[str, str] | None = None,
    rows: Sequence[str | Path | Rows] = (),
    lower_is_better: Sequence[str] = (),
    allow_missing: bool = False,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[Verdict]:
    """Say whether one set of scores is higher than another, and whether that is better: a verdict for each column.

    Rows belong together by id; without ids it has to be known that they answer the same contexts.

    Args:
        first: a file of scores as `dialeval score` writes it, FILE#COLUMN, or what `metric.score` returned; or scores
            that any other judge made, as a data frame or mappings with `id` or `context` beside the values.
        second: another one of the same kind.
        columns: of such frames, which column is the `id` and which the `context`, where names differ.
        rows: where score files have no ids, the file that was scored, or the one for each.
        lower_is_better: names of columns of which less is better; metrics of dialeval are known.
        allow_missing: go on where more than a tenth of the rows of one side have no partner.
        confidence: of the intervals; two sets are told apart where p lies below 1 - confidence.
        resamples: of the bootstrap and of the permutation test.
        seed: of both.
    """
    if isinstance(first, Scores) != isinstance(second, Scores):
        raise ValueError("Scores can be compared with Scores only; pass two of them, or two files or frames")
    given = [scores.signature.get("scale", "native") for scores in (first, second) if isinstance(scores, Scores)]
    if len(scales := {scale.partition("@")[0] for scale in given}) > 1:
        raise ValueError(f"the scores are on two scales, {' and '.join(sorted(scales))}; compare scores of one scale")
    check_asked(confidence, resamples, seed, allow_missing=allow_missing)
    if columns is not None and (named := [side for side in (first, second) if isinstance(side, str | Path | Scores)]):
        raise ValueError(f"columns is for frames and mappings; {a_kind(named[0])} has its own names, so leave it out")
    settings = Settings(resamples=resamples, seed=seed, confidence=confidence)
    first, second = (str(place) if isinstance(place, Path) else place for place in (first, second))
    rows = [rows] if isinstance(rows, str | Path | Rows) else rows
    check_kind("rows", rows, Sequence, "the file that was scored, or the one for each")
    lower_is_better = several_names("lower_is_better", lower_is_better)
    if len(rows) > 2:
        raise ValueError(f"rows has {len(rows)} files; pass one for both, or one for each")
    pairs = score_pairs(first, second, columns)
    names = [side.name for pair in pairs for side in pair]
    if unknown := next((name for name in lower_is_better if name not in names), None):
        raise ValueError(f"lower-is-better names {unknown!r}, but the columns are {', '.join(dict.fromkeys(names))}")
    contexts = [_contexts_in(row if isinstance(row, Rows) else Rows(row)) for row in rows]
    known = (contexts[0], contexts[-1]) if contexts else (pairs[0][0].contexts, pairs[0][1].contexts)
    files = _file_names(first, second)
    return [_verdict(a, b, files, known, settings, lower_is_better, allow_missing) for a, b in pairs]


def _file_names(first: Any, second: Any) -> tuple[str, str]:
    """As short as they can be without being the same."""
    if not (isinstance(first, str) and isinstance(second, str)):
        return "first", "second"
    long = [text.removeprefix("scores:").split("?")[0] for text in (first, second)]
    short = [Path(path).name for path in long]
    return (short[0], short[1]) if short[0] != short[1] else (long[0], long[1])


def _verdict(
    a: ValueSource,
    b: ValueSource,
    files: tuple[str, str],
    contexts: tuple[Mapping[str, str], Mapping[str, str]],
    settings: Settings,
    lower_is_better: Sequence[str],
    allow_missing: bool,
) -> Verdict:
    sides = _sides((a, b), files, contexts)
    pairs = pair_sides(*sides).check(allow_missing)
    x, y = (np.array(list(source.table.values()), dtype=np.float64) for source in (a, b))
    known = np.isfinite(x[pairs.first]), np.isfinite(y[pairs.second])
    if not (known[0] & known[1]).any():
        raise ValueError(f"{files[0]} and {files[1]} have no row ids in common; score the same rows")
    # An aspect that neither reply has is nothing lost, and what one of them lacks does not stop the other columns.
    is_aspect, notes = "." in a.name, [pairs.note] if pairs.note else []
    for name, is_known in zip(files, known, strict=True):
        judged = is_known[known[0] | known[1]] if is_aspect else is_known
        notes += lost(judged, f"{a.name}: rows of {name} without a value", allow_missing or is_aspect)
    if any(contexts):
        places = zip(pairs.first, pairs.second, strict=True)
        shown = np.array([sides[0].contexts[a] is not None or sides[1].contexts[b] is not None for a, b in places])
        notes += lost(shown, "rows without a context, each of which counts as one of its own", allow_missing)
    # What chance draws are contexts; a row of unknown context counts as one of its own.
    pairs = pairs.keep(known[0] & known[1])
    x, y, groups = x[pairs.first], y[pairs.second], pairs.groups
    test = paired_mean_test(x, y, groups, resamples=settings.resamples, seed=settings.seed)
    drawn = bootstrap(
        {"gap": mean_of(x - y, groups, pairs.n_groups)}, pairs.n_groups, resamples=settings.resamples,
        seed=settings.seed, rows=len(x),
    )["gap"]  # fmt: skip
    spread = interval(drawn, settings.confidence)
    return Verdict(
        a.name if a.name == b.name else f"{a.name}, {b.name}", _direction(a, b, lower_is_better), *files,
        float(x.mean()), float(y.mean()), float((x - y).mean()), spread.low, spread.high, test.p, len(x),
        pairs.n_groups, 1 - settings.confidence, "; ".join(notes), any(contexts),
    )  # fmt: skip


def _sides(
    sources: tuple[ValueSource, ValueSource], names: tuple[str, str], contexts: tuple[Mapping[str, str], ...]
) -> tuple[Side, Side]:
    """Both sides with their ids or, where neither has any and each context stands once, with contexts as ids."""
    shown: list[list[str | None]] = []
    for source, known in zip(sources, contexts, strict=True):
        shown.append([known.get(key) for key in source.table])
    once = all(None not in texts and len(set(texts)) == len(texts) for texts in shown)
    ids: list[Any] = [list(source.table) if source.has_ids else None for source in sources]
    if once and ids == [None, None]:
        ids = list(shown)
    first, second = (Side(name, keys, known) for name, keys, known in zip(names, ids, shown, strict=True))
    return first, second


def _contexts_in(rows: Rows) -> dict[str, str]:
    """The contexts of rows by their ids and numbers, as the score file may name them."""
    contexts: dict[str, str] = {}
    for row, exchange in rows.exchanges(empty="score", skip_bad=Rejects()):
        context = json.dumps([list(exchange.context), list(exchange.facts)])
        contexts[str(row.number) if exchange.id is None else exchange.id] = context
    return contexts


def _direction(a: ValueSource, b: ValueSource, lower_is_better: Sequence[str]) -> bool | None:
    if {a.name, b.name} & set(lower_is_better):
        return False
    if a.declares_direction or b.declares_direction:
        return a.higher_is_better and b.higher_is_better
    name = a.name.partition(".")[0]
    return metric_class(name)[0].info.higher_is_better if name in REGISTRY and a.name == b.name else None
