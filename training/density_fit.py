"""The second half of DENSITY's training: both Gaussians, the choice of the rule, the human percentiles.

Human pairs are fitted as they stand, the background on the same contexts and replies, each reply moved to another
context of its corpus. Which rule a checkpoint takes by default is measured on held-out dialogues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from common import Recipe, left_out
from corpora.batches import CandidateSet
from corpora.dialogues import read_corpus
from corpora.negatives import NegativeCounts, NegativeSampler
from dialeval.core.exchange import Exchange
from dialeval.papers.density import DensityNetwork, Scoring, apply_rule, fit_gaussian
from dialeval.papers.learned import quantile_curves
from dialeval.statistics.moments import Moments

#: From pairs to one row each: features, then the logit.
Encode = Callable[[Sequence[Exchange]], NDArray[np.float32]]
#: What held-out replies are told from: a reply of any dialogue, one of the same dialogue, one that shares a rare word.
KINDS = {
    "random": NegativeCounts(random=1),
    "same_dialogue": NegativeCounts(random=0, same_dialogue=1),
    "shared_word": NegativeCounts(random=0, shared_word=1),
}
RULES: tuple[Scoring, ...] = ("mahalanobis", "euclidean", "relative", "classifier")
#: The classifier was trained for just this measurement, and is no density: it cannot be chosen.
DENSITIES: tuple[Scoring, ...] = ("mahalanobis", "euclidean", "relative")
#: Directions narrower than this share of the widest one's standard deviation count as constant: features in float32 are
#: rounding noise there, and a checkpoint's precision in float32 would lose its sign.
FLOAT32_RESOLUTION = float(np.sqrt(np.finfo(np.float32).eps))
_BLOCK = 4096


def fitting_pairs(recipe: Recipe, root: Path) -> list[list[Exchange]]:
    """Human pairs of every corpus that the fit names, in random order; `pairs: null` takes all that it has."""
    chosen = []
    for number, corpus in enumerate(recipe["fit"]["corpora"]):
        dialogues = []
        for split in corpus["splits"]:
            dialogues += read_corpus(root, corpus["name"], split, leave_out=left_out(recipe, root))
        seed, facts = recipe["seed"] + number, float(corpus.get("facts", 1.0))
        pairs = CandidateSet(dialogues, NegativeCounts(random=0), seed=seed, fact_share=facts)
        order = np.random.default_rng(seed).permutation(len(pairs))[: corpus["pairs"]]
        chosen.append([pairs.get(int(index)).exchange for index in order])
    return chosen


def rotated(pairs: Sequence[Exchange]) -> list[Exchange]:
    """The same contexts with the same replies, each reply one context further: pairs that nobody spoke."""
    return [replace(pair, response=other.response) for pair, other in zip(pairs, [*pairs[1:], pairs[0]], strict=True)]


def moments_of(encode: Encode, pairs: Sequence[Exchange]) -> Moments:
    """Mean and scatter of the features of pairs, a block at a time."""
    moments = Moments()
    for start in range(0, len(pairs), _BLOCK):
        moments.update(encode(pairs[start : start + _BLOCK])[:, :-1])
    return moments


def fit(network: DensityNetwork, encode: Encode, recipe: Recipe, root: Path) -> dict[str, int]:
    """Set both Gaussians of `network`, and tell on how many pairs each corpus was fitted."""
    human, background = Moments(), Moments()
    corpora = fitting_pairs(recipe, root)
    for pairs in corpora:
        human.merge(moments_of(encode, pairs))
        background.merge(moments_of(encode, rotated(pairs)))
    shrinkage = recipe["fit"]["shrinkage"]
    network.set_gaussian(*fit_gaussian(human, shrinkage=shrinkage["human"], resolution=FLOAT32_RESOLUTION))
    network.set_background(*fit_gaussian(background, shrinkage=shrinkage["background"], resolution=FLOAT32_RESOLUTION))
    return {corpus["name"]: len(pairs) for corpus, pairs in zip(recipe["fit"]["corpora"], corpora, strict=True)}


def held_out_pairs(held_out: CandidateSet, recipe: Recipe) -> dict[str, list[Exchange]]:
    """Some pairs of held-out dialogues as they stand (`human`), and every kind of wrong reply to their contexts.

    Contexts without a word that other replies share have no wrong reply of that kind.
    """
    rng = np.random.default_rng(recipe["seed"])
    chosen = [int(index) for index in rng.permutation(len(held_out))[: recipe["fit"]["held_out_pairs"]]]
    pairs = {"human": [held_out.get(index).exchange for index in chosen]}
    for kind, counts in KINDS.items():
        sampler = NegativeSampler(held_out.dialogues, counts)
        pairs[kind] = list(_wrong(held_out, sampler, chosen, pairs["human"], recipe["seed"]))
    return pairs


def _wrong(
    held_out: CandidateSet, sampler: NegativeSampler, chosen: Sequence[int], human: Sequence[Exchange], seed: int
) -> Iterator[Exchange]:
    for index, pair in zip(chosen, human, strict=True):
        number, turn = held_out.turns[index]
        for reply in sampler.draw(held_out.dialogues[number], turn, np.random.default_rng([seed, index])):
            if not sampler.counts.shared_word or sampler.shares_word(pair.context, reply):
                yield replace(pair, response=reply)


def score_by_rule(
    network: DensityNetwork, encode: Encode, pairs: Mapping[str, Sequence[Exchange]]
) -> dict[Scoring, dict[str, NDArray[np.float64]]]:
    """Scores of every kind of pair under each rule; the features are computed once."""
    rows = {kind: encode(some) for kind, some in pairs.items() if some}
    return {rule: {kind: apply_rule(rule, some, network) for kind, some in rows.items()} for rule in RULES}


def separation(scores: Mapping[Scoring, Mapping[str, NDArray[np.float64]]]) -> dict[str, dict[str, float]]:
    """AUC of every rule, true replies against each kind of wrong ones, and their mean."""
    areas_of_rules: dict[str, dict[str, float]] = {}
    for rule, of_kind in scores.items():
        human = of_kind["human"]
        areas = {
            kind: float(roc_auc_score([1] * len(human) + [0] * len(wrong), [*human, *wrong]))
            for kind, wrong in of_kind.items()
            if kind != "human"
        }
        areas_of_rules[rule] = {**areas, "mean": float(np.mean(list(areas.values())))}
    return areas_of_rules


def choose_rule(areas: Mapping[str, Mapping[str, float]]) -> Scoring:
    """The density that tells held-out replies best from wrong ones, over all kinds; the first of equals."""
    return max(DENSITIES, key=lambda rule: areas[rule]["mean"])


def fit_and_choose(
    network: DensityNetwork, encode: Encode, recipe: Recipe, root: Path, held_out: CandidateSet
) -> dict[str, Any]:
    """Fit, measure every rule, and write the choice and the percentiles into the network's config.

    Returns:
        For the training record: how many pairs were fitted, and the AUC by rule and kind of wrong reply.
    """
    fitted = fit(network, encode, recipe, root)
    scores = score_by_rule(network, encode, held_out_pairs(held_out, recipe))
    areas = separation(scores)
    network.config = replace(
        network.config,
        architecture={**network.config.architecture, "default_scoring": choose_rule(areas)},
        quantiles={rule: quantile_curves(of_kind["human"], of_kind["random"]) for rule, of_kind in scores.items()},
    )
    return {"fitted_pairs": fitted, "auc": areas}
