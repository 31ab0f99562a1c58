"""Train the heads of the papers' baselines on features of an encoder that stays as it is.

    python training/baselines.py --corpora CORPORA --out runs/bert_dnn-minilm
    python training/baselines.py --recipe RECIPES/adem-minilm.yaml --corpora CORPORA --ratings RATINGS --out runs/adem

Every text is encoded once; a head then learns from the features in seconds. So a run takes minutes, and an interrupted
one starts over. The head that does best on held-out contexts of DailyDialog++ is saved in OUT/checkpoint; no benchmark
is read.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
import copy
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

from common import Recipe, Run, make_accelerator, parse_arguments, plain_errors
from corpora.grouped import Group, labelled_rows
from corpora.negatives import corrupt
from corpora.ratings import overlapping_ratings, read_ratings
from dialeval.checkpoints.config import current_versions
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import load_exactly
from dialeval.papers import network_class
from dialeval.papers.heads import Features, TrainedHead
from dialeval.papers.learned import quantile_curves
from dialeval.registry import metric_class
from stages import corpora_of, count_kinds, new_network, read_grouped, record
from trainer import fit_head
from word_head import train_words


def head_class(name: str) -> Any:
    """The metric whose head is trained under this name."""
    cls = metric_class(name)[0]
    if not issubclass(cls, TrainedHead):
        raise ValueError(f"{name!r} has no head on fixed features; its class has to be a TrainedHead")
    return cls


@dataclass(frozen=True)
class Example:
    """A reply, its target (one is best, zero worst), and its kind."""

    exchange: Exchange
    target: float
    kind: str


# --- data ------------------------------------------------------------------------------------------


def grouped_examples(groups: Sequence[Group], head: Recipe, seed: int) -> list[Example]:
    """Every reply with the other right ones as its references, and right ones with damaged words where asked for."""
    known = {group.id: group.positives for group in groups}
    rows = labelled_rows(
        groups, negatives=head["negatives"], adversarial_percent=head["adversarial_percent"], seed=seed
    )
    examples = []
    for number, row in enumerate(rows):
        others = tuple(reply for reply in known[row.exchange.id or ""] if reply != row.exchange.response)
        exchange = replace(row.exchange, references=others)
        examples.append(Example(exchange, float(row.valid), row.kind))
        if head["damaged"] and row.valid:
            broken = corrupt(exchange.response, np.random.default_rng([seed, number]))
            if broken is not None:
                examples.append(Example(replace(exchange, response=broken), 0.0, "damaged"))
    if head["damaged"] == "only":
        examples = [example for example in examples if example.kind in ("positive", "damaged")]
    return [example for example in examples if example.exchange.references] if head["references"] else examples


def rated_examples(recipe: Recipe, root: Path, head: Recipe, *, split: str) -> list[Example]:
    """Rows that people rated from one to five, of the sources that the head learns from."""
    settings = recipe["ratings"]
    unwanted = overlapping_ratings(root / settings["leave_out"])
    return [
        Example(row.exchange, (row.scores[settings["aspect"]] - 1) / 4, "rated")
        for source in head["ratings"]
        for row in read_ratings(root, source, leave_out=unwanted)
        if row.split == split and row.exchange.references
    ]


def some(examples: list[Example], most: int, seed: int) -> list[Example]:
    """At most `most` examples, drawn by the seed."""
    order = np.random.default_rng(seed).permutation(len(examples))[:most]
    return [examples[int(index)] for index in sorted(order)]


# --- training --------------------------------------------------------------------------------------


def head_loss(outputs: Tensor, targets: Tensor, *, rating: bool) -> Tensor:
    """Cross-entropy of a logit, or the squared error of a rating from one to five."""
    if rating:
        return F.mse_loss(outputs, 1 + 4 * targets)
    return F.binary_cross_entropy_with_logits(outputs, targets)


def batches(features: Features, targets: Tensor, size: int, seed: int) -> Iterator[tuple[Features, Tensor]]:
    """Endless, in another order each time."""
    epoch = 0
    while True:
        order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(targets)))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield tuple(feature[chosen] for feature in features), targets[chosen]
        epoch += 1


def figures_of(outputs: NDArray[np.float64], held_out: Sequence[Example]) -> dict[str, float]:
    """AUC of right replies against each kind of wrong ones; rank correlation with ratings."""
    kinds = np.array([example.kind for example in held_out])
    figures = {
        f"auc_{kind}": float(roc_auc_score((kinds == "positive")[chosen], outputs[chosen]))
        for kind in ("random", "adversarial", "damaged")
        if (kinds == kind).any() and len(chosen := np.flatnonzero((kinds == "positive") | (kinds == kind)))
    }
    if (rated := kinds == "rated").any():
        targets = np.array([example.target for example in held_out])
        figures["spearman"] = float(spearmanr(outputs[rated], targets[rated]).statistic)
    return figures


def train_head(
    metric: TrainedHead, run: Run, name: str, head: Recipe, examples: Sequence[Example], held_out: Sequence[Example]
) -> dict[str, float]:
    """Train one head, put its best state into the network, and return the figures that it reached."""
    settings, device = run.recipe["training"], run.accelerator.device
    features, _ = metric.features([example.exchange for example in examples], progress=True)
    known, _ = metric.features([example.exchange for example in held_out], progress=True)
    targets = torch.tensor([example.target for example in examples], dtype=torch.float32)
    if hasattr(metric.head, "prepare"):
        metric.head.prepare(*features)  # type: ignore[operator]
    module = metric.head.requires_grad_(True)

    def loss(batch: tuple[Features, Tensor]) -> Tensor:
        inputs, wanted = batch
        return head_loss(module(*(tensor.to(device) for tensor in inputs)), wanted.to(device), rating=metric.is_rating)

    stream = batches(features, targets, settings["batch_size"], run.recipe["seed"])
    best: tuple[float, dict[str, float], Any] = (float("-inf"), {}, None)
    judged_by = [f"auc_{kind}" for kind in wrong_kinds(head)] if not head["ratings"] else ["spearman"]
    for step, progress in fit_head(module, settings, stream, loss):
        run.step += 1
        if step % settings["log_every"] == 0:
            run.log("train", **{f"loss_{name}": progress["loss"]}, learning_rate=progress["learning_rate"])
        if step % settings["evaluate_every"] == 0 or step == settings["steps"]:
            module.eval()
            figures = figures_of(metric.outputs_of(known), held_out)
            quality = float(np.mean([figures[key] for key in judged_by]))
            if kept := quality > best[0]:
                best = quality, figures, copy.deepcopy(module.state_dict())
                run.best_step = run.step
            run.log("validation", **{f"{key}_{name}": value for key, value in figures.items()}, kept=int(kept))
    module.load_state_dict(best[2])
    module.requires_grad_(False).eval()
    return best[1]


def wrong_kinds(head: Recipe) -> list[str]:
    """What right replies are chosen from."""
    if head["damaged"] == "only":
        return ["damaged"]
    kinds = ["random", "adversarial"] if head["negatives"] == "both" else [head["negatives"]]
    return [*kinds, "damaged"] if head["damaged"] else kinds


def train(recipe: Recipe, arguments: argparse.Namespace) -> None:
    """All heads of the recipe, one after another, over one network."""
    set_seed(recipe["seed"])
    groups, _, held = read_grouped(recipe, arguments.corpora)
    accelerator = make_accelerator(recipe, arguments)
    run = Run(
        arguments.out, accelerator, recipe, resume=False, unit="replies", per_step=recipe["training"]["batch_size"]
    )
    start = arguments.out / "start"
    made = new_network(network_class(recipe["approach"]), recipe, recipe["architecture"])
    made.save_pretrained(start)
    network: Any = None
    spoken: list[Exchange] = []
    reached: dict[str, float] = {}
    rows: dict[str, dict[str, int]] = {}
    curves: dict[str, Any] = {}
    human = [Exchange(group.context, group.positives[0], facts=group.facts) for group in held]
    for head in recipe["heads"]:
        name = head["name"]
        trained: TrainedHead = head_class(name)(start, device=accelerator.device)
        if network is not None:  # the heads that were trained before
            trained.network.load_state_dict(network.state_dict())
        network = trained.network
        examples = [
            example
            for number, part in enumerate(groups.values())
            for example in grouped_examples(part, head, recipe["seed"] + number)
        ]
        held_out = grouped_examples(held, {**head, "negatives": "both", "adversarial_percent": 100}, recipe["seed"])
        if head["ratings"]:
            examples += rated_examples(recipe, arguments.ratings, head, split="train")
            held_out += rated_examples(recipe, arguments.ratings, head, split="dev")
        examples = some(examples, recipe["training"]["examples"], recipe["seed"])
        spoken = spoken or [example.exchange for example in examples if example.kind == "positive"]
        rows[name] = dict(Counter(example.kind for example in examples))
        print(f"{name}: {len(examples)} examples, {len(held_out)} held out", flush=True)
        figures = train_head(trained, run, name, head, examples, held_out)
        reached |= {f"{key}_{name}": value for key, value in figures.items()}
        values = trained.score_exchanges([example.exchange for example in held_out]).values
        kinds = np.array([example.kind for example in held_out])
        if (kinds == "random").any():
            curves[trained.quantile_key] = quantile_curves(values[kinds == "positive"], values[kinds == "random"])
    if recipe.get("words"):
        # Scoring with the other heads computes the first token only; here every token counts.
        words: Any = metric_class("usr_mlm")[0]
        metric = words(start, device=accelerator.device)
        metric.network.load_state_dict(network.state_dict())
        network = metric.network
        reached |= train_words(network, run, spoken[: recipe["words"]["examples"]], human[:500])
        # What the likelihood of a reply alone is compared with.
        likelihoods = metric.judge([Exchange((), exchange.response) for exchange in human[:500]]).values
        network.likelihood.copy_(torch.from_numpy(np.nanquantile(likelihoods, (0.25, 0.75))))
    # Adapters were merged for speed; the network that is saved has them apart.
    heads = {key: value for key, value in network.state_dict().items() if not key.startswith("encoder.")}
    load_exactly(made, heads, kept="encoder.")
    made.config = replace(
        made.config,
        quantiles=curves,
        training=record(
            run,
            arguments,
            corpora=[*corpora_of(groups), *sorted({source for head in recipe["heads"] for source in head["ratings"]})],
            earlier={},
            available=count_kinds(groups),
            rows=rows,
            validation=reached,
        ),
        versions=current_versions(),
    )
    made.save_pretrained(arguments.out / "checkpoint")
    shutil.rmtree(start)
    run.log("final", **reached)
    for head in recipe["heads"]:  # what was written can be loaded
        head_class(head["name"])(arguments.out / "checkpoint")


def main() -> None:
    """Read the recipe, train."""
    recipe, arguments = parse_arguments(
        __doc__ or "", "bert_dnn-minilm.yaml", ratings="folder with the ratings, for heads that learn from them"
    )
    train(recipe, arguments)


if __name__ == "__main__":
    plain_errors(main)
