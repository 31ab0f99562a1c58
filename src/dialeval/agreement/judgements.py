"""The human side of a benchmark: the rows that count, what people said of them, and the questions put to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.registry.interface import Level
from dialeval.statistics.bootstrap import number_groups
from dialeval.statistics.correlation import Floats
from dialeval.statistics.raters import mean_rating
from dialeval.statistics.system_level import FEWEST_SYSTEMS

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks import Benchmark
    from dialeval.benchmarks.benchmark import BenchmarkInfo


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
    def _agreement(self) -> dict[tuple[Any, ...], float]:
        return {}

    def of_raters(
        self, measure: Callable[..., float], aspect: str, *statistic: str, over_systems: bool = False
    ) -> float:
        """What is measured of the single ratings on an aspect, once; NaN where there are none."""
        key = (measure, aspect, statistic, over_systems)
        if key not in self._agreement:
            rated = zip(self.ratings.get(aspect, ()), self.systems, strict=False)
            kept = [(row, str(name)) for row, name in rated if row and (not over_systems or name is not None)]
            systems = {"systems": [name for _, name in kept]} if over_systems else {}
            self._agreement[key] = measure([row for row, _ in kept], *statistic, **systems)
        return self._agreement[key]


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
        # None is NaN there.
        scores = {aspect: np.array([(row or {}).get(aspect) for row in means], dtype=np.float64) for aspect in aspects}
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


#: What is computed where replies are labelled good or bad.
LABEL_STATISTICS = ("point_biserial", "auc", "accuracy")


@dataclass(frozen=True)
class Cut:
    """One question: rows of the judgements, and the human value of each.

    `level` is turn, dialogue or system; for labels `aspect` names what is told apart.
    """

    level: str
    aspect: str
    rows: NDArray[np.intp]
    human: Floats
    statistics: tuple[str, ...]

    @property
    def is_labelled(self) -> bool:
        """Whether the human column is 0 or 1 rather than a rating."""
        return "point_biserial" in self.statistics


def cuts(judged: Judgements, settings: Settings) -> list[Cut]:
    """Every question that the settings ask of a benchmark."""
    if judged.labels is not None and judged.kinds is not None:
        return _label_cuts(judged.labels, np.array(judged.kinds))
    questions: list[Cut] = []
    systems = len(judged.named_systems)
    has_enough = systems > 1 and (systems >= FEWEST_SYSTEMS or settings.force_systems)
    for aspect, scores in judged.scores.items():
        rows = np.flatnonzero(np.isfinite(scores))
        if settings.levels != "system":
            questions.append(Cut(judged.info.level, aspect, rows, scores[rows], settings.statistics))
        if settings.levels == "system" or (settings.levels == "auto" and has_enough):
            rows = np.array([row for row in rows if judged.systems[row] is not None], dtype=np.intp)
            questions.append(Cut("system", aspect, rows, scores[rows], settings.statistics))
    return questions


def _label_cuts(labels: NDArray[np.int8], kinds: NDArray[np.str_]) -> list[Cut]:
    """Good replies against each kind of bad ones: what is easy and what is hard should not be mixed."""
    good = labels == 1
    questions: list[Cut] = []
    for kind in dict.fromkeys(map(str, kinds[~good])) if good.any() else ():
        rows = np.flatnonzero(good | (kinds == kind))
        questions.append(Cut("turn", f"positive/{kind}", rows, labels[rows].astype(np.float64), LABEL_STATISTICS))
    return questions


@dataclass(frozen=True)
class View:
    """The rows that both a metric and people judged; values turned so that higher is better."""

    values: Floats
    human: Floats
    groups: NDArray[np.intp]
    n_groups: int
    systems: NDArray[np.object_]
    n_excluded: int

    @property
    def named_systems(self) -> list[str]:
        """The systems among the rows, in order of first occurrence."""
        return list(dict.fromkeys(system for system in self.systems if system is not None))


def column_of(source: ValueSource, judged: Judgements, values: Values) -> Floats:
    """A metric's values beside the rows, higher always better, NaN where there is none.

    What a metric says of a whole system stands in all rows of the system.
    """
    keys = [system or "" for system in judged.systems] if source.level is Level.SYSTEM else judged.ids
    raw = values.column(keys)
    return raw if source.higher_is_better else -raw


def view_of(column: Floats, cut: Cut, judged: Judgements) -> View:
    """The rows of a question for which the metric has a value."""
    kept = np.isfinite(column[cut.rows])
    rows = cut.rows[kept]
    systems = np.array(judged.systems, dtype=object)[rows]
    return View(column[rows], cut.human[kept], judged.groups[rows], judged.n_groups, systems, int((~kept).sum()))
