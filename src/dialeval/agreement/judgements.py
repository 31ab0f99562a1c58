"""The human side of a benchmark: which rows count, what people said of them, how far they agreed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.settings import Settings
from dialeval.statistics.bootstrap import number_groups
from dialeval.statistics.correlation import Floats
from dialeval.statistics.raters import alpha, attainable, human_ceiling, mean_rating

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks import Benchmark
    from dialeval.benchmarks.base import BenchmarkInfo


@dataclass(frozen=True)
class Judgements:
    """The rows of a benchmark that count, column by column."""

    info: BenchmarkInfo
    ids: list[str]
    systems: list[str | None]
    groups: NDArray[np.intp]
    scores: Mapping[str, Floats] = field(default_factory=dict)
    ratings: Mapping[str, list[list[float]]] = field(default_factory=dict)
    labels: NDArray[np.int8] | None = None
    kinds: list[str] | None = None
    n_left_out: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def n_groups(self) -> int:
        """How many contexts (or dialogues) there are to resample."""
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def named_systems(self) -> list[str]:
        """The systems, in order of first occurrence; rows without one have none."""
        return list(dict.fromkeys(system for system in self.systems if system is not None))

    @cached_property
    def _agreement(self) -> dict[tuple[str, str, bool], float]:
        return {}

    def ceiling(self, aspect: str, statistic: str, *, over_systems: bool = False) -> float:
        """One person against the others on this aspect; NaN where there are no individual ratings."""
        key = (aspect, statistic, over_systems)
        if key not in self._agreement:
            kept = self._rated(aspect, needs_system=over_systems)
            systems = [str(self.systems[row]) for row in kept] if over_systems else None
            rows = [self.ratings[aspect][row] for row in kept]
            self._agreement[key] = human_ceiling(rows, statistic, systems=systems)
        return self._agreement[key]

    def alpha(self, aspect: str) -> float:
        """Krippendorff's alpha (interval) on this aspect."""
        key = (aspect, "alpha", False)
        if key not in self._agreement:
            self._agreement[key] = alpha([self.ratings[aspect][row] for row in self._rated(aspect)])
        return self._agreement[key]

    def attainable(self, aspect: str) -> float:
        """The correlation with the mean rating on this aspect that noise leaves within reach."""
        key = (aspect, "attainable", False)
        if key not in self._agreement:
            self._agreement[key] = attainable([self.ratings[aspect][row] for row in self._rated(aspect)])
        return self._agreement[key]

    def _rated(self, aspect: str, *, needs_system: bool = False) -> list[int]:
        rows = self.ratings.get(aspect, [])
        return [
            number for number, row in enumerate(rows) if row and (not needs_system or self.systems[number] is not None)
        ]


def judgements(benchmark: Benchmark, dataset: Dataset, settings: Settings) -> Judgements:
    """Read the human scores of those rows of a benchmark that were selected."""
    info = benchmark.info
    columns = dataset.column_names
    groups = number_groups(_column(dataset, "group" if "group" in columns else "id"))
    common: dict[str, Any] = {
        "info": info,
        "ids": _column(dataset, "id"),
        "systems": _column(dataset, "system") if "system" in columns else [None] * len(dataset),
        "groups": groups,
        "n_left_out": len(benchmark.dataset) - len(dataset),
    }
    if info.kind == "labels":
        labels = np.array(_column(dataset, "label"), dtype=np.int8)
        return Judgements(**common, labels=labels, kinds=_column(dataset, "kind_of_reply"))
    aspects = chosen_aspects(info, settings)
    ratings = _by_aspect(_column(dataset, "ratings") if "ratings" in columns else [], aspects, len(dataset))
    if settings.ratings == "without_outliers":
        scores = {
            aspect: np.array([mean_rating(row, drop_outliers=True) for row in rows]) for aspect, rows in ratings.items()
        }
    else:
        means = _column(dataset, "scores")
        scores = {
            aspect: np.array([_number((row or {}).get(aspect)) for row in means], dtype=np.float64)
            for aspect in aspects
        }
    return Judgements(**common, scores=scores, ratings=ratings)


def chosen_aspects(info: BenchmarkInfo, settings: Settings) -> list[str]:
    """The aspects to be measured on a benchmark; `main` and `all` may stand among names."""
    chosen: list[str] = []
    for wanted in settings.aspects:
        if wanted == "all":
            chosen.extend(info.aspects)
        elif wanted == "main":
            chosen.append(info.main_aspect or next(iter(info.aspects)))
        else:
            chosen.extend(aspect for aspect in info.aspects if aspect.casefold() == wanted.casefold())
    return list(dict.fromkeys(chosen))


def _column(dataset: Dataset, name: str) -> list[Any]:
    return list(dataset[name][:])


def _by_aspect(
    rows: Sequence[Mapping[str, Iterable[float]] | None], aspects: Iterable[str], count: int
) -> dict[str, list[list[float]]]:
    if not rows:
        return {aspect: [[] for _ in range(count)] for aspect in aspects}
    return {aspect: [list((row or {}).get(aspect) or ()) for row in rows] for aspect in aspects}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
