"""What a ranking found, and the forms in which people want it: sentences, tables, Markdown, HTML, JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from dialeval.io import markdown_table
from dialeval.notebook import html_table
from dialeval.pages import render

#: What the columns mean, wherever tables stand.
LEGEND = (
    "The first column numbers clusters: systems of one cluster cannot be told from its best by a permutation "
    "test over contexts, or conversations (Holm over all pairs). Intervals resample the same."
)


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


@dataclass(frozen=True)
class Ranking:
    """What was found: systems by metric, best first, and every pair's test."""

    standings: tuple[Standing, ...]
    pair_tests: tuple[PairTest, ...]
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
        clusters: dict[int, list[str]] = {}
        for one in self.of(metric):
            clusters.setdefault(one.cluster, []).append(one.system)
        best, *others = clusters.values()
        if not others:
            return f"{metric}: {_listed(best)} cannot be told apart."
        head = f"{best[0]} is best" if len(best) == 1 else f"{_listed(best)} are best and cannot be told apart"
        # Systems of a lower cluster were tested against its best one.
        further = [f"{_listed(names[1:])} cannot be told from {names[0]}" for names in others if len(names) > 1]
        return f"{metric}: {'; '.join([head, *further])}."

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `standings` and `pair_tests` open in pandas as they are."""
        return {
            "standings": [asdict(one) for one in self.standings],
            "pair_tests": [asdict(one) for one in self.pair_tests],
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

    def pair_test_header(self) -> list[str]:
        """Of the table that `pair_test_table` gives."""
        return ["better", "than", "by", "p", "p, corrected", "contexts", ""]

    def pair_test_table(self, metric: str) -> list[list[str]]:
        """Cells of one metric's paired tests, the surest difference first."""
        found = sorted((one for one in self.pair_tests if one.metric == metric), key=lambda one: one.p_adjusted)
        return [
            [
                one.first,
                one.second,
                f"{one.difference:.4g}",
                format_p(one.p),
                format_p(one.p_adjusted),
                str(one.n_contexts),
                "told apart" if one.p_adjusted < 1 - self.confidence else "cannot be told apart",
            ]
            for one in found
        ]

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        lines = ["### Systems compared", ""]
        for metric in self.metrics:
            lines += [self.sentence(metric), ""]
            lines += [*markdown_table(self.header(), self.table(metric), left=(1, 3)), ""]
            tests = markdown_table(self.pair_test_header(), self.pair_test_table(metric), left=(0, 1, 6))
            lines += [*tests, ""]
        lines += [f"- {one}" for one in self.warnings]
        lines += ["", LEGEND] if self.warnings else [LEGEND]
        lines += ["", *(f"`{signature}`" for signature in self.signatures.values())]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """What a notebook shows: for each metric the sentence and both tables."""
        parts = []
        for metric in self.metrics:
            parts.append(f"<p><b>{escape(self.sentence(metric))}</b></p>")
            parts.append(html_table(self.header(), self.table(metric)))
            parts.append(html_table(self.pair_test_header(), self.pair_test_table(metric)))
        parts += [f"<p>⚠ {escape(one)}</p>" for one in self.warnings]
        return f"<div>{''.join(parts)}<p><small>{escape(LEGEND)}</small></p></div>"

    def to_html(self) -> str:
        """A page of its own that needs no other file."""
        return render(
            Path(__file__).with_name("ranking.html.jinja"), ranking=self, legend=LEGEND, html_table=html_table
        )


def format_p(p: float) -> str:
    """A p-value to three decimals; very small is not nothing."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
