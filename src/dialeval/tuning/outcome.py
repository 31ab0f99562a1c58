"""What tuning found, for people and for the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.tuning.crossing import SURE, BeforeAfter
from dialeval.tuning.teacher import People


@dataclass(frozen=True)
class Lesson:
    """Whose scores took the place of people's ratings, and what people say of the outcome."""

    #: The column of the scores, and a digest of the file or list that they came from.
    name: str
    digest: str
    #: Rows to which the teacher gave no score, so that nothing was learned from them.
    unscored: int
    #: None where no row is rated by people.
    people: People | None

    def lines(self) -> list[str]:
        """What people say, and what the teacher's errors do."""
        return [
            *self._of_people(),
            "what the teacher gets wrong by chance averages out; what it gets wrong again and again (length, "
            "its own family's style) is learned with the rest, and raises the agreement with it",
        ]

    def _of_people(self) -> list[str]:
        people = self.people
        if people is None:
            return [
                "no row is rated by people, so nothing here says whether the judge became better or just more alike"
            ]
        rated = f"{people.count} of these replies, to {people.contexts} contexts, are rated by people"
        if people.judge is None:
            return [f"{rated}: too few, or all alike, to say whether the judge became better"]
        return [
            f"agreement with people ({rated}; Spearman, the same contexts held out)",
            f"  teacher     {people.teacher}",
            f"  before      {people.judge.before}",
            f"  after       {people.judge.after}",
            f"  difference  {people.judge.difference}",
        ]

    def record(self) -> dict[str, Any]:
        """For the checkpoint's config."""
        people = None if self.people is None else self.people.record()
        return {"name": self.name, "sha256": self.digest, "rows_without_score": self.unscored, "people": people}


@dataclass(frozen=True)
class Tuned:
    """The outcome of `tune`; `print` shows it."""

    folder: Path
    #: What one opinion is about, and how agreement with opinions is measured.
    unit: str
    measure: str
    count: int
    contexts: int
    #: Whether anything was gained on held-out contexts; if not, the old weights were kept.
    changed: bool
    #: The checkpoint as it was, and what tuning makes of it on contexts held out.
    comparison: BeforeAfter
    #: What training the adapter adds to new weights alone, if that was tried.
    deeper: BeforeAfter | None
    #: Of each feature the weight before and after.
    weights: Mapping[str, tuple[float, float]]
    #: How many opinions the old weights counted as.
    strength: float | None
    #: Ratings per reply, and how well one person predicts the others.
    raters: float
    ceiling: float | None
    #: Share of held-out ratings inside their 90 % interval; None for preferences, which leave the old interval.
    coverage: float | None
    has_percentile: bool
    n_truncated: int
    seed: int
    #: Whose scores were learned from, if not people's ratings.
    lesson: Lesson | None = None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The outcome, a sentence a line."""
        found = self.comparison
        rater = f", rated by a teacher ({self.lesson.name})" if self.lesson is not None else ""
        fitted = f"{self.count} {self.unit} to {self.contexts} contexts{rater}"
        lines = [f"{fitted}, {self.raters:.1f} ratings each" if self.raters > 1 else fitted]
        if self.n_truncated:
            lines[0] += f"; {self.n_truncated} rows were longer than the judge reads"
        if self.lesson is not None and self.lesson.unscored:
            lines.append(f"{self.lesson.unscored} rows have no score of the teacher's and were left out")
        whose = "" if self.lesson is None else "with the teacher "
        lines += [
            f"agreement {whose}on contexts held out ({self.measure}, 95 % interval by context)",
            f"  before      {found.before}",
            f"  after       {found.after}",
            f"  difference  {found.difference}",
        ]
        if self.ceiling is not None:
            lines.append(f"one person with the others: {self.ceiling:.3f}")
        lines += self._about_adapter()
        lines += [] if self.lesson is None else self.lesson.lines()
        if self.changed:
            lines.append(f"weights, of which the old ones counted as {self.strength:g} {self.unit}:")
            lines += [f"  {name:<15} {first:.3f} -> {last:.3f}" for name, (first, last) in self.weights.items()]
        elif self.lesson is not None and self.lesson.people is not None and self.lesson.people.object:
            lines.append("the teacher leads away from people, so it is not followed; the old weights were kept")
        else:
            lines.append(
                f"no gain: less than {SURE:.0%} of the resamples are for a change, or it agrees no better than chance; "
                "the old weights were kept"
            )
        if self.coverage is None:
            lines.append("preferences do not say where single replies lie: the interval is the checkpoint's")
        else:
            held = "ratings" if self.lesson is None else "teacher's scores"
            lines.append(f"90 % intervals, fitted anew: they hold {self.coverage:.1%} of the {held} held out")
        if not self.has_percentile:
            lines.append("the human percentile belongs to the old weights and is gone; --human brings a new one")
        return lines

    def _about_adapter(self) -> list[str]:
        if self.deeper is None:
            return []
        verdict = "kept" if self.deeper.gains else "not kept"
        return [f"the adapter, trained too, adds {self.deeper.difference}: {verdict}"]

    def record(self) -> dict[str, Any]:
        """What the checkpoint's config says: counts and figures, never a text."""
        found = self.comparison
        return {
            "opinions": self.count,
            "kind": self.unit,
            "contexts": self.contexts,
            "ratings_each": round(self.raters, 2),
            "changed": self.changed,
            "measure": self.measure,
            "before": found.before.record(),
            "after": found.after.record(),
            "difference": found.difference.record(),
            "ceiling": None if self.ceiling is None else round(self.ceiling, 4),
            "adapter": None
            if self.deeper is None
            else {"kept": self.deeper.gains, "adds": self.deeper.difference.record()},
            "weights": {name: [round(one, 4) for one in pair] for name, pair in self.weights.items()},
            "strength": self.strength,
            "coverage": None if self.coverage is None else round(self.coverage, 4),
            "cut_rows": self.n_truncated,
            "seed": self.seed,
            **({} if self.lesson is None else {"teacher": self.lesson.record()}),
        }
