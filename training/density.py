"""Train DENSITY: pick the true reply among candidates, pull true pairs together, then fit the Gaussians.

    python training/density.py --corpora CORPORA --out runs/density-minilm
    torchrun --standalone --nproc_per_node 2 training/density.py --cpu --corpora CORPORA --out runs/density
    python training/density.py --corpora CORPORA --out runs/density-minilm --resume

The checkpoint with the best validation R@1 is fitted (`density_fit.py`) and saved as OUT/checkpoint. Any value of the
recipe can be overridden: `--set training.steps=100 --set losses.contrastive_weight=1.0`.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from safetensors.torch import load_file
from torch import Tensor

from common import (
    Recipe,
    Run,
    is_trunk,
    make_accelerator,
    parse_arguments,
    plain_errors,
    read_candidate_sets,
    read_trunk,
    read_validation,
    trunk_head,
    with_steps,
)
from corpora.batches import Candidates, CandidateSet, mixed_batches
from corpora.negatives import NegativeCounts
from density_fit import Encode, fit_and_choose
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import find_checkpoint
from dialeval.papers.density import (
    Density,
    DensityNetwork,
    contrastive_loss,
    response_selection_loss,
    selection_ranks,
)
from stages import Collator, keep_checkpoint, kept_network, network_rows, new_network, record
from trainer import Figures, Forward, run_stage


def build_network(recipe: Recipe) -> DensityNetwork:
    """A fresh network on the recipe's base encoder, the continuation of another checkpoint."""
    network = new_network(DensityNetwork, recipe, {"bias": True})
    if recipe["start_from"] is not None:
        continue_head(network, recipe["start_from"])
    return network


def continue_head(network: DensityNetwork, start: str) -> None:
    """Go on with the selection head of an earlier DENSITY, or of the shared encoder; others have none that fits.

    Its encoder is taken over as well, nothing else: the layout is the recipe's, the Gaussians are fitted anew.
    """
    if is_trunk(start):
        weight, bias = trunk_head(read_trunk(start)[0], "next")
        network.head.load_state_dict({"weight": weight[None], "bias": bias[None]})
        return
    folder = find_checkpoint(start, default=start).folder
    if CheckpointConfig.read(folder).approach == DensityNetwork.approach:
        stored = load_file(folder / "model.safetensors")
        network.head.load_state_dict({name: stored[f"head.{name}"] for name in network.head.state_dict()})


def losses(output: Tensor, contexts: int, recipe: Recipe, accelerator: Accelerator) -> tuple[Tensor, dict[str, float]]:
    """Response selection over this process's contexts; the contrast sees the pairs of all processes."""
    features, logits = output[:, :-1], output[:, -1].view(contexts, -1)
    settings = recipe["losses"]
    selection = response_selection_loss(logits)
    positive = torch.zeros_like(logits, dtype=torch.bool)
    positive[:, 0] = True
    everywhere, positive_everywhere = gather_with_gradient(features, positive.flatten(), accelerator)
    contrast = contrastive_loss(
        everywhere,
        positive_everywhere,
        temperature=settings["temperature"],
    )
    total = selection + settings["contrastive_weight"] * contrast
    correct = (logits.argmax(dim=1) == 0).float().mean()
    return total, {
        "selection": selection.item(),
        "contrast": contrast.item(),
        "r1": correct.item(),
    }


def gather_with_gradient(features: Tensor, positive: Tensor, accelerator: Accelerator) -> tuple[Tensor, Tensor]:
    """Features of all processes, gradients flowing to the local ones.

    The loss over all pairs is computed on every process and DDP averages gradients, so each local
    part is scaled by the number of processes to keep the gradient of one process with all pairs.
    """
    if accelerator.num_processes == 1:
        return features, positive
    gathered = [part.detach() for part in accelerator.gather(features[None]).unbind()]
    scale = accelerator.num_processes
    gathered[accelerator.process_index] = features * scale - features.detach() * (scale - 1)
    return torch.cat(gathered), accelerator.gather(positive)


def validate(encode: Encode, held_out: CandidateSet, recipe: Recipe, contexts: int) -> dict[str, float]:
    """R@1 and MRR among the validation candidates, the same contexts every time."""
    count = min(contexts, len(held_out))
    chosen = np.random.default_rng(recipe["seed"]).permutation(len(held_out))[:count]
    exchanges = [exchange for index in chosen for exchange in held_out.get(int(index)).exchanges()]
    logits = encode(exchanges)[:, -1].reshape(count, -1)
    ranks = selection_ranks(logits)
    return {"r1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean()), "contexts": count}


def finish(run: Run, arguments: argparse.Namespace, held_out: CandidateSet) -> None:
    """Fit the best checkpoint and write OUT/checkpoint.

    Features come from the metric that will score, with the adapter merged: the same numbers, sooner.
    """
    recipe = run.recipe
    read_in = recipe["fit"].get("read_in", "float32")
    scorer = Density(run.folder / "best", scoring="classifier", device=run.accelerator.device, dtype=read_in)

    def encode(exchanges: Any) -> Any:
        return scorer.encoder.encode(exchanges, progress=True).rows

    network = kept_network(run, DensityNetwork)
    measured = fit_and_choose(network, encode, recipe, arguments.corpora, held_out)
    figures = validate(encode, held_out, recipe, 2 * recipe["validation"]["contexts"])
    training = record(
        run,
        arguments,
        corpora=[*(corpus["name"] for corpus in recipe["corpora"]), *measured["fitted_pairs"]],
        earlier=network.config.training,
        validation={**figures, "auc": measured["auc"]},
        fitted_pairs=measured["fitted_pairs"],
    )
    areas = {f"auc_{rule}_{kind}": area for rule, kinds in measured["auc"].items() for kind, area in kinds.items()}
    keep_checkpoint(run, network, training, {**figures, **areas})


def main() -> None:
    """Data, model, loop, fit, save."""
    recipe, arguments = parse_arguments(__doc__ or "", "density-minilm.yaml")
    accelerator = make_accelerator(recipe, arguments)
    set_seed(recipe["seed"])
    train_sets, shares = read_candidate_sets(recipe, arguments.corpora)
    settings = with_steps(recipe["training"], sum(map(len, train_sets)), recipe["training"]["batch_contexts"])
    recipe["training"] = settings
    held_out = read_validation(recipe, arguments.corpora)
    network = build_network(recipe)
    collator = Collator(network, settings["max_length"])

    def loss(forward: Forward, batch: list[Candidates]) -> tuple[Tensor, Figures]:
        output = collator.rows_of(forward, [exchange for candidates in batch for exchange in candidates.exchanges()])
        return losses(output.float(), len(batch), recipe, accelerator)

    def judge() -> tuple[float, Figures]:
        figures = validate(partial(network_rows, network), held_out, recipe, recipe["validation"]["contexts"])
        return figures["r1"], figures

    run = run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=network,
        batches=mixed_batches(
            train_sets,
            shares,
            batch_contexts=settings["batch_contexts"],
            seed=recipe["seed"],
            resample=settings["resample_negatives"],
        ),
        loss=loss,
        validate=judge,
        keep=network.save_pretrained,
        unit="pairs",
        per_batch=settings["batch_contexts"] * (1 + NegativeCounts(**recipe["negatives"]).total),
    )
    if accelerator.is_main_process:
        finish(run, arguments, held_out)


if __name__ == "__main__":
    plain_errors(main)
