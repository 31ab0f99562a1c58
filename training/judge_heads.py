"""The judge's heads that are fitted to its finished encoder: for faults, and for how content the other side is.

Each is a logistic regression on the encoder's states. Of a head for faults bias and scale are set so that of sound
human replies, short and long, no more than `CHARGED` lie below zero, and `DOUBTED` below one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aspect_rows import RATED, Reader, Row, Sources, faulty_rows
from common import Recipe, left_out, recounted
from corpora.batches import CandidateSet
from corpora.dialogues import read_corpus
from corpora.ratings import overlapping_ratings
from dialeval.core.exchange import Exchange
from dialeval.judge import lexical
from dialeval.judge.metric import Judge, as_answered
from dialeval.judge.rule import CHARGED, DOUBTED, FAULTS, allowance
from dialeval.statistics.discrimination import auc

Matrix = NDArray[np.float64]
#: Two answers, and the share of people that prefers the first.
Preference = tuple[Exchange, Exchange, float]
#: A sound reply, and the heads for faults that should not charge it.
Sound = tuple[Exchange, tuple[str, ...]]
#: Fitted to the finished encoder, but for those that it learned; the one for wording with counts of words beside it.
FITTED = ("respectful", "faithful", "consistent", "fluent", "satisfied", "informative")
#: How many of the wrong answers that `preferred` learns from are what many say often.
OFTEN = 0.33
#: Every so many dialogues one is not counted; the heads are fitted to its replies.
UNCOUNTED = 10


def count_words(judge: Judge, sources: Sources) -> None:
    """Fill the counts of runs of words. A reply whose own words were counted would look more usual than any new one."""
    counted = lexical.count_runs(
        turn
        for corpus in sources.train.values()
        for number, dialogue in enumerate(corpus.dialogues)
        if number % UNCOUNTED
        for turn in dialogue.turns[1:]
    )
    for name, table in zip(("runs", "run_counts"), counted, strict=True):
        judge.network.set_array(name, table)


def fit_heads(judge: Judge, recipe: Recipe, arguments: argparse.Namespace, sources: Sources) -> dict[str, float]:
    """Fill `heads` and `fluency`; the AUC on held-out rows, by kind of fault, and how many replies are charged."""
    settings = recipe["faults"]
    fitted_to = {
        name: CandidateSet(part.dialogues[::UNCOUNTED], part.sampler.counts, seed=part.seed, fact_share=part.fact_share)
        for name, part in sources.train.items()
    }
    rows = {
        "train": _rows(sources, "train", fitted_to, settings["rows"]),
        "dev": _rows(sources, "dev", sources.held_out, settings["held_out"]),
    }
    people = {split: sound_replies(recipe, arguments, split) for split in rows}
    network = judge.network
    figures: dict[str, float] = {}
    width = network.heads.in_features
    inputs, right, sound, starts = {}, {}, {}, {}
    for split in rows:
        beside = people[split][:: settings["beside"]]
        rows[split] += [(task, row, 1.0, "") for row, tasks in beside for task in FAULTS if task in tasks]
        exchanges = [row[1] for row in rows[split]]
        inputs[split] = read(judge, exchanges)
        right[split] = np.array([row[2] for row in rows[split]])
        windows, starts[split] = judge.windows([row for row, _ in people[split]])
        sound[split] = read(judge, windows)
    for task in (task for task in FITTED if task in network.head_names):
        columns = slice(None) if task == "fluent" else slice(0, width)
        place = network.head_names.index(task)
        chosen = np.array([row[0] == task for row in rows["train"]])
        if settings["strength"].get(task) and len(set(right["train"][chosen])) == 2:
            weights = logistic(inputs["train"][chosen, columns], right["train"][chosen], settings["strength"][task])
        else:  # the encoder learned it from more rows than are read here, or there are none
            learned = network.heads.weight[place].detach().numpy().astype(np.float64)
            weights = np.append(learned, float(network.heads.bias[place]))
        outputs = inputs["dev"][:, columns] @ weights[:-1]
        figures |= _aucs(task, rows["dev"], outputs)
        if task in FAULTS:
            meant = {split: np.array([task in tasks for _, tasks in people[split]]) for split in people}
            lowest = {
                split: np.minimum.reduceat(sound[split][:, columns] @ weights[:-1], starts[split])[meant[split]]
                for split in sound
            }
            charged, usual = np.quantile(lowest["train"], [CHARGED, DOUBTED])
            weights[-1] = -charged
            weights /= usual - charged
            n_parts = np.diff(starts["dev"], append=len(sound["dev"]))[meant["dev"]]
            of_sound = lowest["dev"] / (usual - charged) + weights[-1] + allowance(n_parts)
            figures[f"{task}_charges_per_1000"] = round(1000 * float((of_sound < 0).mean()), 2)
            faulty = np.array([row[0] == task and row[2] == 0 for row in rows["dev"]])
            of_faulty = (outputs[faulty] - charged) / (usual - charged)
            figures[f"{task}_charged"] = round(float((of_faulty < 0).mean()), 4)
            figures[f"{task}_doubted"] = round(float((of_faulty < 1).mean()), 4)
        states, rest = np.split(weights, [width])
        if task == "fluent":
            network.set_array("fluency", [1.0, *rest])
            rest = np.zeros(1)
        with torch.no_grad():
            network.heads.weight[place] = torch.as_tensor(states, dtype=torch.float32)
            network.heads.bias[place] = float(rest[0])
    return figures


def read(judge: Judge, exchanges: Sequence[Exchange]) -> Matrix:
    """States, then how usual the words are: what the heads see of one part of a reply."""
    states, _ = judge.network.split(judge.encoder.encode(exchanges, progress=True).rows)
    wording = judge.network.wording()
    usual = [wording.of(lexical.Text(row.response).prose) for row in exchanges]
    return np.column_stack([states.astype(np.float64), np.array(usual)])


def sound_replies(recipe: Recipe, arguments: argparse.Namespace, split: str) -> list[Sound]:
    """Human replies of many corpora, and answers of assistants: what no head for faults should charge, or some not."""
    replies: list[Sound] = []
    root = arguments.corpora
    unwanted = left_out(recipe, root)
    for number, corpus in enumerate(recipe["sound"]):
        dialogues = [
            dialogue
            for part in corpus["splits"]
            for dialogue in read_corpus(root, corpus["name"], part, leave_out=unwanted)
        ]
        # Every fifth dialogue measures, the others set the bar.
        part = [dialogue for index, dialogue in enumerate(dialogues) if (index % 5 == 0) == (split == "dev")]
        pairs = [dialogue.exchange(turn) for dialogue in part for turn in range(1, len(dialogue.turns))]
        turns = [pair for pair in pairs if pair.response.strip()]
        draw = np.random.default_rng([recipe["seed"], number, len(split)])
        chosen = draw.permutation(len(turns))[: corpus["replies"] if split == "train" else corpus["replies"] // 2]
        replies += [(turns[int(index)], tuple(corpus.get("heads", FAULTS))) for index in chosen]
    return replies


def answered_rows(sources: Sources, split: str, count: int) -> list[Row]:
    """What people said next to replies that were rated high, and to those that were rated low."""
    rows: list[Row] = []
    for name in sources.recipe["followed"]:
        score = sources.recipe["followed"][name]
        rated = [row for row in sources.of_split(name, split) if row.exchange.following and score in row.scores]
        draw = np.random.default_rng([len(name), len(split)])
        rated = [rated[int(index)] for index in draw.permutation(len(rated))[:count]]
        ranks = rankdata([row.scores[score] for row in rated]) / max(len(rated), 1)
        rows += [
            ("satisfied", as_answered(replace(row.exchange, facts=())), float(rank > 0.5), f"after {name}")
            for row, rank in zip(rated, ranks, strict=True)
            if abs(rank - 0.5) > 0.15
        ]
    return rows


def fault_sources(recipe: Recipe, arguments: argparse.Namespace) -> Sources:
    """Dialogues to be made wrong, those of training and held-out ones, and the rated right and wrong rows."""
    settings = recipe["faults"]
    trunk: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "recipes" / "trunk.yaml").read_text())
    trunk |= {"leave_out": recipe["leave_out"], "corpora": settings["corpora"]}
    trunk["stages"] = [{"corpora": list(settings["corpora"])}]
    trunk["validation"] |= {"dialogues": settings["held_out"]["dialogues"]}
    ratings = recipe["ratings"]
    rated = {
        "leave_out": ratings["leave_out"], "train": list(settings["followed"]), "labelled": ratings["labelled"],
    }  # fmt: skip
    own_recipe = {"seed": trunk["seed"], "negatives": settings["negatives"], "rows": {"valid": 0}, "ratings": rated}
    own_recipe["generic_share"] = settings["rows"].get("informative", 0)
    return Sources(own_recipe | {"followed": settings["followed"]}, trunk, arguments)


def _aucs(task: str, rows: Sequence[Row], outputs: NDArray[np.float64]) -> dict[str, float]:
    """AUCs of a task over all kinds of faults, and of each kind; sources of ratings have sound rows of their own."""
    figures: dict[str, float] = {}
    for kind in dict.fromkeys(("", *sorted(row[3] for row in rows if row[0] == task))):
        wanted = {kind} if kind in RATED or kind.startswith("after ") else {kind, ""}
        beside = [index for index, row in enumerate(rows) if row[0] == task and (not kind or row[3] in wanted)]
        right = np.array([rows[index][2] for index in beside])
        if len(set(right)) == 2:
            figures[f"{task}_{kind}" if kind else task] = round(float(auc(right, outputs[beside]).value), 4)
    return figures


def _rows(sources: Sources, split: str, sets: dict[str, CandidateSet], counts: dict[str, int]) -> list[Row]:
    """Sound and faulty replies to contexts of `sets`, rated ones, and what followed rated ones."""
    draw = np.random.default_rng([sources.recipe["seed"], len(split)])
    contexts = []
    for corpus in sets.values():
        chosen = draw.permutation(len(corpus))[: counts["contexts"]]
        contexts += [corpus.get(int(index)).exchanges()[:4] for index in chosen]
    rows = faulty_rows(draw, contexts, counts, held_out=split == "dev")
    for name in sources.labelled:
        task, score = RATED[name]
        rated = [row for row in sources.of_split(name, split) if score in row.scores]
        for index in draw.permutation(len(rated))[: counts[name]]:
            rows.append((task, rated[int(index)].exchange, float(rated[int(index)].scores[score] > 0.7), name))
    for number in draw.permutation(len(contexts))[: counts.get("informative", 0)]:
        true = contexts[int(number)][0]
        often = replace(true, response=sources.generic[int(draw.integers(len(sources.generic)))])
        rows += [("informative", true, 1.0, "often"), ("informative", often, 0.0, "often")]
    return rows + answered_rows(sources, split, counts["followed"])


def preference_pairs(recipe: Recipe, arguments: argparse.Namespace) -> dict[str, dict[str, list[Preference]]]:
    """Two answers of assistants and the share that prefers the first, by source and split."""
    unwanted = overlapping_ratings(arguments.ratings / recipe["ratings"]["leave_out"])
    reader = Reader(arguments, unwanted | frozenset(recounted()["leave_out"]), left_out(recipe, arguments.corpora))
    chosen: dict[str, dict[str, list[Preference]]] = {}
    for name, counts in recipe.get("preferences", {}).get("pairs", {}).items():
        chosen[name] = {}
        for split, pairs in reader.pairs(name, head="preferred").rows.items():
            order = np.random.default_rng(len(split)).permutation(len(pairs))[: counts[split]]
            chosen[name][split] = [pairs[int(number)] for number in order]
    return chosen


def fit_preferred(judge: Judge, recipe: Recipe, arguments: argparse.Namespace, sources: Sources) -> dict[str, float]:
    """Fill the head for which of two answers people prefer; how many held-out pairs it orders as they do, by source.

    Raters prefer long answers and lists; how long both are and how they are set is read beside the states, and left out
    of the head. Pairs of what assistants answer are both to the point: without wrong answers beside them the head would
    learn nothing of that, or the contrary. Without a strength it stays as the encoder learned it.
    """
    place, strength = judge.network.head_names.index("preferred"), recipe["preferences"]["strength"]
    weights = judge.network.heads.weight[place].detach().numpy().astype(np.float64)
    preferences = preference_pairs(recipe, arguments)
    if strength:
        train = [pair for source in preferences.values() for pair in source["train"]]
        train += wrong_answers(recipe, arguments, sources)
        states, looks = _differences(judge, train)
        # How answers look is hardly held back, so that the states need not stand in for it.
        read = np.column_stack([states / np.maximum(states.std(axis=0), 1e-6), 10 * looks])
        model = LogisticRegression(C=strength, fit_intercept=False, max_iter=2000)
        fitted = model.fit(read, [share > 0.5 for _, _, share in train]).coef_[0]
        weights = fitted[: states.shape[1]] / np.maximum(states.std(axis=0), 1e-6)
        with torch.no_grad():
            judge.network.heads.weight[place] = torch.as_tensor(weights, dtype=torch.float32)
            judge.network.heads.bias[place] = 0.0
    figures = {}
    for name, source in preferences.items():
        first_is_better = _differences(judge, source["dev"])[0] @ weights > 0
        right = first_is_better == np.array([share > 0.5 for _, _, share in source["dev"]])
        figures[f"preferred_{name}"] = round(float(right.mean()), 4)
    return figures


def wrong_answers(recipe: Recipe, arguments: argparse.Namespace, sources: Sources) -> list[Preference]:
    """Answers, each before that to another question or before what many say often; and such pairs of chats."""
    unwanted = left_out(recipe, arguments.corpora)
    draw, pairs = np.random.default_rng(recipe["seed"]), []
    chats = list(sources.train.values())
    for name, count in recipe["preferences"]["wrong"].items():
        if name == "chats":
            drawn = [chats[number % len(chats)] for number in range(count)]
            beside = [corpus.get(int(draw.integers(len(corpus)))).exchanges()[:2] for corpus in drawn]
        else:
            answers = [pair.exchange(1) for pair in read_corpus(arguments.corpora, name, "train", leave_out=unwanted)]
            chosen = [(answers[first], answers[other]) for first, other in draw.integers(len(answers), size=(count, 2))]
            # Many answers are to one question.
            beside = [[answer, other] for answer, other in chosen if answer.context != other.context]
        for answer, other in beside:
            often = sources.generic[int(draw.integers(len(sources.generic)))]
            wrong = often if draw.random() < OFTEN else other.response
            if answer.response != wrong:
                pairs.append((answer, replace(answer, response=wrong), 1.0))
    return pairs


def _differences(judge: Judge, pairs: Sequence[Preference]) -> tuple[Matrix, Matrix]:
    """What the encoder makes of the first answer of each pair, less that of the second; and the same of their looks."""
    answers = [answer for pair in pairs for answer in pair[:2]]
    windows, starts = judge.windows(answers)
    parts = judge.network.split(judge.encoder.encode(windows, progress=True).rows)[0].astype(np.float64)
    states = np.add.reduceat(parts, starts) / np.diff(starts, append=len(parts))[:, None]
    looks = np.log1p([[len(answer.response.split()), answer.response.count("\n")] for answer in answers])
    looks /= np.maximum(looks.std(axis=0), 1e-6)
    return states[0::2] - states[1::2], looks[0::2] - looks[1::2]


def logistic(inputs: Matrix, right: NDArray[np.float64], strength: float) -> Matrix:
    """Weights and bias of a logistic regression in which right and wrong rows weigh the same; scales do not matter."""
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)
    scaled = make_pipeline(StandardScaler(), model).fit(inputs, right)
    weights = model.coef_[0] / scaled[0].scale_
    return np.append(weights, model.intercept_[0] - weights @ scaled[0].mean_)
