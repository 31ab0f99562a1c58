"""Two files of scores, as `dialeval score` writes them for two systems: is one of them higher, and is that better?

Rows are paired by their ids. Where there are none, nobody can see from scores alone that two rows answer the same
context, so the contexts have to be shown: by a column `context` in the files, or by the rows that were scored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource, score_pairs
from dialeval.readers import Rejects
from dialeval.readers import Source as Rows
from dialeval.registry import REGISTRY, metric_class
from dialeval.scores import Scores
from dialeval.statistics.bootstrap import bootstrap, interval
from dialeval.statistics.paired_tests import paired_mean_test
from dialeval.statistics.resampled import mean_of


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

    @property
    def direction(self) -> str:
        """Which way is better."""
        if self.higher_is_better is None:
            return "direction not known"
        return "higher is better" if self.higher_is_better else "lower is better"

    @property
    def verdict(self) -> str:
        """The answer in a few words."""
        if not self.p < self.level or self.difference == 0:
            return "cannot be told apart"
        if self.higher_is_better is None:
            return f"{self.first if self.difference > 0 else self.second} is higher"
        return f"{self.first if (self.difference > 0) == self.higher_is_better else self.second} is better"


def compare(
    first: str | Path | Scores,
    second: str | Path | Scores,
    *,
    rows: Sequence[str | Path] = (),
    lower_is_better: Sequence[str] = (),
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[Verdict]:
    """Say whether one set of scores is higher than another, and whether that is better: a verdict for each column.

    Rows belong together by id; without ids it has to be known that they answer the same contexts.

    Args:
        first: a file of scores as `dialeval score` writes it, FILE#COLUMN, or what `metric.score` returned.
        second: another one of the same kind.
        rows: where score files have no ids, the file that was scored, or the one for each.
        lower_is_better: names of columns of which less is better; metrics of dialeval are known.
        confidence: of the intervals; two sets are told apart where p lies below 1 - confidence.
        resamples: of the bootstrap and of the permutation test.
        seed: of both.
    """
    if isinstance(first, Scores) != isinstance(second, Scores):
        raise ValueError("one is a file and the other is Scores; compare two of a kind")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence is {confidence}; it lies between 0.5 and 1")
    settings = Settings(resamples=resamples, seed=seed, confidence=confidence)
    here, there = (one if isinstance(one, Scores) else str(one) for one in (first, second))
    return compare_scores(here, there, settings, rows=[str(one) for one in rows], lower_is_better=lower_is_better)


def compare_scores(
    first: str | Scores,
    second: str | Scores,
    settings: Settings,
    *,
    rows: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
) -> list[Verdict]:
    """A verdict for each column that the two files have in common.

    Args:
        first: a file of scores, FILE#COLUMN, or `Scores`.
        second: another one of the same kind.
        settings: of resampling; `confidence` decides what counts as told apart.
        rows: the file or the two files of rows that were scored, which tell the contexts.
        lower_is_better: names of columns of which less is better.
    """
    if len(rows) > 2:
        raise ValueError(f"rows name {len(rows)} files; name the one that both were scored from, or one for each")
    pairs = score_pairs(first, second)
    names = [one.name for pair in pairs for one in pair]
    if unknown := next((name for name in lower_is_better if name not in names), None):
        raise ValueError(f"lower-is-better names {unknown!r}, but the columns are {', '.join(dict.fromkeys(names))}")
    contexts = [_contexts_in(path) for path in rows]
    known = (contexts[0], contexts[-1]) if contexts else (pairs[0][0].contexts, pairs[0][1].contexts)
    files = _file_names(first, second)
    return [_verdict(a, b, files, known, settings, lower_is_better) for a, b in pairs]


def _file_names(first: str | Scores, second: str | Scores) -> tuple[str, str]:
    """As short as they can be without being the same."""
    if isinstance(first, Scores) or isinstance(second, Scores):
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
) -> Verdict:
    _check_pairs(a, b, files, contexts)
    shared = [
        key for key, value in a.table.items() if math.isfinite(value) and math.isfinite(b.table.get(key, math.nan))
    ]
    if not shared:
        raise ValueError(
            f"{files[0]} and {files[1]} share no row id with two values; give both the ids of the same rows"
        )
    x, y = (np.array([one.table[key] for key in shared]) for one in (a, b))
    # What chance draws are contexts; without them every row counts as one of its own.
    numbers: dict[str, int] = {}
    groups = np.array([numbers.setdefault(contexts[0].get(key, f"row {key}"), len(numbers)) for key in shared])
    count = len(numbers)
    test = paired_mean_test(x, y, groups, resamples=max(settings.resamples, 1), seed=settings.seed)
    drawn = bootstrap(
        {"gap": mean_of(x - y, groups, count)}, count, resamples=settings.resamples, seed=settings.seed, rows=len(x)
    )["gap"]
    spread = interval(drawn, settings.confidence)
    return Verdict(
        a.name if a.name == b.name else f"{a.name}, {b.name}",
        _direction(a, b, lower_is_better),
        *files,
        float(x.mean()),
        float(y.mean()),
        float((x - y).mean()),
        spread.low,
        spread.high,
        test.p,
        len(shared),
        count,
        1 - settings.confidence,
    )


def _check_pairs(
    a: ValueSource, b: ValueSource, files: tuple[str, str], contexts: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    """Refuse rows of which it is not sure that they answer the same context."""
    here, there = contexts
    if a.has_ids and b.has_ids:
        if not a.table.keys() & b.table.keys():
            raise ValueError(f"{files[0]} and {files[1]} share no row id; give both files the ids of the same rows")
    elif a.table.keys() != b.table.keys():
        raise ValueError(
            f"{files[0]} has {len(a.table)} rows and {files[1]} has {len(b.table)}, and not all of them have an id; "
            "give rows that answer the same context the same id, and score them again"
            if len(a.table) != len(b.table)
            else f"{files[0]} and {files[1]} have different rows, and not all of them have an id; give rows that "
            "answer the same context the same id, and score them again"
        )
    elif not (a.table.keys() <= here.keys() and b.table.keys() <= there.keys()):
        raise ValueError(
            f"{files[0]} and {files[1]} have no ids, and scores do not tell whether two rows answer the same context; "
            "name the files that were scored (rows; in the command --rows OLD_ROWS --rows NEW_ROWS), or give ids"
        )
    for key in a.table:
        if key in b.table and here.get(key) != there.get(key) and key in here and key in there:
            raise ValueError(
                f"row {key} of {files[0]} and of {files[1]} have different contexts; give rows that answer the same "
                "context the same id"
            )


def _contexts_in(path: str) -> dict[str, str]:
    """The contexts of rows by their ids and numbers, as the score file may name them."""
    found: dict[str, str] = {}
    for row, exchange in Rows(path).exchanges(empty="score", skip_bad=Rejects()):
        context = json.dumps([list(exchange.context), list(exchange.facts)])
        found[str(row.number) if exchange.id is None else exchange.id] = context
    return found


def _direction(a: ValueSource, b: ValueSource, lower_is_better: Sequence[str]) -> bool | None:
    if {a.name, b.name} & set(lower_is_better):
        return False
    if a.declares_direction or b.declares_direction:
        return a.higher_is_better and b.higher_is_better
    name = a.name.partition(".")[0]
    return metric_class(name)[0].info.higher_is_better if name in REGISTRY and a.name == b.name else None
