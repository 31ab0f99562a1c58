"""How a CMN network and its decoder begin: base encoders, adapters, poolers, latent heads."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import nn

from common import Recipe
from corpora.batches import CandidateSet
from dialeval.checkpoints.find import find_encoder
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import FirstToken, PairEncoder
from dialeval.encoders.layout import PairTokenizer
from dialeval.papers.cmn_network import CmnNetwork, ReplyDecoder
from stages import new_network


def build_network(recipe: Recipe) -> CmnNetwork:
    """Two encoders on the recipe's base; with `start_from` both begin from another checkpoint's adapter."""
    network = new_network(CmnNetwork, recipe, recipe["architecture"])
    if recipe["tuning"] == "lora" and recipe["start_from"] is not None:
        full = recipe["lora"]["rank"]
        for name, rank in (("posterior", full), ("prior", recipe["prior_rank"] or full)):
            setattr(network, name, with_rank(getattr(network, name), rank))
    if recipe["pretrained_pooler"]:
        load_pooler(network, find_encoder(recipe["encoder"]).folder)
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = recipe["encoder_dropout"]
    return network


def load_pooler(network: CmnNetwork, folder: Path) -> None:
    """Begin from the pooler that BERT was released with; encoders are loaded without it."""
    with safe_open(folder / "model.safetensors", framework="pt") as stored:
        names = [name for name in stored.keys() if name.endswith("pooler.dense.weight")]  # noqa: SIM118
        if not names:
            raise SystemExit(f"{folder} has no pooler; set pretrained_pooler to false")
        prefix = names[0].removesuffix("weight")
        state = {f"dense.{part}": stored.get_tensor(prefix + part) for part in ("weight", "bias")}
    for pooler in (network.posterior_pooler, network.prior_pooler):
        pooler.load_state_dict(state)


def with_rank(adapted: Any, rank: int) -> nn.Module:
    """The same encoder with its adapter reduced to a rank, so that two of them fit into a small checkpoint."""
    from peft import convert_to_lora, get_peft_model, set_peft_model_state_dict

    if adapted.peft_config["default"].r == rank:
        unchanged: nn.Module = adapted
        return unchanged
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Converting a PEFT adapter to LoRA")  # it is one, of higher rank
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")  # PEFT asks for it
        config, state = convert_to_lora(adapted, rank=rank)
        reduced: nn.Module = get_peft_model(adapted.unload(), config)
    set_peft_model_state_dict(reduced, state)
    return reduced


def random_pairs(train_set: CandidateSet, count: int, seed: int) -> list[Exchange]:
    """True pairs of a corpus, the same ones every time."""
    chosen = np.random.default_rng(seed).permutation(len(train_set))[:count]
    return [train_set.get(int(index)).exchange for index in chosen]


@torch.no_grad()
def whiten(network: CmnNetwork, pairs: list[Exchange], *, scale: float = 1.3, log_variance: float = -3.0) -> None:
    """Begin where dot products mean something: latents are the leading principal components of the encoders.

    With random heads the noise of a latent drowns its mean, and a short training ends before those of
    posterior and prior have found each other. Here the poolers start as one whitening of what the two
    encoders say of true pairs and of their contexts. Their last unit starts as a constant, from which
    the heads, which have no bias, take a first variance.
    """
    tokenizer = PairTokenizer(network.tokenizer, network.config.layout)
    posterior: Any = network.posterior
    prior: Any = network.prior
    states = [
        torch.from_numpy(PairEncoder(FirstToken(posterior), tokenizer).encode(pairs).rows),
        torch.from_numpy(PairEncoder(FirstToken(prior), tokenizer, segment="context").encode(pairs).rows),
    ]
    middles = [rows.mean(dim=0) for rows in states]
    centred = torch.cat([rows - middle for rows, middle in zip(states, middles, strict=True)])
    variances, directions = torch.linalg.eigh(centred.T @ centred / len(centred))
    variances, directions = variances.flip(0), directions.flip(1)
    # Directions with hardly any variance would be noise blown up to the size of the others.
    weight = directions.T / variances.clamp(min=variances[2 * network.latent]).sqrt()[:, None] / 2
    weight[-1] = 0
    for pooler, middle in zip((network.posterior_pooler, network.prior_pooler), middles, strict=True):
        pooler.dense.weight.copy_(weight)
        pooler.dense.bias.copy_(-weight @ middle)
        pooler.dense.bias[-1] = 2.0
    for head in (network.to_posterior, network.to_prior):
        head.weight.zero_()
        head.weight[: network.latent] += scale * torch.eye(network.latent, head.in_features)
        head.weight[network.latent :, -1] += log_variance


def build_decoder(recipe: Recipe, network: CmnNetwork) -> tuple[ReplyDecoder, Any]:
    """A pretrained GPT-2 with its own vocabulary, or a small random one with the encoder's; and the tokenizer."""
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    settings = recipe["decoder"]
    if settings["pretrained"]:
        folder = find_encoder(settings["pretrained"]).folder
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_special_tokens({"bos_token": "<BOS>", "eos_token": "<EOS>", "pad_token": "<EOS>"})
        model = GPT2LMHeadModel.from_pretrained(folder)
        model.resize_token_embeddings(len(tokenizer))
    else:
        tokenizer = AutoTokenizer.from_pretrained(find_encoder(recipe["encoder"]).folder)
        tokenizer.bos_token, tokenizer.eos_token = tokenizer.cls_token, tokenizer.sep_token
        shape = {name: settings[name] for name in ("n_layer", "n_head", "n_embd")}
        ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
        positions = settings["max_length"] + 2
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=positions, **shape, **ends))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = settings["dropout"]
    width = network.to_prior.in_features + network.latent
    return ReplyDecoder(model, width), tokenizer
