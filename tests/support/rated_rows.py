"""Rated rows of a made-up world: people like replies that take up the facts, and a small judge to tune to them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.exchange import Exchange
from dialeval.judge import fitting, lexical
from dialeval.judge.metric import Judge
from dialeval.judge.network import JudgeNetwork
from dialeval.judge.rule import ASPECTS, FEATURES
from dialeval.papers.learned import quantile_curves
from small_checkpoints import small_checkpoint
from tiny_words import WORDS

#: Words that nothing but these rows holds.
FACT_WORDS = [f"zq{first}{second}v" for first in "bcdfghj" for second in "aeiou"]
OTHERS = [word for word in dict.fromkeys(WORDS) if lexical.content_words(word)]


def rated(count: int, *, seed: int = 0, noise: float = 0.5, replies: int = 3) -> list[dict[str, Any]]:
    """So many rows, some replies to each context; the rating is how many fact words a reply takes up, and noise."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        context = [" ".join(rng.choice(OTHERS, size=5)) + f" {seed} {len(rows)}"]
        facts = [" ".join(rng.choice(FACT_WORDS, size=6, replace=False))]
        for _ in range(replies):
            used = int(rng.integers(4))
            words = [*rng.choice(facts[0].split(), size=used, replace=False), *rng.choice(OTHERS, size=6 - used)]
            rating = used + noise * float(rng.normal())
            rows.append({"context": context, "response": " ".join(words), "facts": facts, "rating": round(rating, 3)})
    return rows[:count]


def permuted(rows: list[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """The same rows with one another's ratings."""
    order = np.random.default_rng(seed).permutation(len(rows))
    return [{**row, "rating": rows[int(at)]["rating"]} for row, at in zip(rows, order, strict=True)]


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first two replies of every context as a pair, the better one preferred; near ones tie."""
    pairs = []
    for one, other in zip(rows[::3], rows[1::3], strict=False):
        lead = one["rating"] - other["rating"]
        shown = "tie" if abs(lead) < 0.3 else "a" if lead > 0 else "b"
        pair = {"response_a": one["response"], "response_b": other["response"], "preferred": shown}
        pairs.append({"context": one["context"], "facts": one["facts"], **pair})
    return pairs


def small_judge(encoder: Path, folder: Path) -> Path:
    """A judge over the tiny encoder: tables and quantiles come from rows like ours."""
    network = JudgeNetwork.from_pretrained(small_checkpoint("judge", encoder, folder), trainable=True)
    network.set_array("rarity", np.full(lexical.IDF_BUCKETS, 5.0))
    network.save_pretrained(folder)
    judge = Judge(folder)
    rows = [Exchange(tuple(row["context"]), row["response"], facts=tuple(row["facts"])) for row in rated(150, seed=99)]
    features, _ = judge.features_of(rows)
    # None of these rows speaks of itself; where people do, hardly anybody contradicts.
    features[:, FEATURES.index("consistent")] = 1.0
    network.set_array("turn_tables", np.stack([fitting.reference_table(column) for column in features.T]))
    curves = quantile_curves(np.linspace(0, 1, 50), np.linspace(0, 0.5, 50))
    keys = ("turn.overall", *(f"turn.{name}" for name in ASPECTS))
    network.config = replace(network.config, quantiles=dict.fromkeys(keys, curves))
    network.save_pretrained(folder)
    return folder
