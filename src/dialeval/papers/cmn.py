"""CMN: how much a reply shares with its context and with a reference, in the latent space of a dialogue model.

A conditional variational autoencoder learns a posterior q(z | context, reply) and a prior p(z | context)
by reconstructing replies, and beside it to tell true replies from random ones (next-sentence prediction,
NSP). The score of a reply x with reference r is g * I(c, x) + I(x, r): two lower bounds on mutual
information between latent variables, the first weighted by the NSP probability g.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dialeval.core.exchange import BadRow, Exchange, is_blank
from dialeval.encoders.batching import PairEncoder
from dialeval.papers.cmn_network import CmnNetwork, LatentGaussian, PriorEncoder, PriorRows
from dialeval.papers.learned import PairMetric
from dialeval.registry.interface import Judged, Level, MetricInfo

Scoring = Literal["full", "without_nsp", "without_mi"]
Vector = NDArray[np.float64]

#: Rows sampled together, and critic values held at once: what fits into a processor's cache is twice as fast.
ROWS_AT_ONCE = 256
BLOCK = {"cpu": 2**18, "cuda": 2**26}


# --- bounds on mutual information ------------------------------------------------------------------


def mutual_information(positive: Tensor, negatives: Tensor) -> Tensor:
    """InfoNCE from the critic's value of the pair and of its negatives (last dimension): a lower bound."""
    total = negatives.logsumexp(dim=-1)
    return positive + math.log(negatives.shape[-1] + 1) - torch.logaddexp(positive, total)


class NegativeLatents(NamedTuple):
    """Negatives of the critic: `size` distributions, and draws of each `[size * draws, latent]`."""

    size: int
    draws: Tensor

    def critic(self, points: Tensor) -> Tensor:
        """log E exp(z . z_k) for each negative k over its draws, `[..., size]`."""
        block = max(1, BLOCK[points.device.type] // len(self.draws))
        parts = [self._log_mean_exp(part) for part in torch.split(points.flatten(0, -2), block)]
        return torch.cat(parts).view(*points.shape[:-1], self.size)

    def _log_mean_exp(self, points: Tensor) -> Tensor:
        values = (points @ self.draws.T).view(len(points), self.size, -1)
        top = values.amax(dim=-1, keepdim=True)
        # In place: this is where scoring spends the time that it does not spend in the encoder.
        return values.sub_(top).exp_().mean(dim=-1).log_().add_(top[..., 0])


def estimate_information(
    x: LatentGaussian, partner: LatentGaussian, negatives: NegativeLatents, noise: tuple[Tensor, Tensor]
) -> Tensor:
    """The expected bound between rows of latents, the critic being the dot product of two draws.

    An average over joint draws, made from `noise`: `[rows, samples, latent]` for either side.
    """
    points = x.take(np.s_[:, None]).sample(noise[0])
    positive = (points * partner.take(np.s_[:, None]).sample(noise[1])).sum(dim=-1)
    return mutual_information(positive, negatives.critic(points)).mean(dim=-1)


# --- scoring rule ----------------------------------------------------------------------------------


def combine(nsp: Vector, mi_context: Vector, mi_reference: Vector, scoring: Scoring = "full") -> Vector:
    """The score from the NSP probability and the two bounds; the ablations drop one component at scoring."""
    if scoring == "full":
        return nsp * mi_context + mi_reference
    if scoring == "without_nsp":
        return mi_context + mi_reference
    if scoring == "without_mi":
        return nsp
    raise ValueError(f"scoring is {scoring!r}; it is one of {', '.join(get_args(Scoring))}")


class Latents(NamedTuple):
    """Encoded texts: their distributions, NSP logits, a key of each one's tokens, and whether it was cut."""

    gaussian: LatentGaussian
    nsp: Tensor
    keys: NDArray[Any]
    cut: NDArray[np.bool_]

    def take(self, rows: Any) -> Latents:
        """Some of the rows."""
        return Latents(self.gaussian.take(rows), self.nsp[rows], self.keys[rows], self.cut[rows])


class Cmn(PairMetric):
    """What a reply shares with its context and its reference, in nats; more is better."""

    info = MetricInfo(
        name="cmn",
        title="CMN",
        level=Level.TURN,
        higher_is_better=True,
        range=(float("-inf"), float("inf")),
        summary="NSP probability times the mutual information of reply and context, plus that of reply and "
        "reference, in a latent space; unrelated replies lie at 0 or below, log(negatives + 1) bounds each part.",
        needs=frozenset({"contexts", "references"}),
        citation="Zhao et al. 2023, Evaluating Open-Domain Dialogues in Latent Space with Next Sentence Prediction "
        "and Mutual Information",
    )
    network_class = CmnNetwork
    network: CmnNetwork
    pair_encoders = ("encoder", "contexts")

    def __init__(
        self,
        checkpoint: Any = None,
        *,
        scoring: Scoring = "full",
        prior_encoder: PriorEncoder = "prior",
        samples: int = 100,
        seed: int = 0,
        **options: Any,
    ) -> None:
        """Negatives are the checkpoint's bank, so that a row's score depends on that row alone."""
        for name, value, choices in (("scoring", scoring, Scoring), ("prior_encoder", prior_encoder, PriorEncoder)):
            if value not in get_args(choices):
                raise ValueError(f"{name} is {value!r}; it is one of {', '.join(get_args(choices))}")
        if samples < 1 or seed < 0:
            raise ValueError("samples must be at least 1, and seed at least 0")
        super().__init__(checkpoint, **options)
        self.scoring, self.prior_encoder, self.samples, self.seed = scoring, prior_encoder, samples, seed
        self.contexts = PairEncoder(
            PriorRows(self.network, prior_encoder),
            self.encoder.tokenizer,
            segment="context",
            batch_tokens=self.encoder.batch_tokens,
            same_widths=self.encoder.same_widths,
        )
        # Sampling is in float64, which Apple's GPUs lack.
        self.device = self.encoder.device if self.encoder.device.type == "cuda" else torch.device("cpu")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode and score; the details hold the three components of every row."""
        rows, cut = self.components(exchanges, progress=progress)
        nsp, mi_context, mi_reference = rows.T
        details = {"nsp": nsp, "mi_context": mi_context, "mi_reference": mi_reference}
        return Judged(self.values_of(rows), n_truncated=int(cut.sum()), details=details)

    def values_of(self, rows: NDArray[Any]) -> Vector:
        """From components to scores."""
        nsp, mi_context, mi_reference = np.asarray(rows, dtype=np.float64).T
        return combine(nsp, mi_context, mi_reference, self.scoring)

    def components(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Vector, NDArray[np.bool_]]:
        """Of every row g, I(c, x) and I(x, r), and whether any text of it was cut."""
        self.check_needs(exchanges)
        count = len(exchanges)
        quoted = [
            Exchange(exchange.context, reference, facts=exchange.facts)
            for exchange in exchanges
            for reference in exchange.references
        ]
        pairs = self._encode(self.encoder, [*exchanges, *quoted], progress)
        contexts = self._encode(self.contexts, exchanges, progress)
        replies, references = pairs.take(slice(count)), pairs.take(slice(count, None))

        per_row = [len(exchange.references) for exchange in exchanges]
        owner, edges = np.repeat(np.arange(count), per_row), np.cumsum([0, *per_row])
        mi_context = self._information(replies, contexts, self._bank(self.network.bank_prior))
        of_replies = self._bank(self.network.bank_posterior)
        per_reference = self._information(replies.take(owner), references, of_replies)
        mi_reference = np.add.reduceat(per_reference, edges[:-1]) / per_row
        nsp = replies.nsp.softmax(dim=-1)[:, 1].cpu().numpy()
        cut = replies.cut | contexts.cut | np.logical_or.reduceat(references.cut, edges[:-1])
        return np.column_stack([nsp, mi_context, mi_reference]), cut

    def check_needs(self, exchanges: Sequence[Exchange]) -> None:
        """A blank reference is as good as none."""
        super().check_needs(exchanges)
        for row, exchange in enumerate(exchanges):
            if any(map(is_blank, exchange.references)):
                raise BadRow(row, "a reference is empty; give it text or leave it out")

    def _encode(self, encoder: PairEncoder, exchanges: Sequence[Exchange], progress: bool) -> Latents:
        encoded = encoder.encode(exchanges, progress=progress)
        laid = getattr(encoder.tokenizer, "pairs" if encoder.segment == "pair" else "contexts")(exchanges)
        rows = torch.from_numpy(encoded.rows).to(self.device, torch.float64)
        width = 2 * self.network.latent
        return Latents(
            LatentGaussian.of(rows[:, :width]), rows[:, width:], _keys(pair.key for pair in laid), encoded.cut
        )

    def _bank(self, rows: Tensor) -> NegativeLatents:
        gaussian = LatentGaussian.of(rows.to(self.device, torch.float64))
        keys = _keys(number.to_bytes(4, "little") for number in range(len(rows)))
        return self._sampled(Latents(gaussian, rows[:, :0], keys, np.zeros(len(rows), dtype=bool)))

    def _sampled(self, latents: Latents) -> NegativeLatents:
        draws = latents.gaussian.take(np.s_[:, None]).sample(self._noise("negative", latents.keys))
        return NegativeLatents(len(latents.keys), draws.flatten(0, 1))

    def _information(self, x: Latents, partner: Latents, negatives: NegativeLatents) -> Vector:
        parts = []
        for start in range(0, len(x.keys), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            rows, partners = x.take(part), partner.take(part)
            noise = self._noise("reply", rows.keys), self._noise("partner", partners.keys)
            parts.append(estimate_information(rows.gaussian, partners.gaussian, negatives, noise))
        values: Vector = torch.cat(parts).cpu().numpy()
        return values

    def _noise(self, role: str, keys: NDArray[Any]) -> Tensor:
        """Standard normal noise that belongs to a text in a role, whatever is scored beside it."""
        shape = (self.samples, self.network.latent)
        drawn = []
        for key in keys:
            digest = hashlib.blake2b(key, digest_size=16, person=role.encode()).digest()
            drawn.append(np.random.default_rng([self.seed, int.from_bytes(digest, "little")]).standard_normal(shape))
        return torch.from_numpy(np.stack(drawn)).to(self.device)

    def variant(self) -> Mapping[str, str]:
        """Options of the score."""
        return {
            "scoring": self.scoring,
            "bound": "infonce",
            "estimator": "mc",
            "negatives": f"bank:{len(self.network.bank_prior)}",
            "prior_encoder": self.prior_encoder,
            "references": "average",
            "samples": str(self.samples),
            "seed": str(self.seed),
        }

    @property
    def quantile_key(self) -> str:
        """Quantiles are kept of every combination of the components, each under the default options."""
        return self.scoring if self.prior_encoder == "prior" else f"{self.scoring} {self.prior_encoder}"


def _keys(keys: Iterable[bytes]) -> NDArray[Any]:
    return np.array(list(keys), dtype=object)
