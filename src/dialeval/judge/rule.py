"""The judge's rule: which features vote on a value and how much, which may veto it, and what aspects they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.judge.row_signs import TurnSigns
from dialeval.papers.learned import rank_all

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """Which aspect a feature stands for, how much it counts, and whether the value falls when it is very low."""

    aspect: str
    votes: float
    veto: bool = False


def by_aspect(table: Mapping[str, Feature]) -> dict[str, tuple[str, ...]]:
    """The features of each aspect."""
    aspects = dict.fromkeys(feature.aspect for feature in table.values())
    return {aspect: tuple(name for name, feature in table.items() if feature.aspect == aspect) for aspect in aspects}


#: The judge as a table. Relevance, which several features see, leads; facts and the other side's next turn tell what
#: those cannot see. Votes are those that agreed with ratings of eight sources (not the benchmarks); rare words cost
#: nothing there and keep bland replies down. A checkpoint may bring votes of its own, and records what they reach.
TURN: Mapping[str, Feature] = {
    "next": Feature("relevant", 0.5),  # what was said next, among other replies
    "follows": Feature("relevant", 2.5),  # how people rated such replies
    "valid": Feature("relevant", 0.5),  # a valid next turn, against adversarial and random replies
    "human_like": Feature("relevant", 0.5),  # nearer to human pairs of turns than to random ones
    "specific": Feature("specific", 0.5),  # how rare its rarest words are
    "uses_facts": Feature("uses_facts", 3),  # words of the facts that the context has not used yet
    "reaction": Feature("reaction", 2),  # how the user answers it
    "not_repetitive": Feature("not_repetitive", 0.5, veto=True),  # neither its own words again nor earlier turns'
    "fluent": Feature("fluent", 0.5, veto=True),  # no damaged words or order
    "respectful": Feature("respectful", 0.25, veto=True),  # civil, and safe in its context
    "faithful": Feature("faithful", 0.5, veto=True),  # the facts do not speak against it
    "consistent": Feature("consistent", 0.5, veto=True),  # denies nothing that its speaker said or is known for
    "preferred": Feature("relevant", 4),  # which of two answers people prefer
    "informative": Feature("specific", 0.25),  # says something of its own, beside what many say often
}
FEATURES = tuple(TURN)
#: Features that only see faults. Their unit is that of sound human replies: one in a thousand lies below 0, where a
#: fault is charged, one in twenty below 1, and, if they are normal, half of them below `USUAL`, which is also what a
#: reply has that there is nothing to say of. All of the scale votes. A unit below 0 a veto is whole.
FAULTS = ("fluent", "respectful", "consistent")
CHARGED, DOUBTED = 0.001, 0.05
USUAL = NormalDist().inv_cdf(CHARGED) / (NormalDist().inv_cdf(CHARGED) - NormalDist().inv_cdf(DOUBTED))
#: A feature with a veto that ranks below this takes from the value, and the last of all leaves it this share.
VETO_BELOW, VETO_LEAVES = 0.03, 0.3
#: An insult takes less from a whole conversation than from its reply: what the veto leaves, times this.
INSULT = 1.5
#: What a conversation would lose if all turns of the judged side had been said before.
SAID_AGAIN = 0.3
#: Aspects that users see, and the features that each of them stands for.
ASPECTS = by_aspect(TURN)
#: Aspects that are 1 where no fault is seen, and fall to 0 for the worst.
FAULT_ASPECTS = ("fluent", "respectful", "faithful", "consistent")
#: The same of a whole conversation, seen from the judged side. Votes that agreed with ratings of whole conversations;
#: what the vetoes of its replies leave of it, `dialogue_vetoes` says.
DIALOGUE: Mapping[str, Feature] = {
    "coherent": Feature("coherent", 6),  # mean value of the judged side's replies
    "weakest": Feature("coherent", 0.5),  # the lowest of them
    "not_repetitive": Feature("not_repetitive", 0.5),
    "not_echoing": Feature("not_repetitive", 0.25),  # says other things than the turn before it
    "engaged": Feature("reaction", 0.5),  # the words of the other side's turns
    "lively": Feature("reaction", 1),  # and their exclamations
    "satisfied": Feature("reaction", 2),  # and how content they sound
    "whole": Feature("coherent", 3),  # how people rated such conversations
}
DIALOGUE_FEATURES = tuple(DIALOGUE)
DIALOGUE_ASPECTS = by_aspect(DIALOGUE)
#: Beside them, without a vote: the lowest of the judged side's replies, since one insult is one too many; and how
#: content the other side is, a part of `reaction` that people want to watch alone.
WORST_OF_TURNS, CONTENT = "respectful", "satisfied"
#: What a reply under the veto of an aspect is.
FAULTY = {
    "not_repetitive": "repetitive",
    "fluent": "hard to read",
    "respectful": "rude",
    "faithful": "at odds with the facts",
    "consistent": "at odds with what its side said",
}
TURN_VOTES, DIALOGUE_VOTES = (np.array([feature.votes for feature in table.values()]) for table in (TURN, DIALOGUE))


def votes_of(architecture: Mapping[str, Any]) -> dict[str, float]:
    """How much each feature of a reply counts in a checkpoint, which may bring votes of its own."""
    chosen = dict(vote.split("=") for vote in str(architecture.get("votes", "")).split())
    return {name: float(chosen.get(name, feature.votes)) for name, feature in TURN.items()}


# --- replies -------------------------------------------------------------------------------------


def allowance(n_parts: NDArray[np.int64]) -> Vector:
    """What is added to the unit of faults, see `FAULTS`, where the lowest of so many parts speaks for a reply.

    Each part could be charged by mistake, so a long reply would be charged more often than a short one. Each may be
    only so often that together they are as seldom as one part alone, if units of sound parts are normal.
    """
    of = NormalDist().inv_cdf
    each = np.array([of(CHARGED / number) for number in n_parts])
    added: Vector = (of(CHARGED) - each) / (of(DOUBTED) - of(CHARGED))
    return added


def turn_ranks(features: Matrix, read: Sequence[TurnSigns], tables: Matrix, *, has_unit: bool = True) -> Matrix:
    """Every feature by its own table. A reply without a word is the last in all that it could be judged by.

    What the network makes of such a reply means nothing; it can neither repeat, contradict nor insult, and what follows
    it stays a sign.
    """
    ranks = rank_all(features, tables)
    for name in FAULTS if has_unit else ():
        column = FEATURES.index(name)
        given, rank = features[:, column], ranks[:, column]
        charged = VETO_BELOW * np.clip(1 + given, 0, 1)
        ranks[:, column] = np.where(given < 0, charged, np.fmax(rank, np.where(np.isfinite(rank), VETO_BELOW, np.nan)))
    wordless = np.array([row.wordless is not None for row in read], dtype=bool)
    for column, name in enumerate(FEATURES):
        if name != "reaction":
            worst = np.nan if TURN[name].veto and name != "fluent" else 0.0
            ranks[wordless, column] = np.where(np.isfinite(ranks[wordless, column]), worst, np.nan)
    return ranks


def combine(ranks: Matrix, weights: Vector) -> Vector:
    """Weighted mean of the features that a row has: one half and the contributions."""
    outcome: Vector = 0.5 + contributions(ranks, weights).sum(axis=1)
    return outcome


def contributions(ranks: Matrix, weights: Vector) -> Matrix:
    """How far each feature moves each row's outcome from one half; a missing feature moves nothing."""
    known = np.isfinite(ranks)
    total = (known * weights).sum(axis=1, keepdims=True)
    moved = np.where(known, ranks - 0.5, 0.0) * weights
    share: Matrix = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return share


def soundness(ranks: Matrix) -> Matrix:
    """1 above `VETO_BELOW`, where what has a veto is equal, and down to 0 below."""
    sound: Matrix = np.clip(ranks / VETO_BELOW, 0, 1)
    return sound


def vetoes(ranks: Matrix) -> Matrix:
    """What each feature with a veto leaves of a value: all of it above `VETO_BELOW`, less and less below."""
    left = VETO_LEAVES + (1 - VETO_LEAVES) * soundness(ranks)
    has_veto = np.array([feature.veto for feature in TURN.values()])
    kept: Matrix = np.where(has_veto & np.isfinite(ranks), left, 1.0)
    return kept


def turn_moves(ranks: Matrix, left: Matrix, votes: Vector) -> Matrix:
    """How far each feature moves a value from one half, by its votes and by what its veto leaves."""
    moved = contributions(ranks, votes)
    voted = 0.5 + moved.sum(axis=1, keepdims=True)
    # Several vetoes share what they take together by how much each of them would take alone.
    taken, alone = voted * (1 - left.prod(axis=1, keepdims=True)), 1 - left
    share = np.divide(alone, alone.sum(axis=1, keepdims=True), out=np.zeros_like(alone), where=alone > 0)
    moves: Matrix = moved - taken * share
    return moves


def turn_values(ranks: Matrix, votes: Vector, lifted: Sequence[str] = ()) -> Vector:
    """Votes times vetoes, but for those that were lifted."""
    left = np.where([name in lifted for name in FEATURES], 1.0, vetoes(ranks))
    values: Vector = 0.5 + turn_moves(ranks, left, votes).sum(axis=1)
    return values


def dialogue_vetoes(of_replies: Matrix, said_again: float = 0.0) -> float:
    """What the replies of one side leave of the value of their conversation.

    How many are damaged, deny something or were said before counts, of insults the worst one. Other repetition has
    votes, and what speaks against the facts lowers the value of its reply.
    """
    if not len(of_replies):
        return 1.0
    left = dict(zip(FEATURES, of_replies.T, strict=True))
    insulted = min(1.0, INSULT * left["respectful"].min())
    return float(left["fluent"].mean() * left["consistent"].mean() * insulted * (1 - SAID_AGAIN * said_again))


def dialogue_moves(ranks: Matrix, left: Vector) -> Matrix:
    """How far each feature moves a conversation from one half; what vetoes take counts as coherence."""
    moves = contributions(ranks, DIALOGUE_VOTES)
    moves[:, DIALOGUE_FEATURES.index("coherent")] -= (0.5 + moves.sum(axis=1)) * (1 - left)
    return moves


def dialogue_values(ranks: Matrix, left: Vector) -> Vector:
    """Votes times what the vetoes leave."""
    values: Vector = 0.5 + dialogue_moves(ranks, left).sum(axis=1)
    return values


@dataclass(frozen=True)
class RankInterval:
    """Where the ratings of rows with such an outcome lie, as ranks among their source."""

    edges: Vector
    low: Vector
    high: Vector

    def around(self, outcomes: Vector) -> tuple[Vector, Vector]:
        """Both ends for each outcome, bent between the middles of the bins so that they do not jump."""
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        return np.interp(outcomes, middles, self.low), np.interp(outcomes, middles, self.high)


def aspect_values(ranks: Matrix, weights: Vector, table: Mapping[str, Feature]) -> dict[str, Vector]:
    """Each aspect between 0 and 1: the weighted mean of its features' ranks, or 1 where no fault is seen; NaN where all
    of its features are missing.
    """
    names, values = list(table), {}
    for aspect, features in by_aspect(table).items():
        columns = [names.index(name) for name in features]
        part, weight = ranks[:, columns], np.maximum(weights[columns], 1e-9)
        if aspect in FAULT_ASPECTS:
            part = soundness(part)
        known = np.isfinite(part)
        total = (known * weight).sum(axis=1)
        mean = np.where(known, part, 0.0) @ weight
        values[aspect] = np.divide(mean, total, out=np.full(len(ranks), np.nan), where=total > 0)
    return values
