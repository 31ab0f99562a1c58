"""Put the judge on its encoder: heads for faults, tables of words and of ranks, intervals, percentiles.

    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-minilm
    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/again --set start_from=judge-minilm

What the encoder learned from, human ratings among it, is in `training/aspects.py`, which writes the file that the
recipe begins from; of its heads the judge takes those for the next reply, for ratings and for valid replies. An earlier
judge keeps these, and has all else fitted anew. Heads for wording, insults, contradicted facts and contradictions of
oneself come from replies made wrong and from rated ones, tables and intervals from human replies and the dev splits of
rated sources. No benchmark is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import nn

import judge_heads
from common import Recipe, is_trunk, left_out, parse_arguments, plain_errors, read_trunk, trunk_head
from corpora.batches import CandidateSet
from corpora.dialogues import CorpusDialogue, read_corpus
from corpora.negatives import NegativeCounts
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from density_fit import rotated
from dialeval.checkpoints.config import FORMAT_VERSION, current_versions
from dialeval.core.exchange import Dialogue, Exchange
from dialeval.encoders.batching import PairEncoder
from dialeval.hub.card import render_card
from dialeval.judge import fitting, lexical
from dialeval.judge.metric import Judge
from dialeval.judge.network import JudgeNetwork
from dialeval.judge.rule import TURN, RankInterval, aspect_values, dialogue_values, turn_ranks, turn_values
from dialeval.papers.density import fit_gaussian
from dialeval.papers.learned import QUANTILE_GRID, rank_all
from dialeval.statistics.moments import Moments
from history import TrainingRun, total
from stages import new_network
from trunk_network import JUDGE_HEADS


def begin(recipe: Recipe) -> JudgeNetwork:
    """A judge on the encoder, and with the heads, that `training/aspects.py` saved; or an earlier judge."""
    start, architecture = recipe["start_from"], recipe["architecture"]
    if not is_trunk(start):
        return again(JudgeNetwork.from_pretrained(start, trainable=True), architecture)
    network = new_network(JudgeNetwork, recipe, architecture)
    stored, made = read_trunk(start)
    with torch.no_grad():
        for head, source in JUDGE_HEADS.items():
            if head in network.head_names:
                row = network.head_names.index(head)
                network.heads.weight[row], network.heads.bias[row] = trunk_head(stored, source)
    if "words_from" in recipe:  # how rare words are, and how usual their order, no encoder knows
        words = JudgeNetwork.from_pretrained(recipe["words_from"])
        for name in ("rarity", "runs", "run_counts"):
            network.get_buffer(name).copy_(words.get_buffer(name))
    stages = [TrainingRun(**stage) for stage in made["stages"]]
    keys = ("hardware", "stages", "corpora", "rated_rows", "validation", "taught")
    record = {key: made[key] for key in keys if key in made}
    command = f"training/judge.py --recipe training/recipes/{recipe['name']}.yaml --corpora CORPORA --ratings RATINGS"
    command += " --out RUN"
    network.config = replace(network.config, training={"command": command, **record, "total": asdict(total(stages))})
    return network


def again(earlier: JudgeNetwork, architecture: dict[str, Any]) -> JudgeNetwork:
    """A judge with the encoder, the words and the learned heads of an earlier one, and room for all that is fitted."""
    config = replace(earlier.config, architecture=architecture, format_version=FORMAT_VERSION, quantiles={})
    network = JudgeNetwork(config, {"encoder": cast(nn.Module, earlier.encoder)}, earlier.tokenizer)
    with torch.no_grad():
        for row, head in enumerate(network.head_names):
            if head in earlier.head_names:
                earlier_row = earlier.head_names.index(head)
                network.heads.weight[row], network.heads.bias[row] = (
                    earlier.heads.weight[earlier_row],
                    earlier.heads.bias[earlier_row],
                )
        for name, buffer in network.named_buffers():
            if not name.startswith("encoder.") and earlier.get_buffer(name).shape == buffer.shape:
                buffer.copy_(earlier.get_buffer(name))
    network.folder = earlier.folder
    return network


# --- tables, weights, interval ---------------------------------------------------------------------


def rated_rows(recipe: Recipe, root: Path, source: str, *, level: str = "turn") -> list[Rated]:
    """Rows of one source that no evaluation set shares text with."""
    unwanted = (
        overlapping_ratings(root / recipe["ratings"]["leave_out"]) if recipe["ratings"]["leave_out"] else frozenset()
    )
    return read_ratings(root, source, level=level, leave_out=unwanted)


def human_pairs(recipe: Recipe, root: Path, part: str) -> list[list[Exchange]]:
    """Human turns with what stands before them, by corpus; `part` names the recipe's list of corpora."""
    parts = []
    for number, corpus in enumerate(recipe[part]):
        dialogues: list[CorpusDialogue] = []
        for split in corpus["splits"]:
            dialogues += read_corpus(root, corpus["name"], split, leave_out=left_out(recipe, root))
        pairs = CandidateSet(
            dialogues, NegativeCounts(random=1), seed=recipe["seed"] + number, fact_share=corpus.get("facts", 1.0)
        )
        chosen = np.random.default_rng([recipe["seed"], number]).permutation(len(pairs))[: corpus["pairs"]]
        parts.append([pairs.get(int(index)).exchange for index in chosen])
    return parts


def fit_density(network: JudgeNetwork, engine: PairEncoder, recipe: Recipe, root: Path) -> None:
    """A Gaussian of human pairs and one of random ones, on the features that `engine` encodes."""
    corpora = human_pairs(recipe, root, "density")
    for name, parts in (("human", corpora), ("random", [rotated(part) for part in corpora])):
        moments = Moments()
        for part in parts:
            moments.update(network.split(engine.encode(part, progress=True).rows)[0])
        mean, precision = fit_gaussian(moments, shrinkage=recipe["shrinkage"])
        network.set_array(f"{name}_mean", mean)
        network.set_array(f"{name}_precision", precision)


#: Behaviours of ABC-Eval that nobody wants.
_FAULTS = (
    "irrelevant",
    "ignore",
    "redundant",
    "self contradiction",
    "partner contradiction",
    "commonsense contradiction",
)


def target_of(row: Rated) -> float | None:
    """One rating per row, higher is better; None where the source asks about something else."""
    scores = row.scores
    if row.source == "abc_eval":
        return 1 - max(scores.get(name, 0.0) for name in _FAULTS)
    for name in ("no_breakdown", "overall", "satisfaction", "thumb", "coherence", "valid"):
        if name in scores:
            return scores[name]
    return None


def rated_by_source(rows: Sequence[Rated], values: NDArray[np.float64]) -> dict[str, Any]:
    """How values agree with ratings in each family of sources, and how many ratings the interval of others covers."""
    targets = within_source_ranks(rows)
    families = np.array([row.family for row in rows])
    figures = {}
    for name in dict.fromkeys(row.family for row in rows):
        inside = families == name
        others = inside if inside.all() else ~inside
        interval = fitting.fit_interval(values[others], targets[others])
        figures[name] = {
            "rows": int(inside.sum()),
            "spearman": round(float(spearmanr(values[inside], targets[inside]).statistic), 4),
            "coverage": round(fitting.covered(interval, values[inside], targets[inside]), 4),
        }
    return figures


def within_source_ranks(rows: Sequence[Rated]) -> NDArray[np.float64]:
    """Ratings as ranks within their source."""
    ratings = np.array([target_of(row) for row in rows], dtype=np.float64)
    return fitting.within_source_ranks(ratings, [row.source for row in rows])


def fit_turns(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> dict[str, Any]:
    """Tables and the interval of single replies, from human replies and the dev splits of all rated sources."""
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["stack"]:
        dev = [row for row in rated_rows(recipe, arguments.ratings, name) if row.split == "dev"]
        order = np.random.default_rng(recipe["seed"]).permutation(len(dev))[: settings["stack_rows"]]
        rows += [dev[int(index)] for index in sorted(order)]
    features, read = judge.features_of([row.exchange for row in rows], progress=True)
    human = [exchange for part in human_pairs(recipe, arguments.corpora, "human") for exchange in part]
    theirs, read_there = judge.features_of(human, progress=True)
    # Beside small talk all answers of assistants would rank alike.
    pairs = [pair for source in judge_heads.preference_pairs(recipe, arguments).values() for pair in source["dev"]]
    answers = [answer for pair in pairs for answer in pair[:2]]
    reference = np.concatenate([features, theirs, *([judge.features_of(answers)[0]] if answers else [])])
    tables = np.stack([fitting.reference_table(column) for column in reference.T])
    judge.network.set_array("turn_tables", tables)
    lifted, votes = judge.network.lifted, judge.network.votes
    values = turn_values(turn_ranks(features, read, tables), votes, lifted)
    store_interval(judge.network, "turn", fitting.fit_interval(values, within_source_ranks(rows)))
    ranks = turn_ranks(theirs, read_there, tables)
    aspects = aspect_values(ranks, votes, TURN)
    write_quantiles(judge.network, "turn", {"overall": turn_values(ranks, votes, lifted), **aspects})
    add_random(judge.network, "turn.overall", judge.judge(rotated(human)).values)
    return rated_by_source(rows, values)


def fit_dialogues(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same of whole conversations, from the ratings of whole conversations."""
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["dialogues"]:
        rated = rated_rows(recipe, arguments.ratings, name, level="dialogue")
        rated = [row for row in rated if len(set(row.speakers)) == 2 and len(row.exchange.context) >= 4]
        order = np.random.default_rng(recipe["seed"]).permutation(len(rated))[: settings["dialogue_rows"]]
        rows += [rated[int(index)] for index in sorted(order)]
    dialogues = [Dialogue(row.exchange.context, row.exchange.facts, speakers=row.speakers) for row in rows]
    read = judge.read_dialogues(dialogues, progress=True)
    tables = np.stack([fitting.reference_table(column) for column in read.features.T])
    judge.network.set_array("dialogue_tables", tables)
    values = dialogue_values(rank_all(read.features, tables), read.left)
    store_interval(judge.network, "dialogue", fitting.fit_interval(values, within_source_ranks(rows)))
    return rated_by_source(rows, values)


def store_interval(network: JudgeNetwork, level: str, fitted: RankInterval) -> None:
    """Write an interval into the network's buffers."""
    ends = [np.append(end, end[-1]) for end in (fitted.low, fitted.high)]
    network.set_array(f"{level}_interval", np.stack([fitted.edges, *ends]))


def write_quantiles(network: JudgeNetwork, level: str, columns: dict[str, NDArray[np.float64]]) -> None:
    """Quantiles of human replies, overall and by aspect."""
    curves = dict(network.config.quantiles)
    for name, values in columns.items():
        known = values[np.isfinite(values)]
        if len(known):
            curves[f"{level}.{name}"] = {"human": [float(value) for value in np.quantile(known, QUANTILE_GRID)]}
    network.config = replace(network.config, quantiles=curves)


def add_random(network: JudgeNetwork, key: str, values: NDArray[np.float64]) -> None:
    """Quantiles of random replies beside those of human ones."""
    curves = {**network.config.quantiles[key], "random": [float(value) for value in np.quantile(values, QUANTILE_GRID)]}
    network.config = replace(network.config, quantiles={**network.config.quantiles, key: curves})


def take_over(network: JudgeNetwork, fitted: JudgeNetwork) -> None:
    """What was fitted on a loaded copy of a network becomes the network's own."""
    network.heads.load_state_dict(fitted.heads.state_dict())
    for name, buffer in fitted.named_buffers():
        if name in dict(network.named_buffers()) and not name.startswith("encoder"):
            network.get_buffer(name).copy_(buffer)


def finish(network: JudgeNetwork, recipe: Recipe, arguments: argparse.Namespace) -> tuple[JudgeNetwork, dict[str, Any]]:
    """Fit what stands on the encoder; the network to save, and what to record of it."""
    folder = arguments.out / "fitted"
    # All is fitted on what the files say, in float16, and where its rows lie when they are scored: fused.
    network.save_pretrained(folder)
    judge = Judge(folder, dtype=recipe.get("heads_read_in", "float32"))
    if is_trunk(recipe["start_from"]) and recipe["density"]:  # of an earlier judge these stay
        fit_density(judge.network, judge.encoder, recipe, arguments.corpora)
    sources = judge_heads.fault_sources(recipe, arguments)
    if is_trunk(recipe["start_from"]) and "words_from" not in recipe:
        corpora = human_pairs(recipe, arguments.corpora, "density")
        replies = [exchange.response for part in corpora for exchange in part]
        judge.network.set_array("rarity", lexical.idf_table(replies))
        judge_heads.count_words(judge, sources)
    figures = {"heads": judge_heads.fit_heads(judge, recipe, arguments, sources)}
    if "preferences" in recipe:
        figures["heads"] |= judge_heads.fit_preferred(judge, recipe, arguments, sources)
    take_over(network, judge.network)
    if "heads_read_in" in recipe:  # ranks and intervals are of values as they are scored
        network.save_pretrained(folder)
        judge = Judge(folder)
    judge.encoder.forget()
    figures |= {"turns": fit_turns(judge, recipe, arguments), "dialogues": fit_dialogues(judge, recipe, arguments)}
    take_over(network, judge.network)
    network.config = replace(network.config, quantiles=judge.network.config.quantiles, versions=current_versions())
    return network, figures


def main() -> None:
    """Fit, record, save."""
    recipe, arguments = parse_arguments(
        __doc__ or "",
        "judge-minilm.yaml",
        ratings="folder with SOURCE.jsonl.gz of each source of ratings",
    )
    if arguments.ratings is None:
        raise SystemExit("--ratings is missing; name the folder of the rated sources")
    network, figures = finish(begin(recipe), recipe, arguments)
    made = network.config.training
    corpora = list(dict.fromkeys([*made["corpora"], *recipe["faults"]["corpora"]]))
    network.config = replace(network.config, training={**made, "recipe": recipe, "corpora": corpora, "fit": figures})
    folder = arguments.out / "checkpoint"
    network.save_pretrained(folder)
    Judge(folder)  # what was written can be loaded
    (folder / "README.md").write_text(render_card(network.config), "utf-8")


if __name__ == "__main__":
    plain_errors(main)
