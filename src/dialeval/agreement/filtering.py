"""What a metric is worth as a filter, on ratings of one's own.

Does its worst tenth hold what people rated worst, and do both agree on what lies below a threshold?
"""

from __future__ import annotations

import math

import numpy as np

from dialeval.agreement.judgements import View, cuts, view_of
from dialeval.agreement.prepare import PreparedBenchmark, ScoredMetric
from dialeval.agreement.results import PRECISE, Filtering
from dialeval.agreement.settings import Settings
from dialeval.benchmarks.base import OWN_FILE
from dialeval.statistics.bootstrap import bootstrap as resample
from dialeval.statistics.bootstrap import interval
from dialeval.statistics.correlation import Floats

#: The part of the rows that a filter sets aside.
WORST = 0.1


def as_filter(scored: ScoredMetric, stage: PreparedBenchmark, settings: Settings) -> list[Filtering]:
    """A metric as a filter on a user's own ratings; nothing for the known benchmarks and for labels."""
    info = stage.benchmark.info
    if info.kind != "ratings" or not any(source.repository == OWN_FILE for source in info.sources):
        return []
    filterings = []
    for cut in cuts(stage.judged, settings):
        view = view_of(scored.column, cut, stage.judged)
        if cut.level == "system" or len(view.values) < 2:
            continue
        scale = info.aspects[cut.aspect]
        sign = 1.0 if scored.source.higher_is_better else -1.0
        filterings.append(_filtering((scored.source.name, info.name, cut.aspect), view, scale.middle, sign, settings))
    return filterings


def _filtering(names: tuple[str, str, str], view: View, bad_below: float, sign: float, settings: Settings) -> Filtering:
    n = len(view.values)
    n_worst = max(1, round(WORST * n))
    order = np.argsort(view.values, kind="stable")
    is_worst = view.human <= np.sort(view.human)[n_worst - 1]
    bad = view.human < bad_below
    n_bad = int(bad.sum())
    marked = np.zeros(n, dtype=bool)
    marked[order[:n_bad]] = True
    edges = view.values[order[max(0, n_bad - 1) : n_bad + 1]]
    cells = np.stack([np.bincount(view.groups, both, view.n_groups) for both in (
        bad & marked, bad & ~marked, ~bad & marked, ~bad & ~marked
    )], axis=1)  # fmt: skip
    kappa = float(_kappa(cells.sum(axis=0)[None])[0])
    spread = interval(np.empty(0))
    if math.isfinite(kappa) and settings.resamples:
        drawn = resample(
            {"": lambda counts: _kappa(counts @ cells)}, view.n_groups, resamples=settings.resamples, seed=settings.seed
        )
        spread = interval(drawn[""], settings.confidence)
    needed = n * ((spread.high - spread.low) / 2 / PRECISE) ** 2
    return Filtering(
        *names, n, n_worst, int(is_worst[order[:n_worst]].sum()), n_worst * float(is_worst.mean()), bad_below,
        n_bad / n, sign * float(edges.mean()), kappa, spread.low, spread.high,
        math.ceil(needed / 10) * 10 if math.isfinite(needed) else None,
    )  # fmt: skip


def _kappa(cells: Floats) -> Floats:
    """Cohen's kappa of rows of four counts: both, first only, second only, neither."""
    both, first, second, neither = cells.T
    with np.errstate(divide="ignore", invalid="ignore"):
        n = cells.sum(axis=1)
        agreed = (both + neither) / n
        chance = ((both + first) * (both + second) + (neither + second) * (neither + first)) / n**2
        return np.asarray((agreed - chance) / (1 - chance))
