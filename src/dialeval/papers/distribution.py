"""What the metrics that compare a system's replies with human ones as two sets have in common."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dialeval.checkpoints.config import current_versions
from dialeval.checkpoints.find import file_sha256
from dialeval.core.exchange import BadRow, Exchange, is_blank
from dialeval.core.scores import Scores, Signature
from dialeval.papers.feature_set import FeatureSet, FrozenFeatures, check_made_alike, digest, read_side, write_side
from dialeval.readers import is_file_of_rows, read_exchanges
from dialeval.registry.interface import Judged, Metric
from dialeval.statistics.moments import Moments

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
#: Counts drawn at once, so that memory does not grow with resamples times contexts.
_BLOCK = 2_000_000


@dataclass(frozen=True)
class SystemComparison:
    """One system against people: its value, how far resampled contexts move it, and what lies behind it."""

    value: float
    low: float
    high: float
    facts: Mapping[str, Any]


class DistributionMetric(Metric):
    """One value per system, or one for all rows if no systems are named.

    All systems of a call are held against the same human side: the references of all its rows, at
    most `references_per_query` of each, drawn at random. A query that several systems answer counts
    once. `reference` replaces them: a file of rows whose responses people wrote, a file written by
    `save_human` or `FbdState.save`, or a checkpoint that brings a human side.

    Args:
        checkpoint: the pretrained encoder, a folder or a name on the Hub; by default the one at hand. A trained
            checkpoint (`deb`, a run's folder) lends its encoder.
        resamples: how often contexts are drawn anew for the interval; 0 for none.
    """

    def __init__(
        self,
        checkpoint: str | Path | None = None,
        *,
        reference: str | Path | None = None,
        references_per_query: int = 10,
        resamples: int = 1000,
        seed: int = 0,
        **options: Any,
    ) -> None:
        if references_per_query < 1 or resamples < 0:
            raise ValueError("references_per_query must be at least 1, and resamples at least 0")
        self.features = FrozenFeatures.shared(checkpoint, **options)
        #: Benchmarks that the encoder was trained on, if it is a trained checkpoint's.
        self.contaminated_by = self.features.contaminated_by
        self.references_per_query = references_per_query
        self.resamples = resamples
        self.seed = seed
        self.human: FeatureSet | Moments | None = None
        self._human_name = "call"
        if reference is not None:
            path = Path(reference).expanduser()
            self._human_name = f"{path.name}@{file_sha256(path)[:12]}" if path.is_file() else str(reference)
            if is_file_of_rows(path):
                self.human = self._in_order(_written_by_people(path))
            else:
                self.human, made_with = read_side(reference)
                check_made_alike(self.features.made_with, made_with, f"reference {reference}")

    @abstractmethod
    def compare(self, human: FeatureSet | Moments, replies: FeatureSet) -> SystemComparison:
        """The metric's rule: two sets, one value."""

    @abstractmethod
    def variant(self) -> Mapping[str, str]:
        """Options of the rule, for the signature."""

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode both sides once, then compare system by system."""
        return self.judge_encoded(self.encode(exchanges, progress=progress))

    def encode(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> EncodedRows:
        """Features of replies and references; parts of the rows can be encoded apart and merged."""
        pairs = [_pair(exchange, exchange.response) for exchange in exchanges]
        drawn = [] if self.human is not None else list(self.human_pairs(exchanges))
        features = self.features.of([*pairs, *(pair for _, pair in drawn)], progress=progress)
        return EncodedRows(
            systems=tuple(exchange.system for exchange in exchanges),
            queries=tuple(digest([*exchange.context, "", *exchange.references]) for exchange in exchanges),
            replies=features.take(np.arange(len(pairs))),
            human=features.take(np.arange(len(pairs), len(features))),
            owners=np.array([row for row, _ in drawn], dtype=np.intp),
        )

    def judge_encoded(self, encoded: EncodedRows) -> Judged:
        """One value per system from the features of all rows."""
        cut = encoded.replies.cut.copy()
        np.logical_or.at(cut, encoded.owners, encoded.human.cut)
        asked = np.flatnonzero(np.isin(encoded.owners, encoded.rows_of_queries()))
        human = encoded.human.take(asked) if self.human is None else self.human
        systems = encoded.rows_of_systems()
        values: list[float] = []
        facts: dict[str, list[Any]] = {}
        for name, rows in systems.items():
            replies = encoded.replies.take(rows)
            _check_sizes(self.info.name, name, human, replies)
            comparison = self.compare(human, replies)
            values.append(comparison.value)
            ends = {"n": len(rows), "low": comparison.low, "high": comparison.high}
            for key, fact in {**ends, **comparison.facts}.items():
                facts.setdefault(key, []).append(fact)
        details = {"confidence": CONFIDENCE, "resamples": self.resamples, **facts}
        return Judged(np.array(values), n_truncated=int(cut.sum()), details=details, ids=tuple(systems))

    def scores_of(self, encoded: EncodedRows) -> Scores:
        """The scores of rows that were encoded elsewhere."""
        return self.as_scores(self.judge_encoded(encoded))

    def human_pairs(self, exchanges: Iterable[Exchange]) -> Iterator[tuple[int, Exchange]]:
        """The references of all rows as pairs with their row; which of many are taken depends on the row alone."""
        for row, exchange in enumerate(exchanges):
            known = [reference for reference in exchange.references if not is_blank(reference)]
            if not known:
                raise BadRow(row, f"{self.info.name} compares with references and this row has none; add one")
            if len(known) > self.references_per_query:
                chance = random.Random(digest([str(self.seed), *exchange.context, *known]))
                known = chance.sample(known, self.references_per_query)
            for reference in known:
                yield row, _pair(exchange, reference)

    def save_human(self, path: str | Path, exchanges: Sequence[Exchange]) -> None:
        """Save the features of the references, as a later `reference`; the file holds no text."""
        write_side(path, self._in_order([pair for _, pair in self.human_pairs(exchanges)]), self.features.made_with)

    def _in_order(self, pairs: Sequence[Exchange]) -> FeatureSet:
        """Features of a human side; the order of its rows must not matter."""
        features = self.features.of(pairs)
        return features.take(np.argsort(features.pairs, kind="stable"))

    def check_needs(self, exchanges: Sequence[Exchange]) -> None:
        """References are needed unless the human side was given."""
        if self.human is None or not exchanges:
            super().check_needs(exchanges)

    def signature(self) -> Signature:
        """Encoder, layout, human side and the rule's options."""
        made_with = dict(self.features.made_with)
        return Signature(
            {
                "metric": self.info.name,
                "encoder": f"{self.features.name}@{made_with.pop('weights')}",
                **made_with,
                "truncation": "left",
                **self.variant(),
                "reference": self._human_name,
                "references_per_query": str(self.references_per_query),
                "seed": str(self.seed),
                **current_versions(),
            }
        )


@dataclass(frozen=True)
class EncodedRows:
    """Features of some rows, and which system and query each belongs to."""

    systems: tuple[str | None, ...]
    #: Digests of a context and its references.
    queries: tuple[int, ...]
    replies: FeatureSet
    human: FeatureSet
    #: The row of each reference.
    owners: NDArray[np.intp]

    def merge(self, other: EncodedRows) -> EncodedRows:
        """These rows, then those."""
        return EncodedRows(
            (*self.systems, *other.systems),
            (*self.queries, *other.queries),
            self.replies.merge(other.replies),
            self.human.merge(other.human),
            np.concatenate([self.owners, other.owners + len(self.systems)]),
        )

    def rows_of_systems(self) -> dict[str | None, NDArray[np.intp]]:
        """Rows of each system in the order of first occurrence; all rows under None where no system is named."""
        rows: dict[str | None, list[int]] = {}
        for row, system in enumerate(self.systems):
            rows.setdefault(system, []).append(row)
        if None in rows and len(rows) > 1:
            raise BadRow(rows[None][0], "names no system while other rows do; name it, or leave systems out")
        return {system: np.array(row, dtype=np.intp) for system, row in rows.items()}

    def rows_of_queries(self) -> NDArray[np.intp]:
        """One row of each query with its references, however many systems answer it.

        A query that one system answers twice stands in the data twice, and so it is kept twice.
        """
        answered: Counter[Any] = Counter()
        rows: dict[Any, int] = {}
        for row, (system, query) in enumerate(zip(self.systems, self.queries, strict=True)):
            answered[system, query] += 1
            rows.setdefault((query, answered[system, query]), row)
        return np.array(list(rows.values()), dtype=np.intp)


@dataclass(frozen=True)
class Contexts:
    """The contexts of both sides, numbered: what is resampled.

    Replies to one context resemble each other, so whole contexts are drawn, and a context that both
    sides answer is drawn for both. Those that only one side has are drawn among themselves.
    """

    of_human: NDArray[np.intp]
    of_replies: NDArray[np.intp]
    strata: tuple[NDArray[np.intp], ...]

    @classmethod
    def number(cls, human: NDArray[np.uint64], replies: NDArray[np.uint64]) -> Self:
        """Number the contexts by their digests, so that the order of rows does not matter."""
        known, numbers = np.unique(np.concatenate([human, replies]), return_inverse=True)
        of_human, of_replies = numbers[: len(human)], numbers[len(human) :]
        sides = np.zeros(len(known), dtype=np.intp)
        sides[of_human] += 1
        sides[of_replies] += 2
        strata = (np.flatnonzero(sides == kind) for kind in (1, 2, 3))
        return cls(of_human, of_replies, tuple(stratum for stratum in strata if len(stratum)))

    @property
    def count(self) -> int:
        """How many contexts there are."""
        return sum(len(stratum) for stratum in self.strata)

    def draw(self, resamples: int, seed: int) -> Iterator[Floats]:
        """Blocks of resamples: how often each context is drawn."""
        chance = np.random.default_rng(seed)
        step = max(1, _BLOCK // max(1, self.count))
        for start in range(0, resamples, step):
            size = min(step, resamples - start)
            counts = np.zeros((size, self.count))
            for stratum in self.strata:
                equal = np.full(len(stratum), 1 / len(stratum))
                counts[:, stratum] = chance.multinomial(len(stratum), equal, size=size)
            yield counts

    @property
    def can_vary(self) -> bool:
        """Whether a resample can differ from what was observed."""
        return any(len(stratum) > 1 for stratum in self.strata)


def _pair(exchange: Exchange, reply: str) -> Exchange:
    """Query and answer and nothing else; persona facts are no part of the query."""
    return Exchange(exchange.context, reply)


def _written_by_people(path: Path) -> list[Exchange]:
    try:
        return [_pair(row, row.response) for row in read_exchanges(path)]
    except BadRow as error:
        raise ValueError(f"reference {path}, {error}") from None


def _check_sizes(metric: str, system: str | None, human: FeatureSet | Moments, replies: FeatureSet) -> None:
    whose = "the rows gave" if system is None else f"system {system!r} gave"
    n_human = human.count if isinstance(human, Moments) else len(human)
    for kind, count, giver in (("replies", len(replies), whose), ("references", n_human, "the human side has")):
        if count < 2:
            raise ValueError(f"{metric} compares sets and needs at least 2 {kind}; {giver} {count}")
