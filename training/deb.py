"""Train DEB: next responses and masked words from ordinary chat, then right, random and adversarial replies.

    python training/deb.py --corpora CORPORA --out runs/deb-minilm
    torchrun --standalone --nproc_per_node 2 training/deb.py --cpu --corpora CORPORA --out runs/deb-minilm
    python training/deb.py --corpora CORPORA --out runs/deb-minilm --resume

Stage one keeps its run in OUT/pretraining (none with `--set pretraining.steps=0`), stage two in OUT. The
best network of stage two is calibrated on held-out contexts and saved as OUT/checkpoint. Any value of the
recipe can be overridden: `--set fine_tuning.negatives=random --set fine_tuning.adversarial_percent=10`.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from common import (
    Recipe,
    Run,
    is_trunk,
    left_out,
    parse_arguments,
    plain_errors,
    read_trunk,
    read_validation,
    trunk_head,
    with_steps,
)
from corpora.batches import Candidates, CandidateSet, mixed_batches
from corpora.dialogues import CorpusDialogue, read_corpus
from corpora.grouped import Group, LabelledRow, labelled_rows, mixed_item_batches
from corpora.negatives import NegativeCounts, corrupt
from dialeval.checkpoints.find import find_encoder
from dialeval.core.exchange import Exchange
from dialeval.papers.deb import (
    DebNetwork,
    expected_calibration_error,
    fit_shift,
    fit_temperature,
    masked_word_loss,
    next_response_loss,
    reliability,
    valid_probability,
)
from dialeval.papers.learned import quantile_curves
from masking import MaskingCollator, TwoTasks
from stages import (
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


def losses(
    forward: Forward,
    collator: MaskingCollator,
    exchanges: list[Exchange],
    valid: list[bool],
    number: int,
    weight: float,
) -> tuple[Tensor, Figures]:
    """Next response, and masked words with their weight."""
    tensors, words = collator.masked(exchanges, number, hide=weight > 0)
    logits, guesses = forward(tensors)
    following = next_response_loss(logits.float(), torch.tensor(valid, device=logits.device))
    right = (logits.argmax(dim=1) == 0).tolist()
    figures = {"next_response": following.item(), "accuracy": float(np.mean(np.equal(right, valid)))}
    if guesses is None:
        return following, figures
    words = words.to(guesses.device)
    guessing = masked_word_loss(guesses.float(), words)
    figures["masked_words"] = guessing.item()
    figures["word_accuracy"] = (guesses.argmax(dim=1) == words).float().mean().item()
    return following + weight * guessing, figures


# --- stage one: ordinary chat ----------------------------------------------------------------------


def chat_corpora(recipe: Recipe, root: Path) -> tuple[list[CandidateSet], list[float]]:
    """Every corpus with one random wrong reply per right one."""
    sets = []
    for number, corpus in enumerate(recipe["corpora"]):
        dialogues: list[CorpusDialogue] = []
        for split in corpus["splits"]:
            dialogues += read_corpus(root, corpus["name"], split, leave_out=left_out(recipe, root))
        sets.append(CandidateSet(dialogues, NegativeCounts(random=1), seed=recipe["seed"] + number))
    return sets, [float(corpus["share"]) for corpus in recipe["corpora"]]


def original_weights(recipe: Recipe) -> Path | None:
    """Where BERT's own heads lie, if the recipe begins from them."""
    return find_encoder(recipe["encoder"]).folder if recipe["original_head"] else None


def pretrain(recipe: Recipe, arguments: argparse.Namespace) -> None:
    """Leaves OUT/pretraining/checkpoint, without the head for masked words."""
    settings, folder = recipe["pretraining"], arguments.out / "pretraining"
    set_seed(recipe["seed"])
    network = new_network(DebNetwork, recipe, recipe["head"])
    model = TwoTasks(network, settings["mlm_weight"], original_weights(recipe))
    collator = MaskingCollator(network, recipe)
    sets, shares = chat_corpora(recipe, arguments.corpora)
    held_out = read_validation(recipe, arguments.corpora)
    batches = mixed_batches(sets, shares, batch_contexts=settings["batch_size"] // 2, seed=recipe["seed"])

    def loss(forward: Forward, numbered: tuple[int, list[Candidates]]) -> tuple[Tensor, Figures]:
        number, batch = numbered
        exchanges = [exchange for candidates in batch for exchange in candidates.exchanges()]
        return losses(forward, collator, exchanges, [True, False] * len(batch), number, settings["mlm_weight"])

    def validate() -> tuple[float, Figures]:
        pool = [held_out.get(index) for index in range(min(len(held_out), recipe["validation"]["contexts"]))]
        device = next(network.parameters()).device

        def forward(tensors: dict[str, Tensor]) -> Any:
            return model(**{key: value.to(device) for key, value in tensors.items()})

        model.eval()
        with torch.inference_mode():
            parts = [loss(forward, (start, pool[start : start + 16]))[1] for start in range(0, len(pool), 16)]
        model.train()
        figures = {key: float(np.mean([part[key] for part in parts])) for key in parts[0]}
        if "masked_words" in figures:
            figures["perplexity"] = float(np.exp(figures["masked_words"]))
        return -figures["next_response"] - settings["mlm_weight"] * figures.get("masked_words", 0.0), figures

    run = run_stage(
        folder,
        recipe,
        settings,
        arguments,
        model=model,
        batches=enumerate(batches),
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        unit="replies",
        per_batch=settings["batch_size"],
    )
    pairs = {corpus["name"]: len(rows) for corpus, rows in zip(recipe["corpora"], sets, strict=True)}
    keep_stage(run, arguments, DebNetwork, corpora=list(pairs), pairs=pairs)


# --- stage two: right, random and adversarial replies ----------------------------------------------


def fine_tune(recipe: Recipe, arguments: argparse.Namespace) -> None:
    """Leaves OUT/checkpoint."""
    settings = recipe["fine_tuning"]
    sources, shares, held_out = read_grouped(recipe, arguments.corpora)
    rows = [training_rows(groups, recipe, seed=number) for number, groups in enumerate(sources.values())]
    judged = labelled_rows(held_out)
    settings = with_steps(settings, len(rows[0]) / (shares[0] / sum(shares)), settings["batch_size"])

    set_seed(recipe["seed"])
    if recipe["pretraining"]["steps"]:
        network = continued(DebNetwork, arguments.out / "pretraining" / "checkpoint", recipe)
        model = TwoTasks(network, settings["mlm_weight"])
    else:
        network = new_network(DebNetwork, recipe, recipe["head"])
        if is_trunk(recipe["start_from"]):
            take_head(network, recipe["start_from"])
            if recipe["head_fit"]:
                fit_head(network, next(iter(sources.values())), recipe)
        model = TwoTasks(network, settings["mlm_weight"], original_weights(recipe))
    collator = MaskingCollator(network, recipe)
    batches = mixed_item_batches(
        rows,
        shares,
        size=settings["batch_size"],
        seed=recipe["seed"],
        shuffle=settings["shuffle"],
        length=lambda row: min(400, sum(map(len, row.exchange.context)) + len(row.exchange.response)),
    )

    def loss(forward: Forward, numbered: tuple[int, list[LabelledRow]]) -> tuple[Tensor, Figures]:
        number, batch = numbered
        exchanges, valid = [row.exchange for row in batch], [row.valid for row in batch]
        return losses(forward, collator, exchanges, valid, number, settings["mlm_weight"])

    def validate() -> tuple[float, Figures]:
        figures = discrimination(np.array([row.kind for row in judged]), held_out_logits(network, judged))
        figures["contexts"] = len(held_out)
        against = ["random", "adversarial"] if settings["negatives"] == "both" else [settings["negatives"]]
        known = [figures[f"accuracy_{kind}"] for kind in against if f"accuracy_{kind}" in figures]
        return float(np.mean(known)), figures

    run = run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=model,
        batches=enumerate(batches),
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        unit="replies",
        per_batch=settings["batch_size"],
    )
    if run.accelerator.is_main_process:
        finish(run, arguments, sources, held_out, rows)


def take_head(network: DebNetwork, start: str) -> None:
    """Go on with the head for valid replies that the shared encoder learned with."""
    if network.pooler is not None or network.classifier.bias is None:
        raise SystemExit("the encoder's head has a bias and does not pool; set head to {pooled: false, bias: true}")
    set_head(network, *trunk_head(read_trunk(start)[0], "valid"))


def fit_head(network: DebNetwork, groups: list[Group], recipe: Recipe) -> None:
    """A head fitted on the states of the encoder, which stays as it is: the mean of it and of the one that the encoder
    learned with, if it learned with one, each in its own unit.

    Wrong are the wrong replies of the contexts, and right ones whose words are in disorder, said twice or cut off.
    """
    settings, draw = recipe["head_fit"], np.random.default_rng(recipe["seed"])
    chosen = draw.permutation(len(groups))[: settings["contexts"]]
    rows = training_rows([groups[place] for place in sorted(chosen.tolist())], recipe, seed=0)
    right = {row.exchange: corrupt(row.exchange.response, draw) for row in rows if row.valid}
    damaged = [replace(exchange, response=reply) for exchange, reply in right.items() if reply]
    states = network_rows(network, [*(row.exchange for row in rows), *damaged])[:, :-2]
    valid = [*(row.valid for row in rows), *(False for _ in damaged)]
    counts = [1.0] * len(rows) + [settings["damaged"]] * len(damaged)
    model = LogisticRegression(C=settings["strength"], max_iter=3000).fit(states, valid, counts)
    fitted = torch.tensor([*model.coef_[0], model.intercept_[0]], dtype=torch.float32)
    weight, bias = network.classifier.weight[0], network.classifier.bias[0]
    learned = 2 * torch.cat([weight, bias[None]]).detach()
    if learned.any():
        seen = torch.from_numpy(states[: len(rows)])
        units = [(seen @ head[:-1]).std() for head in (learned, fitted)]
        fitted = (learned / units[0] + fitted / units[1]) * units[1] / 2
    set_head(network, fitted[:-1], fitted[-1])


def set_head(network: DebNetwork, weight: Tensor, bias: Tensor) -> None:
    """Half of a logit to either side."""
    with torch.no_grad():
        network.classifier.weight.copy_(torch.stack([weight, -weight]) / 2)
        network.classifier.bias.copy_(torch.stack([bias, -bias]) / 2)


def training_rows(groups: list[Group], recipe: Recipe, *, seed: int) -> list[LabelledRow]:
    """Labelled rows of one source, with the negatives that the recipe asks for."""
    settings = recipe["fine_tuning"]
    return labelled_rows(
        groups,
        negatives=settings["negatives"],
        repeat_positives=settings["repeat_positives"],
        adversarial_percent=settings["adversarial_percent"],
        seed=recipe["seed"] + seed,
    )


def held_out_logits(network: DebNetwork, rows: list[LabelledRow]) -> NDArray[np.float32]:
    """Both logits of every row, as the metric computes them."""
    return network_rows(network, [row.exchange for row in rows])[:, -2:]


def discrimination(kinds: NDArray[np.str_], logits: NDArray[np.float32]) -> Figures:
    """Share accepted of each kind of reply, and accuracy against each kind of wrong reply."""
    scores = valid_probability(logits)
    known = [kind for kind in ("positive", "random", "adversarial", "mined") if (kinds == kind).any()]
    accepted = {kind: float((scores[kinds == kind] > 0.5).mean()) for kind in known}
    return {
        **{f"accepted_{kind}": share for kind, share in accepted.items()},
        **{f"accuracy_{kind}": (accepted["positive"] + 1 - accepted[kind]) / 2 for kind in known[1:]},
    }


def calibrate(
    logits: NDArray[np.float32], valid: NDArray[np.bool_], middle: int, *, shift: bool
) -> tuple[Figures, NDArray[np.float32]]:
    """Temperature and shift of all rows, and the logits of each half moved by the shift of the other.

    What is said of the rows after calibration (error, accuracy) is measured on the half that each fit has not seen.
    """

    def fitted(rows: slice) -> tuple[float, NDArray[np.float32]]:
        moved = np.array([fit_shift(logits[rows], valid[rows]) if shift else 0.0, 0.0], dtype=np.float32)
        return fit_temperature(logits[rows] + moved, valid[rows]), moved

    halves = slice(None, middle), slice(middle, None)
    crossed, unseen = [], []
    for seen, other in (halves, halves[::-1]):
        temperature, moved = fitted(other)
        unseen.append(logits[seen] + moved)
        crossed.append(valid_probability(unseen[-1], temperature))
    temperature, moved = fitted(slice(None))
    figures = {
        "temperature": temperature,
        "shift": float(moved[0]),
        "calibration_error_before": expected_calibration_error(reliability(valid_probability(logits), valid)),
        "calibration_error_after": expected_calibration_error(reliability(np.concatenate(crossed), valid)),
    }
    return figures, np.concatenate(unseen)


def finish(
    run: Run,
    arguments: argparse.Namespace,
    sources: dict[str, list[Group]],
    held_out: list[Group],
    rows: list[list[LabelledRow]],
) -> None:
    """Calibrate the best network, record what it was made of, write OUT/checkpoint."""
    recipe = run.recipe
    network = kept_network(run, DebNetwork)
    halves = labelled_rows(held_out[0::2]), labelled_rows(held_out[1::2])
    judged = [*halves[0], *halves[1]]
    kinds, valid = np.array([row.kind for row in judged]), np.array([row.valid for row in judged])
    logits = held_out_logits(network, judged)
    calibration, unseen = calibrate(logits, valid, len(halves[0]), shift=recipe["calibrate_shift"])
    network.temperature.fill_(calibration["temperature"])
    if recipe["calibrate_shift"]:
        network.shift(calibration["shift"])
        logits = held_out_logits(network, judged)
    scores = valid_probability(logits, calibration["temperature"])
    figures = {**discrimination(kinds, unseen), **calibration, "contexts": len(held_out)}
    table = reliability(scores, valid)
    trained_on = {name: dict(Counter(row.kind for row in part)) for name, part in zip(sources, rows, strict=True)}
    training = record(
        run,
        arguments,
        corpora=corpora_of(sources),
        earlier=network.config.training,
        available=count_kinds(sources),
        rows=trained_on,
        validation=figures,
        reliability=[asdict(row) for row in table],
    )
    quantiles = {"native": quantile_curves(scores[kinds == "positive"], scores[kinds == "random"])}
    keep_checkpoint(run, network, training, figures, quantiles=quantiles)


def main() -> None:
    """Stage one unless it has no steps, then stage two."""
    recipe, arguments = parse_arguments(__doc__ or "", "deb-minilm.yaml")
    if recipe["pretraining"]["steps"] and not stage_is_done(arguments.out / "pretraining", arguments):
        pretrain(recipe, arguments)
    fine_tune(recipe, arguments)


if __name__ == "__main__":
    plain_errors(main)
