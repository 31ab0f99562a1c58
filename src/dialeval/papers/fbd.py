"""FBD, the Fréchet BERT distance: how far a system's replies lie from human ones, as two clouds of features.

Each cloud of (context, reply) features is taken for a Gaussian; the distance is that of the two
Gaussians. Nothing is trained. Small samples inflate the value, so compare systems at equal n.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.papers.distribution import CONFIDENCE, Contexts, DistributionMetric, SystemComparison
from dialeval.papers.feature_set import FeatureSet, check_made_alike, read_side, write_side
from dialeval.registry.interface import Level, MetricInfo
from dialeval.statistics.bootstrap import interval
from dialeval.statistics.moments import Moments

MeanTerm = Literal["squared", "norm"]
Floats = NDArray[np.float64]


# --- the two Gaussians -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Gaussian:
    """Mean and a root of the covariance: `root.T @ root` is Σ.

    There is one row of the root per direction of spread, which is n - 1 at most. Keeping the root
    and never Σ itself is what keeps singular covariances (n < d is the rule here) harmless.
    """

    mean: Floats
    root: Floats

    @classmethod
    def of_rows(cls, rows: NDArray[Any]) -> Self:
        """Of a data set. With fewer rows than dimensions the centred rows themselves are the root, exactly."""
        block = _checked(rows)
        if block.shape[0] > block.shape[1]:
            return cls.of_moments(Moments.of(block))
        mean = block.mean(axis=0)
        return cls(mean, (block - mean) / np.sqrt(len(block) - 1))

    @classmethod
    def of_moments(cls, moments: Moments) -> Self:
        """Of a state whose rows were not kept; the covariance has divisor n - 1."""
        return cls.of_covariance(moments.mean, moments.covariance(ddof=1), rank=moments.count - 1)

    @classmethod
    def of_covariance(cls, mean: Floats, covariance: Floats, *, rank: int | None = None) -> Self:
        """By symmetric eigendecomposition; what is negative or lost in rounding counts as no spread."""
        values, vectors = np.linalg.eigh(covariance)
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        if rank is not None:
            kept[: max(0, len(values) - rank)] = False
        return cls(np.asarray(mean, dtype=np.float64), np.sqrt(values[kept])[:, None] * vectors[:, kept].T)


# --- the distance ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distance:
    """The two parts of a Fréchet distance."""

    of_means: float
    of_spreads: float

    @property
    def total(self) -> float:
        """The distance."""
        return self.of_means + self.of_spreads


def frechet_distance(x: Gaussian, y: Gaussian, *, mean_term: MeanTerm = "squared") -> Distance:
    """‖μx − μy‖² + Tr(Σx + Σy − 2(ΣxΣy)^½).

    The trace of the last term is the sum of the singular values of the product of the two roots, a
    matrix without squared condition: no complex numbers, no offset on the diagonal, at least zero.

    The paper prints the first norm without its square (`norm`). Its code squares it, and only so
    does the value scale by c² when all features do by c; hence the default.
    """
    offset = float(np.linalg.norm(x.mean - y.mean))
    singular = np.linalg.svd(x.root @ y.root.T, compute_uv=False)
    spreads = (x.root**2).sum() + (y.root**2).sum() - 2 * singular.sum()
    return Distance(offset**2 if mean_term == "squared" else offset, max(0.0, float(spreads)))


def influences(
    rows_x: NDArray[Any], x: Gaussian, y: Gaussian, rows_y: NDArray[Any] | None, *, mean_term: MeanTerm = "squared"
) -> tuple[Floats, Floats | None]:
    """How much each row moves the distance, to first order, when its weight grows.

    The change of the sum of singular values with the weights of the rows of x is read off the left
    singular vectors, with those of y off the right ones.
    """
    left, singular, right = np.linalg.svd(x.root @ y.root.T, full_matrices=False)
    offset = x.mean - y.mean
    if mean_term == "norm":
        offset = offset / max(2 * float(np.linalg.norm(offset)), np.finfo(np.float64).tiny)
    of_x = _influence(_checked(rows_x), x, offset, left, singular)
    of_y = None if rows_y is None else _influence(_checked(rows_y), y, -offset, right.T, singular)
    return of_x, of_y


def _influence(rows: Floats, gaussian: Gaussian, offset: Floats, vectors: Floats, singular: Floats) -> Floats:
    centred = rows - gaussian.mean
    if len(gaussian.root) == len(rows):  # the root is made of these rows
        transported = (len(rows) - 1) * (vectors**2 @ singular)
    else:
        whitened = centred @ gaussian.root.T / (gaussian.root**2).sum(axis=1)
        transported = (whitened @ vectors) ** 2 @ singular
    spread = (centred**2).sum(axis=1) - transported
    change = 2 * centred @ offset + spread * len(rows) / (len(rows) - 1)
    influence: Floats = (change - change.mean()) / len(rows)
    return influence


# --- mergeable state -------------------------------------------------------------------------------


@dataclass
class FbdState:
    """What FBD needs of one side: how many rows, their mean, their scatter. States of shards add up."""

    made_with: Mapping[str, str]
    moments: Moments = field(default_factory=Moments)

    def update(self, rows: NDArray[Any]) -> Self:
        """Add a block of features."""
        self.moments.update(rows)
        return self

    def merge(self, other: FbdState) -> Self:
        """Add another shard's state, as if its rows had been seen here."""
        check_made_alike(self.made_with, other.made_with, "the other state")
        self.moments.merge(other.moments)
        return self

    def save(self, path: str | Path) -> None:
        """Write it to one file, which `load` reads and FBD takes as `reference`."""
        write_side(path, self.moments, self.made_with)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a saved state."""
        side, made_with = read_side(path)
        return cls(made_with, side if isinstance(side, Moments) else Moments.of(side.rows))


# --- the metric ------------------------------------------------------------------------------------


class Fbd(DistributionMetric):
    """The distance of a system from people; closer to zero is better."""

    info = MetricInfo(
        name="fbd",
        title="FBD",
        level=Level.SYSTEM,
        higher_is_better=False,
        range=(0.0, float("inf")),
        summary="Fréchet distance between the features of a system's replies and of human ones, each with its context. "
        "Two samples of the same people do not reach 0 but what their size allows: compare at equal size.",
        needs=frozenset({"contexts", "references"}),
        citation="Xiang et al. 2021, Assessing Dialogue Systems with Distribution Distances",
    )

    def __init__(
        self, checkpoint: str | Path | None = None, *, mean_term: MeanTerm = "squared", **options: Any
    ) -> None:
        if mean_term not in get_args(MeanTerm):
            raise ValueError(f"mean_term is {mean_term!r}; it is 'squared' or 'norm'")
        super().__init__(checkpoint, **options)
        self.mean_term = mean_term

    def compare(self, human: FeatureSet | Moments, replies: FeatureSet) -> SystemComparison:
        """The distance, its parts, and the interval that resampled contexts give."""
        theirs = Gaussian.of_moments(human) if isinstance(human, Moments) else Gaussian.of_rows(human.rows)
        ours = Gaussian.of_rows(replies.rows)
        n_human = human.count if isinstance(human, Moments) else len(human)
        _warn_if_small(min(n_human, len(replies)), len(ours.mean))
        distance = frechet_distance(theirs, ours, mean_term=self.mean_term)
        low, high = self._interval(distance.total, human, theirs, replies, ours)
        facts = {"n_reference": n_human, "of_means": distance.of_means, "of_spreads": distance.of_spreads}
        return SystemComparison(distance.total, low, high, {**facts, "dimensions": len(ours.mean)})

    def state(self, exchanges: Iterable[Exchange]) -> FbdState:
        """The state of a shard's replies, in bounded memory."""
        return self._reduced(Exchange(exchange.context, exchange.response) for exchange in exchanges)

    def human_state(self, exchanges: Iterable[Exchange]) -> FbdState:
        """The state of a shard's references."""
        return self._reduced(pair for _, pair in self.human_pairs(exchanges))

    def compute(self, state: FbdState, reference: FbdState | None = None) -> float:
        """The distance of two states; without the second, from the saved human side."""
        if reference is None and self.human is None:
            raise ValueError("there is no human side; pass a state of references, or load fbd with reference=")
        human = self.human if reference is None else reference.moments
        if isinstance(human, FeatureSet):
            human = Moments.of(human.rows)
        assert human is not None
        made_with = self.features.made_with if reference is None else reference.made_with
        check_made_alike(state.made_with, made_with, "the human side")
        for side, moments in (("replies", state.moments), ("references", human)):
            if moments.count < 2:
                raise ValueError(f"fbd needs a state of at least 2 {side}, not of {moments.count}")
        _warn_if_small(min(state.moments.count, human.count), len(human.mean))
        sides = (Gaussian.of_moments(human), Gaussian.of_moments(state.moments))
        return frechet_distance(*sides, mean_term=self.mean_term).total

    def variant(self) -> Mapping[str, str]:
        """How the means enter."""
        return {"mean_term": self.mean_term}

    def _reduced(self, pairs: Iterable[Exchange]) -> FbdState:
        blocks = self.features.stream(pairs)
        return functools.reduce(FbdState.update, blocks, FbdState(self.features.made_with))

    def _interval(
        self, value: float, human: FeatureSet | Moments, theirs: Gaussian, replies: FeatureSet, ours: Gaussian
    ) -> tuple[float, float]:
        """Resample contexts, to first order.

        A resample holds repeated rows, which raise a Fréchet distance of small samples so much that
        plain percentiles miss the value they surround. The first-order change has no such bias, and
        costs one singular value decomposition for all resamples.
        """
        known = None if isinstance(human, Moments) else human
        of_replies, of_human = influences(
            replies.rows, ours, theirs, None if known is None else known.rows, mean_term=self.mean_term
        )
        none = np.zeros(0, dtype=np.uint64)
        contexts = Contexts.number(none if known is None else known.contexts, replies.contexts)
        if not contexts.can_vary or not self.resamples:
            return float("nan"), float("nan")
        per_context = np.bincount(contexts.of_replies, of_replies, contexts.count)
        if of_human is not None:
            per_context += np.bincount(contexts.of_human, of_human, contexts.count)
        drawn = [value + (counts - 1) @ per_context for counts in contexts.draw(self.resamples, self.seed)]
        ends = interval(np.concatenate(drawn), CONFIDENCE)
        return max(0.0, ends.low), ends.high


def _checked(rows: NDArray[Any]) -> Floats:
    block = np.asarray(rows, dtype=np.float64)
    if not np.isfinite(block).all():
        raise ValueError("features hold NaN or infinite values; try dtype='float32'")
    return block


def _warn_if_small(rows: int, dimensions: int) -> None:
    if rows <= dimensions:
        warnings.warn(
            f"fewer rows than the {dimensions} dimensions of the features: the value grows as n shrinks, "
            "so compare systems at equal n only",
            stacklevel=3,
        )
