"""QuantiDCE: a coherence score on the scale of human ratings.

Stage one ranks replies of several quality levels; stage two fits a few human ratings while a frozen
copy of stage one holds the network back from forgetting (knowledge distillation).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints.network import Network
from dialeval.papers.learned import PairMetric
from dialeval.registry.interface import Level, MetricInfo

Centroid = Literal["mean", "sum"]
Compactness = Literal["level_mean", "per_item"]
Ordering = Literal["correct", "as_printed"]
Distance = Literal["mean", "sum"]
Attention = Literal["post_softmax", "pre_softmax"]


# --- architecture ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trace:
    """What distillation compares: embedding output and every layer, every attention map, the score."""

    hidden: tuple[Tensor, ...]
    attentions: tuple[Tensor, ...]
    score: Tensor


class QuantiDceNetwork(Network):
    """Encoder, pooler and a three-layer scorer. A row is the pooled features, then the score in (0, 1)."""

    approach = "quantidce"

    def build_heads(self, width: int) -> None:
        """Each layer of the scorer halves the width."""
        self.pooler = nn.Linear(width, width)
        self.scorer = nn.Sequential(
            nn.Linear(width, width // 2),
            nn.ELU(),
            nn.Linear(width // 2, width // 4),
            nn.ELU(),
            nn.Linear(width // 4, 1),
            nn.Sigmoid(),
        )

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + 1]`: pooled features and score."""
        features = torch.tanh(self.pooler(first))
        return torch.cat([features, self.scorer(features)], dim=-1)

    def trace(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        *,
        attention: Attention = "post_softmax",
    ) -> Trace:
        """The same pass with everything that distillation compares.

        The code distils attention probabilities; TinyBERT, which it follows, the scores before the
        softmax. The latter have padding set to zero, because the mask would drown everything else.
        """
        encoder: Any = self.encoder
        if encoder.config._attn_implementation != "eager":
            encoder.set_attn_implementation("eager")  # fused kernels do not give attention maps
        with _attention_scores(encoder, attention_mask) as scores:
            output = encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                token_type_ids=token_type_ids,
                output_hidden_states=True,
                output_attentions=True,
            )
            maps = output.attentions if attention == "post_softmax" else tuple(scores())
        return Trace(tuple(output.hidden_states), tuple(maps), self.rows(output.last_hidden_state[:, 0].float())[:, -1])


@contextmanager
def _attention_scores(encoder: nn.Module, mask: Tensor) -> Iterator[Any]:
    """Collects queries and keys of every layer during a pass; calling the result gives their scaled products."""
    projected: dict[str, list[Tensor]] = {"query": [], "key": []}
    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: projected[name].append(output))
        for path, module in encoder.named_modules()
        for name in projected
        if path.endswith(f"attention.self.{name}")
    ]

    def scores() -> Iterator[Tensor]:
        if not projected["query"]:
            raise ValueError(f"{type(encoder).__name__} has no attention.self.query; use attention: post_softmax")
        heads = int(encoder.config.num_attention_heads)  # type: ignore[union-attr, arg-type]
        real = (mask[:, None, :, None] * mask[:, None, None, :]).bool()
        for query, key in zip(projected["query"], projected["key"], strict=True):
            by_head = [part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key)]
            product = by_head[0] @ by_head[1].transpose(-1, -2) / by_head[0].shape[-1] ** 0.5
            yield product.masked_fill(~real, 0.0)

    try:
        yield scores
    finally:
        for hook in hooks:
            hook.remove()


# --- multi-level ranking (stage one) ---------------------------------------------------------------
# Scores are `[contexts, levels, replies]`, levels from the worst to the best.


def centroids(scores: Tensor, kind: Centroid = "mean") -> Tensor:
    """One score per level. The paper prints a sum, under which perfect scores would have a loss."""
    return scores.mean(dim=-1) if kind == "mean" else scores.sum(dim=-1)


def separation_loss(centres: Tensor, margin: float = 0.3) -> Tensor:
    """Levels that are `n` apart should differ by `n` margins."""
    terms = [
        F.relu((high - low) * margin - (centres[:, high] - centres[:, low]).abs())
        for low, high in combinations(range(centres.shape[1]), 2)
    ]
    return torch.stack(terms).sum(dim=0).mean()


def compactness_loss(scores: Tensor, centres: Tensor, radius: float = 0.1, kind: Compactness = "level_mean") -> Tensor:
    """Replies of a level should stay near its centre: on average (code, default) or each of them (paper)."""
    distance = (scores - centres[..., None]).abs()
    if kind == "level_mean":
        return F.relu(distance.mean(dim=-1) - radius).sum(dim=-1).mean()
    return F.relu(distance - radius).sum(dim=(-1, -2)).mean()


def ordering_loss(centres: Tensor, kind: Ordering = "correct") -> Tensor:
    """A better level should not score below a worse one. As printed, the formula rewards the reverse."""
    sign = 1.0 if kind == "correct" else -1.0
    terms = [
        F.relu(sign * (centres[:, low] - centres[:, high])) for low, high in combinations(range(centres.shape[1]), 2)
    ]
    return torch.stack(terms).sum(dim=0).mean()


@dataclass(frozen=True)
class MultiLevelRanking:
    """The ranking loss: three parts, each with its weight; a weight of zero switches a part off."""

    margin: float = 0.3
    radius: float = 0.1
    centroid: Centroid = "mean"
    compactness: Compactness = "level_mean"
    ordering: Ordering = "correct"
    separation_weight: float = 1.0
    compactness_weight: float = 1.0
    ordering_weight: float = 1.0

    def __post_init__(self) -> None:
        for name, allowed in (("centroid", Centroid), ("compactness", Compactness), ("ordering", Ordering)):
            if getattr(self, name) not in get_args(allowed):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(get_args(allowed))}")

    def parts(self, scores: Tensor) -> dict[str, Tensor]:
        """The unweighted parts that are switched on."""
        centres = centroids(scores, self.centroid)
        parts = {}
        if self.separation_weight:
            parts["separation"] = separation_loss(centres, self.margin)
        if self.compactness_weight:
            parts["compactness"] = compactness_loss(scores, centres, self.radius, self.compactness)
        if self.ordering_weight:
            parts["ordering"] = ordering_loss(centres, self.ordering)
        return parts

    def __call__(self, scores: Tensor) -> Tensor:
        """Weighted sum of the parts."""
        weighted = [part * float(getattr(self, f"{name}_weight")) for name, part in self.parts(scores).items()]
        return torch.stack(weighted).sum() if weighted else scores.sum() * 0.0


def feature_ranking_loss(features: Tensor, margin: float = 1.0, radius: float = 0.1) -> Tensor:
    """Separation and compactness in feature space by cosine distance; the authors tried it and gave it no weight.

    `features` are `[contexts, levels, replies, width]`.
    """
    centres = features.mean(dim=2)
    apart = [
        F.relu((high - low) * margin - (1 - F.cosine_similarity(centres[:, low], centres[:, high], dim=-1)))
        for low, high in combinations(range(centres.shape[1]), 2)
    ]
    spread = (1 - F.cosine_similarity(features, centres[:, :, None], dim=-1)).mean(dim=-1)
    return torch.stack(apart).sum(dim=0).mean() + F.relu(spread - radius).sum(dim=-1).mean()


# --- losses that the paper compares with -----------------------------------------------------------


def binary_loss(scores: Tensor) -> Tensor:
    """Cross-entropy with the best level as 1 and all others as 0."""
    target = torch.zeros_like(scores)
    target[:, -1] = 1.0
    return F.binary_cross_entropy(scores, target)


def margin_ranking_loss(scores: Tensor, margin: float = 0.3) -> Tensor:
    """Every best reply should beat every other one by the margin."""
    best, others = scores[:, -1], scores[:, :-1].flatten(1)
    return F.relu(margin - best[:, :, None] + others[:, None, :]).mean()


def vanilla_ranking_loss(
    scores: Tensor, margin: float = 0.3, *, adjacent_only: bool = False, on_means: bool = False
) -> Tensor:
    """The same hinge between every two levels (or neighbours only), over pairs of replies or of level means."""
    levels = scores.mean(dim=-1, keepdim=True) if on_means else scores
    terms = [
        F.relu(margin - levels[:, high, :, None] + levels[:, low, None, :]).mean()
        for low, high in combinations(range(scores.shape[1]), 2)
        if not adjacent_only or high == low + 1
    ]
    return torch.stack(terms).sum()


def supervised_contrastive_loss(features: Tensor, levels: Tensor, temperature: float = 0.1) -> Tensor:
    """Pull features of one level together, every sample an anchor once. It gives levels no order."""
    units = F.normalize(features, dim=-1)
    similarity = units @ units.T / temperature
    itself = torch.eye(len(units), dtype=torch.bool, device=units.device)
    log_share = similarity - similarity.masked_fill(itself, float("-inf")).logsumexp(dim=1, keepdim=True)
    partners = (levels[:, None] == levels[None, :]) & ~itself
    count = partners.sum(dim=1)
    per_anchor = -log_share.masked_fill(~partners, 0.0).sum(dim=1) / count.clamp(min=1)
    return per_anchor[count > 0].mean() if bool((count > 0).any()) else features.sum() * 0.0


def fast_triplet_loss(features: Tensor, levels: Tensor, margin: float = 1.0, spread_weight: float = 0.5) -> Tensor:
    """Triplets through level centres of the batch: nearer to the own centre than to each other one, and near at all."""
    present: Tensor = torch.unique(levels)
    centres = torch.stack([features[levels == level].mean(dim=0) for level in present])
    distance: Tensor = torch.linalg.vector_norm(features[:, None] - centres[None], dim=-1)
    same = levels[:, None] == present[None]
    to_own = distance[same]
    if len(present) == 1:
        return spread_weight * to_own.mean()
    hinge = F.relu(to_own[:, None] - distance + margin).masked_fill(same, 0.0).sum(dim=1) / (len(present) - 1)
    return hinge.mean() + spread_weight * to_own.mean()


# --- fine-tuning on ratings (stage two) ------------------------------------------------------------


def rating_loss(score: Tensor, rating: Tensor) -> Tensor:
    """Squared distance of a score from 0 to 1 to the human rating on its scale from 1 to 5."""
    return F.mse_loss(1 + 4 * score, rating)


def distillation_loss(teacher: Trace, student: Trace, distance: Distance = "mean") -> Tensor:
    """How far the student moved from the teacher: hidden states, attention maps and score.

    The code takes means of squares. The paper's sums are some hundred thousand times larger for the
    states, and with its weight of 5 they would let nothing move.
    """
    if distance not in get_args(Distance):
        raise ValueError(f"distance is {distance!r}; it is one of {', '.join(get_args(Distance))}")
    pairs = [
        *zip(teacher.hidden, student.hidden, strict=True),
        *zip(teacher.attentions, student.attentions, strict=True),
        (teacher.score, student.score),
    ]
    terms = [F.mse_loss(moved, fixed.detach(), reduction=distance) for fixed, moved in pairs]
    return torch.stack(terms).sum()


# --- scoring rule ----------------------------------------------------------------------------------


class QuantiDce(PairMetric):
    """Coherence as people would rate it, from 1 to 5."""

    info = MetricInfo(
        name="quantidce",
        title="QuantiDCE",
        level=Level.TURN,
        higher_is_better=True,
        range=(1.0, 5.0),
        summary="Coherence of the reply with its context on the scale of human ratings, from 1 (worst) to 5 (best).",
        citation="Ye et al. 2021, Towards Quantifiable Dialogue Coherence Evaluation",
    )
    network_class = QuantiDceNetwork
    network: QuantiDceNetwork

    def values_of(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The network's score, mapped to 1–5."""
        return 1.0 + 4.0 * rows[:, -1].astype(np.float64)
