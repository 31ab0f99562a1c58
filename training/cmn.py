"""Train CMN: reconstruct replies through a latent variable, and tell true replies from wrong ones.

    python training/cmn.py --corpora CORPORA --out runs/cmn-minilm
    torchrun --standalone --nproc_per_node 2 training/cmn.py --cpu --corpora CORPORA --out runs/cmn
    python training/cmn.py --corpora CORPORA --out runs/cmn-minilm --resume

The decoder is needed here only. The checkpoint that does best on validation is given the quantiles of
its scores and saved as OUT/checkpoint. Any value of the recipe can be overridden, for example
`--set training.steps=100 --set losses.free_bits=0`.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed
from torch import Tensor, nn

from cmn_start import build_decoder, build_network, random_pairs, whiten
from cmn_validation import Validation
from common import (
    Recipe,
    Run,
    make_accelerator,
    parse_arguments,
    plain_errors,
    provenance,
    read_candidate_sets,
    with_steps,
)
from corpora.batches import Candidates, CandidateSource, mixed_batches
from corpora.grouped import GroupSet
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import collate
from dialeval.encoders.layout import PairTokenizer
from dialeval.papers.cmn import Cmn
from dialeval.papers.cmn_network import CmnNetwork, LatentGaussian, ReplyDecoder, critic_loss, training_losses
from stages import goes_on, keep_checkpoint, split_groups
from trainer import Figures, Forward, run_stage


class Collator:
    """Tensors of a batch. Which pairs are shown a wrong reply, which one, and the noise depend on its number alone."""

    def __init__(self, network: CmnNetwork, decoder_tokenizer: Any, recipe: Recipe) -> None:
        shorter = replace(network.config.layout, max_length=recipe["training"]["max_length"])
        self.pairs = PairTokenizer(network.tokenizer, shorter)
        self.replies = decoder_tokenizer
        self.max_reply = recipe["decoder"]["max_length"] - 2
        self.latent = network.latent
        self.seed = recipe["seed"]

    def __call__(self, number: int, batch: list[Candidates]) -> dict[str, Any]:
        """Arguments of the objective."""
        rng = np.random.default_rng([self.seed, number])
        is_true = rng.random(len(batch)) < 0.5
        shown = [
            candidates.exchanges()[0 if true else rng.integers(1, len(candidates.responses))]
            for candidates, true in zip(batch, is_true, strict=True)
        ]
        segments = self.pairs.layout.segment_ids
        return {
            "pair": collate(self.pairs.pairs(shown), self.pairs.pad_id, segment_ids=segments),
            "context": collate(self.pairs.contexts(shown), self.pairs.pad_id, segment_ids=segments),
            "reply": self.targets([candidates.exchange.response for candidates in batch]),
            "is_true": torch.from_numpy(is_true),
            "reference": self.references(batch, shown),
            "noise": torch.from_numpy(rng.standard_normal((4, len(batch), self.latent), dtype=np.float32)),
        }

    def references(self, batch: list[Candidates], shown: list[Exchange]) -> dict[str, Any]:
        """The pairs of context and reference, those that are shown already not encoded twice.

        A context with one right reply has that for its reference.
        """
        replies = [(candidates.exchange.references or (candidates.exchange.response,))[0] for candidates in batch]
        apart = [row for row, (reply, pair) in enumerate(zip(replies, shown, strict=True)) if reply != pair.response]
        apart = apart or [0]
        where = torch.arange(len(batch))
        where[apart] = len(batch) + torch.arange(len(apart))
        pairs = [Exchange(context=shown[row].context, response=replies[row]) for row in apart]
        return {
            "pair": collate(self.pairs.pairs(pairs), self.pairs.pad_id, segment_ids=self.pairs.layout.segment_ids),
            "where": where,
        }

    def targets(self, replies: list[str]) -> dict[str, Tensor]:
        """What the decoder has to write: begin, reply, end."""
        begin, end = self.replies.bos_token_id, self.replies.eos_token_id
        tokens = self.replies(replies, add_special_tokens=False, truncation=True, max_length=self.max_reply)[
            "input_ids"
        ]
        rows = [[begin, *ids, end] for ids in tokens]
        width = max(map(len, rows))
        return {
            "ids": torch.tensor([row + [end] * (width - len(row)) for row in rows]),
            "mask": torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]),
        }


class Objective(nn.Module):
    """Everything that is trained, as one module: the network, the decoder and the terms of the loss."""

    def __init__(self, network: CmnNetwork, decoder: ReplyDecoder, settings: Recipe) -> None:
        super().__init__()
        self.network, self.decoder, self.settings = network, decoder, settings

    def forward(
        self,
        pair: dict[str, Tensor],
        context: dict[str, Tensor],
        reply: dict[str, Tensor],
        is_true: Tensor,
        reference: dict[str, Any],
        noise: Tensor,
    ) -> dict[str, Tensor]:
        """The loss and its terms, means over the batch."""
        network, settings = self.network, self.settings
        pooled, known = network.pooled_pair(**pair), network.pooled_context(**context)
        posterior = LatentGaussian.of(network.to_posterior(pooled).float())
        prior = LatentGaussian.of(network.to_prior(known).float())
        logits = network.nsp(pooled).float()
        terms = training_losses(
            posterior,
            prior,
            logits,
            is_true,
            lambda z: self.decoder(reply["ids"], reply["mask"], torch.cat([known, z], dim=-1)),
            noise[0],
            free_bits=settings["free_bits"],
            reconstruct_negatives=settings["reconstruct_negatives"],
        )
        draws = posterior.sample(noise[1]), prior.sample(noise[2])
        # What has no weight is not computed: of a batch without a true pair it would be no number, times zero as well.
        critic = agreement = torch.zeros(())
        if settings["critic_weight"]:
            critic = critic_loss(*draws, is_true, wrong_pairs=settings["critic_wrong_pairs"])
        if settings["reference_weight"]:
            beside = LatentGaussian.of(network.to_posterior(network.pooled_pair(**reference["pair"])).float())
            both = (torch.cat(parts)[reference["where"]] for parts in zip(posterior, beside, strict=True))
            agreement = critic_loss(draws[0], LatentGaussian(*both).sample(noise[3]), is_true)
        total = terms.reconstruction + settings["kl_weight"] * terms.kl + settings["nsp_weight"] * terms.nsp
        return {
            "loss": total.mean() + settings["critic_weight"] * critic + settings["reference_weight"] * agreement,
            "reconstruction": terms.reconstruction.mean(),
            "kl": terms.kl.sum() / is_true.sum().clamp(min=1),
            "nsp": terms.nsp.mean(),
            "critic": critic,
            "reference": agreement,
            "nsp_accuracy": (logits.argmax(dim=-1) == is_true).float().mean(),
        }


def finish(run: Run, arguments: argparse.Namespace, check: Validation) -> None:
    """Add the best checkpoint's quantiles and history, and write OUT/checkpoint."""
    recipe, device = run.recipe, run.accelerator.device
    network = CmnNetwork.from_pretrained(run.folder / "best", device=device, trainable=True)
    metric = Cmn(run.folder / "best", device=device)
    figures = check.measure(metric, "final_contexts")
    names = [corpus["name"] for corpus in recipe["corpora"]]
    if recipe["group_share"]:
        names.append(recipe["groups"]["name"])
    training = provenance(run, arguments, corpora=names, validation=figures)
    keep_checkpoint(run, network, training, figures, quantiles=check.quantiles(metric))


def main() -> None:
    """Data, model, loop, quantiles, save."""
    recipe, arguments = parse_arguments(__doc__ or "", "cmn-minilm.yaml")
    accelerator = make_accelerator(recipe, arguments)
    set_seed(recipe["seed"])
    sets, shares = read_candidate_sets(recipe, arguments.corpora)
    settings = with_steps(recipe["training"], sum(map(len, sets)), recipe["training"]["batch_contexts"])
    recipe["training"] = settings
    sources: list[CandidateSource] = list(sets)
    if recipe["group_share"]:
        sources.append(GroupSet(split_groups(recipe, arguments.corpora)[0]))
        shares = [share * (1 - recipe["group_share"]) / sum(shares) for share in shares] + [recipe["group_share"]]
    bank = random_pairs(sets[0], recipe["architecture"]["bank"], recipe["seed"] + 1)
    check = Validation(recipe, arguments.corpora, bank)
    network = build_network(recipe)
    if recipe["whitening_pairs"] and not goes_on(CmnNetwork, recipe):
        whiten(network, random_pairs(sets[0], recipe["whitening_pairs"], recipe["seed"]))
    decoder, decoder_tokenizer = build_decoder(recipe, network)
    collator = Collator(network, decoder_tokenizer, recipe)

    def loss(forward: Forward, numbered: tuple[int, list[Candidates]]) -> tuple[Tensor, Figures]:
        terms = forward(collator(*numbered))
        return terms["loss"], {name: term.item() for name, term in terms.items() if name != "loss"}

    def judge() -> tuple[float, Figures]:
        """Of what would be loaded from disk."""
        saved = arguments.out / "candidate"
        if accelerator.is_main_process:
            network.save_pretrained(saved)
        accelerator.wait_for_everyone()
        metric = Cmn(saved, device=accelerator.device)
        check.fill_bank(metric, network)
        figures = check.measure(metric, "contexts")
        return figures["selection"], figures

    batches = mixed_batches(sources, shares, batch_contexts=settings["batch_contexts"], seed=recipe["seed"])
    run = run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=Objective(network, decoder, recipe["losses"]),
        batches=enumerate(batches),
        loss=loss,
        validate=judge,
        keep=network.save_pretrained,
        unit="pairs",
        per_batch=settings["batch_contexts"],
    )
    if accelerator.is_main_process:
        finish(run, arguments, check)


if __name__ == "__main__":
    plain_errors(main)
