"""Is the new system worse than the old one? A test that a build can stand on.

The gate asks for evidence that the new system is *not* worse by more than a margin (a non-inferiority test): it stays
shut while the data cannot tell, so that a build with too few rows does not pass by luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from dialeval.cautions import FirstRows
from dialeval.exchange import Dialogue, Exchange, counted, one_line, turn_at
from dialeval.io import plain
from dialeval.metric import Metric, Scale
from dialeval.pairing import MIN_COVERAGE, ItemLevel, Pairs, Rows, pair, pair_conversations, read_counted
from dialeval.registry import load
from dialeval.scores import Scores, weakest_aspects
from dialeval.statistics.bootstrap import bootstrap
from dialeval.statistics.resampled import mean_of
from dialeval.systems.ranking import score_items
from dialeval.tables import Table, markdown_table, to_html

#: Fewer contexts than these say little about a system.
MIN_CONTEXTS = 30

#: Rows that a report lists.
N_WORST = 10

Vector = NDArray[np.float64]
Verdict = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class WorseRow:
    """A row on which the new system lost."""

    id: str | None
    #: Its place in the new file, from 0.
    row: int
    #: The turn before the reply.
    asked: str
    #: Of a conversation, its weakest turn.
    response: str
    value: float
    #: NaN where no row of the baseline belongs to it.
    baseline: float
    #: Of the new reply, where the metric has them.
    aspects: Mapping[str, float]
    reason: str
    #: Of a conversation, the number of its weakest turn, from 1, and the values of all turns.
    weakest_turn: int | None = None
    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class Gate:
    """What was found; `verdict` is the answer."""

    #: `undecided` where too little could be compared, whatever those rows say.
    verdict: Verdict
    metric: str
    higher_is_better: bool
    margin: float
    mean_new: float
    mean_baseline: float
    #: New minus baseline, turned so that more is better.
    gain: float
    #: With this confidence the gain is at least `at_least`.
    at_least: float
    #: With this confidence the gain is at most `at_most`.
    at_most: float
    confidence: float
    #: Share of resampled contexts on which the new system is worse by the margin or more.
    p: float
    #: Of the new system.
    n_rows: int
    n_contexts: int
    #: Rows of the side that has more of them.
    n_total: int
    min_contexts: int
    #: `id` or `position`; `nothing` where conversations of their own are compared.
    paired_by: str
    #: Rows of either system that have no partner, and pairs (or conversations) without a value; both are left out.
    n_alone: int
    n_without_value: int
    #: What misleads about the replies of either system; see `dialeval.cautions`.
    cautions: tuple[str, ...]
    scale: str
    signature: str
    #: Mean gain of each aspect, over the rows where both replies have it; the largest loss first.
    aspects: Mapping[str, float] = field(default_factory=dict)
    #: The rows that lost most against the baseline, the worst first.
    worst: tuple[WorseRow, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the new system was shown to be no worse."""
        return self.verdict == "passed"

    def __bool__(self) -> bool:
        return self.passed

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        means = f"{self.mean_new:.4g} against {self.mean_baseline:.4g}"
        where = f"on {counted(self.n_rows, 'paired row')} of {counted(self.n_contexts, 'context')}"
        if self.paired_by == "nothing":
            where = f"on unpaired conversations, {self.n_contexts} or more of either system"
        bound = f"at {self.confidence:.0%} confidence the gain is at least {self.at_least:+.4g}"
        if self.verdict == "undecided" and self.paired_by == "nothing":
            return (
                f"undecided: {counted(self.n_contexts, 'conversation')} could be compared; the gate needs "
                f"{self.min_contexts}, and values for {MIN_COVERAGE:.0%} of either system's."
            )
        if self.verdict == "undecided":
            return (
                f"undecided: {self.n_rows} of {self.n_total} rows could be compared, by {self.paired_by}, in "
                f"{counted(self.n_contexts, 'context')}; the gate needs {MIN_COVERAGE:.0%} of the rows of both systems "
                f"and {counted(self.min_contexts, 'context')}."
            )
        if self.passed and self.at_least <= -self.margin:
            return f"passed: {self.metric} gives both systems the same values {where}."
        if self.passed:
            return f"passed: {self.metric} is {means} {where}; {bound}, above the margin of {-self.margin:+.4g}."
        if self.at_most < -self.margin:
            return f"failed: {self.metric} is worse by more than {self.margin:g}: {means} {where}; {bound}."
        if self.gain < -self.margin:
            return (
                f"failed: {self.metric} is worse by {-self.gain:.4g} on average, more than the margin of "
                f"{self.margin:g}, but not significantly: {means} {where}; {bound}, and at most {self.at_most:+.4g}. "
                "More rows are needed."
            )
        return (
            f"failed: {self.metric} is {means} {where}, which does not rule out that it is worse by more than "
            f"{self.margin:g}: {bound}. More rows or a wider margin are needed."
        )

    @property
    def fell(self) -> str:
        """The aspect that fell most, in a sentence; empty where none fell or the metric has none."""
        aspect, gain = next(iter(self.aspects.items()), ("", 0.0))
        return f"the aspect that fell most is {aspect.replace('_', ' ')}: {gain:+.4g}." if gain < 0 else ""

    @property
    def warnings(self) -> list[str]:
        """What a reader should know beside the verdict."""
        found = []
        if self.n_contexts < MIN_CONTEXTS:
            few = f"only {counted(self.n_contexts, 'context')}"
            found.append(f"{few}; with {MIN_CONTEXTS} or more the gate sees smaller losses")
        if self.n_alone:
            found.append(f"{counted(self.n_alone, 'row')} without a partner left out")
        if self.n_without_value:
            found.append(f"{counted(self.n_without_value, 'row')} without a value left out")
        return [*found, *self.cautions]

    def to_dict(self) -> dict[str, Any]:
        """All figures and the sentence, for JSON."""
        found = {"passed": self.passed, **asdict(self), "sentence": self.sentence, "warnings": self.warnings}
        return {name: plain(value) for name, value in found.items()}

    def to_markdown(self) -> str:
        """A comment for a pull request."""
        mark = "✅" if self.passed else "❌"
        header, row = self._table()
        lines = [
            f"### {mark} dialeval gate: {self.metric}",
            "",
            self.sentence,
            "",
            *markdown_table(header, [row]),
            "",
            *([self.fell[0].upper() + self.fell[1:], ""] if self.fell else []),
            *(markdown_table(*self._worst_table(), left=(0, 1, 2, 5, 6)) if self.worst else []),
            "",
            *(f"- {one}" for one in self.warnings),
            f"<sub>{self.signature}</sub>",
        ]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence and the figures."""
        header, row = self._table()
        warnings = "".join(f"<p>⚠ {escape(one)}</p>" for one in self.warnings)
        return f"<div><p>{escape(self.sentence)}</p>{to_html([Table(header, [row])])}{warnings}</div>"

    def _table(self) -> tuple[list[str], list[str]]:
        header = ["", "new", "baseline", "gain", "at least", "margin", "rows", "contexts"]
        means = [f"{self.mean_new:.4g}", f"{self.mean_baseline:.4g}"]
        gains = [f"{self.gain:+.4g}", f"{self.at_least:+.4g}", f"{-self.margin:+.4g}"]
        return header, [self.metric, *means, *gains, str(self.n_rows), str(self.n_contexts)]

    def _worst_table(self) -> tuple[list[str], list[list[str]]]:
        header = ["row", "asked", "reply", "new", "baseline", "weakest aspects", "reason"]
        rows = []
        for one in self.worst:
            turn = f", turn {one.weakest_turn}" if one.weakest_turn else ""
            texts = [(one.id or str(one.row)) + turn, *(one_line(text)[:100] for text in (one.asked, one.response))]
            baseline = "" if math.isnan(one.baseline) else f"{one.baseline:.4g}"
            rows.append([*texts, f"{one.value:.4g}", baseline, weakest_aspects(one.aspects), one.reason])
        return header, rows

    @property
    def report(self) -> str:
        """The sentence, the aspect that fell most and the rows that lost most, a line each."""
        return "\n".join(filter(None, (self.sentence, self.fell, *map(" | ".join, self._worst_table()[1]))))

    def to_junit(self) -> str:
        """A JUnit report with one test, which CI services show beside others."""
        failure = (
            "" if self.passed else f"<failure message={quoteattr(self.sentence)}>{escape(self.sentence)}</failure>"
        )
        inner = f"{failure}<system-out>{escape(self.report)}</system-out>"
        return _junit(f"{self.metric} is not worse by more than {self.margin:g}", inner, failures=int(not self.passed))


def error_as_junit(message: str) -> str:
    """The report of a gate that could not answer: one test, which ended in an error."""
    message = one_line(message)
    return _junit("the gate could be asked", f"<error message={quoteattr(message)}>{escape(message)}</error>", errors=1)


def error_as_markdown(message: str) -> str:
    """The comment for a pull request where the gate could not answer."""
    return f"### ❌ dialeval gate: error\n\n{one_line(message)}\n"


def _junit(name: str, inner: str, failures: int = 0, errors: int = 0) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="dialeval gate" tests="1" failures="{failures}" errors="{errors}">'
        f'<testcase classname="dialeval.gate" name={quoteattr(name)}>{inner}</testcase></testsuite>\n'
    )


def gate(
    new: Rows,
    baseline: Rows,
    metric: str | Metric = "judge",
    *,
    margin: float,
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
        confidence: of the one-sided bound.
        min_contexts: with fewer contexts the verdict is `undecided`.
        scale: `native`, or `human_percentile` where the metric has it.
        level: `dialogue` judges whole conversations, which are paired if they share their ids.
        resamples: of the bootstrap over contexts.
        seed: of the bootstrap.
        names: how messages call both sides.
        columns: FIELD: COLUMN where names differ, for both sides.
        progress: show a bar while scoring.
    """
    if not (isinstance(margin, int | float | np.floating) and math.isfinite(margin) and margin >= 0):
        raise ValueError(f"margin is {margin!r}; the accepted loss must be a number, zero or more")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must be between 0.5 and 1")
    if resamples < 100:
        raise ValueError(f"{resamples} resamples are too few for a bound; use 1000 or more")
    called = names or (_named(new, "the new rows"), _named(baseline, "the baseline"))
    loaded = load(metric) if isinstance(metric, str) else metric
    low, high = (0.0, 1.0) if scale == "human_percentile" else loaded.info.range
    if margin >= high - low:
        raise ValueError(
            f"margin is {margin:g}, but {loaded.info.name} lies between {low:g} and {high:g} (scale {scale}), so that "
            "no loss could exceed it; pass a smaller margin"
        )
    (first, n_new), (second, n_old) = (read_counted(rows, level, columns) for rows in (new, baseline))
    skipped = zip(called, (n_new - len(first), n_old - len(second)), strict=True)
    notes = [f"{name}: {counted(n, 'row')} in other languages left out" for name, n in skipped if n]
    together: Any = pair_conversations if level == "dialogue" else pair
    pairs: Pairs | None = together(first, second, called)
    if pairs is not None:
        first, second = [first[at] for at in pairs.first], [second[at] for at in pairs.second]
    scored = [score_items(loaded, rows, scale=scale, progress=progress) for rows in (first, second)]
    for name, items, scores in zip(called, (first, second), scored, strict=True):
        seen = FirstRows()  # scores of conversations do not hold them, so that their turns are looked at here
        seen.see(items)
        notes += [f"{name}: {one}" for one in scores.warnings or seen.messages()]
    found = gate_values(
        loaded, pairs, (scored[0].values, scored[1].values), (n_new, n_old), margin=margin,
        confidence=confidence, min_contexts=min_contexts, resamples=resamples, seed=seed, scale=scale,
        cautions=tuple(notes), signature=str(scored[0].signature),
    )  # fmt: skip
    turned = 1.0 if found.higher_is_better else -1.0
    beside = scored[1].values if pairs else np.full(len(first), np.nan)
    gains = turned * (scored[0].values - (beside if pairs else found.mean_baseline))
    return replace(
        found,
        aspects=_aspect_gains(scored[0], scored[1], turned, pairs is not None),
        worst=_worst(first, pairs.first if pairs else np.arange(len(first)), scored[0], beside, gains),
    )


def gate_values(
    metric: Metric,
    pairs: Pairs | None,
    values: tuple[Vector, Vector],
    n_rows: tuple[int, int],
    *,
    margin: float,
    confidence: float = 0.95,
    min_contexts: int = MIN_CONTEXTS,
    resamples: int = 10_000,
    seed: int = 0,
    scale: Scale = "native",
    cautions: tuple[str, ...] = (),
    signature: str = "",
) -> Gate:
    """The same from values that are there already, new and baseline: of paired rows, or each side's own.

    `n_rows` counts all rows of either side, those too that were left out before anything was scored.
    """
    x, y = (np.asarray(one, dtype=np.float64) for one in values)
    known = (np.isfinite(x), np.isfinite(y))
    n_without_value = int((~known[0]).sum() + (~known[1]).sum())
    if pairs is not None:
        known = (known[0] & known[1],) * 2
        n_without_value = int((~known[0]).sum())
    x, y = x[known[0]], y[known[1]]
    n_compared = count = min(len(x), len(y))
    if not n_compared:
        raise ValueError(f"{metric.info.name} has no value for any pair of rows; nothing can be compared")
    turned = 1.0 if metric.info.higher_is_better else -1.0
    if pairs is None:
        gain = turned * float(x.mean() - y.mean())
        drawn = turned * (_means(x, None, resamples, seed) - _means(y, None, resamples, seed + 1))
        unchanged = False
    else:
        groups = np.unique(pairs.groups[known[0]], return_inverse=True)[1].astype(np.intp)
        count = int(groups.max()) + 1
        gain = turned * float((x - y).mean())
        drawn = _means(turned * (x - y), groups, resamples, seed)
        unchanged = not (x - y).any()
    at_least = float(np.quantile(drawn, 1 - confidence))
    covered = min(len(one) / n for one, n in zip((x, y), n_rows, strict=True))
    enough = count >= min_contexts and covered >= MIN_COVERAGE
    # Equal replies pass even without a margin.
    not_worse = at_least > -margin or unchanged
    return Gate(
        verdict=("passed" if not_worse else "failed") if enough else "undecided",
        metric=metric.info.name, higher_is_better=metric.info.higher_is_better, margin=margin,
        mean_new=float(x.mean()), mean_baseline=float(y.mean()), gain=gain, at_least=at_least,
        at_most=float(np.quantile(drawn, confidence)), confidence=confidence,
        p=(int(np.sum(drawn <= -margin)) + 1) / (resamples + 1), n_rows=n_compared, n_contexts=count,
        n_total=max(n_rows), min_contexts=min_contexts, paired_by=pairs.by if pairs else "nothing",
        n_alone=pairs.alone if pairs else 0, n_without_value=n_without_value, cautions=cautions, scale=scale,
        signature=signature,
    )  # fmt: skip


def _means(values: Vector, groups: NDArray[np.intp] | None, resamples: int, seed: int) -> Vector:
    """Means of resampled contexts."""
    own = np.arange(len(values)) if groups is None else groups
    count = int(own.max()) + 1
    found = bootstrap({"": mean_of(values, own, count)}, count, resamples=resamples, seed=seed, rows=len(values))
    return found[""]


def _aspect_gains(new: Scores, old: Scores, turned: float, paired: bool) -> dict[str, float]:
    found = {}
    for name in new.aspects.keys() & old.aspects.keys():
        x, y = new.aspects[name], old.aspects[name]
        known = np.isfinite(x), np.isfinite(y)
        if paired:  # rows where both have it
            known = (known[0] & known[1],) * 2
        if known[0].any() and known[1].any():
            found[name] = turned * float(x[known[0]].mean() - y[known[1]].mean())
    return dict(sorted(found.items(), key=lambda pair: (pair[1], pair[0])))


def _worst(
    rows: Sequence[Exchange | Dialogue], numbers: NDArray[np.intp], new: Scores, old: Vector, gains: Vector
) -> tuple[WorseRow, ...]:
    found = []
    for at in (one for one in new.weakest(N_WORST, gains) if gains[one] < 0):
        turn, turns = new.weakest_turn(at), tuple(map(float, new.turns[at])) if new.turns else ()
        aspects = {name: float(column[at]) for name, column in new.aspects.items() if np.isfinite(column[at])}
        found.append(WorseRow(
            rows[at].id, int(numbers[at]), *turn_at(rows[at], turn), float(new.values[at]), float(old[at]), aspects,
            new.reasons[at] if new.reasons else "", None if turn < 0 else turn + 1, turns,
        ))  # fmt: skip
    return tuple(found)


def _named(rows: Rows, otherwise: str) -> str:
    from pathlib import Path

    return str(rows) if isinstance(rows, str | Path) else otherwise
