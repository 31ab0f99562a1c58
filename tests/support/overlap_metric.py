"""A real metric without weights, for tests of what surrounds metrics: words shared with the context.

Run as a program it is the `dialeval` command with this metric registered, for tests that need a process.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import dialeval
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo


class Overlap(Metric):
    """Jaccard overlap of the words of response and context; `weight` stands for any option."""

    info = MetricInfo("overlap", "Overlap", Level.TURN, True, (0.0, 1.0), "shared words")
    scales = ("native", "human_percentile")

    def __init__(self, weight: float = 1.0, device: str = "cpu") -> None:
        self.weight = weight

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        # Slow on request, so that a test can interrupt a run in the middle; and what was judged is noted.
        time.sleep(float(os.environ.get("OVERLAP_SECONDS", "0")))
        if "OVERLAP_LOG" in os.environ:
            with open(os.environ["OVERLAP_LOG"], "a") as log:
                log.write(f"{len(exchanges)}\n")
        values = [self.weight * jaccard(exchange) for exchange in exchanges]
        return Judged(np.array(values, dtype=np.float64), n_truncated=sum("long" in e.response for e in exchanges))

    def rescale(self, values: np.ndarray, scale: str) -> np.ndarray:
        return values if scale == "native" else values / 2

    def signature(self) -> Signature:
        return Signature(metric="overlap", weight=str(self.weight))


class Quoting(Overlap):
    """Words shared with the references, which it needs."""

    info = MetricInfo("quoting", "Quoting", Level.TURN, False, (0.0, 1.0), "", needs=frozenset({"references"}))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        quoted = [Exchange(exchange.references, exchange.response) for exchange in exchanges]
        return Judged(np.array([jaccard(exchange) for exchange in quoted]))


class Faceted(Overlap):
    """Overlap with two aspects: words of the response, and of the turn that follows where there is one."""

    info = MetricInfo("faceted", "Faceted", Level.TURN, True, (0.0, 1.0), "", aspects=("words", "reaction"))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        judged = super().judge(exchanges)
        words = np.array([len(exchange.response.split()) for exchange in exchanges], dtype=np.float64)
        if all(exchange.following is None for exchange in exchanges):
            return replace(judged, aspects={"words": words})
        reaction = [len(e.following.split()) if e.following is not None else float("nan") for e in exchanges]
        return replace(judged, aspects={"words": words, "reaction": np.array(reaction)})

    def rescale_aspect(self, aspect: str, values: np.ndarray, scale: str) -> np.ndarray:
        return values if scale == "native" else values / 10


class Variety(Metric):
    """Distinct responses of a system: a metric that needs all rows at once."""

    info = MetricInfo("variety", "Variety", Level.SYSTEM, True, (0.0, 1.0), "distinct responses")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        systems = sorted({exchange.system or "all" for exchange in exchanges})
        texts = {name: [e.response for e in exchanges if (e.system or "all") == name] for name in systems}
        values = np.array([len(set(texts[name])) / len(texts[name]) for name in systems])
        return Judged(values, ids=tuple(systems))

    def signature(self) -> Signature:
        return Signature(metric="variety")


def jaccard(exchange: Exchange) -> float:
    here, there = set(exchange.response.split()), {word for turn in exchange.context for word in turn.split()}
    return len(here & there) / len(here | there) if here | there else float("nan")


def register() -> None:
    for name in ("Overlap", "Quoting", "Faceted", "Variety"):
        dialeval.register(name.lower(), f"overlap_metric:{name}")


if __name__ == "__main__":
    from dialeval.cli import main

    register()
    main()
