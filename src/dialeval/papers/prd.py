"""PRD: precision and recall of a system's replies against human ones, as two clouds of features.

Both clouds are cut into clusters together; the system's share of each cluster is then weighed
against the human share. Precision: how much of what the system says lies where people speak.
Recall: how much of what people say the system covers. The score is the best F1 on that curve, so
higher is better, although the D stands for distance. Nothing is trained.

Rows in shards: `fit_centroids` once on a sample of both sides, share the centroids, call `count` on
every shard, add the counts up, and put the two sums into `curves`. Histograms over different
centroids do not add up.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialeval.papers.distribution import CONFIDENCE, Contexts, DistributionMetric, SystemComparison
from dialeval.papers.feature_set import FeatureSet
from dialeval.registry.interface import Level, MetricInfo
from dialeval.statistics.bootstrap import interval
from dialeval.statistics.moments import Moments

Grid = Literal["released", "paper"]
Floats = NDArray[np.float64]

#: Angles of the released code.
_ANGLES, _MARGIN = 1001, 1e-10
#: Angles at which resampled curves are taken, and the numbers held at once for it.
_COARSE, _BLOCK = 200, 4_000_000


# --- clusters --------------------------------------------------------------------------------------


def fit_centroids(rows: NDArray[Any], clusters: int = 20, *, runs: int = 10, seed: int = 0) -> NDArray[Any]:
    """Centroids of several seeded runs of mini-batch k-means, `[runs, clusters, d]`.

    No more clusters than distinct rows. The outcome depends on the order of the rows.
    """
    from sklearn.cluster import MiniBatchKMeans

    if not len(rows) or not np.isfinite(rows).all():
        raise ValueError("clusters need rows of finite features")
    distinct = len({row.tobytes() for row in np.ascontiguousarray(rows)})
    seeds = np.random.SeedSequence(seed).generate_state(runs)
    models = (
        MiniBatchKMeans(n_clusters=min(clusters, distinct), n_init=10, random_state=int(start)).fit(rows)
        for start in seeds
    )
    return np.stack([model.cluster_centers_ for model in models])


def assign(rows: NDArray[Any], centroids: NDArray[Any]) -> NDArray[np.intp]:
    """The nearest centroid of every row in every run, `[runs, n]`."""
    from sklearn.metrics import pairwise_distances_argmin

    return np.stack([pairwise_distances_argmin(rows, of_run) for of_run in centroids])


# --- curves and score ------------------------------------------------------------------------------


def slopes(grid: Grid = "released", m: int = 1001) -> Floats:
    """The slopes λ = tan θ at which precision is traded for recall.

    `released` is the code's grid of 1001 angles, `paper` the paper's i/(m + 1)·π/2 for i = 1…m,
    whose m it does not tell.
    """
    if grid == "released":
        return np.tan(np.linspace(_MARGIN, np.pi / 2 - _MARGIN, _ANGLES))
    if grid == "paper":
        return np.tan(np.arange(1, m + 1) / (m + 1) * np.pi / 2)
    raise ValueError(f"grid is {grid!r}; it is 'released' or 'paper'")


def curves(human: NDArray[Any], replies: NDArray[Any], slopes: Floats) -> tuple[Floats, Floats]:
    """Precision and recall at every slope, averaged over the runs. Counts or shares, `[..., runs, clusters]`."""
    theirs, ours = _shares(human)[..., None, :, :], _shares(replies)[..., None, :, :]
    smaller = np.minimum(slopes[:, None, None] * theirs, ours).sum(axis=-1)
    precision = np.clip(smaller, 0.0, 1.0).mean(axis=-1)
    recall = np.clip(smaller / slopes[:, None], 0.0, 1.0).mean(axis=-1)
    return precision, recall


def best_f1(precision: Floats, recall: Floats, epsilon: float = 0.0) -> Floats:
    """The largest F1 along the curve; the released code adds 1e-6 below the line."""
    total = precision + recall + epsilon
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(f1.max(axis=-1))


def exact_f1(human: NDArray[Any], replies: NDArray[Any]) -> float:
    """The largest F1 over all slopes, not only those of a grid.

    F1 at λ is 2α/(1 + λ), and the precision α is linear in λ between the slopes at which some
    cluster holds equal shares; the maximum is therefore at one of those.
    """
    theirs, ours = _shares(human), _shares(replies)
    both = (theirs > 0) & (ours > 0)
    corners = np.unique(ours[both] / theirs[both])
    if not len(corners):
        return 0.0
    return float(best_f1(*curves(theirs, ours, corners)))


def _shares(counts: NDArray[Any]) -> Floats:
    counts = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


# --- the metric ------------------------------------------------------------------------------------


class Prd(DistributionMetric):
    """How far a system's replies and people's cover each other; higher is better."""

    info = MetricInfo(
        name="prd",
        title="PRD",
        level=Level.SYSTEM,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="Best F1 of precision and recall between a system's replies and human ones, each with its context, "
        "over clusters of their features. The sizes of the sets matter: compare at equal size.",
        needs=frozenset({"contexts", "references"}),
        citation="Xiang et al. 2021, Assessing Dialogue Systems with Distribution Distances",
    )

    def __init__(
        self,
        checkpoint: str | Path | None = None,
        *,
        clusters: int = 20,
        runs: int = 10,
        grid: Grid = "released",
        m: int = 1001,
        f1_epsilon: float | None = None,
        **options: Any,
    ) -> None:
        if grid not in get_args(Grid):
            raise ValueError(f"grid is {grid!r}; it is 'released' or 'paper'")
        if min(clusters, runs, m) < 1:
            raise ValueError("clusters, runs and m must be at least 1")
        super().__init__(checkpoint, **options)
        if isinstance(self.human, Moments):
            raise ValueError("prd needs the features of the human side, not only their moments; use save_human")
        self.clusters, self.runs, self.grid, self.slopes = clusters, runs, grid, slopes(grid, m)
        #: The released code's constant belongs to its grid; the paper has none.
        self.f1_epsilon = (1e-6 if grid == "released" else 0.0) if f1_epsilon is None else f1_epsilon

    def compare(self, human: FeatureSet | Moments, replies: FeatureSet) -> SystemComparison:
        """Cluster both sides together, average the curves of all runs, take the best F1."""
        assert isinstance(human, FeatureSet)  # __init__ and judge give nothing else
        if min(len(human), len(replies)) < 2 * self.clusters:
            warnings.warn(
                f"fewer than two rows a side for each of {self.clusters} clusters: many clusters hold a single row, "
                "and the value says little; score more rows, or load prd with fewer clusters",
                stacklevel=2,
            )
        both = np.concatenate([human.rows, replies.rows])
        # One order for one set of pairs: neither the order of rows nor which side is which moves a cluster.
        order = np.argsort(np.concatenate([human.pairs, replies.pairs]), kind="stable")
        centroids = fit_centroids(both[order], self.clusters, runs=self.runs, seed=self.seed)
        labels = assign(both, centroids)
        theirs, ours = labels[:, : len(human)], labels[:, len(human) :]
        width = centroids.shape[1]
        counts = (_counts(theirs, width), _counts(ours, width))
        precision, recall = curves(*counts, self.slopes)
        value = self._score(precision, recall)
        single = self._score(*curves(counts[0][:, None], counts[1][:, None], self.slopes))
        low, high = self._interval(float(value), human, theirs, replies, ours, width)
        facts = {
            "n_reference": len(human),
            "exact": exact_f1(*counts),
            "seed_low": float(single.min()),
            "seed_high": float(single.max()),
            "seed_sd": float(single.std(ddof=1)) if self.runs > 1 else float("nan"),
            "precision": precision,
            "recall": recall,
        }
        return SystemComparison(float(value), low, high, facts)

    def variant(self) -> Mapping[str, str]:
        """Clusters, runs and the grid of angles."""
        grid = self.grid if self.grid == "released" else f"{self.grid}{len(self.slopes)}"
        epsilon = f"{self.f1_epsilon:g}"
        return {"clusters": str(self.clusters), "runs": str(self.runs), "grid": grid, "f1_epsilon": epsilon}

    def _score(self, precision: Floats, recall: Floats) -> Floats:
        return best_f1(precision, recall, self.f1_epsilon)

    def _interval(
        self,
        value: float,
        human: FeatureSet,
        theirs: NDArray[np.intp],
        replies: FeatureSet,
        ours: NDArray[np.intp],
        width: int,
    ) -> tuple[float, float]:
        """Resample contexts, the clusters as they are.

        A resample leaves rows out and repeats others, so its two sides agree less than the full sets
        do: its values lie too low by about as much as the value itself does. They are moved back to
        surround it; plain percentiles often miss it.
        """
        contexts = Contexts.number(human.contexts, replies.contexts)
        if not contexts.can_vary or not self.resamples:
            return float("nan"), float("nan")
        table_theirs = _counts_by_context(theirs, contexts.of_human, contexts.count, width)
        table_ours = _counts_by_context(ours, contexts.of_replies, contexts.count, width)
        coarse = self.slopes[:: max(1, len(self.slopes) // _COARSE)]
        step = max(1, _BLOCK // (len(coarse) * len(theirs) * width))
        drawn = []
        for block in contexts.draw(self.resamples, self.seed):
            for start in range(0, len(block), step):
                part = block[start : start + step]
                resampled = [np.tensordot(part, table, axes=1) for table in (table_theirs, table_ours)]
                drawn.append(self._score(*curves(resampled[0], resampled[1], coarse)))
        values = np.concatenate(drawn)
        ends = interval(value + values - values.mean(), CONFIDENCE)
        return max(0.0, ends.low), min(1.0, ends.high)


def _counts(labels: NDArray[np.intp], width: int) -> Floats:
    return np.array([np.bincount(of_run, minlength=width) for of_run in labels], dtype=np.float64)


def _counts_by_context(labels: NDArray[np.intp], owners: NDArray[np.intp], contexts: int, width: int) -> Floats:
    """How many rows of each context fall to each cluster, `[contexts, runs, clusters]`."""
    tables = [np.bincount(owners * width + of_run, minlength=contexts * width) for of_run in labels]
    return np.stack([table.reshape(contexts, width).astype(np.float64) for table in tables], axis=1)
