"""DENSITY: how dense human conversation is around a reply, in the feature space of a selection model.

An encoder learns to pick the true reply among random ones. A Gaussian fitted to its features of
human (context, reply) pairs then gives the score: the negative Mahalanobis distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import pinvh
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints import Network
from dialeval.learned import LearnedMetric
from dialeval.metric import Level, MetricInfo
from dialeval.moments import Moments

Scoring = Literal["mahalanobis", "euclidean", "classifier"]
Reduction = Literal["mean_all_pairs", "sum_anchors", "mean_anchors"]
DialogueAggregation = Literal["sqrt_of_mean", "mean_of_sqrt"]
Vector = NDArray[np.float64]


# --- architecture ----------------------------------------------------------------------------------


class DensityNetwork(Network):
    """Encoder, linear selection head, and the fitted Gaussian. A row is the features, then the logit."""

    approach = "density"

    def build_heads(self, width: int) -> None:
        """The raw hidden state of the first token feeds the head; no pooler stands between."""
        self.head = nn.Linear(width, 1, bias=bool(self.config.architecture.get("bias", True)))
        self.mean: Tensor
        self.precision: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("precision", torch.eye(width))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, width + 1]`: features and selection logit."""
        encoder: Any = self.encoder
        hidden = encoder(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        features = hidden.last_hidden_state[:, 0].float()
        return torch.cat([features, self.head(features)], dim=-1)

    def set_gaussian(self, mean: Vector, precision: Vector) -> None:
        """Store a fit; float32 is enough, scoring computes in float64."""
        self.mean.copy_(torch.from_numpy(mean))
        self.precision.copy_(torch.from_numpy(precision))


# --- losses ----------------------------------------------------------------------------------------


def response_selection_loss(logits: Tensor) -> Tensor:
    """Cross-entropy of picking column 0, the true reply, among the candidates of a context."""
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def contrastive_loss(
    features: Tensor,
    positive: Tensor,
    *,
    temperature: float = 0.1,
    reduction: Reduction = "mean_all_pairs",
    shared_negative_class: bool = False,
) -> Tensor:
    """Pull the positives of a batch together, away from the negatives.

    `features` holds all pairs of the batch, `positive` marks the true ones. Only positives are
    anchors, unless `shared_negative_class` makes the negatives a second class. The paper sums over
    anchors (`sum_anchors`); its code averages over all pairs with two small constants, and the
    published hyper-parameters belong to that form, so it is the default.
    """
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction is {reduction!r}; it is one of {', '.join(get_args(Reduction))}")
    units = F.normalize(features, dim=-1)
    similarity = units @ units.T / temperature
    itself = torch.eye(len(units), dtype=torch.bool, device=units.device)
    log_ratio = similarity - similarity.masked_fill(itself, float("-inf")).logsumexp(dim=1, keepdim=True)

    partners = positive[:, None] & positive[None, :] & ~itself
    anchors = positive
    if shared_negative_class:
        partners = (positive[:, None] == positive[None, :]) & ~itself
        anchors = torch.ones_like(positive)
    count = partners.sum(dim=1).to(features.dtype)
    anchors = anchors & (count > 0)
    if reduction == "mean_all_pairs":
        terms = (log_ratio.exp() + 1e-5).log()
        divisor = count + 1e-3
    else:
        terms = log_ratio
        divisor = count.clamp(min=1)
    per_anchor = -(terms.masked_fill(~partners, 0.0).sum(dim=1) / divisor)[anchors]
    total = per_anchor.sum()
    if reduction == "sum_anchors":
        return total
    return total / (len(features) if reduction == "mean_all_pairs" else max(1, int(anchors.sum())))


# --- fit and scoring rule --------------------------------------------------------------------------


def fit_gaussian(moments: Moments, *, shrinkage: float = 0.0, resolution: float = 0.0) -> tuple[Vector, Vector]:
    """Mean and precision of human features: covariance with divisor N, hermitian pseudo-inverse.

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
    return moments.mean, pinvh(covariance, rtol=max(rounding, resolution**2))


def squared_mahalanobis(features: NDArray[Any], mean: NDArray[Any], precision: NDArray[Any]) -> Vector:
    """Squared distances in float64, clipped at zero: rounding may leave a point of the centre below it."""
    centre, weights = np.asarray(mean, dtype=np.float64), np.asarray(precision, dtype=np.float64)
    squared = np.empty(len(features))
    for start in range(0, len(features), 4096):  # in float64 a block at a time: twice the size of the features
        offset = np.asarray(features[start : start + 4096], dtype=np.float64) - centre
        squared[start : start + 4096] = np.einsum("nd,nd->n", offset @ weights, offset)
    return np.clip(squared, 0.0, None)


def selection_ranks(logits: NDArray[Any]) -> NDArray[np.int64]:
    """Rank of column 0 in each row: one plus the number of candidates with a strictly larger logit."""
    scores = np.asarray(logits)
    ranks: NDArray[np.int64] = 1 + (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    return ranks


class Density(LearnedMetric):
    """The negative distance of a reply from human conversation; closer to zero is better."""

    info = MetricInfo(
        name="density",
        title="DENSITY",
        level=Level.TURN,
        higher_is_better=True,
        range=(float("-inf"), 0.0),
        summary="Minus the Mahalanobis distance of the (context, reply) features from those of human conversation; "
        "0 is the centre; the human percentile says how near human replies come to it.",
        citation="Park et al. 2023, DEnsity: Open-domain Dialogue Evaluation Metric using Density Estimation",
    )
    network_class = DensityNetwork
    network: DensityNetwork
    _scorings: ClassVar[tuple[str, ...]] = get_args(Scoring)

    def __init__(
        self,
        checkpoint: Any = None,
        *,
        scoring: Scoring = "mahalanobis",
        dialogue_agg: DialogueAggregation = "sqrt_of_mean",
        **options: Any,
    ) -> None:
        if scoring not in self._scorings:
            raise ValueError(f"scoring is {scoring!r}; it is one of {', '.join(self._scorings)}")
        if dialogue_agg not in get_args(DialogueAggregation):
            raise ValueError(f"dialogue_agg is {dialogue_agg!r}; it is 'sqrt_of_mean' or 'mean_of_sqrt'")
        super().__init__(checkpoint, **options)
        self.scoring = scoring
        self.dialogue_agg = dialogue_agg

    def values_of(self, rows: NDArray[np.float32]) -> Vector:
        """Minus the distance from the human mean, or the raw selection logit."""
        features, logits = rows[:, :-1], rows[:, -1]
        if self.scoring == "classifier":
            return logits.astype(np.float64)
        mean = self.network.mean.cpu().numpy()
        precision = np.eye(len(mean)) if self.scoring == "euclidean" else self.network.precision.cpu().numpy()
        return -np.sqrt(squared_mahalanobis(features, mean, precision))

    def aggregate_dialogue(self, values: Vector) -> float:
        """The code behind the published dialogue-level figure averages squared distances, the paper the roots."""
        if self.scoring == "classifier" or self.dialogue_agg == "mean_of_sqrt":
            return float(values.mean())
        return -float(np.sqrt(np.mean(values**2)))

    def variant(self) -> Mapping[str, str]:
        """Scoring rule and dialogue aggregation."""
        return {"scoring": self.scoring, "dialogue_agg": self.dialogue_agg}

    @property
    def quantile_key(self) -> str:
        """Each scoring rule has its own human quantiles."""
        return self.scoring
