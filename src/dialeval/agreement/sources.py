"""What can be judged: a metric of the registry, a file of scores, or a function of yours.

A source is named by a short text:

* `density`, or with options `bleu2?aggregation=avg`: a registered metric;
* `scores:FILE` (every column) or `scores:FILE#column`: scores computed elsewhere;
* `python:package.module:function`: called with a list of exchanges, returns one number each.

Options after `?` are joined by `&`. Three of them are the harness's own: `name` (what tables call
it), `lower_is_better=true` and `range=0:1`, for files and functions, which cannot declare these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialeval.core.exchange import a_kind
from dialeval.core.scores import Scores, aspect_column, explaining_columns
from dialeval.core.specs import ANY_RANGE, OWN, Declared, declared_in, did_you_mean, split_options
from dialeval.readers.score_files import ScoreTable, read_scores, scores_in
from dialeval.registry import load
from dialeval.registry.functions import FunctionMetric, Judge, imported
from dialeval.registry.interface import Level, Metric

Spec = str | Metric | Judge


@dataclass(frozen=True)
class ValueSource:
    """Something that gives values: a metric to run, or a table of what was computed before."""

    name: str
    signature: str
    higher_is_better: bool
    range: tuple[float, float]
    metric: Metric | None = None
    table: Mapping[str, float] = field(default_factory=dict)
    cacheable: bool = True
    #: Only values that an earlier run left are taken; where there are none the metric is left out, not run.
    only_cached: bool = False
    #: Of a file of scores: whether every row has an id (else rows are known by their numbers), what the rows' contexts
    #: are where the file tells, and whether the file or the user says which way is better.
    has_ids: bool = True
    contexts: Mapping[str, str] = field(default_factory=dict)
    declares_direction: bool = False

    @property
    def level(self) -> Level | None:
        """What one value judges; None for a table, which has whatever ids it has."""
        return self.metric.info.level if self.metric is not None else None

    def aspects_at(self, level: Level) -> tuple[str, ...]:
        """What the metric judges beside its value; a table of scores has a column of its own for each."""
        return () if self.metric is None else self.metric.info.aspects_at(level)

    @property
    def in_unit_range(self) -> bool:
        """Whether values are declared to lie in [0, 1]."""
        return self.range[0] >= 0 and self.range[1] <= 1

    @property
    def has_middle(self) -> bool:
        """Whether 0.5 divides good from bad: in [0, 1], and no similarity to references, which has no such point."""
        compares = self.metric is not None and "references" in self.metric.info.needs
        return self.in_unit_range and not compares

    def is_contaminated_by(self, benchmark: str, contaminates: Sequence[str]) -> bool:
        """Whether the metric was trained on the benchmark, by its own account or the benchmark's."""
        names = {self.name} if self.metric is None else {self.name, self.metric.info.name}
        declared: frozenset[str] = getattr(self.metric, "contaminated_by", frozenset())
        return bool(names & set(contaminates)) or benchmark in declared

    def leaked_rows(self, benchmark: str) -> frozenset[str]:
        """The rows that the metric is known to have been trained on, one by one."""
        of_metric = getattr(self.metric, "leaked_rows", None)
        return frozenset() if of_metric is None else of_metric(benchmark)


def find_sources(specs: Iterable[Spec | ValueSource]) -> list[ValueSource]:
    """All sources that the texts, metrics and functions name; two of one name are refused."""
    sources = [source for spec in specs for source in _find(spec)]
    names = [source.name for source in sources]
    if not sources:
        raise ValueError("no metric was given; name at least one")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two metrics are named {twice!r}; rename one with ?name=…")
    return sources


def score_pairs(
    first: Any, second: Any, columns: Mapping[str, str] | None = None
) -> list[tuple[ValueSource, ValueSource]]:
    """The columns that two files of scores, two tables of them, or two `Scores` have in common, side by side.

    A prefix `scores:` of a file may be left out; `columns` names those of tables.
    """

    def read(given: Any, name: str) -> list[ValueSource]:
        if isinstance(given, Scores):
            return _of_scores(given)
        if isinstance(given, str):
            return _of_file(*split_options(given.removeprefix("scores:")))
        return _of_table(scores_in(given, name, columns))

    left, right = read(first, "first"), read(second, "second")
    if len(left) == len(right) == 1:
        return [(left[0], right[0])]
    ends = {end for source in left for end in explaining_columns(source.name)[:2]}  # of intervals: no values
    other = {source.name: source for source in right if source.name not in ends}
    pairs = [(source, other[source.name]) for source in left if source.name in other]
    if not pairs:
        shown = " and ".join(given if isinstance(given, str) else "scores" for given in (first, second))
        raise ValueError(f"{shown} have no column of the same name; choose one each with #column")
    return pairs


def _find(spec: Spec | ValueSource) -> list[ValueSource]:
    if isinstance(spec, ValueSource):
        return [spec]
    if isinstance(spec, Metric):
        return [_of_metric(spec, None)]
    if not isinstance(spec, str):
        return [_of_object(spec, getattr(spec, "__name__", type(spec).__name__), Declared())]
    kind, colon, rest = spec.partition(":")
    if colon and kind == "scores":
        return _of_file(*split_options(rest))
    if colon and kind == "python":
        target, options = split_options(rest)
        declared, unknown = declared_in(options)
        if unknown:
            raise ValueError(f"{spec} has the options {', '.join(unknown)}; a function takes only {', '.join(OWN)}")
        return [_of_object(imported(target), target.rpartition(":")[2], declared)]
    name, options = split_options(spec)
    declared, chosen = declared_in(options)
    if declared.lower_is_better or declared.range != ANY_RANGE:
        raise ValueError(f"{name} declares its own direction and range; leave lower_is_better and range out")
    return [_of_metric(load(name, **chosen), declared.name)]


def _of_metric(metric: Metric, name: str | None) -> ValueSource:
    info = metric.info
    return ValueSource(name or info.name, str(metric.signature()), info.higher_is_better, info.range, metric)


def _of_object(thing: Any, name: str, declared: Declared) -> ValueSource:
    if isinstance(thing, type) and issubclass(thing, Metric):
        thing = thing()
    if isinstance(thing, Metric):
        return _of_metric(thing, declared.name)
    if not callable(thing):
        raise ValueError(f"{name} is {a_kind(thing)}; pass a function of a list of exchanges")
    metric = FunctionMetric(thing, declared.name or name, declared)
    return replace(_of_metric(metric, None), cacheable=metric.known)


def _of_scores(scores: Scores) -> list[ValueSource]:
    ids = [str(key) for key in scores.ids or () if key is not None]
    has_ids = len(ids) == len(scores)
    keys = ids if has_ids else [str(index) for index in range(len(scores))]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the scores of {scores.metric} repeat the id {twice!r}; keep one score per row")
    shown = [json.dumps([list(row.context), list(row.facts)]) for row in scores.exchanges]
    columns = {scores.metric: scores.values}
    columns |= {aspect_column(scores.metric, aspect): column for aspect, column in scores.aspects.items()}
    return [
        ValueSource(
            name=name,
            signature=str(scores.signature),
            higher_is_better=scores.higher_is_better,
            range=ANY_RANGE,
            table=dict(zip(keys, map(float, values), strict=True)),
            has_ids=has_ids,
            contexts=dict(zip(keys, shown, strict=False)),
            declares_direction=True,
        )
        for name, values in columns.items()
        if any(map(math.isfinite, values))
    ]


def _of_file(target: str, options: Mapping[str, Any]) -> list[ValueSource]:
    declared, unknown = declared_in(options)
    if unknown:
        raise ValueError(f"scores:{target} has the options {', '.join(unknown)}; a file takes only {', '.join(OWN)}")
    path, mark, column = target.rpartition("#") if "#" in target and not Path(target).exists() else (target, "", "")
    table = read_scores(path)
    if mark and column not in table.columns:
        hint = did_you_mean(column, table.columns, f"it has {', '.join(table.columns)}")
        raise ValueError(f"{path} has no column {column!r}; {hint}")
    return _of_table(table, [column] if mark else [], declared, declares_direction="lower_is_better" in options)


def _of_table(
    table: ScoreTable, chosen: Sequence[str] = (), declared: Declared | None = None, *, declares_direction: bool = False
) -> list[ValueSource]:
    """The columns of a table of scores, all of them where none is chosen."""
    path, declared, chosen = table.path, declared or Declared(), chosen or list(table.columns)
    if declared.name and len(chosen) > 1:
        raise ValueError(f"{path} has {len(chosen)} columns; choose one with #column to give it a name")
    stem = table.path.name.split(".")[0]
    for column in chosen:
        for key, value in table.columns[column].items():
            if problem := declared.problem(value):
                raise ValueError(f"{path}: {column} of row {key} is {problem}")
    return [
        ValueSource(
            name=declared.name or (stem if column in ("score", "value") else column),
            signature=f"scores:{table.path.name}#{column}|sha256:{table.sha256[:16]}",
            higher_is_better=not declared.lower_is_better,
            range=declared.range,
            table=table.columns[column],
            has_ids=table.has_ids,
            contexts=table.contexts,
            declares_direction=declares_direction,
        )
        for column in chosen
    ]
