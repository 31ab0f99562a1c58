"""Every choice that may change a number of the harness, with its default; all of them go into signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dialeval.statistics.correlation import CORRELATIONS

RatingRule = Literal["mean", "without_outliers"]
Levels = Literal["auto", "own", "system"]


@dataclass(frozen=True)
class Settings:
    """How agreement is measured.

    Attributes:
        statistics: correlations for benchmarks with ratings; those with labels have their own three.
        aspects: `main` (the one a benchmark names), `all`, or names of aspects.
        levels: `own` is the benchmark's (turn or dialogue), `system` one point per system; `auto` is
            `own`, and `system` beside it where there are at least five systems.
        exclusion: a benchmark's named exclusion of systems; None takes the benchmark's default.
        subset: a paper's named subset; benchmarks without it are left out.
        ratings: mean of all ratings of a row, or without outliers (Zhao et al.'s rule).
        facts: give metrics the facts behind a conversation where a benchmark has them.
        following: give metrics what the user said next where a benchmark has it. Not the standard protocol: who
            judges a reply when it is given cannot know that.
        absolute: print the size of system-level correlations without their sign, as some papers do.
        force_systems: allow system-level correlations of fewer than five systems.
        threshold: `auto` is 0.5 for metrics in [0, 1] unless they compare with references, and searched
            for all others; `search`; or a number.
        resamples: bootstrap resamples, and swaps of permutation tests.
        slow_resamples: the same for Kendall and AUC, which are heavier.
        confidence: level of the intervals.
        seed: of every random draw.
    """

    statistics: tuple[str, ...] = ("pearson", "spearman", "kendall")
    aspects: tuple[str, ...] = ("main",)
    levels: Levels = "auto"
    exclusion: str | None = None
    subset: str | None = None
    ratings: RatingRule = "mean"
    facts: bool = True
    following: bool = False
    absolute: bool = False
    force_systems: bool = False
    threshold: float | Literal["auto", "search"] = "auto"
    resamples: int = 10_000
    slow_resamples: int = 2_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        choices: Mapping[str, tuple[Any, ...]] = {"levels": get_args(Levels), "ratings": get_args(RatingRule)}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(allowed)}")
        unknown = [name for name in self.statistics if name not in CORRELATIONS]
        if unknown or not self.statistics:
            raise ValueError(f"statistic {', '.join(unknown) or 'none'}: choose from {', '.join(CORRELATIONS)}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; it must be between 0 and 1, for example 0.95")
        if self.resamples < 0 or self.slow_resamples < 0 or self.seed < 0:
            raise ValueError("resamples and seed are not negative; 0 resamples give no intervals")
        if isinstance(self.threshold, str) and self.threshold not in ("auto", "search"):
            raise ValueError(f"threshold is {self.threshold!r}; it must be auto, search or a number")

    def resamples_for(self, statistic: str) -> int:
        """How many resamples a statistic gets."""
        slow = statistic in ("kendall", "auc")
        return min(self.slow_resamples, self.resamples) if slow else self.resamples


def inputs_in_words(*, facts: bool, following: bool) -> str:
    """In what rows differ from what metrics usually get; empty where in nothing."""
    return ", ".join(words for words in ("" if facts else "without facts", "following" if following else "") if words)


def as_threshold(text: str) -> float | Literal["auto", "search"]:
    """`auto`, `search` or a number, from the command line."""
    try:
        return "auto" if text == "auto" else "search" if text == "search" else float(text)
    except ValueError:
        raise ValueError(f"threshold is {text!r}; it must be auto, search or a number") from None
