"""The judge's heads for faults: fitted to replies made wrong or to rated ones, or held to how often they may charge."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from aspect_rows import RATED, Row, Sources, faulty_rows
from common import Recipe
from corpora.batches import CandidateSet
from dialeval.approaches import signs
from dialeval.approaches.judge import HEADS, SURE, JudgeNetwork
from dialeval.approaches.row_signs import denial_in, speaks_of_itself
from dialeval.engine.encoding import PairEncoder
from dialeval.statistics.discrimination import auc

Matrix = NDArray[np.float64]
#: Fitted anew to the finished encoder; the one for wording with the words' own signs beside it.
FITTED = ("respectful", "faithful", "consistent", "fluent")
#: The share of sound replies that may be called rude, or said to contradict themselves. Plain words for either are
#: told without the head.
CHARGED = {"respectful": 0.005, "consistent": 0.01}
#: Every so many dialogues one is not counted; the heads are fitted to its replies.
UNCOUNTED = 10


def fit_heads(
    network: JudgeNetwork, encoder: PairEncoder, recipe: Recipe, arguments: argparse.Namespace
) -> dict[str, float]:
    """Fill `heads`, `runs`, `run_counts` and `fluency`; the AUC on held-out contexts and words, by kind of fault."""
    settings, sources = recipe["faults"], fault_sources(recipe, arguments)
    # A reply whose own words were counted would look more usual than any new one.
    dialogues = [one for part in sources.train.values() for at, one in enumerate(part.dialogues) if at % UNCOUNTED]
    counted = signs.count_runs(turn for dialogue in dialogues for turn in dialogue.turns[1:])
    for name, table in zip(("runs", "run_counts"), counted, strict=True):
        network.set_array(name, table)
    wording = network.wording()
    fitted_to = {
        name: CandidateSet(part.dialogues[::UNCOUNTED], part.sampler.counts, seed=part.seed, fact_share=part.fact_share)
        for name, part in sources.train.items()
    }
    rows = {
        "train": _rows(sources, "train", fitted_to, settings["rows"]),
        "dev": _rows(sources, "dev", sources.held_out, settings["held_out"]),
    }
    inputs, right = {}, {}
    for split, own in rows.items():
        encoded = encoder.encode([row[1] for row in own], progress=True).rows.astype(np.float64)
        features = encoded[:, : -len(HEADS)]  # the last columns are logits
        usual = np.array([wording.of(row[1].response) for row in own])
        inputs[split] = dict.fromkeys(FITTED, features) | {"fluent": np.column_stack([features, usual])}
        right[split] = np.array([row[2] for row in own])
    figures: dict[str, float] = {}
    for task in FITTED:
        chosen = np.array([row[0] == task for row in rows["train"]])
        weights = logistic(inputs["train"][task][chosen], right["train"][chosen], settings["weight_decay"][task])
        if task in CHARGED:
            sound = {split: [_may_be_charged(task, row) for row in own] for split, own in rows.items()}
            of_sound = [inputs[split][task][sound[split]] @ weights[:-1] for split in rows]
            weights[-1] = bias_for(np.concatenate(of_sound), CHARGED[task])
        read, rest = np.split(weights, [network.heads.in_features])
        if task == "fluent":
            network.set_array("fluency", [1.0, *rest])
            rest = np.zeros(1)
        with torch.no_grad():
            network.heads.weight[HEADS.index(task)] = torch.as_tensor(read, dtype=torch.float32)
            network.heads.bias[HEADS.index(task)] = float(rest[0])
        told = inputs["dev"][task] @ weights[:-1]
        if task == "consistent":  # the aspect goes by the words first
            figures["consistent_head"] = _aucs(task, rows["dev"], told)[task]
            told = np.where([denial_in(row[1]) is not None for row in rows["dev"]], SURE, told)
        figures |= _aucs(task, rows["dev"], told)
    return figures


def _may_be_charged(task: str, row: Row) -> bool:
    """Whether a row is sound and its head is asked: of contradictions only where the speaker has said something."""
    return row[0] == "fluent" and row[2] == 1.0 and (task != "consistent" or speaks_of_itself(row[1]))


def bias_for(told: Matrix, share: float) -> float:
    """What to add to what a head tells of sound replies so that it charges this share of them: puts them below zero."""
    return -float(np.quantile(told, share))


def fault_sources(recipe: Recipe, arguments: argparse.Namespace) -> Sources:
    """Dialogues to be made wrong, those of training and held-out ones, and the rated right and wrong rows."""
    settings = recipe["faults"]
    trunk = yaml.safe_load((Path(__file__).parent / "recipes" / "trunk.yaml").read_text())
    trunk |= {"leave_out": recipe["leave_out"], "corpora": settings["corpora"]}
    trunk["stages"] = [{"corpora": list(settings["corpora"])}]
    trunk["validation"] |= {"dialogues": settings["held_out"]["dialogues"]}
    rated = {"leave_out": recipe["ratings"]["leave_out"], "train": [], "labelled": recipe["ratings"]["labelled"]}
    own = {"seed": trunk["seed"], "negatives": settings["negatives"], "rows": {"valid": 0}, "ratings": rated}
    return Sources(own, trunk, arguments)


def _aucs(task: str, rows: Sequence[Row], told: NDArray[np.float64]) -> dict[str, float]:
    """Of a task over all kinds of faults, and of each kind; sources of ratings have sound rows of their own."""
    figures: dict[str, float] = {}
    for kind in dict.fromkeys(("", *sorted(row[3] for row in rows if row[0] == task))):
        wanted = {kind} if kind in RATED else {kind, ""}
        beside = [at for at, row in enumerate(rows) if row[0] == task and (not kind or row[3] in wanted)]
        right = np.array([rows[at][2] for at in beside])
        if len(set(right)) == 2:
            figures[f"{task}_{kind}" if kind else task] = round(float(auc(right, told[beside]).value), 4)
    return figures


def _rows(sources: Sources, split: str, sets: dict[str, CandidateSet], counts: dict[str, int]) -> list[Row]:
    """Sound and faulty replies to contexts of `sets`, and rated ones."""
    draw = np.random.default_rng([sources.recipe["seed"], len(split)])
    contexts = []
    for one in sets.values():
        chosen = draw.permutation(len(one))[: counts["contexts"]]
        contexts += [one.get(int(at)).exchanges()[:4] for at in chosen]
    rows = faulty_rows(draw, contexts, counts, held_out=split == "dev")
    for name, (task, score) in RATED.items():
        there = [row for row in sources.of_split(name, split) if score in row.scores]
        for at in draw.permutation(len(there))[: counts[name]]:
            rows.append((task, there[int(at)].exchange, float(there[int(at)].scores[score] > 0.7), name))
    return rows


def logistic(inputs: Matrix, right: NDArray[np.float64], weight_decay: float) -> Matrix:
    """Weights and bias of a logistic regression in which right and wrong rows weigh the same; scales do not matter."""
    means, scales = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    columns, truth = torch.as_tensor((inputs - means) / scales), torch.as_tensor(right)
    share = torch.where(truth == 1, 0.5 / truth.mean(), 0.5 / (1 - truth).mean())
    weights = torch.zeros(inputs.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        each = F.binary_cross_entropy_with_logits(columns @ weights[:-1] + weights[-1], truth, reduction="none")
        value = (share * each).mean() + weight_decay * weights[:-1].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    found = weights.detach().numpy()
    own = found[:-1] / scales
    return np.append(own, found[-1] - own @ means)
