"""Which of several systems is best, by how much, and which of them cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from dialeval.core.cautions import cautions, cut_note
from dialeval.core.exchange import BadRow, Dialogue, Exchange, check_kind, several_names
from dialeval.core.scores import Scores
from dialeval.readers import guess_columns
from dialeval.readers.frames import source_of
from dialeval.readers.pairing import (
    ItemLevel,
    Pairs,
    Rows,
    context_numbers,
    files_by_name,
    lost,
    pair,
    pair_by_context,
    pair_conversations,
    read_items,
)
from dialeval.registry import load
from dialeval.registry.interface import Level, Metric
from dialeval.statistics.bootstrap import bootstrap, check_asked, interval, mean_of
from dialeval.statistics.paired_tests import holm, paired_mean_test, unpaired_mean_test
from dialeval.systems.given import Given, read_given
from dialeval.systems.ranking_outcome import POWER, SHOWN_FROM, PairTest, Ranking, Standing

Vector = NDArray[np.float64]
#: The values of each system, and which rows of each two of them belong together.
Values = Mapping[str, Vector]
PairsOf = Mapping[tuple[str, str], Pairs | None]
#: Replies, or whole conversations.
Items = Sequence[Exchange] | Sequence[Dialogue]


class Draws(NamedTuple):
    """How sure an interval is, and how often chance draws for it and for a test, from which seed."""

    confidence: float = 0.95
    resamples: int = 10_000
    seed: int = 0


_USUAL = Draws()


def rank(
    systems: Rows | Mapping[str, Rows] | Sequence[str | Path],
    metrics: str | Metric | Sequence[str | Metric] = ("judge",),
    *,
    columns: Mapping[str, str] | None = None,
    reply_columns: Sequence[str] = (),
    values: str | Sequence[str] | None = None,
    lower_is_better: Sequence[str] = (),
    level: ItemLevel = "turn",
    allow_missing: bool = False,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    progress: bool = False,
) -> Ranking:
    """Compare systems on replies to the same contexts, or on whole conversations.

    Args:
        systems: rows with a `system` each (a file, a data frame, mappings, exchanges), one set of rows per name, or a
            list of files that give the systems their names.
        metrics: names or loaded metrics that judge single replies.
        columns: FIELD: COLUMN where names differ.
        reply_columns: of rows that hold the replies of all systems, the column of each: `["bot_a", "bot_b"]`.
        values: the systems are no replies, but scores that another judge made, in these columns (an empty list: in
            every column of numbers) beside `context` (or `id`) and `system`; `metrics` is left aside.
        lower_is_better: of those columns, the ones of which less is better.
        level: `dialogue` compares whole conversations, which are paired if they share their ids.
        allow_missing: go on where more than a tenth of the rows of a system have no partner.
        confidence: of the intervals; a pair is told apart below 1 - confidence.
        resamples: of the bootstrap and of the permutation tests.
        seed: of both.
        progress: show bars while scoring.
    """
    draws = Draws(confidence, resamples, seed)
    check_asked(*draws, allow_missing=allow_missing, progress=progress)
    lower_is_better = several_names("lower_is_better", lower_is_better)
    reply_columns = several_names("reply_columns", reply_columns)
    if values is not None:
        return _rank_given(read_given(systems, values, columns), lower_is_better, allow_missing, draws)
    if lower_is_better:
        raise ValueError("lower_is_better is for scores that another judge made; a metric declares its own direction")
    if isinstance(systems, list | tuple) and systems and all(isinstance(system, str | Path) for system in systems):
        systems = files_by_name(systems)
    if reply_columns:
        systems = _by_column(systems, reply_columns, columns)
    try:
        if isinstance(systems, Mapping):
            rows = {name: read_items(system, level, columns) for name, system in systems.items()}
        else:
            rows = by_system(systems, columns, level)
    except BadRow as error:
        if not error.problem.startswith("column 'response' is missing"):
            raise
        problem = f"{error.problem}; of scores that are there already, name the column (values)"
        raise BadRow(error.row, problem) from None
    _check_several(rows)
    check_kind("metrics", metrics, (Iterable, Metric), "the names of metrics, or loaded ones")
    wanted = loaded(*([metrics] if isinstance(metrics, str | Metric) else metrics))
    if not wanted:
        raise ValueError("no metric was given; name at least one")
    pairs = paired(rows, by_context=not isinstance(systems, Mapping))
    left_out = [both.check(allow_missing).note for both in pairs.values() if both and both.alone]
    standings: list[Standing] = []
    pair_tests: list[PairTest] = []
    signatures: dict[str, str] = {}
    cut: list[str] = []
    english = False
    for metric in wanted:
        english = english or metric.info.english
        # All systems in one call: what they share is read once.
        scored = score_items(metric, [row for of_system in rows.values() for row in of_system], progress=progress)
        ends = np.cumsum([len(row) for row in rows.values()])[:-1]
        of_systems = dict(zip(rows, np.split(np.asarray(scored.values, dtype=np.float64), ends), strict=True))
        signatures[metric.info.name] = str(scored.signature)
        if sentence := cut_note(len(scored), scored.n_truncated):
            cut.append(f"{metric.info.name}: {sentence}")
        for name, column in of_systems.items():
            left_out += lost(np.isfinite(column), f"{metric.info.name}: rows of {name} without a value", allow_missing)
        places, tests = rank_values(metric, rows, of_systems, pairs, draws)
        of_aspects = {
            aspect: dict(zip(rows, np.split(column, ends), strict=True)) for aspect, column in scored.aspects.items()
        }
        standings += with_aspects(metric, places, of_aspects, pairs, draws)
        pair_tests += tests
    replies = [replace(row, system=name) for name, side in rows.items() for row in side if isinstance(row, Exchange)]
    warnings = cautions(replies, english=english)
    return Ranking(tuple(standings), tuple(pair_tests), confidence, signatures, (*left_out, *warnings, *cut))


def loaded(*metrics: object) -> list[Metric]:
    """Metrics that are named, or loaded already; one that is given twice stands once."""
    for each in metrics:
        check_kind("metric", each, (str, Metric), "its name, or a loaded metric")
    ones = [each if isinstance(each, Metric) else load(cast(str, each)) for each in dict.fromkeys(metrics)]
    names = [metric.info.name for metric in ones]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two metrics are named {twice!r}; pass them one after the other")
    return ones


def are_conversations(items: Items) -> TypeGuard[Sequence[Dialogue]]:
    """Whether whole conversations are compared."""
    return any(isinstance(item, Dialogue) for item in items)


def score_items(metric: Metric, items: Items, **options: Any) -> Scores:
    """Scores of replies or of whole conversations; metrics that compare sets are refused."""
    if metric.info.level is not Level.TURN:
        raise ValueError(
            f"{metric.info.name} judges a {metric.info.level}; a metric of single replies is needed here "
            "(`dialeval score` gives the value of each system)"
        )
    if not are_conversations(items):
        return metric.score_exchanges(list(items), **options)  # type: ignore[arg-type]
    turns, facts, speakers = zip(*((item.turns, item.facts, item.speakers) for item in items), strict=True)
    return metric.score_dialogues(turns, facts=facts, speakers=speakers, **options)


def paired(rows: Mapping[str, Items], *, by_context: bool) -> dict[tuple[str, str], Pairs | None]:
    """Which rows of each two systems answer the same context; None where they are different conversations.

    In one file the context tells which replies belong together; files of their own may need ids.
    """
    if any(map(are_conversations, rows.values())):
        together: Any = pair_conversations
    else:
        together = pair_by_context if by_context else pair
    return {(a, b): together(rows[a], rows[b], (a, b)) for a, b in combinations(rows, 2)}


def rank_values(
    metric: Metric, rows: Mapping[str, Items], values: Values, pairs: PairsOf, draws: Draws = _USUAL
) -> tuple[list[Standing], list[PairTest]]:
    """The same from values that are there already: the systems, best first, and every pair's test."""
    tests = _pair_tests(metric, values, pairs, draws)
    return _standings(metric, rows, values, pairs, tests, draws), tests


def with_aspects(
    metric: Metric, standings: Sequence[Standing], aspects: Mapping[str, Values], pairs: PairsOf, draws: Draws
) -> list[Standing]:
    """The same with the mean of each aspect, and which of them lie below those of the system that is best in it.

    That is tested as the values are, with Holm over all aspects and systems.
    """
    means: dict[str, dict[str, float]] = {standing.system: {} for standing in standings}
    tested: list[tuple[str, str, float]] = []
    for aspect, columns in aspects.items():
        known = {name: column for name, column in columns.items() if np.isfinite(column).any()}
        for name, column in known.items():
            means[name][aspect] = float(np.nanmean(column))
        turned = 1.0 if metric.info.higher_is_better else -1.0
        best = max(known, key=lambda name: turned * means[name][aspect], default="")
        for (a, b), paired in pairs.items():
            if best in (a, b) and a in known and b in known:
                x, y, groups = known_values(columns[a], columns[b], paired)
                if len(x) and len(y) and abs(x.mean() - y.mean()) >= SHOWN_FROM:
                    p = p_of_means(x, y, groups, draws.resamples, draws.seed)
                    tested.append((b if best == a else a, aspect, p))
    adjusted = holm([p for *_, p in tested]) if tested else ()
    lower = [(name, aspect) for (name, aspect, _), p in zip(tested, adjusted, strict=True) if p < 1 - draws.confidence]
    below = {system: tuple(aspect for name, aspect in lower if name == system) for system in means}
    return [replace(standing, aspects=means[standing.system], lower=below[standing.system]) for standing in standings]


def _rank_given(given: Given, lower_is_better: Sequence[str], allow_missing: bool, draws: Draws) -> Ranking:
    if unknown := next((name for name in lower_is_better if name not in given.columns), None):
        raise ValueError(f"lower_is_better names {unknown!r}, but the values are {', '.join(given.columns)}")
    _check_several(given.rows)
    pairs = paired(given.rows, by_context=True)
    notes = [both.check(allow_missing).note for both in pairs.values() if both and both.alone]
    if not given.knows_contexts:
        notes.append("contexts are not known, so that every row counts as one of its own; add a column context")
    standings: list[Standing] = []
    tests: list[PairTest] = []
    for name, columns in given.columns.items():
        for system, column in columns.items():
            notes += lost(np.isfinite(column), f"{name}: rows of {system} without a value", allow_missing)
        metric = given.metric(name, lower_is_better=name in lower_is_better)
        places, ranking = rank_values(metric, given.rows, columns, pairs, draws)
        standings += places
        tests += ranking
    return Ranking(tuple(standings), tuple(tests), draws.confidence, {}, tuple(notes))


def _check_several(rows: Mapping[str, Items]) -> None:
    if len(rows) < 2:
        raise ValueError(
            f"at least two systems are needed, not {len(rows)}; give every row a system, or pass a file for each"
        )


def _by_column(systems: Any, names: Sequence[str], columns: Mapping[str, str] | None) -> dict[str, Rows]:
    """The same rows once for each column of replies."""
    if isinstance(systems, Mapping):
        raise ValueError("reply_columns names columns of one set of rows; pass one file or frame")
    systems = source_of(list(systems) if isinstance(systems, Iterator) else systems, columns)
    first = systems.preview(1)
    others = [column for row in first for column in row if column not in names]
    guessed = {} if systems.columns else guess_columns([*others, "response"], first)
    systems = replace(systems, beside=frozenset(names))
    return {name: replace(systems, columns={**guessed, **systems.columns, "response": name}) for name in names}


def by_system(rows: Rows, columns: Mapping[str, str] | None = None, level: ItemLevel = "turn") -> dict[str, list[Any]]:
    """Rows of one file by their system."""
    rows_of: dict[str, list[Any]] = {}
    for index, row in enumerate(read_items(rows, level, columns)):
        if row.system is None:
            raise ValueError(f"row {index} has no system; name its column (columns, system=...), or give a file each")
        rows_of.setdefault(row.system, []).append(row)
    return rows_of


def _pair_tests(metric: Metric, values: Values, pairs: PairsOf, draws: Draws) -> list[PairTest]:
    turned = 1.0 if metric.info.higher_is_better else -1.0
    tests = []
    for (a, b), paired in pairs.items():
        x, y, groups = known_values(values[a], values[b], paired)
        n_rows = min(len(x), len(y))
        if not n_rows:
            raise ValueError(f"{metric.info.name} has no value for any pair of rows of {a} and {b}")
        gap = turned * float(x.mean() - y.mean() if groups is None else (x - y).mean())
        first, second = (a, b) if gap >= 0 else (b, a)
        p = p_of_means(x, y, groups, draws.resamples, draws.seed)
        n_groups = n_rows if groups is None else int(groups.max()) + 1
        seen = _smallest_seen(x, y, groups, (1 - draws.confidence) / len(pairs))
        tests.append(PairTest(metric.info.name, first, second, abs(gap), p, p, n_rows, n_groups, seen))
    adjusted = holm([test.p for test in tests])
    return [replace(test, p_adjusted=float(p)) for test, p in zip(tests, adjusted, strict=True)]


def known_values(x: Vector, y: Vector, paired: Pairs | None) -> tuple[Vector, Vector, NDArray[np.intp] | None]:
    """The values of both systems, of pairs where both have one, and which pairs share a context."""
    if paired is None:
        return x[np.isfinite(x)], y[np.isfinite(y)], None
    paired = paired.keep(np.isfinite(x[paired.first]) & np.isfinite(y[paired.second]))
    return x[paired.first], y[paired.second], paired.groups


def p_of_means(x: Vector, y: Vector, groups: NDArray[np.intp] | None, resamples: int, seed: int) -> float:
    """The p-value of a permutation test; 1 where nothing varies."""
    if groups is None:
        p = unpaired_mean_test(x, y, resamples=resamples, seed=seed).p
    else:
        p = paired_mean_test(x, y, groups, resamples=resamples, seed=seed).p
    return p if np.isfinite(p) else 1.0


def _smallest_seen(x: Vector, y: Vector, groups: NDArray[np.intp] | None, level: float) -> float:
    """The difference that a test at this level finds four times in five with as many contexts that vary like these."""
    if groups is None:
        spread = math.sqrt(sum(float(side.var(ddof=1)) / len(side) if len(side) > 1 else math.inf for side in (x, y)))
    else:
        gaps = x - y
        sums = np.bincount(groups, gaps - gaps.mean())
        known = len(sums) > 1
        spread = math.sqrt(float((sums**2).sum()) * len(sums) / (len(sums) - 1)) / len(gaps) if known else math.inf
    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)) * spread


def _standings(
    metric: Metric, rows: Mapping[str, Items], values: Values, pairs: PairsOf, tests: Sequence[PairTest], draws: Draws
) -> list[Standing]:
    turned = 1.0 if metric.info.higher_is_better else -1.0
    means = {name: float(np.nanmean(column)) for name, column in values.items()}
    order = sorted(means, key=lambda name: -turned * means[name])
    p_of = {frozenset((test.first, test.second)): test.p_adjusted for test in tests}
    clusters = _clusters(order, p_of, 1 - draws.confidence)
    whole = any(map(are_conversations, rows.values()))
    shares = {} if whole else _human_shares(metric, values)
    standings = []
    for name in order:
        column = values[name]
        known = np.isfinite(column)
        groups = context_numbers(rows[name])[known]
        groups = np.unique(groups, return_inverse=True)[1].astype(np.intp)
        count = int(groups.max()) + 1
        means_of = {"": mean_of(column[known], groups, count)}
        drawn = bootstrap(means_of, count, resamples=draws.resamples, seed=draws.seed, rows=int(known.sum()))[""]
        spread = interval(drawn, draws.confidence)
        standings.append(Standing(
            metric.info.name, name, clusters[name], means[name], spread.low, spread.high, shares.get(name),
            _win_rate(name, values, pairs, turned), int(known.sum()), count,
        ))  # fmt: skip
    return standings


def _clusters(order: Sequence[str], p_of: Mapping[frozenset[str], float], level: float) -> dict[str, int]:
    """A system opens a new cluster when it is worse than the best one of the cluster above it."""
    clusters: dict[str, int] = {}
    best, number = order[0], 1
    for name in order:
        if name != best and p_of[frozenset((best, name))] < level:
            best, number = name, number + 1
        clusters[name] = number
    return clusters


def _human_shares(metric: Metric, values: Values) -> dict[str, float]:
    if "human_percentile" not in metric.scales:
        return {}
    try:
        return {name: float(np.nanmean(metric.rescale(column, "human_percentile"))) for name, column in values.items()}
    except ValueError:  # a checkpoint without quantiles
        return {}


def _win_rate(name: str, values: Values, pairs: PairsOf, turned: float) -> float:
    won, fought = 0.0, 0
    for (a, b), paired in pairs.items():
        if name in (a, b):
            if paired is None:  # each conversation against each
                gap = turned * np.subtract.outer(values[a], values[b])
            else:
                gap = turned * (values[a][paired.first] - values[b][paired.second])
            gap = gap[np.isfinite(gap)] * (1 if name == a else -1)
            won += float((gap > 0).sum() + 0.5 * (gap == 0).sum())
            fought += len(gap)
    return won / fought if fought else float("nan")
