"""What all reference-based baselines share: how several references become one value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo

Aggregation = Literal["single", "avg", "max", "standard"]
Values = NDArray[np.float64]


class ReferenceMetric(Metric):
    """A metric that compares the response with references.

    `aggregation` says how several references count: `single` looks at the first only, `avg` and
    `max` score each alone, `standard` is the metric's own rule for several (clipped counts in BLEU),
    which some metrics do not have.
    """

    default_aggregation: ClassVar[Aggregation] = "max"
    has_own_rule: ClassVar[bool] = False

    @staticmethod
    def declared(name: str, title: str, summary: str, citation: str, *, low: float = 0.0) -> MetricInfo:
        """What such a metric is, with values up to 1, which are those of the same text."""
        return MetricInfo(name, title, Level.TURN, True, (low, 1.0), summary, frozenset({"references"}), citation)

    def __init__(self, aggregation: Aggregation | None = None) -> None:
        self.aggregation: Aggregation = aggregation or self.default_aggregation
        if self.aggregation not in get_args(Aggregation):
            raise ValueError(f"aggregation is {aggregation!r}; it must be one of {', '.join(get_args(Aggregation))}")
        if self.aggregation == "standard" and not self.has_own_rule:
            raise ValueError(f"{self.info.name} has no rule of its own for several references; use avg, max or single")

    @abstractmethod
    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """One value per candidate. More than one reference comes only with the metric's own rule."""

    @abstractmethod
    def options(self) -> Mapping[str, str]:
        """The parts of the signature that belong to this metric."""

    def count_truncated(self, exchanges: Sequence[Exchange]) -> int:
        """Rows of which the metric does not see everything; word metrics see all."""
        return 0

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Compare each response with its references, the same pair of texts only once."""
        if self.aggregation == "standard":
            rows = [(exchange.response, exchange.references) for exchange in exchanges]
        elif self.aggregation == "single":
            rows = [(exchange.response, exchange.references[:1]) for exchange in exchanges]
        else:
            rows = [(exchange.response, (text,)) for exchange in exchanges for text in exchange.references]
        distinct = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        candidates, references = [row[0] for row in distinct], [row[1] for row in distinct]
        values = self.compare(candidates, references, progress=progress)[[distinct[row] for row in rows]]
        if self.aggregation in ("avg", "max"):
            values = fold(values, [len(exchange.references) for exchange in exchanges], self.aggregation)
        return Judged(values=values, n_truncated=self.count_truncated(exchanges))

    def signature(self) -> Signature:
        """Name, how references are aggregated, and the metric's own options."""
        return Signature({"metric": self.info.name, "refs": self.aggregation, **self.options()})


def fold(values: Values, sizes: Sequence[int], how: str) -> Values:
    """Mean or maximum over each row's references; a reference with which nothing compares (NaN) is left out."""
    combine = np.max if how == "max" else np.mean
    folded = np.full(len(sizes), np.nan)
    ends = np.cumsum(sizes)
    for row, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        of_row = values[end - size : end]
        if len(known := of_row[~np.isnan(of_row)]):
            folded[row] = combine(known)
    return folded


def require_library(module: str) -> None:
    """Fail as an import would, without the seconds that importing a heavy library takes.

    `dialeval info` looks at every metric's class; only who makes a metric pays for its library.
    """
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def library_version(name: str) -> str:
    """`name-version` for a signature, because libraries change their numbers."""
    return f"{name}-{version(name)}"
