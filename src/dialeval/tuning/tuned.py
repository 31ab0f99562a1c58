"""What tuning found, for people and for the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.tuning.crossing import SURE, BeforeAfter, Fitted
from dialeval.tuning.opinions import Opinions, Ratings


@dataclass(frozen=True)
class Tuned:
    """The outcome of `tune`; `print` shows it."""

    folder: Path
    opinions: Opinions
    fitted: Fitted
    #: How well one person predicts the others.
    ceiling: float | None
    #: Share of held-out ratings inside their 90 % interval; None for preferences, which leave the old interval.
    coverage: float | None
    has_percentile: bool
    #: By aspect of the judge its agreement with people, None where too few replies have it.
    aspects: Mapping[str, float | None]
    n_truncated: int
    seed: int

    @property
    def changed(self) -> bool:
        """Whether anything was gained on held-out contexts; if not, the judge is as it was."""
        return self.fitted.changed

    @property
    def comparison(self) -> BeforeAfter:
        """The checkpoint as it was, and what tuning makes of it on contexts held out."""
        return self.fitted.comparison

    @property
    def raters(self) -> float:
        """Ratings per reply."""
        given = self.opinions.raters if isinstance(self.opinions, Ratings) else ()
        return float(np.mean([len(answers) for answers in given])) if given else 1.0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The outcome, a sentence a line."""
        comparison = self.comparison
        lines = [f"{len(self.opinions)} {self.opinions.unit} in {self.opinions.contexts} contexts"]
        if self.raters > 1:
            lines[0] += f", {self.raters:.1f} ratings each"
        if self.n_truncated:
            lines[0] += f"; {self.n_truncated} were truncated"
        lines += [f"{count} rows dropped: {reason}" for reason, count in self.opinions.dropped.items()]
        lines += [
            f"agreement on held-out contexts ({self.opinions.measure}, 95 % interval by context)",
            f"  before      {comparison.before}",
            f"  after       {comparison.after}",
            f"  difference  {comparison.difference}",
        ]
        if self.ceiling is not None:
            lines.append(f"one rater with the others: {self.ceiling:.3f}")
        lines.append("agreement of each aspect with your raters")
        lines += [f"  {name:<15} {value:.3f}" for name, value in self.aspects.items() if value is not None]
        if not self.changed:
            lines.append(
                f"no gain: no significant improvement ({SURE:.0%} bootstrap), or it agrees no better than chance; "
                "the judge is unchanged"
            )
        if self.fitted.lifted:
            lines.append(f"vetoes removed, since your ratings speak against them: {', '.join(self.fitted.lifted)}")
        if self.coverage is None:
            lines.append("preferences give no interval for single replies: the checkpoint's is kept")
        else:
            lines.append(f"refitted 90 % intervals cover {self.coverage:.1%} of the held-out ratings")
        if not self.has_percentile:
            lines.append("the human percentile of the old values was removed; fit a new one with --human")
        return lines

    def record(self) -> dict[str, Any]:
        """What the checkpoint's config says: counts and figures, never a text."""
        comparison = self.comparison
        return {
            "opinions": len(self.opinions),
            "kind": self.opinions.unit,
            "contexts": self.opinions.contexts,
            "ratings_each": round(self.raters, 2),
            "changed": self.changed,
            "lifted": list(self.fitted.lifted),
            "measure": self.opinions.measure,
            "before": comparison.before.record(),
            "after": comparison.after.record(),
            "difference": comparison.difference.record(),
            "ceiling": None if self.ceiling is None else round(self.ceiling, 4),
            "aspects": {name: None if aspect is None else round(aspect, 4) for name, aspect in self.aspects.items()},
            "coverage": None if self.coverage is None else round(self.coverage, 4),
            "cut_rows": self.n_truncated,
            "seed": self.seed,
        }
