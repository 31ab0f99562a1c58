"""Train QuantiDCE: rank replies of three quality levels, then fit a few human ratings without forgetting.

    python training/quantidce.py --corpora CORPORA --ratings MIRROR --out runs/quantidce-minilm
    torchrun --standalone --nproc_per_node 2 training/quantidce.py --cpu --corpora CORPORA --out runs/quantidce
    python training/quantidce.py --corpora CORPORA --out runs/quantidce-minilm --resume

Stage one keeps its run in OUT/pretraining (none with `--set pretraining.steps=0`), stage two in OUT, which
ends with OUT/checkpoint. MIRROR takes GitHub's place for the rated rows; without it they are downloaded.
Any value of the recipe can be overridden: `--set losses.mlr=0 --set losses.binary=1`,
`--set multi_level.ordering_weight=0`, `--set fine_tuning.method=mse`, `--set fine_tuning.percent=10`.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed
from scipy.stats import spearmanr
from torch import Tensor, nn

from common import Recipe, Run, parse_arguments, plain_errors, with_steps
from corpora.grouped import Group, mixed_item_batches
from corpora.negatives import corrupt
from dialeval.core.exchange import Exchange
from dialeval.papers.learned import quantile_curves
from dialeval.papers.quantidce import (
    MultiLevelRanking,
    QuantiDceNetwork,
    Trace,
    binary_loss,
    distillation_loss,
    fast_triplet_loss,
    feature_ranking_loss,
    margin_ranking_loss,
    rating_loss,
    supervised_contrastive_loss,
    vanilla_ranking_loss,
)
from ratings import Rated, read_ratings
from stages import (
    Collator,
    continued,
    corpora_of,
    count_kinds,
    keep_checkpoint,
    keep_stage,
    kept_network,
    network_rows,
    new_network,
    read_grouped,
    record,
    stage_is_done,
)
from trainer import Figures, Forward, run_stage

LEVELS = 3


# --- stage one: levels -----------------------------------------------------------------------------


def with_all_levels(groups: list[Group], per_level: int) -> list[Group]:
    """Contexts with enough replies of each kind; mined ones stand in for adversarial ones."""
    return [
        group
        for group in groups
        if min(len(group.random), len(group.adversarial) + len(group.mined), len(group.positives)) >= per_level
    ]


def with_damaged(groups: list[Group], count: int, seed: int) -> list[Group]:
    """So many right replies of each context in disorder, said twice or cut off, among those that were mined."""
    draw, damaged = np.random.default_rng(seed), []
    for group in groups:
        drawn = (corrupt(group.positives[place], draw) for place in draw.permutation(len(group.positives)))
        damaged.append(replace(group, mined=(*group.mined, *[reply for reply in drawn if reply][:count])))
    return damaged


def levels_of(group: Group, per_level: int, rng: np.random.Generator) -> list[Exchange]:
    """The same number of random, adversarial and right replies, in this order."""
    drawn = []
    for replies in (group.random, group.adversarial + group.mined, group.positives):
        chosen = range(per_level) if len(replies) == per_level else rng.permutation(len(replies))[:per_level]
        drawn += [Exchange(context=group.context, response=replies[int(index)], id=group.id) for index in chosen]
    return drawn


def ranking_losses(rows: Tensor, per_level: int, recipe: Recipe) -> tuple[Tensor, Figures]:
    """The weighted losses of stage one over rows of (features, score)."""
    features, scores = rows[:, :-1], rows[:, -1].view(-1, LEVELS, per_level)
    levels = torch.arange(LEVELS, device=rows.device).repeat_interleave(per_level).repeat(len(scores))
    multi_level, options = MultiLevelRanking(**recipe["multi_level"]), recipe["comparison"]
    terms = {
        "mlr": lambda: multi_level(scores),
        "features": lambda: feature_ranking_loss(features.view(*scores.shape, -1)),
        "binary": lambda: binary_loss(scores),
        "margin": lambda: margin_ranking_loss(scores, options["margin"]),
        "vanilla": lambda: vanilla_ranking_loss(
            scores, options["margin"], adjacent_only=options["adjacent_only"], on_means=options["on_means"]
        ),
        "contrastive": lambda: supervised_contrastive_loss(features, levels, options["temperature"]),
        "triplet": lambda: fast_triplet_loss(features, levels, options["triplet_margin"], options["triplet_spread"]),
    }
    active = {name: terms[name]() for name, weight in recipe["losses"].items() if weight}
    # A loss of features alone leaves the scorer out, which data parallelism takes for an error.
    total = scores.sum() * 0.0 + sum(recipe["losses"][name] * term for name, term in active.items())
    figures = {name: term.item() for name, term in active.items()}
    if "mlr" in active:
        figures |= {name: part.item() for name, part in multi_level.parts(scores).items()}
    return total, figures


def pretrain(recipe: Recipe, arguments: argparse.Namespace, data: tuple[Any, Any, Any]) -> None:
    """Leaves OUT/pretraining/checkpoint."""
    folder, per_level = arguments.out / "pretraining", recipe["pretraining"]["per_level"]
    sources, shares, held_out = data
    settings = recipe["pretraining"]
    groups = [
        with_damaged(with_all_levels(part, per_level), settings.get("damaged", 0), recipe["seed"])
        for part in sources.values()
    ]
    settings = with_steps(settings, len(groups[0]) / (shares[0] / sum(shares)), settings["batch_size"])
    set_seed(recipe["seed"])
    network = new_network(QuantiDceNetwork, recipe, {})
    collator = Collator(network, recipe["training"]["max_length"])
    batches = mixed_item_batches(
        groups,
        shares,
        size=settings["batch_size"],
        seed=recipe["seed"],
        length=lambda group: min(400, sum(map(len, group.context))),
    )

    def loss(forward: Forward, numbered: tuple[int, list[Group]]) -> tuple[Tensor, Figures]:
        number, batch = numbered
        rng = np.random.default_rng([recipe["seed"], number])
        exchanges = [exchange for group in batch for exchange in levels_of(group, per_level, rng)]
        return ranking_losses(collator.rows_of(forward, exchanges).float(), per_level, recipe)

    def validate() -> tuple[float, Figures]:
        figures = ranking_figures(network, held_out, recipe)
        return -figures["loss"], figures

    run = run_stage(
        folder,
        recipe,
        settings,
        arguments,
        model=network,
        batches=enumerate(batches),
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        unit="replies",
        per_batch=settings["batch_size"] * LEVELS * per_level,
    )
    used = count_kinds(dict(zip(sources, groups, strict=True)))
    keep_stage(run, arguments, QuantiDceNetwork, corpora=corpora_of(sources), groups=used)


def ranking_figures(network: QuantiDceNetwork, held_out: list[Group], recipe: Recipe) -> Figures:
    """Loss on held-out contexts, mean score of each level, how often levels and replies stand in the right order."""
    per_level, size = recipe["pretraining"]["per_level"], recipe["pretraining"]["batch_size"]
    complete = with_all_levels(held_out, per_level)
    rng = np.random.default_rng(recipe["seed"])
    rows = network_rows(network, [exchange for group in complete for exchange in levels_of(group, per_level, rng)])
    parts = torch.split(torch.from_numpy(rows), size * LEVELS * per_level)
    scores = rows[:, -1].reshape(-1, LEVELS, per_level)
    best = scores[:, 2, :, None]
    means = scores.mean(axis=2)
    return {
        "contexts": len(complete),
        "loss": float(np.mean([ranking_losses(part, per_level, recipe)[0].item() for part in parts])),
        "mean_random": float(means[:, 0].mean()),
        "mean_adversarial": float(means[:, 1].mean()),
        "mean_positive": float(means[:, 2].mean()),
        "levels_in_order": float(((means[:, 0] < means[:, 1]) & (means[:, 1] < means[:, 2])).mean()),
        "positive_above_random": float((best > scores[:, 0, None, :]).mean()),
        "positive_above_adversarial": float((best > scores[:, 1, None, :]).mean()),
    }


# --- stage two: ratings ----------------------------------------------------------------------------


class Traced(nn.Module):
    """The network, returning what distillation compares."""

    def __init__(self, network: QuantiDceNetwork, attention: str) -> None:
        super().__init__()
        self.network = network
        self.attention = attention

    def forward(self, **tensors: Tensor) -> Trace:
        """Hidden states, attention maps, score."""
        return self.network.trace(**tensors, attention=self.attention)  # type: ignore[arg-type]


def fine_tune(recipe: Recipe, arguments: argparse.Namespace, data: tuple[Any, Any, Any]) -> None:
    """Leaves OUT/checkpoint. Without `ratings` that is the network of stage one, whose order of replies stands."""
    options, wanted = recipe["fine_tuning"], recipe["ratings"]
    train: list[Rated] = []
    held: list[Rated] = []
    if wanted:
        train, held = read_ratings(
            wanted["benchmark"],
            wanted["held_out"],
            mirror=arguments.ratings,
            percent=options["percent"],
            seed=recipe["seed"],
        )
    settings = with_steps(options, len(train), options["batch_size"]) if train else {**options, "steps": 0, "warmup": 0}
    set_seed(recipe["seed"])
    if recipe["pretraining"]["steps"] != 0:
        network = continued(QuantiDceNetwork, arguments.out / "pretraining" / "checkpoint", recipe)
    else:
        network = new_network(QuantiDceNetwork, recipe, {})
    teacher = teacher_of(network, recipe)
    if options["method"] == "mse_fix_encoder":
        network.encoder.requires_grad_(False)
        network.pooler.requires_grad_(False)
    model = Traced(network, options["attention"])
    collator = Collator(network, recipe["training"]["max_length"], pad_to_max_length=options["pad_to_max_length"])

    def loss(forward: Forward, batch: list[Rated]) -> tuple[Tensor, Figures]:
        tensors = collator([row.exchange for row in batch])
        moved = forward(tensors)
        device = moved.score.device
        fitting = rating_loss(moved.score, torch.tensor([row.rating for row in batch], device=device))
        figures = {"ratings": fitting.item()}
        if options["method"] != "kd_mse":
            return options["rating_weight"] * fitting, figures
        with torch.no_grad():
            fixed = teacher.to(device)(**{key: value.to(device) for key, value in tensors.items()})
        keeping = distillation_loss(fixed, moved, options["distance"])
        figures["distillation"] = keeping.item()
        return options["rating_weight"] * fitting + options["distillation_weight"] * keeping, figures

    def validate() -> tuple[float, Figures]:
        if not held:
            return 0.0, {}
        device = next(network.parameters()).device
        model.eval()
        with torch.inference_mode():
            total, figures = loss(lambda batch: model(**{name: rows.to(device) for name, rows in batch.items()}), held)
        model.train()
        return -total.item(), {"loss": total.item(), **figures, **rating_figures(network, held)}

    empty: list[list[Rated]] = []
    batches = (
        mixed_item_batches(
            [train],
            [1.0],
            size=settings["batch_size"],
            seed=recipe["seed"],
            length=lambda row: sum(map(len, row.exchange.context)),
        )
        if settings["steps"]
        else iter(empty)
    )
    run = run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=model,
        batches=batches,
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        unit="replies",
        per_batch=settings["batch_size"],
    )
    if run.accelerator.is_main_process:
        finish(run, arguments, data, train, held)


def teacher_of(network: QuantiDceNetwork, recipe: Recipe) -> Traced:
    """A frozen copy of the network as stage one left it, without dropout."""
    from copy import deepcopy

    return Traced(deepcopy(network).requires_grad_(False), recipe["fine_tuning"]["attention"]).eval()


def rating_figures(network: QuantiDceNetwork, rows: list[Rated]) -> Figures:
    """Correlation with the ratings, as far as a few dozen rows can tell."""
    scores = network_rows(network, [row.exchange for row in rows])[:, -1]
    return {"spearman": float(spearmanr(scores, [row.rating for row in rows]).statistic), "rated_replies": len(rows)}


def finish(
    run: Run, arguments: argparse.Namespace, data: tuple[Any, Any, Any], train: list[Rated], held: list[Rated]
) -> None:
    """Quantiles of held-out human and random replies, the record, and OUT/checkpoint."""
    sources, _, held_out = data
    network = kept_network(run, QuantiDceNetwork)
    figures = ranking_figures(network, held_out, run.recipe)
    if held:
        figures |= rating_figures(network, held)
    scores = {
        kind: 1.0 + 4.0 * network_rows(network, exchanges)[:, -1].astype(np.float64)
        for kind, exchanges in (
            ("human", [Exchange(group.context, reply) for group in held_out for reply in group.positives]),
            ("random", [Exchange(group.context, reply) for group in held_out for reply in group.random]),
        )
    }
    training = record(
        run,
        arguments,
        corpora=[*([run.recipe["ratings"]["benchmark"]] if held else []), *corpora_of(sources)],
        earlier=network.config.training,
        available=count_kinds(sources),
        rated_rows={"training": len(train), "held_out": len(held)},
        validation=figures,
    )
    quantiles = {"native": quantile_curves(scores["human"], scores["random"])}
    keep_checkpoint(run, network, training, figures, quantiles=quantiles)


def main() -> None:
    """Stage one unless it has no steps, then stage two."""
    recipe, arguments = parse_arguments(
        __doc__ or "", "quantidce-minilm.yaml", ratings="folder or mirror with the rated rows; downloaded if left out"
    )
    data = read_grouped(recipe, arguments.corpora)
    if recipe["pretraining"]["steps"] != 0 and not stage_is_done(arguments.out / "pretraining", arguments):
        pretrain(recipe, arguments, data)
    fine_tune(recipe, arguments, data)


if __name__ == "__main__":
    plain_errors(main)
