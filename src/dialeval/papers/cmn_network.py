"""CMN: the networks of its dialogue model, and what they are trained by; the rest is in `cmn.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval.checkpoints.network import Network
from dialeval.encoders.base import states

PriorEncoder = Literal["prior", "posterior_trunk"]


class LatentGaussian(NamedTuple):
    """Diagonal normal distributions over the latent space, one per row."""

    mean: Tensor
    log_variance: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        """Draws with the given standard normal noise, reparametrised."""
        return self.mean + noise * (self.log_variance / 2).exp()

    @classmethod
    def of(cls, rows: Tensor) -> LatentGaussian:
        """From rows that hold the means, then the log-variances."""
        return cls(*rows.chunk(2, dim=-1))

    def take(self, rows: Any) -> LatentGaussian:
        """Some of the rows."""
        return LatentGaussian(self.mean[rows], self.log_variance[rows])


# --- architecture ----------------------------------------------------------------------------------


class Pooler(nn.Module):
    """The first token's state through a dense layer and tanh, as BERT pools."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """`[batch, length, width]` to `[batch, width]`."""
        return torch.tanh(self.dense(hidden[:, 0].float()))


class CmnNetwork(Network):
    """Two encoders over one base, their latent heads, the NSP head, and a bank of negative latents.

    Called as a module it makes the posterior's rows: mean, log-variance, and the two NSP logits.
    """

    approach = "cmn"
    encoders = ("posterior", "prior")

    def build_heads(self, width: int) -> None:
        """Neither latent head has a bias; class 1 of the NSP head is "the true reply"."""
        self.latent = int(self.config.architecture.get("latent", 32))
        bank = int(self.config.architecture.get("bank", 64))
        self.posterior_pooler, self.prior_pooler = Pooler(width), Pooler(width)
        self.to_posterior = nn.Linear(width, 2 * self.latent, bias=False)
        self.to_prior = nn.Linear(width, 2 * self.latent, bias=False)
        self.nsp = nn.Linear(width, 2)
        self.bank_posterior: Tensor
        self.bank_prior: Tensor
        self.register_buffer("bank_posterior", torch.zeros(bank, 2 * self.latent))
        self.register_buffer("bank_prior", torch.zeros(bank, 2 * self.latent))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, 2 * latent + 2]` for (context, reply) pairs."""
        pooled = self.pooled_pair(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return torch.cat([self.to_posterior(pooled), self.nsp(pooled)], dim=-1)

    def pooled_pair(self, **tensors: Any) -> Tensor:
        """h_q: what the posterior's encoder makes of a pair."""
        pooled: Tensor = self.posterior_pooler(states(self.posterior, **tensors, first_only=True))
        return pooled

    def pooled_context(self, **tensors: Any) -> Tensor:
        """h_p: what the prior's encoder makes of a context."""
        pooled: Tensor = self.prior_pooler(states(self.prior, **tensors, first_only=True))
        return pooled

    def set_bank(self, posterior: NDArray[Any], prior: NDArray[Any]) -> None:
        """Store the latents of negative pairs and contexts, each row a mean and a log-variance."""
        self.bank_posterior.copy_(torch.from_numpy(posterior))
        self.bank_prior.copy_(torch.from_numpy(prior))


class PriorRows(nn.Module):
    """The prior's rows of a context, `[batch, 2 * latent]`.

    Training uses the prior's own encoder. The released scoring code sends the context through the
    posterior's encoder instead (`posterior_trunk`), though still through the prior's head.
    """

    def __init__(self, network: CmnNetwork, encoder: PriorEncoder) -> None:
        super().__init__()
        self.network = network
        self.pooled = network.pooled_context if encoder == "prior" else network.pooled_pair

    def forward(self, **context: Tensor) -> Tensor:
        """Mean and log-variance of p(z | context)."""
        rows: Tensor = self.network.to_prior(self.pooled(**context))
        return rows


class ReplyDecoder(nn.Module):
    """A GPT-2 that writes the reply from v = [h_p ; z]; needed to train, not to score.

    v enters in two ways: as one extra past position per layer, whose key and value are the same
    slice of a projection, and as a vector added to every input embedding.
    """

    def __init__(self, language_model: Any, condition: int) -> None:
        super().__init__()
        self.language_model = language_model
        shape = language_model.config
        self.to_past = nn.Linear(condition, shape.n_layer * shape.n_embd, bias=False)
        self.to_embedding = nn.Linear(condition, shape.n_embd, bias=False)

    def forward(self, ids: Tensor, mask: Tensor, condition: Tensor) -> Tensor:
        """Each reply's sum of token cross-entropies over its number of tokens, begin and end included."""
        from transformers import DynamicCache

        shape = self.language_model.config
        past = self.to_past(condition).view(len(ids), shape.n_layer, shape.n_head, 1, -1)
        cache = DynamicCache()
        for layer in range(shape.n_layer):
            cache.update(past[:, layer], past[:, layer], layer)
        embeddings = self.language_model.get_input_embeddings()(ids) + self.to_embedding(condition)[:, None]
        logits = self.language_model(
            inputs_embeds=embeddings,
            attention_mask=F.pad(mask, (1, 0), value=1),
            position_ids=torch.arange(1, ids.shape[1] + 1, device=ids.device)[None],
            past_key_values=cache,
            use_cache=True,
        ).logits
        wrong = F.cross_entropy(logits[:, :-1].transpose(1, 2).float(), ids[:, 1:], reduction="none")
        return (wrong * mask[:, 1:]).sum(dim=1) / mask.sum(dim=1)


# --- losses ----------------------------------------------------------------------------------------


def kl_divergence(posterior: LatentGaussian, prior: LatentGaussian) -> Tensor:
    """KL(posterior || prior) of every latent dimension by itself."""
    spread = posterior.log_variance.exp() + (posterior.mean - prior.mean) ** 2
    ratio = prior.log_variance - posterior.log_variance
    return (ratio + spread / prior.log_variance.exp() - 1) / 2


def masked_free_bits(per_dimension: Tensor, threshold: float = 0.5) -> Tensor:
    """Sum over dimensions above the threshold; the others cost nothing and get no gradient.

    The paper does not mention this, its code does it; without it the posterior collapses onto the prior.
    """
    return (per_dimension * (per_dimension > threshold)).sum(dim=-1)


class CmnLosses(NamedTuple):
    """The terms of the objective, one value per training pair."""

    reconstruction: Tensor
    kl: Tensor
    nsp: Tensor


def training_losses(
    posterior: LatentGaussian,
    prior: LatentGaussian,
    nsp_logits: Tensor,
    is_true: Tensor,
    reconstruct: Callable[[Tensor], Tensor],
    noise: Tensor,
    *,
    free_bits: float = 0.5,
    reconstruct_negatives: bool = True,
) -> CmnLosses:
    """The two training cases, to be minimised (the paper prints two terms with the opposite sign).

    Where the encoder saw the true reply, z comes from the posterior, which is pulled to the prior;
    where it saw another one, z comes from the prior and there is no KL. `reconstruct(z)` is the
    decoder's loss on the true reply in either case; an unreported variant of the authors' code
    leaves it out of the negative case (`reconstruct_negatives=False`).
    """
    rows = is_true[:, None]
    mean = torch.where(rows, posterior.mean, prior.mean)
    log_variance = torch.where(rows, posterior.log_variance, prior.log_variance)
    reconstruction = reconstruct(LatentGaussian(mean, log_variance).sample(noise))
    if not reconstruct_negatives:
        reconstruction = reconstruction * is_true
    kl = masked_free_bits(kl_divergence(posterior, prior), free_bits) * is_true
    return CmnLosses(reconstruction, kl, F.cross_entropy(nsp_logits, is_true.long(), reduction="none"))


def critic_loss(posterior_draws: Tensor, prior_draws: Tensor, is_true: Tensor, *, wrong_pairs: bool = True) -> Tensor:
    """Trains the dot product that scoring takes for a critic; an option that the paper does not have.

    For a true pair InfoNCE over the batch: its latent has to agree with that of its own context more
    than with those of the other contexts; the loss's negative, plus the logarithm of the number of
    contexts, is the bound on I(c, x) that scoring reports. With `wrong_pairs` a pair shown another reply
    must not agree so: the posterior has seen the context too, and without this half every reply would.
    """
    critic = posterior_draws @ prior_draws.T
    itself = torch.eye(len(critic), dtype=torch.bool, device=critic.device)
    total = critic.logsumexp(dim=1)
    of_pair, others = critic.diagonal(), critic.masked_fill(itself, float("-inf")).logsumexp(dim=1)
    if not wrong_pairs:
        return ((total - of_pair) * is_true).sum() / is_true.sum().clamp(min=1)
    return (total - torch.where(is_true, of_pair, others)).mean()
