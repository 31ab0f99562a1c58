"""A metric of one's own: the share of a reply's sentences that are questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from dialeval import Exchange, Signature
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


class Questions(Metric):
    """What share of a reply's sentences ask something; options of a metric are arguments of its constructor."""

    info = MetricInfo(
        name="questions",
        title="Questions",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="The share of a reply's sentences that are questions.",
    )

    def __init__(self, *, last_only: bool = False) -> None:
        self.last_only = last_only

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """A value per exchange, NaN where a reply has no sentence."""
        return Judged(np.array([self._share(exchange.response) for exchange in exchanges], dtype=np.float64))

    def signature(self) -> Signature:
        """Whatever changes a value belongs here."""
        parts = {"metric": self.info.name, "last_only": str(self.last_only).lower()}
        return Signature({**parts, "dialeval-questions": version("dialeval-questions")})

    def _share(self, response: str) -> float:
        sentences = [sentence for sentence in _SENTENCE.findall(response) if sentence.strip()]
        if self.last_only:
            sentences = sentences[-1:]
        return float(np.mean([sentence.endswith("?") for sentence in sentences])) if sentences else float("nan")
