"""Rows of the encoder's last phase: next replies, rated ones, valid ones, and sound ones beside damaged ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from common import recounted
from corpora.faults import DAMAGES, Draw, civil, contradicted, damage, insulting, statement_of
from corpora.grouped import Group
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.approaches.row_signs import own_turns
from dialeval.engine.formatting import PairTokenizer
from dialeval.exchange import Exchange
from stages import split_groups
from trunk_steps import Batch, corpus_shares, padded, read_sets

FAULTS = (*DAMAGES, "glued")
#: Sources with right and wrong rows, the task that each of them is for, and the score that says so.
RATED = {"begin": ("faithful", "attributable"), "convabuse": ("respectful", "respectful")}
#: What `corpora.dialogues` puts before the facts of a speaker.
PERSONA = "your persona: "

#: A row of a task: what is read, what the head of the task is to say, and (ratings) where it comes from.
Row = tuple[str, Exchange, float, str]


class Sources:
    """Rows of every task by step, training or held-out ones."""

    def __init__(self, recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
        self.recipe = recipe
        self.train, self.held_out = read_sets(trunk | {"negatives": recipe["negatives"]}, arguments.corpora)
        self.names, self.shares = corpus_shares(trunk["stages"][-1], self.train)
        rated = recipe["ratings"]
        unwanted = overlapping_ratings(arguments.ratings / rated["leave_out"]) | frozenset(recounted()["leave_out"])
        self.rated = rated["train"]
        self.ratings: dict[tuple[str, str], list[Rated]] = {}
        for name in (*self.rated, *rated["labelled"]):
            rows = read_ratings(arguments.ratings, name, leave_out=unwanted)
            for split in ("train", "dev"):
                self.ratings[name, split] = [row for row in rows if row.split == split]
        self.groups, self.held_groups = split_groups(recipe, arguments.corpora) if recipe["rows"]["valid"] else ([], [])

    def of_split(self, name: str, split: str) -> list[Rated]:
        """Rated rows of one source."""
        return self.ratings[name, split]

    def candidates(self, draw: Draw, count: int, step: int) -> list[list[Exchange]]:
        """Contexts of all corpora, each with its candidates, the true one first."""
        drawn = []
        for number in draw.choice(len(self.names), size=count, p=self.shares):
            one = self.train[self.names[number]]
            drawn.append(one.get(int(draw.integers(len(one))), epoch=step).exchanges())
        return drawn

    def step(self, step: int) -> tuple[list[list[Exchange]], list[Row]]:
        """Contexts with their candidates, and the rows of all other tasks."""
        draw = np.random.default_rng([self.recipe["seed"], step])
        counts = self.recipe["rows"]
        contexts = self.candidates(draw, counts["contexts"], step)
        rows: list[Row] = []
        # In one source at a time, so that pairs can be compared; in turn, by the root of their size.
        roots = np.sqrt([len(self.of_split(name, "train")) for name in self.rated])
        source = self.rated[int(draw.choice(len(self.rated), p=roots / roots.sum()))]
        chosen = self.of_split(source, "train")
        for at in draw.integers(len(chosen), size=counts["rated"]):
            row = chosen[int(at)]
            rows.append(("rated", without_facts(row), rating_of(row), source))
        rows += self.valid_rows(draw, self.groups, counts["valid"])
        rows += faulty_rows(draw, contexts, counts)
        for name, (task, score) in RATED.items():
            there = self.of_split(name, "train")
            for at in draw.integers(len(there), size=counts[name]):
                if score in there[int(at)].scores:
                    rows.append((task, there[int(at)].exchange, float(there[int(at)].scores[score] > 0.7), name))
        return contexts, rows

    @staticmethod
    def valid_rows(draw: Draw, groups: Sequence[Group], count: int) -> list[Row]:
        """Of one context a right reply, an adversarial and a random one."""
        rows: list[Row] = []
        while groups and len(rows) < count:
            group = groups[int(draw.integers(len(groups)))]
            kinds = ((group.positives, 1.0), (group.adversarial, 0.0), (group.random, 0.0))
            for replies, right in kinds:
                if replies:
                    reply = replies[int(draw.integers(len(replies)))]
                    rows.append(("valid", Exchange(context=group.context, response=reply), right, "dailydialog_pp"))
        return rows


def without_facts(row: Rated) -> Exchange:
    """The row by its context alone, if it has one."""
    return replace(row.exchange, facts=()) if row.exchange.context else row.exchange


def rating_of(row: Rated) -> float:
    """The share of people who could go on after this reply, which the sources of the recipe asked for."""
    return row.scores["no_breakdown"]


def faulty_rows(
    draw: Draw, contexts: Sequence[Sequence[Exchange]], counts: dict[str, int], *, held_out: bool = False
) -> list[Row]:
    """Sound replies and ones with a fault. Wrong replies are as fluent and civil as right ones, so both are read."""
    rows: list[Row] = []
    made = 0
    for number in range(20 * counts["fluent"]):
        if made >= counts["fluent"]:
            break
        candidates = contexts[int(draw.integers(len(contexts)))]
        one = candidates[int(draw.integers(len(candidates)))]
        kind = FAULTS[number % len(FAULTS)]
        broken = damage(one.response, kind, draw)
        if broken:
            rows += [("fluent", one, 1.0, ""), ("fluent", replace(one, response=broken), 0.0, kind)]
            made += 2
    for _ in range(counts["insults"] // 2):
        candidates = contexts[int(draw.integers(len(contexts)))]
        one = candidates[int(draw.integers(len(candidates)))]
        rude = replace(one, response=insulting(one.response, draw, held_out=held_out))
        if draw.random() < 0.5:  # no word is rude by itself
            one = replace(one, response=civil(one.response, draw, held_out=held_out))
        rows += [("respectful", one, 1.0, ""), ("respectful", rude, 0.0, "insult")]
    for task, count in (("consistent", counts["consistent"]), ("faithful", counts["faithful"])):
        made = 0
        for _ in range(30 * count):
            if made >= count:
                break
            one = contexts[int(draw.integers(len(contexts)))][0]
            # What a speaker knows of themselves stands behind "your persona:" in the corpora.
            said = own_turns(one) if task == "consistent" else [fact.removeprefix(PERSONA) for fact in one.facts]
            statements = [found for text in said if (found := statement_of(text))]
            if not statements:
                continue
            kept = statements[int(draw.integers(len(statements)))]
            otherwise = contradicted(kept, draw)
            if otherwise is None or otherwise == kept:
                continue
            reply = (lambda text: text) if draw.random() < 0.5 else (lambda text, one=one: f"{one.response} {text}")
            # Half of the time the denied form is what was said before, so that a denial alone tells nothing.
            if draw.random() < 0.5 and task == "consistent":
                swapped = tuple(turn.replace(kept, otherwise) for turn in one.context)
                one, kept, otherwise = replace(one, context=swapped), otherwise, kept
            elif draw.random() < 0.5 and task == "faithful":
                swapped = tuple(fact.replace(kept, otherwise) for fact in one.facts)
                one, kept, otherwise = replace(one, facts=swapped), otherwise, kept
            rows += [(task, replace(one, response=reply(kept)), 1.0, ""), (task, one, 1.0, "")]
            rows += [(task, replace(one, response=reply(otherwise)), 0.0, "contradicted")]
            made += 3
    return rows


class PhaseStep(NamedTuple):
    """What one process reads in a step: the candidates of its contexts, then the rows of all other tasks."""

    batches: list[Batch]
    #: Each with as many candidates.
    n_contexts: int
    tasks: list[str]
    truth: Tensor
    #: Replies that all processes together read.
    n_replies: int


class PhaseSteps(Dataset[PhaseStep]):
    """Steps by number; what is in them follows from seed and number."""

    def __init__(self, sources: Sources, tokenizer: PairTokenizer, share: slice, batch_tokens: int) -> None:
        self.sources, self.tokenizer, self.share, self.batch_tokens = sources, tokenizer, share, batch_tokens

    def __getitem__(self, step: int) -> PhaseStep:
        contexts, rows = self.sources.step(step)
        n_replies = sum(map(len, contexts)) + len(rows)
        contexts, rows = contexts[self.share], rows[self.share]
        read = [*(one for candidates in contexts for one in candidates), *(row[1] for row in rows)]
        batches = padded(self.tokenizer.pairs(read), self.tokenizer.pad_id, self.batch_tokens)
        return PhaseStep(
            batches, len(contexts), [row[0] for row in rows], torch.tensor([row[2] for row in rows]), n_replies
        )
