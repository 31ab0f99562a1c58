"""Is the new system worse than the old one? A test that a build can stand on.

The gate asks for evidence that the new system is *not* worse by more than a margin (a non-inferiority test): it stays
shut while the data cannot tell, so that a build with too few rows does not pass by luck. Means hide rare faults, so
that rows are counted, too, and every aspect is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.cautions import FirstRows
from dialeval.core.exchange import Dialogue, Exchange, check_kind, counted, turn_at
from dialeval.core.scores import Scores, aspect_column
from dialeval.core.specs import LARGEST, Condition
from dialeval.readers.pairing import (
    MIN_COVERAGE,
    ItemLevel,
    Pairs,
    Rows,
    check_level,
    pair,
    pair_conversations,
    read_counted,
)
from dialeval.registry.interface import Level, Metric, Scale
from dialeval.statistics.bootstrap import bootstrap, check_asked, mean_of
from dialeval.statistics.paired_tests import holm
from dialeval.systems.gate_outcome import MIN_CONTEXTS, AspectChange, FaultCount, Gate, RowCount, Verdict, WorseRow
from dialeval.systems.ranking import known_values, loaded, p_of_means, score_items
from dialeval.systems.ranking_outcome import POWER, SHOWN_FROM

#: Rows that a report lists.
N_WORST = 10
#: More faults than before are told where chance would bring as many with less than this probability.
SURPRISING = 0.1

Vector = NDArray[np.float64]
#: Values and aspects of a system by column: those of the metric's name, and METRIC.ASPECT.
Columns = Mapping[str, Vector]
#: How many rows may meet each condition, and the smallest accepted gain of each aspect.
Limits = Mapping[str, float | str] | None
Margins = Mapping[str, float] | None


def gate(
    new: Rows,
    baseline: Rows,
    metric: str | Metric = "judge",
    *,
    margin: float,
    max_rows: Mapping[str, float | str] | None = None,
    min_aspects: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    min_contexts: int = MIN_CONTEXTS,
    scale: Scale = "native",
    level: ItemLevel = "turn",
    resamples: int = 10_000,
    seed: int = 0,
    names: tuple[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    progress: bool = False,
) -> Gate:
    """Test whether `new` is worse than `baseline` by more than `margin`.

    Args:
        new: rows of the new system: a file, a data frame, mappings or exchanges.
        baseline: rows of the old one, with equal ids, or in the same order with equal contexts.
        metric: a name or a loaded metric that judges single replies.
        margin: the loss that is still accepted, in units of the scale; zero or more.
        max_rows: how many rows of the new system may meet a condition, as a number or as a share:
            `{"respectful<0.5": 0, "judge<0.1": 0.05}`. Every row counts, those without a partner, too.
        min_aspects: the smallest accepted gain of an aspect, zero or less: `{"specific": -0.05}`.
        confidence: of the one-sided bounds.
        min_contexts: with fewer contexts the verdict is `undecided`.
        scale: `native`, or `human_percentile` where the metric has it.
        level: `dialogue` judges whole conversations, which are paired if they share their ids.
        resamples: of the bootstrap and the permutation tests over contexts.
        seed: of both.
        names: how messages call both sides.
        columns: FIELD: COLUMN where names differ, for both sides.
        progress: show a bar while scoring.
    """
    called = (_named(new, "the new rows"), _named(baseline, "the baseline")) if names is None else names
    check_kind("names", called, tuple, "two texts")
    if len(called) != 2 or not all(isinstance(name, str) for name in called):
        raise ValueError(f"names is {called!r:.60}; pass two texts, of the new rows and of the baseline")
    check_level(level)
    check_asked(confidence, resamples, seed, progress=progress)
    (judge,) = loaded(metric)
    asked: dict[str, Any] = {
        "margin": margin, "max_rows": max_rows, "min_aspects": min_aspects, "confidence": confidence,
        "min_contexts": min_contexts, "scale": scale, "level": Level(level), "resamples": resamples, "seed": seed,
    }  # fmt: skip
    _check(judge, margin, max_rows, min_aspects, min_contexts, scale, Level(level))
    (first, n_new), (second, n_old) = (read_counted(rows, level, columns) for rows in (new, baseline))
    skipped = zip(called, (n_new - len(first), n_old - len(second)), strict=True)
    notes = [f"{name}: {counted(n, 'row')} in other languages left out" for name, n in skipped if n]
    together: Any = pair_conversations if level == "dialogue" else pair
    pairs: Pairs | None = together(first, second, called)
    scored = [score_items(judge, rows, scale=scale, progress=progress) for rows in (first, second)]
    for name, items, scores in zip(called, (first, second), scored, strict=True):
        seen = FirstRows(judge.info.english)  # of conversations, whose scores do not hold their turns
        seen.see(items)
        notes += [f"{name}: {warning}" for warning in scores.warnings or seen.messages()]
    outcome = gate_values(
        judge, pairs, *(columns_of(scores) for scores in scored), n_rows=(n_new, n_old), **asked,
        cautions=tuple(notes), signature=str(scored[0].signature),
    )  # fmt: skip
    return replace(outcome, worst=_worst(first, pairs, scored[0], scored[1], outcome.mean_baseline))


def columns_of(scores: Scores) -> dict[str, Vector]:
    """The values and aspects of scores, as `gate_values` takes them."""
    aspects = {aspect_column(scores.metric, aspect): column for aspect, column in scores.aspects.items()}
    return {scores.metric: scores.values, **aspects}


def gate_values(
    metric: Metric,
    pairs: Pairs | None,
    new: Columns,
    baseline: Columns,
    *,
    n_rows: tuple[int, int],
    margin: float,
    max_rows: Limits = None,
    min_aspects: Margins = None,
    confidence: float = 0.95,
    min_contexts: int = MIN_CONTEXTS,
    resamples: int = 10_000,
    seed: int = 0,
    scale: Scale = "native",
    level: Level = Level.TURN,
    cautions: tuple[str, ...] = (),
    signature: str = "",
) -> Gate:
    """The same from values that are there already, of all rows that were read; `pairs` are places in them.

    `n_rows` counts all rows of either side, those too that were left out before anything was scored.
    """
    name = metric.info.name
    sides = _Sides(pairs, new, baseline, 1.0 if metric.info.higher_is_better else -1.0, resamples, seed)
    x, y, groups = sides.known(name)
    count = _count(x, y, groups)
    if not count:
        raise ValueError(f"{name} has no value for any pair of rows; nothing can be compared")
    drawn, gain = sides.drawn(name), sides.gain(name)
    at_least, at_most = (float(np.nanquantile(drawn, q)) for q in (1 - confidence, confidence))
    covered = min(len(values) / n for values, n in zip((x, y), n_rows, strict=True))
    enough = count >= min_contexts and covered >= MIN_COVERAGE
    # Equal replies pass even without a margin.
    unchanged = pairs is not None and not (x - y).any()
    of_value = _verdict(at_least, at_most, margin, unchanged=unchanged) if enough else "undecided"
    aspects = _aspects(metric, sides, min_aspects or {}, level, confidence, min_contexts)
    row_counts = tuple(_limited(metric, condition, most, new, baseline) for condition, most in (max_rows or {}).items())
    wanted = [of_value, *(aspect.verdict for aspect in aspects if aspect.verdict)]
    broken: list[Verdict] = ["worse"] if any(count.exceeded for count in row_counts) else []
    # Rows over a limit are counted, not estimated; all else needs enough rows.
    order: tuple[Verdict, ...] = ("worse", "not shown", "passed")
    verdict = next(outcome for outcome in order if outcome in (*broken, *wanted)) if enough or broken else "undecided"
    n_missing = (~np.isfinite(new[name])).sum() + (~np.isfinite(baseline[name])).sum()
    needed, shown = _sizes(drawn, margin, confidence, count)
    return Gate(
        verdict=verdict, value_verdict=of_value, metric=name, higher_is_better=metric.info.higher_is_better,
        margin=margin, mean_new=float(x.mean()), mean_baseline=float(y.mean()), gain=gain, at_least=at_least,
        at_most=at_most, confidence=confidence, p=(int(np.sum(drawn <= -margin)) + 1) / (resamples + 1),
        n_rows=min(len(x), len(y)), n_contexts=count, n_total=max(n_rows), min_contexts=min_contexts,
        contexts_needed=needed, margin_shown=shown, paired_by=pairs.by if pairs else "nothing",
        n_alone=pairs.alone if pairs else 0,
        n_without_value=len(pairs.first) - len(x) if pairs is not None else int(n_missing),
        cautions=cautions, scale=scale, signature=signature, aspects=aspects, row_counts=row_counts,
        faults=tuple(_faults(metric, pairs, new, baseline, scale, level)),
    )  # fmt: skip


def _check(
    metric: Metric, margin: float, max_rows: Limits, min_aspects: Margins, min_contexts: int, scale: Scale, level: Level
) -> None:
    """Refuse what cannot be asked, before anything is read or scored."""
    if not (_is_number(margin) and margin >= 0):
        raise ValueError(f"margin is {margin!r}; the accepted loss must be a number, zero or more")
    if not (isinstance(min_contexts, int | np.integer) and min_contexts >= 0):
        raise ValueError(f"min_contexts is {min_contexts!r:.60}; it must be a whole number, zero or more")
    for name, limits in (("max_rows", max_rows), ("min_aspects", min_aspects)):
        check_kind(name, {} if limits is None else limits, Mapping, "a mapping of conditions or aspects to numbers")
    low, high = (0.0, 1.0) if str(scale) == "human_percentile" else metric.info.range
    if margin >= high - low:
        raise ValueError(
            f"margin is {margin:g}, but {metric.info.name} lies between {low:g} and {high:g} (scale {scale}), so that "
            "no loss could exceed it; pass a smaller margin"
        )
    metric.check_scale(scale)
    name, known = metric.info.name, metric.info.aspects_at(level)
    for aspect, least in (min_aspects or {}).items():
        if aspect not in known:
            raise ValueError(f"min_aspects: {name} has no aspect {aspect!r}; it has {', '.join(known) or 'none'}")
        if not (_is_number(least) and least <= 0):
            raise ValueError(
                f"min_aspects: {aspect} is {least!r}; the smallest accepted gain is a number, zero or less"
            )
    names = [name, *(aspect_column(name, aspect) for aspect in known)]
    for condition, most in (max_rows or {}).items():
        Condition.read(condition, names, "max_rows")
        _allowed(condition, most, 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.floating) and bool(-LARGEST <= value <= LARGEST)


def _allowed(condition: str, most: float | str, rows: int) -> int:
    """How many of so many rows a limit allows: whole numbers are rows, others, and percentages, shares."""
    text = str(most).strip()
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else None
        number = float(text) if share is None else share
        is_share = share is not None or not (text.isdigit() or (isinstance(most, float) and number >= 1))
    except ValueError:
        number, is_share = math.nan, False
    if not (0 <= number < math.inf) or (is_share and number > 1) or (not is_share and number != int(number)):
        raise ValueError(f"max_rows: {condition}={most} is neither a number of rows nor a share; write 3, 0.02 or 2%")
    return math.floor(number * rows + 1e-9) if is_share else int(number)


class _Sides:
    """Columns of two systems, what is known of both, and how their gains vary with the contexts that chance draws."""

    def __init__(self, pairs: Pairs | None, new: Columns, old: Columns, turned: float, resamples: int, seed: int):
        self.pairs, self.new, self.old, self.turned = pairs, new, old, turned
        self.resamples, self.seed = resamples, seed

    def known(self, name: str) -> tuple[Vector, Vector, NDArray[np.intp] | None]:
        """Values of either side, of pairs where both have one, and which pairs share a context."""
        x, y = (np.asarray(side[name], dtype=np.float64) for side in (self.new, self.old))
        return known_values(x, y, self.pairs)

    def gain(self, name: str) -> float:
        x, y, groups = self.known(name)
        return self.turned * float(x.mean() - y.mean() if groups is None else (x - y).mean())

    def drawn(self, name: str) -> Vector:
        """The gain on resampled contexts."""
        x, y, groups = self.known(name)
        if groups is not None:
            return self._means(self.turned * (x - y), groups, self.seed)
        each = (self._means(values, np.arange(len(values)), self.seed + index) for index, values in enumerate((x, y)))
        new, old = each
        return self.turned * (new - old)

    def _means(self, values: Vector, groups: NDArray[np.intp], seed: int) -> Vector:
        count = int(groups.max()) + 1
        of = {"": mean_of(values, groups, count)}
        return bootstrap(of, count, resamples=self.resamples, seed=seed, rows=len(values))[""]

    def p(self, name: str) -> float:
        """Of a two-sided permutation test."""
        return p_of_means(*self.known(name), self.resamples, self.seed)


def _count(x: Vector, y: Vector, groups: NDArray[np.intp] | None) -> int:
    """Contexts that were compared; of unpaired conversations those of the side that has fewer."""
    return min(len(x), len(y)) if groups is None else int(groups.max(initial=-1)) + 1


def _verdict(at_least: float, at_most: float, margin: float, *, unchanged: bool) -> Verdict:
    if at_least > -margin or unchanged:
        return "passed"
    return "worse" if at_most < -margin else "not shown"


def _sizes(drawn: Vector, margin: float, confidence: float, count: int) -> tuple[int | None, float]:
    """How many contexts equal systems need to pass with this margin, and which margin these contexts can show."""
    normal = NormalDist()
    shown = (normal.inv_cdf(confidence) + normal.inv_cdf(POWER)) * float(np.nanstd(drawn))
    needed = count * (shown / margin) ** 2 if margin else 0.0
    digits = 10 ** max(0, int(math.log10(max(needed, 1))) - 1)
    return (math.ceil(needed / digits) * digits or None), shown


def _aspects(
    metric: Metric, sides: _Sides, margins: Mapping[str, float], level: Level, confidence: float, min_contexts: int
) -> tuple[AspectChange, ...]:
    """Every aspect that pairs have, tested; those with a margin have a verdict of their own."""
    tested_aspects, unknown = [], []
    for aspect in metric.info.aspects_at(level):
        column, least = aspect_column(metric.info.name, aspect), margins.get(aspect)
        if column not in sides.new or column not in sides.old:
            continue
        x, y, groups = sides.known(column)
        margin = None if least is None else -float(least)
        if not (count := _count(x, y, groups)):
            if margin is not None:
                nan = math.nan
                unknown.append(AspectChange(aspect, nan, nan, nan, nan, nan, 1.0, 0, margin, "not shown", False))
            continue
        drawn = sides.drawn(column)
        at_least, at_most = (float(np.nanquantile(drawn, q)) for q in (1 - confidence, confidence))
        verdict: Verdict | None = None
        if margin is not None:
            unchanged = groups is not None and not (x - y).any()
            verdict = _verdict(at_least, at_most, margin, unchanged=unchanged) if count >= min_contexts else "not shown"
        means, p = (float(x.mean()), float(y.mean())), sides.p(column)
        tested_aspects.append(AspectChange(
            aspect, *means, sides.gain(column), at_least, at_most, p, count, margin, verdict, False
        ))  # fmt: skip
    adjusted = map(float, holm([change.p for change in tested_aspects])) if tested_aspects else ()
    tested = [
        replace(change, p=p, fell=p < 1 - confidence and change.gain <= -SHOWN_FROM)
        for change, p in zip(tested_aspects, adjusted, strict=True)
    ]
    return (*sorted(tested, key=lambda change: (change.gain, change.aspect)), *unknown)


def _limited(metric: Metric, condition: str, most: float | str, new: Columns, old: Columns) -> RowCount:
    asked = Condition.read(condition, list(new), "max_rows")
    n_new, n_old = (sum(map(asked.holds, side[asked.column])) for side in (new, old))
    rows = len(new[metric.info.name]), len(old[metric.info.name])
    return RowCount(asked.text, n_new, n_old, *rows, _allowed(condition, most, rows[0]))


def _faults(
    metric: Metric, pairs: Pairs | None, new: Columns, old: Columns, scale: Scale, level: Level
) -> list[FaultCount]:
    """The rows of either side under each veto; of pairs also how many newly are, and how many no longer."""
    from scipy.stats import binom

    faults = []
    for aspect, fault in metric.faults(level).items():
        column = aspect_column(metric.info.name, aspect)
        if column not in new or column not in old:
            continue
        bound = float(metric.rescale_aspect(aspect, np.array([fault.below]), scale)[0])
        x, y = (np.asarray(side[column], dtype=np.float64) < bound for side in (new, old))
        count, before = int(x.sum()), int(y.sum())
        if pairs is None:
            newly, no_longer = count, before
        else:
            a, b = x[pairs.first], y[pairs.second]
            newly, no_longer = int((a & ~b).sum()), int((b & ~a).sum())
        # A sign test: so many changes for the worse, if either direction is as probable.
        more = count > before and (before == 0 or bool(binom.sf(newly - 1, newly + no_longer, 0.5) < SURPRISING))
        faults.append(FaultCount(aspect, fault.in_words(count, level), count, before, newly, no_longer, more))
    return faults


def _worst(
    rows: Sequence[Exchange | Dialogue], pairs: Pairs | None, new: Scores, old: Scores, mean_old: float
) -> tuple[WorseRow, ...]:
    """The rows that lost most against their partners or, where conversations are not paired, against the mean."""
    beside = np.full(len(new), np.nan)
    if pairs is not None:
        beside[pairs.first] = old.values[pairs.second]
    gains = (new.values - (mean_old if pairs is None else beside)) * (1 if new.higher_is_better else -1)
    replies = []
    for row in (row for row in new.weakest(N_WORST, gains) if gains[row] < 0):
        turn, turns = new.weakest_turn(row), tuple(map(float, new.turns[row])) if new.turns else ()
        aspects = {name: float(column[row]) for name, column in new.aspects.items() if np.isfinite(column[row])}
        replies.append(WorseRow(
            rows[row].id, row, *turn_at(rows[row], turn), float(new.values[row]), float(beside[row]), aspects,
            new.reasons[row] if new.reasons else "", None if turn < 0 else turn + 1, turns,
        ))  # fmt: skip
    return tuple(replies)


def _named(rows: Rows, otherwise: str) -> str:
    return str(rows) if isinstance(rows, str | Path) else otherwise
