"""The metrics behind the page: which can score here, loaded once when first asked for, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dialeval.engine.encoding import PairEncoder
from dialeval.evaluate_module import loaded
from dialeval.exchange import Exchange
from dialeval.metric import Level, Metric, MetricInfo
from dialeval.module_page import direction
from dialeval.registry import load, metric_class, ready_approaches
from dialeval.scores import Scores

#: Metrics that are another rule of a checkpoint which is there anyway: the metric, its options, title and summary.
VARIANTS = {
    "density_classifier": (
        "density",
        {"scoring": "classifier"},
        "DENSITY classifier",
        "How surely DENSITY's own classifier takes a reply for the right one rather than for a random one.",
    )
}

#: What this process has loaded so far.
_used: dict[str, Metric] = {}


def ready(level: Level | None = None) -> list[str]:
    """The approaches that can score here and their variants, of one level or of both."""
    there = ready_approaches()
    names = [*there, *(name for name, (base, *_) in VARIANTS.items() if base in there)]
    return [name for name in names if level is None or info_of(name).level is level]


def first_choice(names: Sequence[str]) -> list[str]:
    """What is ticked to begin with: the metrics themselves, without their variants."""
    return [name for name in names if name not in VARIANTS]


def info_of(name: str) -> MetricInfo:
    """What a metric says about itself."""
    if name not in VARIANTS:
        return metric_class(name)[0].info
    base, _, title, summary = VARIANTS[name]
    return replace(metric_class(base)[0].info, name=name, title=title, summary=summary)


def titled(name: str) -> str:
    """A metric's title, with an arrow for the better direction."""
    info = info_of(name)
    return f"{info.title} {'↑' if info.higher_is_better else '↓'}"


def needs_of(names: Sequence[str]) -> frozenset[str]:
    """What any of the metrics asks of a row; of one that is not offered nothing is known."""
    offered = ready()
    return frozenset().union(*(info_of(name).needs for name in names if name in offered))


def metric_of(name: str) -> Metric:
    """A metric, loaded on first use and kept."""
    _used[name] = _variant(name) if name in VARIANTS else loaded(name)
    return _used[name]


@cache
def _variant(name: str) -> Metric:
    base, options, *_ = VARIANTS[name]
    return load(base, **options)


def forget() -> None:
    """Drop the features that metrics keep of texts, so that memory holds nobody's texts when they have their answer."""
    for metric in _used.values():
        features = getattr(metric, "features", None)
        encoders = [getattr(metric, name) for name in getattr(metric, "pair_encoders", ())]
        for encoder in [*encoders, getattr(features, "encoder", None)]:
            if isinstance(encoder, PairEncoder):
                encoder.forget()


def judge(name: str, exchanges: Sequence[Exchange]) -> Scores:
    """Score checked exchanges with one metric."""
    return metric_of(name).score_exchanges(exchanges)


def judge_dialogue(name: str, turns: Sequence[str], speakers: Sequence[str]) -> Scores:
    """Score one conversation with one metric; without speakers the sides alternate."""
    return metric_of(name).score_dialogues([turns], speakers=[speakers] if speakers else None)


def human_percentile(name: str, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The share of human replies that score lower, or None where a metric cannot tell."""
    metric = metric_of(name)
    if "human_percentile" not in metric.scales:
        return None
    try:
        return metric.rescale(values, "human_percentile")
    except ValueError:  # a checkpoint without human quantiles
        return None


def direction_of(name: str) -> str:
    """Which way is better and how far it goes, in plain text."""
    return direction(info_of(name))


def best_of(values: Sequence[float], *, higher_is_better: bool) -> set[int]:
    """Where the best values stand; ties are all best, and of one value none is."""
    finite = [value for value in values if np.isfinite(value)]
    if len(values) < 2 or not finite:
        return set()
    best = max(finite) if higher_is_better else min(finite)
    return {position for position, value in enumerate(values) if value == best}
