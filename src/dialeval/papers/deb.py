"""DEB: is this reply a valid next turn? A next-response classifier, first trained on much chat.

Stage one learns masked words and next responses from ordinary conversation; stage two learns from
contexts with right, random and adversarial replies. The score is the probability of a valid reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints.find import CheckpointError
from dialeval.checkpoints.network import Network
from dialeval.encoders.base import states
from dialeval.papers.learned import PairMetric
from dialeval.registry.interface import Level, MetricInfo

Vector = NDArray[np.float64]


# --- architecture ----------------------------------------------------------------------------------


class DebNetwork(Network):
    """Encoder and a two-way head. A row is the features, then the logits of "valid" and "not valid".

    The code of the paper classifies the pooled first token with a bias, which lets BERT's own
    next-sentence weights be loaded; the paper's formula has neither pooling nor bias. `architecture`
    chooses with `pooled` and `bias`.
    """

    approach = "deb"

    def build_heads(self, width: int) -> None:
        """Pooler, classifier and the temperature that calibrates them."""
        choices = self.config.architecture
        self.pooler = nn.Linear(width, width) if choices.get("pooled", True) else None
        self.classifier = nn.Linear(width, 2, bias=bool(choices.get("bias", True)))
        self.temperature: Tensor
        self.register_buffer("temperature", torch.ones(1))

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, length, width]`: last hidden states."""
        return states(self.encoder, input_ids, attention_mask, token_type_ids).float()

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + 2]`: features and logits."""
        features = first if self.pooler is None else torch.tanh(self.pooler(first))
        return torch.cat([features, self.classifier(features)], dim=-1)

    def shift(self, amount: float) -> None:
        """Add to the logit of "valid"."""
        if self.classifier.bias is None:
            raise ValueError("a head without bias cannot be shifted; set head.bias to true or calibrate_shift to false")
        with torch.no_grad():
            self.classifier.bias[0] += amount

    def load_original_head(self, folder: Path, words: MaskedWordHead | None = None) -> None:
        """Begin from the next-sentence head of a BERT release, and its masked-word head if `words` is given.

        BERT, too, gives index 0 to "is next", so without any training this is the paper's "BERT original".
        """
        from safetensors import safe_open

        if self.pooler is None or self.classifier.bias is None:
            raise ValueError("the original head pools and has a bias; set head.pooled and head.bias to true")
        with safe_open(folder / "model.safetensors", framework="pt") as stored:
            names = set(stored.keys())
            _copy(self.pooler, stored, names, "bert.pooler.dense")
            _copy(self.classifier, stored, names, "cls.seq_relationship")
            if words is not None:
                _copy(words.transform, stored, names, "cls.predictions.transform.dense")
                _copy(words.norm, stored, names, "cls.predictions.transform.LayerNorm")
                words.bias.data.copy_(stored.get_tensor("cls.predictions.bias"))


class MaskedWordHead(nn.Module):
    """Guesses masked words with the encoder's own input embeddings; used in stage one only and not shipped."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, hidden: Tensor, embeddings: Tensor) -> Tensor:
        """`[positions, vocabulary]`: logits for hidden states of masked positions."""
        return F.linear(self.norm(F.gelu(self.transform(hidden))), embeddings, self.bias)


def _copy(module: Any, stored: Any, names: set[str], prefix: str) -> None:
    # The releases call the parameters of a layer norm gamma and beta.
    for ours, theirs in (("weight", ("weight", "gamma")), ("bias", ("bias", "beta"))):
        stored_names = [f"{prefix}.{name}" for name in theirs if f"{prefix}.{name}" in names]
        if not stored_names:
            raise CheckpointError(f"the encoder's weights hold no {prefix}; set original_head to false")
        getattr(module, ours).data.copy_(stored.get_tensor(stored_names[0]))


# --- masking ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Masking:
    """Which share of the tokens is to be guessed, and the most of them in one sequence."""

    share: float = 0.15
    limit: int = 20


def word_continuations(tokenizer: Any) -> NDArray[np.bool_]:
    """For every id of the vocabulary, whether it continues the word before it."""
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    if any(piece.startswith("##") for piece in pieces):
        return np.array([piece.startswith("##") for piece in pieces])
    if any(piece.startswith(("Ġ", "▁")) for piece in pieces):
        return np.array([not piece.startswith(("Ġ", "▁")) for piece in pieces])
    return np.zeros(len(pieces), dtype=bool)


def mask_words(
    ids: NDArray[np.integer[Any]],
    fixed: NDArray[np.bool_],
    continuations: NDArray[np.bool_],
    mask_id: int,
    rng: np.random.Generator,
    masking: Masking,
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Hide whole words; returns the changed ids and the positions to guess.

    Of the chosen tokens 80 % become the mask, 10 % another token of the vocabulary, 10 % stay.
    `fixed` marks special tokens, which are never chosen.
    """
    words: list[list[int]] = []
    for position in np.flatnonzero(~fixed):
        follows = bool(words) and words[-1][-1] == position - 1
        if follows and continuations[ids[position]]:
            words[-1].append(int(position))
        else:
            words.append([int(position)])
    wanted = min(masking.limit, max(1, round(masking.share * int((~fixed).sum()))))
    chosen: list[int] = []
    for index in rng.permutation(len(words)):
        if len(chosen) + len(words[index]) <= wanted:
            chosen += words[index]
    positions = np.array(sorted(chosen), dtype=np.intp)
    changed = ids.astype(np.int64)
    fate = rng.random(len(positions))
    changed[positions[fate < 0.8]] = mask_id
    replaced = positions[fate >= 0.9]
    changed[replaced] = rng.integers(len(continuations), size=len(replaced))
    return changed, positions


# --- losses ----------------------------------------------------------------------------------------


def next_response_loss(logits: Tensor, valid: Tensor) -> Tensor:
    """Cross-entropy of "valid" (index 0) against "not valid" (index 1)."""
    return F.cross_entropy(logits, (~valid).long())


def masked_word_loss(logits: Tensor, words: Tensor) -> Tensor:
    """Cross-entropy of the hidden words; zero for a batch in which none was hidden."""
    if not len(words):
        return logits.sum()
    return F.cross_entropy(logits, words)


# --- scoring rule ----------------------------------------------------------------------------------


def valid_probability(logits: ArrayLike, temperature: float = 1.0) -> Vector:
    """Probability of "valid" from two logits; the temperature moves no score across one half."""
    both = np.asarray(logits, dtype=np.float64)
    from scipy.special import expit

    probability: Vector = expit((both[:, 0] - both[:, 1]) / temperature)
    return probability


def fit_temperature(logits: ArrayLike, valid: ArrayLike) -> float:
    """The temperature under which held-out labels are most likely, between 0.05 and 20."""
    from scipy.optimize import minimize_scalar

    both, truth = np.asarray(logits, dtype=np.float64), np.asarray(valid, dtype=bool)
    if len(np.unique(truth)) < 2:
        raise ValueError("a temperature needs held-out replies of both classes; hold out more contexts")
    margin = np.where(truth, 1.0, -1.0) * (both[:, 0] - both[:, 1])

    def surprise(log_temperature: float) -> float:
        return float(np.logaddexp(0.0, -margin / np.exp(log_temperature)).mean())

    return float(np.exp(minimize_scalar(surprise, bounds=(np.log(0.05), np.log(20.0)), method="bounded").x))


def fit_shift(logits: ArrayLike, valid: ArrayLike) -> float:
    """What to add to the logit of "valid" so that held-out labels are most likely (the intercept of Platt's scaling).

    A network trained on other mixtures of replies accepts too many or too few of these; unlike the
    temperature, which is fitted beside it, the shift moves decisions at one half.
    """
    from scipy.optimize import minimize

    both, truth = np.asarray(logits, dtype=np.float64), np.asarray(valid, dtype=bool)
    start = fit_temperature(both, truth)
    margin, sign = both[:, 0] - both[:, 1], np.where(truth, 1.0, -1.0)

    def surprise(scaling: Vector) -> float:
        return float(np.logaddexp(0.0, -sign * (scaling[0] * margin + scaling[1])).mean())

    slope, intercept = minimize(surprise, np.array([1 / start, 0.0])).x
    return float(intercept / slope)


@dataclass(frozen=True)
class ReliabilityBin:
    """Replies with a similar score: what was promised, what came true, how many there are."""

    predicted: float
    observed: float
    count: int


def reliability(probabilities: ArrayLike, valid: ArrayLike, bins: int = 10) -> list[ReliabilityBin]:
    """Equal-width bins of the probability of "valid", without the empty ones."""
    scores, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(valid, dtype=bool)
    where = np.minimum((scores * bins).astype(int), bins - 1)
    return [
        ReliabilityBin(float(scores[inside].mean()), float(truth[inside].mean()), int(inside.sum()))
        for inside in (where == number for number in range(bins))
        if inside.any()
    ]


def expected_calibration_error(table: list[ReliabilityBin]) -> float:
    """Mean distance between promise and outcome, bins weighted by their size."""
    total = sum(bin.count for bin in table)
    return sum(bin.count * abs(bin.predicted - bin.observed) for bin in table) / total if total else float("nan")


class Deb(PairMetric):
    """The probability that a reply is a valid next turn."""

    info = MetricInfo(
        name="deb",
        title="DEB",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="Calibrated probability that the reply is a valid response to its context; above 0.5 it is accepted.",
        citation="Sai et al. 2020, Improving Dialog Evaluation with a Multi-reference Adversarial Dataset "
        "and Large Scale Pretraining",
    )
    is_probability = True
    network_class = DebNetwork
    network: DebNetwork

    def values_of(self, rows: NDArray[np.float32]) -> Vector:
        """Softmax of the two logits at the checkpoint's temperature."""
        return valid_probability(rows[:, -2:], float(self.network.temperature))
