"""Rows of the encoder's last phase: next replies, rated ones, pairs, valid ones, and sound ones beside damaged ones.

A row belongs to a task, which is a head or two of them joined by "+". Rows with a group are compared within it, the
others are right or wrong by themselves.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from common import left_out, recounted
from corpora.batches import CandidateSet
from corpora.dialogues import read_corpus, read_rows
from corpora.faults import DAMAGES, Draw, civil, contradicted, damage, insulting, statement_of
from corpora.grouped import Group
from corpora.ratings import Rated, find_ratings, overlapping_ratings, read_ratings
from dialeval.core.exchange import Exchange
from dialeval.encoders.layout import PairTokenizer
from dialeval.judge.lexical import content_words
from dialeval.judge.row_signs import own_turns
from stages import split_groups
from trunk_steps import Batch, corpus_shares, padded, read_sets

FAULTS = (*DAMAGES, "glued")
#: Sources with right and wrong rows, the task that each of them is for, and the score that says so.
RATED = {
    "begin": ("faithful", "attributable"),
    "faithdial_audit": ("faithful", "entailment"),
    "convabuse": ("respectful", "respectful"),
    "diasafety": ("respectful", "safe"),
}
#: What `corpora.dialogues` puts before the facts of a speaker.
PERSONA = "your persona: "

#: A row of a task: what is read, what the head of the task is to say, and where it comes from (ratings) or what is
#: wrong with it.
Row = tuple[str, Exchange, float, str]
#: What a recipe may ask for beside next replies and faults; a recipe that asks for none of it need not say so.
OPTIONAL = ("graded", "pairs", "long", "facts")
#: How the groups that rows are compared in begin; any other origin stands for itself.
GROUP = "in "


class Sources:
    """Rows of every task by step, training or held-out ones."""

    def __init__(self, recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
        self.recipe = recipe
        self.train, self.held_out = read_sets(trunk | {"negatives": recipe["negatives"]}, arguments.corpora)
        self.names, self.shares = corpus_shares(trunk["stages"][-1], self.train)
        rated = recipe["ratings"]
        unwanted = overlapping_ratings(arguments.ratings / rated["leave_out"]) | frozenset(recounted()["leave_out"])
        self.rated, self.labelled = rated["train"], rated["labelled"]
        self.ratings: dict[tuple[str, str], list[Rated]] = {}
        for name in (*self.rated, *rated["labelled"]):
            rows = read_ratings(arguments.ratings, name, leave_out=unwanted)
            for split in ("train", "dev"):
                self.ratings[name, split] = [row for row in rows if (row.split == "train") == (split == "train")]
        self.groups, self.held_groups = split_groups(recipe, arguments.corpora) if recipe["rows"]["valid"] else ([], [])
        self.counts = dict.fromkeys(OPTIONAL, 0) | recipe["rows"]
        self.generic = frequent_replies(self.train.values()) if recipe.get("generic_share") else []
        read = Reader(arguments, unwanted, left_out(recipe, arguments.corpora))
        self.graded = {name: read.graded(name, **options) for name, options in recipe.get("graded", {}).items()}
        self.pairs = {name: read.pairs(name, **options) for name, options in recipe.get("pairs", {}).items()}
        self.long = [answer for name, splits in recipe.get("long", {}).items() for answer in read.answers(name, splits)]

    def of_split(self, name: str, split: str) -> list[Rated]:
        """Rated rows of one source."""
        return self.ratings[name, split]

    def candidates(self, draw: Draw, count: int, step: int) -> list[list[Exchange]]:
        """Contexts of all corpora, each with its candidates, the true one first."""
        drawn = []
        for number in draw.choice(len(self.names), size=count, p=self.shares):
            corpus = self.train[self.names[number]]
            drawn.append(corpus.get(int(draw.integers(len(corpus))), epoch=step).exchanges())
            # A bland reply would fit nearly anywhere: it is a wrong one wherever something else was said.
            if self.generic and draw.random() < self.recipe["generic_share"]:
                bland = self.generic[int(draw.integers(len(self.generic)))]
                if bland != drawn[-1][0].response:
                    drawn[-1][-1] = replace(drawn[-1][-1], response=bland)
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
        for index in draw.integers(len(chosen), size=counts["rated"]):
            row = chosen[int(index)]
            rows.append(("rated", without_facts(row), rating_of(row), f"{GROUP}{source}"))
        rows += self.valid_rows(draw, self.groups, counts["valid"])
        rows += faulty_rows(draw, contexts, counts)
        for name in self.labelled:
            (task, score), rated = RATED[name], self.of_split(name, "train")
            for index in draw.integers(len(rated), size=counts[name]):
                if score in rated[int(index)].scores:
                    rows.append((task, rated[int(index)].exchange, float(rated[int(index)].scores[score] > 0.7), name))
        rows += self.compared(draw, step)
        return contexts, rows

    def compared(self, draw: Draw, step: int, split: str = "train") -> list[Row]:
        """Graded rows of a few sources, pairs, long answers beside damaged ones, replies beside other facts."""
        rows: list[Row] = []
        for name in chosen_sources(draw, self.graded, self.counts["graded"]):
            source = self.graded[name]
            graded = source.rows[split]
            chosen = draw.integers(len(graded), size=source.each)
            rows += [(source.head, *graded[int(index)], f"{GROUP}{name}") for index in chosen]
        for number, name in enumerate(chosen_sources(draw, self.pairs, self.counts["pairs"])):
            head, of_split = self.pairs[name].head, self.pairs[name].rows[split]
            better, worse, share = of_split[int(draw.integers(len(of_split)))]
            rows += [(head, better, share, f"{GROUP}pair {number}"), (head, worse, 1 - share, f"{GROUP}pair {number}")]
        for number in range(self.counts["long"]):
            rows += long_twins(draw, self.long, f"{GROUP}long {number}")
        for number in range(self.counts["facts"]):
            rows += beside_other_facts(draw, self.train, f"{GROUP}facts {number}")
        return rows

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
        exchange = candidates[int(draw.integers(len(candidates)))]
        kind = FAULTS[number % len(FAULTS)]
        broken = damage(exchange.response, kind, draw)
        if broken:
            rows += [("fluent", exchange, 1.0, ""), ("fluent", replace(exchange, response=broken), 0.0, kind)]
            made += 2
    for _ in range(counts["insults"] // 2):
        candidates = contexts[int(draw.integers(len(contexts)))]
        exchange = candidates[int(draw.integers(len(candidates)))]
        rude = replace(exchange, response=insulting(exchange.response, draw, held_out=held_out))
        if draw.random() < 0.5:  # no word is rude by itself
            exchange = replace(exchange, response=civil(exchange.response, draw, held_out=held_out))
        rows += [("respectful", exchange, 1.0, ""), ("respectful", rude, 0.0, "insult")]
    for task, count in (("consistent", counts["consistent"]), ("faithful", counts["faithful"])):
        made = 0
        for _ in range(30 * count):
            if made >= count:
                break
            exchange = contexts[int(draw.integers(len(contexts)))][0]
            # What a speaker knows of themselves stands behind "your persona:" in the corpora.
            facts = [fact.removeprefix(PERSONA) for fact in exchange.facts]
            texts = own_turns(exchange) if task == "consistent" else facts
            statements = [statement for text in texts if (statement := statement_of(text))]
            if not statements:
                continue
            kept = statements[int(draw.integers(len(statements)))]
            otherwise = contradicted(kept, draw)
            if otherwise is None or otherwise == kept:
                continue
            begin = "" if draw.random() < 0.5 else f"{exchange.response} "
            # Half of the time the denied form is what was said before, so that a denial alone tells nothing.
            if draw.random() < 0.5 and task == "consistent":
                swapped = tuple(turn.replace(kept, otherwise) for turn in exchange.context)
                exchange, kept, otherwise = replace(exchange, context=swapped), otherwise, kept
            elif draw.random() < 0.5 and task == "faithful":
                swapped = tuple(fact.replace(kept, otherwise) for fact in exchange.facts)
                exchange, kept, otherwise = replace(exchange, facts=swapped), otherwise, kept
            rows += [(task, replace(exchange, response=begin + kept), 1.0, ""), (task, exchange, 1.0, "")]
            rows += [(task, replace(exchange, response=begin + otherwise), 0.0, "contradicted")]
            made += 3
    return rows


# --- rows that are compared ------------------------------------------------------------------------


class Graded(NamedTuple):
    """Rated replies of one source: which head learns from them, and how many a step takes of them together."""

    head: str
    each: int
    weight: float
    rows: dict[str, list[tuple[Exchange, float]]]


class Pairs(NamedTuple):
    """Pairs of replies to one context, and the share of people who prefer the first."""

    head: str
    weight: float
    rows: dict[str, list[tuple[Exchange, Exchange, float]]]


class Reader:
    """Reads the sources of compared rows, without what evaluation sets share."""

    def __init__(self, arguments: argparse.Namespace, unwanted: frozenset[str], dialogues: frozenset[str]) -> None:
        self.ratings, self.corpora = arguments.ratings, arguments.corpora
        self.unwanted, self.dialogues = unwanted, dialogues

    def graded(
        self, name: str, *, head: str, score: str, level: str = "turn", count: int = 8, weight: float = 1.0,
        least: float = 0.0, most: float = 1.0,
    ) -> Graded:  # fmt: skip
        """Ratings from `least` to `most` become numbers from 0 to 1. A conversation is read as its last turn."""
        rows: dict[str, list[tuple[Exchange, float]]] = {"train": [], "dev": []}
        for row in read_ratings(self.ratings, name, level=level, leave_out=self.unwanted):
            if score not in row.scores:
                continue
            exchange = row.exchange if level == "turn" else last_reply(row)
            if exchange is not None and exchange.response.strip():
                share = (row.scores[score] - least) / (most - least)
                rows["train" if row.split == "train" else "dev"].append((exchange, share))
        return Graded(head, count, weight, rows)

    def pairs(self, name: str, *, head: str, weight: float = 1.0) -> Pairs:
        """Pairs as a rater or a model preferred them; ties teach nothing."""
        rows: dict[str, list[tuple[Exchange, Exchange, float]]] = {"train": [], "dev": []}
        for row in read_rows(find_ratings(self.ratings, name)):
            share = row.get("preference_a", {"a": 1.0, "b": 0.0}.get(row["preferred"], 0.5))
            if row["id"] in self.unwanted or not row["response_a"].strip() or not row["response_b"].strip():
                continue
            both = [
                Exchange(tuple(row["context"]), row[f"response_{side}"], facts=tuple(row.get("facts") or ()))
                for side in "ab"
            ]
            if abs(share - 0.5) > 0.1:
                rows["train" if row["split"] == "train" else "dev"].append((both[0], both[1], float(share)))
        return Pairs(head, weight, rows)

    def answers(self, name: str, splits: Sequence[str]) -> list[Exchange]:
        """Long answers of one corpus."""
        answers = []
        for split in splits:
            for dialogue in read_corpus(self.corpora, name, split, leave_out=self.dialogues):
                pairs = [dialogue.exchange(turn) for turn in range(1, len(dialogue.turns))]
                answers += [pair for pair in pairs if len(sentences(pair.response)) >= 4]
        return answers


def last_reply(row: Rated) -> Exchange | None:
    """A rated conversation as its last reply of the bot, with all that stands before it."""
    turns, speakers = row.exchange.context, row.speakers
    bots = [turn for turn, name in enumerate(speakers) if name == "system"] if len(speakers) == len(turns) else []
    if not bots or not bots[-1]:
        return None
    return Exchange(tuple(turns[: bots[-1]]), turns[bots[-1]])


def chosen_sources(draw: Draw, sources: Mapping[str, Graded | Pairs], count: int) -> list[str]:
    """Sources of a step, by the root of their size times their weight."""
    if not count:
        return []
    names = list(sources)
    weights = np.array([len(sources[name].rows["train"]) ** 0.5 * sources[name].weight for name in names])
    return [names[int(index)] for index in draw.choice(len(names), size=count, p=weights / weights.sum())]


def frequent_replies(sets: Iterable[CandidateSet], count: int = 400) -> list[str]:
    """The replies that corpora hold most often: "That sounds nice.", "I don't know."."""
    counts = Counter(turn for corpus in sets for dialogue in corpus.dialogues for turn in dialogue.turns[1:])
    return [reply for reply, times in counts.most_common(count) if times > 1]


def sentences(text: str) -> list[str]:
    """A text cut behind full stops and at ends of lines, nothing left out."""
    return [part for part in re.split(r"(?<=[.!?])\s+|(?<=\n)", text) if part.strip()]


def long_twins(draw: Draw, answers: Sequence[Exchange], group: str) -> list[Row]:
    """A long answer above itself with another's second half, a foreign sentence or an insult, and above another one."""
    answer, other = (answers[int(draw.integers(len(answers)))] for _ in range(2))
    parts, foreign = sentences(answer.response), sentences(other.response)
    half = len(parts) // 2
    place = int(draw.integers(1, len(parts)))
    stranger = foreign[int(draw.integers(len(foreign)))].strip()
    twins = (
        " ".join(map(str.strip, (*parts[:half], *foreign[len(foreign) // 2 :]))),
        " ".join(map(str.strip, (*parts[:place], stranger, *parts[place + int(draw.integers(2)) :]))),
        other.response,
    )
    kept = [answer, *(replace(answer, response=twins[int(draw.integers(3))]) for _ in range(1))]
    rows: list[Row] = [("next+rated+preferred", row, float(row is answer), group) for row in kept]
    if draw.random() < 0.4:
        rude = insulting("", draw).strip()
        ends = f"{rude} {answer.response}" if draw.random() < 0.3 else f"{answer.response} {rude}"
        rows.append(("next+rated+preferred+respectful", replace(answer, response=ends), 0.0, group))
        rows[0] = ("next+rated+preferred+respectful", *rows[0][1:])
    return rows


def beside_other_facts(draw: Draw, sets: Mapping[str, CandidateSet], group: str) -> list[Row]:
    """A reply that takes a word from its speaker's facts, beside somebody else's facts."""
    known = [corpus for corpus in sets.values() if any(dialogue.facts for dialogue in corpus.dialogues[:50])]
    for _ in range(200):
        corpus = known[int(draw.integers(len(known)))]
        number, turn = corpus.turns[int(draw.integers(len(corpus)))]
        dialogue, other = corpus.dialogues[number], corpus.dialogues[int(draw.integers(len(corpus.dialogues)))]
        if not dialogue.facts or not dialogue.facts[turn] or not other.facts or not other.facts[-1]:
            continue
        row = dialogue.exchange(turn)
        taken = set(content_words(row.response)) & {word for fact in row.facts for word in content_words(fact)}
        theirs = other.facts[-1]
        if taken and not taken & {word for fact in theirs for word in content_words(fact)}:
            return [
                ("next+rated", row, 1.0, group),
                ("next+rated", replace(row, facts=theirs), 0.0, group),
            ]
    return []


class PhaseStep(NamedTuple):
    """What one process reads in a step: the candidates of its contexts, then the rows of all other tasks."""

    batches: list[Batch]
    #: Each with as many candidates.
    n_contexts: int
    tasks: list[str]
    truth: Tensor
    #: Where the rows come from: those of one group are compared with one another.
    origins: list[str]
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
        read = [*(reply for candidates in contexts for reply in candidates), *(row[1] for row in rows)]
        batches = padded(self.tokenizer.pairs(read), self.tokenizer.pad_id, self.batch_tokens)
        return PhaseStep(
            batches, len(contexts), [row[0] for row in rows], torch.tensor([row[2] for row in rows]),
            [row[3] for row in rows], n_replies,
        )  # fmt: skip
