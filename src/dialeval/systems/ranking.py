"""Which of several systems is best, by how much, and which of them cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.cautions import cautions
from dialeval.exchange import Exchange
from dialeval.metric import Level, Metric
from dialeval.registry import load
from dialeval.statistics.bootstrap import bootstrap, interval
from dialeval.statistics.corrections import holm
from dialeval.statistics.paired_tests import paired_mean_test
from dialeval.statistics.resampled import mean_of
from dialeval.systems.pairing import Pairs, Rows, context_numbers, pair, pair_by_context, read_rows

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """One system under one metric."""

    metric: str
    system: str
    #: 1 is the best cluster; systems of one cluster cannot be told apart from its best.
    cluster: int
    mean: float
    low: float
    high: float
    #: Mean share of human replies that lie below; None where the metric does not know it.
    human_percentile: float | None
    #: Share of pairs with other systems' replies to the same context that it wins, ties half.
    win_rate: float
    n_rows: int
    n_contexts: int


@dataclass(frozen=True)
class Contest:
    """A paired test of two systems under one metric; `first` is the better one."""

    metric: str
    first: str
    second: str
    #: Positive where the first is better, whatever the metric's direction.
    difference: float
    p: float
    #: After Holm, over all pairs of systems under this metric.
    p_adjusted: float
    n_rows: int
    n_contexts: int


@dataclass(frozen=True)
class Ranking:
    """What was found: systems by metric, best first, and every pair's test."""

    standings: tuple[Standing, ...]
    contests: tuple[Contest, ...]
    confidence: float
    signatures: Mapping[str, str]
    #: What misleads about the replies; see `dialeval.cautions`.
    warnings: tuple[str, ...] = ()

    def of(self, metric: str) -> list[Standing]:
        """The systems under one metric, best first."""
        return [one for one in self.standings if one.metric == metric]

    @property
    def metrics(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(one.metric for one in self.standings))

    def sentence(self, metric: str) -> str:
        """The answer under one metric."""
        rows = self.of(metric)
        best = [one.system for one in rows if one.cluster == 1]
        if len(best) == len(rows):
            return f"{metric}: {_listed(best)} cannot be told apart."
        if len(best) == 1:
            return f"{metric}: {best[0]} is best."
        return f"{metric}: {_listed(best)} are best and cannot be told apart."

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `standings` and `contests` open in pandas as they are."""
        return {
            "standings": [asdict(one) for one in self.standings],
            "contests": [asdict(one) for one in self.contests],
            "confidence": self.confidence,
            "signatures": dict(self.signatures),
            "warnings": list(self.warnings),
        }

    def to_pandas(self) -> Any:
        """The standings as a data frame."""
        import pandas

        return pandas.DataFrame([asdict(one) for one in self.standings])

    def header(self) -> list[str]:
        """Of the table that `table` gives."""
        return ["", "system", "mean", f"{self.confidence:.0%} interval", "human percentile", "wins", "rows"]

    def table(self, metric: str) -> list[list[str]]:
        """Cells of one metric's table."""
        return [
            [
                str(one.cluster),
                one.system,
                f"{one.mean:.4g}",
                f"{one.low:.4g} to {one.high:.4g}",
                "" if one.human_percentile is None else f"{one.human_percentile:.0%}",
                f"{one.win_rate:.0%}",
                str(one.n_rows),
            ]
            for one in self.of(metric)
        ]

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        lines = ["### Systems compared", ""]
        for metric in self.metrics:
            lines += [
                self.sentence(metric),
                "",
                f"| {' | '.join(self.header())} |",
                "|---:|---|---:|---|---:|---:|---:|",
            ]
            lines += [
                f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in self.table(metric)
            ]
            lines += ["", "| better | than | by | p, corrected |", "|---|---|---:|---:|"]
            for one in self.contests:
                if one.metric == metric:
                    lines.append(f"| {one.first} | {one.second} | {one.difference:.4g} | {one.p_adjusted:.4f} |")
            lines.append("")
        lines += [f"- {one}" for one in self.warnings]
        lines.append(
            "The first column numbers clusters: systems of one cluster cannot be told from its best by a paired "
            "permutation test over contexts (Holm over all pairs). Intervals resample contexts."
        )
        return "\n".join(lines) + "\n"


def rank(
    systems: Rows | Mapping[str, Rows],
    metrics: Sequence[str | Metric] = ("judge",),
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    progress: bool = False,
) -> Ranking:
    """Compare systems on replies to the same contexts.

    Args:
        systems: rows with a `system` each, or one set of rows per name.
        metrics: names or loaded metrics that judge single replies.
        confidence: of the intervals; a pair is told apart below 1 - confidence.
        resamples: of the bootstrap and of the permutation tests.
        seed: of both.
        progress: show bars while scoring.
    """
    if isinstance(systems, Mapping):
        rows = {name: read_rows(one) for name, one in systems.items()}
    else:
        rows = by_system(systems)
    if len(rows) < 2:
        raise ValueError(
            f"there is {len(rows)} system; give every row a system, or one file per system, of two systems or more"
        )
    if not metrics:
        raise ValueError("no metric was named; name at least one")
    names = list(rows)
    # In one file the context tells which replies belong together; files of their own may need ids.
    together = pair if isinstance(systems, Mapping) else pair_by_context
    pairs = {(a, b): together(rows[a], rows[b], (a, b)) for a, b in combinations(names, 2)}
    standings: list[Standing] = []
    contests: list[Contest] = []
    signatures: dict[str, str] = {}
    for wanted in metrics:
        metric = load(wanted) if isinstance(wanted, str) else wanted
        if metric.info.level is not Level.TURN:
            raise ValueError(
                f"{metric.info.name} judges a {metric.info.level}; `dialeval score` gives its value per system"
            )
        # All systems in one call: what they share is read once.
        scored = metric.score_exchanges([row for name in names for row in rows[name]], progress=progress)
        ends = np.cumsum([len(rows[name]) for name in names])[:-1]
        values = dict(zip(names, np.split(np.asarray(scored.values, dtype=np.float64), ends), strict=True))
        signatures[metric.info.name] = str(scored.signature)
        found = _contests(metric, values, pairs, resamples, seed)
        contests += found
        standings += _standings(metric, rows, values, pairs, found, confidence, resamples, seed)
    # What is cut differs by metric; the rest is the same for all.
    warnings = cautions([replace(row, system=name) for name in names for row in rows[name]])
    return Ranking(tuple(standings), tuple(contests), confidence, signatures, warnings)


def by_system(rows: Rows) -> dict[str, list[Exchange]]:
    """Rows of one file by their system."""
    found: dict[str, list[Exchange]] = {}
    for at, row in enumerate(read_rows(rows)):
        if row.system is None:
            raise ValueError(f"row {at} has no system; name the column with --columns system=..., or give a file each")
        found.setdefault(row.system, []).append(row)
    return found


def _contests(
    metric: Metric, values: Mapping[str, Vector], pairs: Mapping[tuple[str, str], Pairs], resamples: int, seed: int
) -> list[Contest]:
    turned = 1.0 if metric.info.higher_is_better else -1.0
    found = []
    for (a, b), paired in pairs.items():
        x, y = values[a][paired.first], values[b][paired.second]
        known = np.isfinite(x) & np.isfinite(y)
        if not known.any():
            raise ValueError(f"{metric.info.name} gave no pair of rows of {a} and {b} a value")
        groups = np.unique(paired.groups[known], return_inverse=True)[1].astype(np.intp)
        gap = turned * float((x - y)[known].mean())
        test = paired_mean_test(x[known], y[known], groups, resamples=resamples, seed=seed)
        first, second = (a, b) if gap >= 0 else (b, a)
        p = test.p if np.isfinite(test.p) else 1.0
        count = int(groups.max()) + 1
        found.append(Contest(metric.info.name, first, second, abs(gap), p, p, int(known.sum()), count))
    adjusted = holm([one.p for one in found])
    return [
        Contest(one.metric, one.first, one.second, one.difference, one.p, float(p), one.n_rows, one.n_contexts)
        for one, p in zip(found, adjusted, strict=True)
    ]


def _standings(
    metric: Metric,
    rows: Mapping[str, Sequence[Exchange]],
    values: Mapping[str, Vector],
    pairs: Mapping[tuple[str, str], Pairs],
    contests: Sequence[Contest],
    confidence: float,
    resamples: int,
    seed: int,
) -> list[Standing]:
    turned = 1.0 if metric.info.higher_is_better else -1.0
    means = {name: float(np.nanmean(column)) for name, column in values.items()}
    order = sorted(means, key=lambda name: -turned * means[name])
    p_of = {frozenset((one.first, one.second)): one.p_adjusted for one in contests}
    clusters = _clusters(order, p_of, 1 - confidence)
    shares = _human_shares(metric, values)
    found = []
    for name in order:
        column = values[name]
        known = np.isfinite(column)
        groups = context_numbers([row for row, there in zip(rows[name], known, strict=True) if there])
        count = int(groups.max()) + 1
        drawn = bootstrap({"mean": mean_of(column[known], groups, count)}, count, resamples=resamples, seed=seed,
                          rows=int(known.sum()))["mean"]  # fmt: skip
        spread = interval(drawn, confidence)
        found.append(
            Standing(
                metric.info.name,
                name,
                clusters[name],
                means[name],
                spread.low,
                spread.high,
                shares.get(name),
                _win_rate(name, values, pairs, turned),
                int(known.sum()),
                count,
            )
        )
    return found


def _clusters(order: Sequence[str], p_of: Mapping[frozenset[str], float], level: float) -> dict[str, int]:
    """A system opens a new cluster when it is worse than the best one of the cluster above it."""
    found: dict[str, int] = {}
    best, number = order[0], 1
    for name in order:
        if name != best and p_of[frozenset((best, name))] < level:
            best, number = name, number + 1
        found[name] = number
    return found


def _human_shares(metric: Metric, values: Mapping[str, Vector]) -> dict[str, float]:
    if "human_percentile" not in metric.scales:
        return {}
    try:
        return {name: float(np.nanmean(metric.rescale(column, "human_percentile"))) for name, column in values.items()}
    except ValueError:  # a checkpoint without quantiles
        return {}


def _win_rate(name: str, values: Mapping[str, Vector], pairs: Mapping[tuple[str, str], Pairs], turned: float) -> float:
    won, fought = 0.0, 0
    for (a, b), paired in pairs.items():
        if name in (a, b):
            gap = turned * (values[a][paired.first] - values[b][paired.second])
            gap = gap[np.isfinite(gap)] * (1 if name == a else -1)
            won += float((gap > 0).sum() + 0.5 * (gap == 0).sum())
            fought += len(gap)
    return won / fought if fought else float("nan")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
