"""DENSITY: how dense human conversation is around a reply, in the feature space of a selection model.

An encoder learns to pick the true reply among random ones. A Gaussian fitted to its features of
human (context, reply) pairs then gives the score: the negative Mahalanobis distance. A rule that the
paper does not have asks how much denser human conversation is there than any pairs of turns: it
compares with a second Gaussian, the background, fitted to random pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints.find import CheckpointError
from dialeval.checkpoints.network import Network, unit_matrix
from dialeval.papers.learned import PairMetric, squared_mahalanobis
from dialeval.registry.interface import Level, MetricInfo
from dialeval.statistics.moments import Moments

Scoring = Literal["mahalanobis", "euclidean", "relative", "classifier"]
Vector = NDArray[np.float64]
#: The paper's rule, for checkpoints that name none.
PAPERS_SCORING: Scoring = "mahalanobis"


# --- architecture ----------------------------------------------------------------------------------


class DensityNetwork(Network):
    """Encoder, linear selection head, and the fitted Gaussians. A row is the features, then the logit."""

    approach = "density"

    def build_heads(self, width: int) -> None:
        """The raw hidden state of the first token feeds the head; no pooler stands between."""
        self.head = nn.Linear(width, 1, bias=bool(self.config.architecture.get("bias", True)))
        self.mean: Tensor
        self.precision: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("precision", unit_matrix(width))
        self.background_mean: Tensor
        self.background_precision: Tensor
        if self.has_background:
            self.register_buffer("background_mean", torch.zeros(width))
            self.register_buffer("background_precision", unit_matrix(width))

    @property
    def has_background(self) -> bool:
        """Whether random pairs were fitted, too; checkpoints of the paper's form have human ones only."""
        return bool(self.config.architecture.get("background", False))

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + 1]`: features and selection logit."""
        return torch.cat([first, self.head(first)], dim=-1)

    def set_gaussian(self, mean: Vector, precision: Vector) -> None:
        """Store a fit of human pairs; float32 is enough, scoring computes in float64."""
        self.mean.copy_(torch.from_numpy(mean))
        self.precision.copy_(torch.from_numpy(precision))

    def set_background(self, mean: Vector, precision: Vector) -> None:
        """Store a fit of random pairs, in a network that may not have had one."""
        self.config = replace(self.config, architecture={**self.config.architecture, "background": True})
        self.register_buffer("background_mean", torch.from_numpy(mean).to(self.mean))
        self.register_buffer("background_precision", torch.from_numpy(precision).to(self.mean))


# --- losses ----------------------------------------------------------------------------------------


def response_selection_loss(logits: Tensor) -> Tensor:
    """Cross-entropy of picking column 0, the true reply, among the candidates of a context."""
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def contrastive_loss(features: Tensor, positive: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Pull the positives of a batch together, away from the negatives.

    `features` holds all pairs of the batch, `positive` marks the true ones; only those are anchors. The paper sums
    over anchors; its code averages over all pairs with two small constants, and the published hyper-parameters belong
    to that form.
    """
    units = F.normalize(features, dim=-1)
    similarity = units @ units.T / temperature
    itself = torch.eye(len(units), dtype=torch.bool, device=units.device)
    log_ratio = similarity - similarity.masked_fill(itself, float("-inf")).logsumexp(dim=1, keepdim=True)

    partners = positive[:, None] & positive[None, :] & ~itself
    count = partners.sum(dim=1).to(features.dtype)
    terms = (log_ratio.exp() + 1e-5).log().masked_fill(~partners, 0.0)
    return -(terms.sum(dim=1) / (count + 1e-3))[positive].sum() / len(features)


# --- fit and scoring rule --------------------------------------------------------------------------


def fit_gaussian(moments: Moments, *, shrinkage: float = 0.0, resolution: float = 0.0) -> tuple[Vector, Vector]:
    """Mean and precision of features: covariance with divisor N, hermitian pseudo-inverse.

    `shrinkage` blends the covariance with a sphere of the same trace; the paper uses none.
    Directions whose standard deviation is below `resolution` times the largest count as constant. At
    zero only float64 rounding does; features that a float32 encoder made need about 1e-5, since the
    direction that LayerNorm holds constant comes out of it with float32 noise, not with zeros.
    """
    covariance = moments.covariance(ddof=0)
    if shrinkage:
        sphere = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        covariance = (1 - shrinkage) * covariance + shrinkage * sphere
    rounding = len(covariance) * np.finfo(np.float64).eps
    from scipy.linalg import pinvh  # half a second that scoring does without

    return moments.mean, pinvh(covariance, rtol=max(rounding, resolution**2))


def relative_density(
    features: NDArray[Any], human: tuple[NDArray[Any], NDArray[Any]], background: tuple[NDArray[Any], NDArray[Any]]
) -> Vector:
    """Squared distance from the background less that from human pairs, each with its own mean and precision.

    Twice the logarithm of how much denser human pairs are, but for a constant: directions in which all pairs vary
    (topic, length, corpus) cancel. Out-of-distribution detection knows it as the relative Mahalanobis distance.
    """
    return squared_mahalanobis(features, *background) - squared_mahalanobis(features, *human)


def selection_ranks(logits: NDArray[Any]) -> NDArray[np.int64]:
    """Rank of column 0 in each row: one plus the number of candidates with a strictly larger logit."""
    scores = np.asarray(logits)
    ranks: NDArray[np.int64] = 1 + (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    return ranks


def apply_rule(scoring: Scoring, rows: NDArray[Any], network: DensityNetwork) -> Vector:
    """One value per row of `network` (features, then the logit); higher is better by every rule."""
    features = rows[:, :-1]
    mean, precision = network.mean.cpu().numpy(), network.precision.cpu().numpy()
    if scoring == "classifier":
        return rows[:, -1].astype(np.float64)
    if scoring == "relative":
        background = network.background_mean.cpu().numpy(), network.background_precision.cpu().numpy()
        return relative_density(features, (mean, precision), background)
    if scoring == "euclidean":
        precision = np.eye(len(mean))
    return -np.sqrt(squared_mahalanobis(features, mean, precision))


class Density(PairMetric):
    """How near a reply is to human conversation; higher is better."""

    info = MetricInfo(
        name="density",
        title="DENSITY",
        level=Level.TURN,
        higher_is_better=True,
        range=(float("-inf"), float("inf")),
        summary="How dense human conversation is around the (context, reply) features: minus their Mahalanobis "
        "distance from its centre, or how much nearer they lie to it than to random pairs of turns, as the checkpoint "
        "has it; the human percentile says how near human replies come.",
        citation="Park et al. 2023, DEnsity: Open-domain Dialogue Evaluation Metric using Density Estimation",
    )
    network_class = DensityNetwork
    network: DensityNetwork
    _scorings: ClassVar[tuple[str, ...]] = get_args(Scoring)

    def __init__(self, checkpoint: Any = None, *, scoring: Scoring | None = None, **options: Any) -> None:
        """`scoring` is one of the rules of `apply_rule`; None takes the one that was chosen for the checkpoint."""
        if scoring is not None and scoring not in self._scorings:
            raise ValueError(f"scoring is {scoring!r}; it is one of {', '.join(self._scorings)}")
        super().__init__(checkpoint, **options)
        usual: Any = self.network.config.architecture.get("default_scoring", PAPERS_SCORING)
        if scoring is None and usual not in self._scorings:
            raise CheckpointError(
                f"{self._checkpoint_name} asks for default_scoring {usual!r}; there are {', '.join(self._scorings)}"
            )
        self.scoring: Scoring = usual if scoring is None else scoring
        if self.scoring == "relative" and not self.network.has_background:
            raise ValueError(
                f"scoring is 'relative', but the checkpoint {self._checkpoint_name} was fitted on human pairs only; "
                "fit it anew with training/density.py, or take mahalanobis, euclidean or classifier"
            )

    @property
    def _checkpoint_name(self) -> str:
        return self.network.identity.partition("@")[0]

    def values_of(self, rows: NDArray[np.float32]) -> Vector:
        """Apply the metric's rule."""
        return apply_rule(self.scoring, rows, self.network)

    def aggregate_dialogue(self, values: Vector) -> float:
        """The code behind the published dialogue-level figure averages squared distances, the paper the roots.

        Differences of squares and logits have no root, so their mean is taken.
        """
        if self.scoring in ("classifier", "relative"):
            return float(values.mean())
        return -float(np.sqrt(np.mean(values**2)))

    def variant(self) -> Mapping[str, str]:
        """Scoring rule and dialogue aggregation."""
        return {"scoring": self.scoring, "dialogue_agg": "sqrt_of_mean"}

    @property
    def quantile_key(self) -> str:
        """Each scoring rule has its own human quantiles."""
        return self.scoring
