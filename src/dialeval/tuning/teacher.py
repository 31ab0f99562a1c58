"""A language model's scores in the place of people's ratings: read, joined to the rows, and held against people.

What a teacher gets wrong by chance only makes more rows necessary. What it gets wrong again and again is learned with
the rest, and raises the agreement with it; only ratings of people tell the two apart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.score_files import read_scores
from dialeval.approaches.stack import Vector
from dialeval.exchange import EmptyPolicy
from dialeval.readers import Source
from dialeval.scores import Scores
from dialeval.tuning.crossing import SURE, BeforeAfter, WithInterval, compare
from dialeval.tuning.opinions import (
    FEWEST,
    FEWEST_CONTEXTS,
    Ratings,
    Reply,
    check_row,
    hear_people,
    laid_out,
    same_reply,
)

#: Scores as `dialeval score` writes them, as `score` returns them, or a number (or None) for each row.
Teacher = str | Path | Scores | Sequence[float | None]


@dataclass(frozen=True)
class TeacherScores:
    """A teacher's scores, higher being better, by the id of a row or else by its number."""

    name: str
    digest: str
    by_row: Mapping[str, float]
    #: How many rows it saw, where it gave a list: then rows go by their numbers even if they have ids.
    length: int | None = None


@dataclass(frozen=True)
class People:
    """How far people agree with the teacher and with the judge; no figures where too few rows are rated."""

    count: int
    contexts: int
    teacher: WithInterval | None = None
    judge: BeforeAfter | None = None

    @property
    def object(self) -> bool:
        """Whether their ratings say that the judge became worse, as surely as a gain has to be."""
        return self.judge is not None and self.judge.difference.value < 0 and self.judge.sure <= 1 - SURE

    def record(self) -> dict[str, Any]:
        """For the checkpoint's config."""
        record: dict[str, Any] = {"rated": self.count, "contexts": self.contexts}
        if self.judge is not None and self.teacher is not None:
            found = {"before": self.judge.before, "after": self.judge.after, "difference": self.judge.difference}
            record |= {name: one.record() for name, one in {"teacher": self.teacher, **found}.items()}
        return record


@dataclass(frozen=True)
class Taught:
    """The teacher's scores as opinions, and people's of a part of the same replies."""

    given: TeacherScores
    opinions: Ratings
    people: Ratings | None
    #: Where the replies that people rated stand among the opinions.
    rated: NDArray[np.intp]
    #: Rows to which the teacher gave no score.
    unscored: int

    def held_against_people(self, before: Vector, after: Vector, *, resamples: int, seed: int) -> People | None:
        """The judge's values of all opinions, as it was and as it becomes, beside the teacher's own scores."""
        if self.people is None:
            return None
        count, contexts = len(self.people), self.people.contexts
        if count < FEWEST or contexts < FEWEST_CONTEXTS or np.ptp(self.people.targets) == 0:
            return People(count, contexts)
        own = self.opinions.targets[self.rated]
        judge = compare(self.people, before[self.rated], after[self.rated], resamples=resamples, seed=seed)
        teacher = compare(self.people, own, own, resamples=resamples, seed=seed).after
        return People(count, contexts, teacher, judge)


def read_teacher(teacher: Teacher, column: str | None = None) -> TeacherScores:
    """The teacher's scores; of a file with several columns one is chosen."""
    if isinstance(teacher, str | Path):
        return _from_file(Path(teacher).expanduser(), column)
    if column is not None:
        raise ValueError("teacher_column chooses a column of a file; leave it out")
    if isinstance(teacher, Scores):
        sign = 1.0 if teacher.higher_is_better else -1.0
        return _from_list(teacher.metric, [sign * value for value in teacher])
    if isinstance(teacher, Mapping | bytes) or not isinstance(teacher, Sequence | np.ndarray):
        raise TypeError(f"teacher is a {type(teacher).__name__}; pass a file of scores, Scores, or a number per row")
    return _from_list("teacher", [_number(row, value) for row, value in enumerate(teacher)])


def read_taught(source: Source, given: TeacherScores, *, empty: EmptyPolicy = "error") -> Taught:
    """Every row's score, and people's rating of it if it has one.

    Scores of rows that are not there are refused: they belong to another file.
    """
    columns, rows = source.rated(by_people=False)
    replies: dict[Any, Reply] = {}
    scores: dict[int, list[float]] = {}
    met: set[str] = set()
    unscored = 0
    for row in rows:
        check_row(row, columns, "turn")
        named = None if given.length is not None else columns.value(row, "id")
        key = str(row.number if named is None or named == "" else named)
        met.add(key)
        if (score := given.by_row.get(key)) is None:
            unscored += 1
            continue
        reply = same_reply(replies, row, columns, empty)
        hear_people(reply, row, columns, needed=False)
        scores.setdefault(id(reply), []).append(score)
    _check_rows(source.name, given, met)
    if not replies:
        raise ValueError(f"the teacher has no score for any of the {unscored} rows of {source.name}")
    kept = list(replies.values())
    rated = np.array([at for at, one in enumerate(kept) if one.means], dtype=np.intp)
    of_people = [kept[at] for at in rated]
    return Taught(
        given,
        # Single ratings are people's, so the teacher's opinions go without.
        laid_out([Reply(one.exchange, one.group) for one in kept], [float(np.mean(scores[id(one)])) for one in kept]),
        laid_out(of_people, [float(np.mean(one.means)) for one in of_people]) if of_people else None,
        rated,
        unscored,
    )


def _from_file(path: Path, column: str | None) -> TeacherScores:
    table = read_scores(path)
    named = _column(path, list(table.columns), column)
    sign = -1.0 if table.higher_is_better is False else 1.0
    return TeacherScores(
        named, table.sha256, _finite({row: sign * value for row, value in table.columns[named].items()})
    )


def _column(path: Path, there: Sequence[str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in there:
            raise ValueError(f"{path} has no scores {wanted!r}; it has {', '.join(there)}")
        return wanted
    # A metric's aspects stand behind it, each under its name and a dot.
    whole = [name for name in there if not any(name.startswith(f"{other}.") for other in there)]
    if len(whole) > 1:
        raise ValueError(f"{path} has scores of {', '.join(whole)}; choose the teacher's with --teacher-column")
    return whole[0]


def _from_list(name: str, values: Sequence[float]) -> TeacherScores:
    digest = hashlib.sha256(np.array(values, dtype=np.float64).tobytes()).hexdigest()
    return TeacherScores(name, digest, _finite({str(row): value for row, value in enumerate(values)}), len(values))


def _number(row: int, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"row {row}: the teacher's score is a {type(value).__name__}; pass a number, or None")
    return float(value)


def _finite(by_row: Mapping[str, float]) -> dict[str, float]:
    """A refused row has no score; it is left out, never a zero."""
    return {row: value for row, value in by_row.items() if math.isfinite(value)}


def _check_rows(name: str, given: TeacherScores, met: set[str]) -> None:
    if given.length is not None and given.length != len(met):
        raise ValueError(f"the teacher gave {given.length} scores and {name} has {len(met)} rows; give one for each")
    if strange := [row for row in given.by_row if row not in met]:
        raise ValueError(
            f"{len(strange)} of the teacher's {len(given.by_row)} scores are of rows that {name} lacks, {strange[0]!r} "
            "for one; score the very file that is tuned on (rows go by their id, or else by their number from 0)"
        )
