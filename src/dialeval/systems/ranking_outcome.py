"""What a ranking found, and the forms in which people want it: sentences, tables, Markdown, HTML, JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dialeval.core.exchange import listing
from dialeval.io.harmless import one_line
from dialeval.io.tables import Block, Heading, Items, Table, to_html, to_markdown, to_page, to_text

#: How often a difference that can be seen is found, and equal systems pass a gate with the contexts that it asks for.
POWER = 0.8
#: An aspect that is lower by less shows as no difference in two decimals.
SHOWN_FROM = 0.005
#: What the columns mean, wherever tables stand.
LEGEND = (
    "The first column numbers clusters: systems of one cluster cannot be told from its best by a permutation "
    "test over contexts, or conversations (Holm over all pairs). Intervals resample the same. “Seen from” is the "
    "difference that this test finds four times in five with as many contexts that vary like these."
)
OF_ASPECTS = "↓: lower than the system that is best in this aspect, by the same test (Holm over aspects and systems)."


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
    #: Share of pairs with other systems' replies to the same context that it wins, ties half; of conversations that
    #: do not belong together, of all pairs.
    win_rate: float
    n_rows: int
    n_contexts: int
    #: Mean of each aspect that its replies have, and those in which it lies below the system that is best in them.
    aspects: Mapping[str, float] = field(default_factory=dict)
    lower: tuple[str, ...] = ()

    def aspect_cell(self, name: str) -> str:
        """An aspect's mean as tables show it; empty where its replies have none."""
        mark = " ↓" if name in self.lower else ""
        return f"{self.aspects[name]:.3f}{mark}" if name in self.aspects else ""


@dataclass(frozen=True)
class PairTest:
    """A test of two systems under one metric, paired where their rows are; `first` is the better one."""

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
    #: The difference that this test would find four times in five (power), corrected for the number of pairs.
    seen_from: float = float("nan")


@dataclass(frozen=True)
class Ranking:
    """What was found: systems by metric, best first, and every pair's test."""

    standings: tuple[Standing, ...]
    pair_tests: tuple[PairTest, ...]
    confidence: float
    signatures: Mapping[str, str]
    #: What misleads about the replies; see `dialeval.core.cautions`.
    warnings: tuple[str, ...] = ()

    def of(self, metric: str) -> list[Standing]:
        """The systems under one metric, best first."""
        return [standing for standing in self.standings if standing.metric == metric]

    @property
    def metrics(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(standing.metric for standing in self.standings))

    def sentence(self, metric: str) -> str:
        """The answer under one metric."""
        clusters: dict[int, list[str]] = {}
        for standing in self.of(metric):
            clusters.setdefault(standing.cluster, []).append(standing.system)
        best, *others = clusters.values()
        if not others:
            return one_line(f"{metric}: {listing(best)} cannot be told apart.")
        head = f"{best[0]} is best" if len(best) == 1 else f"{listing(best)} are best and cannot be told apart"
        # Systems of a lower cluster were tested against its best one.
        further = [f"{listing(names[1:])} cannot be told from {names[0]}" for names in others if len(names) > 1]
        return one_line(f"{metric}: {'; '.join([head, *further])}.")

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `standings` and `pair_tests` open in pandas as they are."""
        return {
            "standings": [asdict(standing) for standing in self.standings],
            "pair_tests": [asdict(test) for test in self.pair_tests],
            "confidence": self.confidence,
            "signatures": dict(self.signatures),
            "warnings": list(self.warnings),
        }

    def to_pandas(self) -> Any:
        """The standings as a data frame."""
        import pandas

        return pandas.DataFrame([asdict(standing) for standing in self.standings])

    def __str__(self) -> str:
        return to_text([block for metric in self.metrics for block in self.tables(metric)[:2]])

    def tables(self, metric: str, *, aspects: bool = False) -> list[Block]:
        """The answer under one metric: a sentence, the systems, their tests, the surest difference first.

        The aspects stand between them where they are asked for.
        """
        header = ["", "system", "mean", f"{self.confidence:.0%} interval", "human percentile", "wins", "rows"]
        rows = [[
            str(standing.cluster), standing.system, f"{standing.mean:.4g}",
            f"{standing.low:.4g} to {standing.high:.4g}",
            "" if standing.human_percentile is None else f"{standing.human_percentile:.0%}",
            f"{standing.win_rate:.0%}", str(standing.n_rows),
        ] for standing in self.of(metric)]  # fmt: skip
        tests = [[
            test.first, test.second, f"{test.difference:.4g}", format_p(test.p), format_p(test.p_adjusted),
            f"{test.seen_from:.2g}" if math.isfinite(test.seen_from) else "", str(test.n_contexts),
            "told apart" if test.p_adjusted < 1 - self.confidence else "cannot be told apart",
        ] for test in sorted(self.pair_tests, key=lambda test: test.p_adjusted) if test.metric == metric]  # fmt: skip
        pairs = ["better", "than", "by", "p", "p, corrected", "seen from", "contexts", ""]
        of_pairs, of_aspects = Table(pairs, tests, (0, 1, 7), "tests by pair"), self._aspects(metric) if aspects else []
        return [self.sentence(metric), Table(header, rows, (1, 3)), *of_aspects, of_pairs]

    def _aspects(self, metric: str) -> list[Block]:
        standings = self.of(metric)
        names = list(dict.fromkeys(name for standing in standings for name in standing.aspects))
        if not names:
            return []
        rows = [[standing.system, *(standing.aspect_cell(name) for name in names)] for standing in standings]
        return [Table(["", *(name.replace("_", " ") for name in names)], rows, title="aspects"), OF_ASPECTS]

    def document(self) -> list[Block]:
        """All that was found."""
        parts = [block for metric in self.metrics for block in self.tables(metric, aspects=True)]
        warnings = [Items(self.warnings)] if self.warnings else []
        return [*parts, *warnings, LEGEND, "\n".join(f"`{signature}`" for signature in self.signatures.values())]

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        return to_markdown([Heading("Systems compared", 3), *self.document()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<div>{to_html(self.document())}</div>"

    def to_html(self) -> str:
        """A page of its own that needs no other file."""
        return to_page("Systems compared", self.document())


def format_p(p: float) -> str:
    """A p-value to three decimals; very small is not nothing."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
