"""QuantiDCE: a coherence score on the scale of human ratings.

Stage one ranks replies of several quality levels; stage two fits a few human ratings while a frozen
copy of stage one holds the network back from forgetting (knowledge distillation).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints.network import Network
from dialeval.papers.learned import PairMetric
from dialeval.registry.metric import Level, MetricInfo

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

    def trace(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Trace:
        """The same pass with everything that distillation compares; of attention the probabilities, as in the code."""
        encoder: Any = self.encoder
        if encoder.config._attn_implementation != "eager":
            encoder.set_attn_implementation("eager")  # fused kernels do not give attention maps
        output = encoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            output_hidden_states=True,
            output_attentions=True,
        )
        score = self.rows(output.last_hidden_state[:, 0].float())[:, -1]
        return Trace(tuple(output.hidden_states), tuple(output.attentions), score)


# --- multi-level ranking (stage one) ---------------------------------------------------------------
# Scores are `[contexts, levels, replies]`, levels from the worst to the best.


def centroids(scores: Tensor) -> Tensor:
    """One score per level. The paper prints a sum, under which perfect scores would have a loss."""
    return scores.mean(dim=-1)


def separation_loss(centres: Tensor, margin: float = 0.3) -> Tensor:
    """Levels that are `n` apart should differ by `n` margins."""
    terms = [
        F.relu((high - low) * margin - (centres[:, high] - centres[:, low]).abs())
        for low, high in combinations(range(centres.shape[1]), 2)
    ]
    return torch.stack(terms).sum(dim=0).mean()


def compactness_loss(scores: Tensor, centres: Tensor, radius: float = 0.1) -> Tensor:
    """Replies of a level should stay near its centre on average, as in the code; the paper says each of them."""
    return F.relu((scores - centres[..., None]).abs().mean(dim=-1) - radius).sum(dim=-1).mean()


def ordering_loss(centres: Tensor) -> Tensor:
    """A better level should not score below a worse one. As printed, the formula rewards the reverse."""
    terms = [F.relu(centres[:, low] - centres[:, high]) for low, high in combinations(range(centres.shape[1]), 2)]
    return torch.stack(terms).sum(dim=0).mean()


@dataclass(frozen=True)
class MultiLevelRanking:
    """The ranking loss: three parts, each with its weight; a weight of zero switches a part off."""

    margin: float = 0.3
    radius: float = 0.1
    separation_weight: float = 1.0
    compactness_weight: float = 1.0
    ordering_weight: float = 1.0

    def parts(self, scores: Tensor) -> dict[str, Tensor]:
        """The unweighted parts that are switched on."""
        centres = centroids(scores)
        parts = {}
        if self.separation_weight:
            parts["separation"] = separation_loss(centres, self.margin)
        if self.compactness_weight:
            parts["compactness"] = compactness_loss(scores, centres, self.radius)
        if self.ordering_weight:
            parts["ordering"] = ordering_loss(centres)
        return parts

    def __call__(self, scores: Tensor) -> Tensor:
        """Weighted sum of the parts."""
        weighted = [part * float(getattr(self, f"{name}_weight")) for name, part in self.parts(scores).items()]
        return torch.stack(weighted).sum() if weighted else scores.sum() * 0.0


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


def vanilla_ranking_loss(scores: Tensor, margin: float = 0.3) -> Tensor:
    """The same hinge between every two levels, over pairs of replies."""
    terms = [
        F.relu(margin - scores[:, high, :, None] + scores[:, low, None, :]).mean()
        for low, high in combinations(range(scores.shape[1]), 2)
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
    """Squared distance to the human rating on its scale from 1 to 5."""
    return F.mse_loss(likert(score), rating)


def distillation_loss(teacher: Trace, student: Trace) -> Tensor:
    """How far the student moved from the teacher: hidden states, attention maps and score.

    The code takes means of squares. The paper's sums are some hundred thousand times larger for the
    states, and with its weight of 5 they would let nothing move.
    """
    pairs = [
        *zip(teacher.hidden, student.hidden, strict=True),
        *zip(teacher.attentions, student.attentions, strict=True),
        (teacher.score, student.score),
    ]
    terms = [F.mse_loss(moved, fixed.detach()) for fixed, moved in pairs]
    return torch.stack(terms).sum()


# --- scoring rule ----------------------------------------------------------------------------------


def likert(score: Tensor) -> Tensor:
    """From (0, 1) to the human scale (1, 5)."""
    return 4 * score + 1


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
