"""JUDGE: one encoder that learned from people's ratings, plain signs beside it, and a reason for every value.

Not one of the papers: our own. Heads on the encoder say whether a reply is a valid next turn, how people rated such
replies, whether it is sound English, civil, and in line with the facts, and how content the other side is with it;
signs of its words tell what it repeats and which facts it brings in. Features vote on the value; severe faults are
vetoes. A reply that is longer than a checkpoint reads at once is read in parts, and its weakest part counts most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.checkpoints.network import Network, unit_matrix
from dialeval.core.exchange import Dialogue, Exchange
from dialeval.core.scores import Scores
from dialeval.encoders.layout import PairTokenizer
from dialeval.judge import lexical as signs
from dialeval.judge import row_signs
from dialeval.judge.reasons import in_a_sentence, statements, with_weakest
from dialeval.judge.row_signs import (
    DialogueSigns,
    TurnSigns,
    counts,
    judged_replies,
    judged_side,
    read_dialogue,
    read_signs,
)
from dialeval.papers.learned import (
    WEAKEST,
    LearnedMetric,
    percentile,
    rank_all,
    squared_mahalanobis,
    whole_reply,
)
from dialeval.registry.interface import Fault, Judged, Level, MetricInfo, Scale

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Reference values kept of each feature, and the bins of outcomes that have an interval of their own.
TABLE_SIZE, INTERVAL_BINS = 401, 5
#: What heads may say, one logit each. A checkpoint names those that it has; some are learned with the encoder, those
#: for faults are fitted on it, and so are `informative`, `preferred` and `satisfied`, which reads the other side's next
#: turn. `whole` reads a conversation at once.
HEADS = (
    "next", "follows", "valid", "fluent", "consistent", "respectful", "faithful", "satisfied", "preferred",
    "informative", "whole",
)  # fmt: skip
#: Heads that read something else than a reply.
OF_OTHERS = ("satisfied", "whole")
#: What checkpoints have that name none.
_FIRST_HEADS = HEADS[:7]
_FIRST_DIALOGUE_FEATURES = (
    "coherent", "weakest", "not_repetitive", "not_echoing", "engaged", "positive", "lively", "not_complaining"
)  # fmt: skip


@dataclass(frozen=True)
class Feature:
    """Which aspect a feature stands for, how much it counts, and whether the value falls when it is very low."""

    aspect: str
    votes: float
    veto: bool = False


def _by_aspect(table: Mapping[str, Feature]) -> dict[str, tuple[str, ...]]:
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
#: `preferred` learned from answers of assistants, six in seven of them as long; of shorter replies it says nothing.
ANSWER_WORDS = 45
#: How much of the end of a conversation the head for whole ones reads.
WHOLE_TOKENS = 320
#: What a conversation would lose if all turns of the judged side had been said before.
SAID_AGAIN = 0.3
#: Aspects that users see, and the features that each of them stands for.
ASPECTS = _by_aspect(TURN)
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
DIALOGUE_ASPECTS = _by_aspect(DIALOGUE)
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


# --- architecture ----------------------------------------------------------------------------------


def votes_of(architecture: Mapping[str, Any]) -> dict[str, float]:
    """How much each feature of a reply counts in a checkpoint, which may bring votes of its own."""
    chosen = dict(vote.split("=") for vote in str(architecture.get("votes", "")).split())
    return {name: float(chosen.get(name, feature.votes)) for name, feature in TURN.items()}


class JudgeNetwork(Network):
    """Encoder, a linear head per task, what the signs are read with. A row: the first token's features, then logits."""

    approach = "judge"
    oldest_format = 4

    @property
    def features(self) -> dict[str, tuple[str, ...]]:
        """The features that this checkpoint has tables for, by level."""
        if self.config.format_version < 5:
            return {"turn": FEATURES[:12], "dialogue": _FIRST_DIALOGUE_FEATURES}
        return {"turn": FEATURES, "dialogue": DIALOGUE_FEATURES}

    def tables(self, level: Literal["turn", "dialogue"]) -> Matrix:
        """The reference values of every feature; those of one that the checkpoint does not know are never asked for."""
        kept, names = self.array(f"{level}_tables"), self.features[level]
        wanted = FEATURES if level == "turn" else DIALOGUE_FEATURES
        unknown = np.linspace(0, 1, TABLE_SIZE)
        return np.stack([kept[names.index(name)] if name in names else unknown for name in wanted])

    @property
    def has_unit(self) -> bool:
        """Whether heads for faults have the unit of sound human replies, see `FAULTS`; older ones have ranks alone."""
        return self.config.format_version >= 5

    @property
    def head_names(self) -> tuple[str, ...]:
        """The heads that this checkpoint has."""
        named = str(self.config.architecture.get("heads", "")).split()
        return tuple(named) or _FIRST_HEADS

    @property
    def votes(self) -> Vector:
        """How much each feature of a reply counts here."""
        return np.array(list(votes_of(self.config.architecture).values()))

    @property
    def answer_words(self) -> int:
        """Of how many words on `preferred` speaks: where the encoder learned it beside short replies, of all."""
        return int(self.config.architecture.get("answer_words", ANSWER_WORDS))

    @property
    def has_density(self) -> bool:
        """Whether relative density counts here; a judge that does without it keeps no Gaussians."""
        return bool(self.votes[FEATURES.index("human_like")])

    def build_heads(self, width: int) -> None:
        """Heads, the two Gaussians of relative density, the tables that make ranks of features."""
        self.heads = nn.Linear(width, len(self.head_names))
        for name in ("human", "random") if self.has_density else ():
            self.register_buffer(f"{name}_mean", torch.zeros(width))
            self.register_buffer(f"{name}_precision", unit_matrix(width))
        self.register_buffer("rarity", torch.zeros(signs.IDF_BUCKETS))
        self.register_buffer("runs", torch.zeros(signs.RUNS, dtype=torch.int32))
        self.register_buffer("run_counts", torch.zeros(signs.RUNS, dtype=torch.uint8))
        self.register_buffer("fluency", unit_matrix(1, signs.Wording.SIGNS + 2)[0])
        if self.config.architecture.get("corrected"):
            beside = len(self.head_names) + len(self.features["turn"]) + len(row_signs.COUNTS)
            self.register_buffer("correction", torch.zeros(2, width + beside + 2))
        for level, features in self.features.items():
            grid = np.tile(np.linspace(0, 1, TABLE_SIZE, dtype=np.float32), (len(features), 1))
            self.register_buffer(f"{level}_tables", torch.from_numpy(grid))
            self.register_buffer(f"{level}_interval", torch.zeros(3, INTERVAL_BINS + 1))

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + heads]`."""
        return torch.cat([first, self.heads(first)], dim=-1)

    def split(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], dict[str, Vector]]:
        """Rows of the network as states and the logits of each head."""
        states, logits = np.split(rows, [self.heads.in_features], axis=1)
        return states, {name: logits[:, number].astype(np.float64) for number, name in enumerate(self.head_names)}

    def correct(self, correction: Matrix, lifted: Sequence[str] = ()) -> None:
        """Keep what a user's ratings add, see `dialeval.tuning.crossing`, and the vetoes that they speak against."""
        without = dict.fromkeys([*self.lifted, *lifted])
        chosen = {"corrected": True, **({"lifted": " ".join(without)} if without else {})}
        self.config = replace(self.config, architecture={**self.config.architecture, **chosen})
        self.register_buffer("correction", torch.as_tensor(correction, dtype=torch.float32))

    @property
    def lifted(self) -> list[str]:
        """Features whose vetoes do not count: ratings spoke against them, or the judge did not learn enough of them."""
        return str(self.config.architecture.get("lifted", "")).split()

    def array(self, name: str) -> Vector:
        """A buffer as numpy keeps it."""
        return np.asarray(getattr(self, name).detach().cpu().numpy(), dtype=np.float64)

    def wording(self) -> signs.Wording:
        """The counts of runs of words, as they are stored: a row looks up a few of a million."""
        return signs.Wording(*(self.get_buffer(name).detach().cpu().numpy() for name in ("runs", "run_counts")))

    def set_array(self, name: str, values: Any) -> None:
        """Fill a buffer."""
        buffer: Tensor = getattr(self, name)
        buffer.copy_(torch.as_tensor(np.asarray(values), dtype=buffer.dtype).reshape(buffer.shape))


# --- scoring rule ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoded:
    """What the network makes of some replies, part by part: states, logits by head, and signs of the parts' wording."""

    states: NDArray[np.float32]
    logits: dict[str, Vector]
    parts: list[str]
    wording: Matrix
    #: Parts without a letter outside of code, of whose wording there is nothing to say.
    bare: NDArray[np.bool_]
    #: Where each reply begins.
    starts: NDArray[np.int64]
    #: What the other side's next turns say; NaN where there is none.
    satisfied: Vector


def as_answered(row: Exchange) -> Exchange:
    """The other side's next turn as a reply, for the head that reads how content it is."""
    return Exchange(context=(*row.context, row.response), response=row.following or "")


def allowance(n_parts: NDArray[np.int64]) -> Vector:
    """What is added to the unit of faults, see `FAULTS`, where the lowest of so many parts speaks for a reply.

    Each part could be charged by mistake, so a long reply would be charged more often than a short one. Each may be
    only so often that together they are as seldom as one part alone, if units of sound parts are normal.
    """
    of = NormalDist().inv_cdf
    each = np.array([of(CHARGED / number) for number in n_parts])
    added: Vector = (of(CHARGED) - each) / (of(DOUBTED) - of(CHARGED))
    return added


def turn_features(network: JudgeNetwork, encoded: Encoded, read: Sequence[TurnSigns]) -> tuple[Matrix, Matrix]:
    """`[rows, FEATURES]` on their own scales, NaN where the input that a feature needs is missing; and, by part, those
    that see faults.
    """
    parts = {name: logits for name, logits in encoded.logits.items() if name not in OF_OTHERS}
    weights, usual = network.array("fluency"), USUAL if network.has_unit else 0.0
    parts["fluent"] = np.column_stack([parts["fluent"], encoded.wording]) @ weights[:-1] + weights[-1]
    parts["fluent"] = np.where(encoded.bare, usual, parts["fluent"])
    if network.has_density:
        parts["human_like"] = squared_mahalanobis(
            encoded.states, network.array("random_mean"), network.array("random_precision")
        ) - squared_mahalanobis(encoded.states, network.array("human_mean"), network.array("human_precision"))
    of = {
        name: whole_reply(part, encoded.starts, 1.0 if name in FAULT_ASPECTS else WEAKEST)
        for name, part in parts.items()
    }
    allowed = allowance(np.diff(encoded.starts, append=len(encoded.parts))) if network.has_unit else None
    for name in FAULTS:
        of[name] = np.minimum(of[name], 0.0) if allowed is None else of[name] + allowed
    missing = np.full(len(read), np.nan)
    of["specific"] = np.array([row.specific for row in read])
    of["not_repetitive"] = np.array([1 - row.repetition.share for row in read])
    of["uses_facts"] = np.array([np.nan if row.facts is None else row.facts.amount for row in read])
    of["reaction"] = encoded.satisfied
    long = [row.n_words >= network.answer_words for row in read]
    of["preferred"] = np.where(long, of.get("preferred", missing), np.nan)
    of["faithful"] = np.where([row.facts is not None for row in read], of["faithful"], np.nan)
    of["consistent"] = np.where([row.has_said_itself for row in read], of["consistent"], usual)
    of["consistent"] = np.where([row.has_said for row in read], of["consistent"], np.nan)
    seen = np.stack([parts[name] for name in FAULT_ASPECTS], axis=1)
    return np.stack([of.get(name, missing) for name in FEATURES], axis=1), seen


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


@dataclass(frozen=True)
class ReadReplies:
    """All that is computed of some replies."""

    #: The encoder's numbers, then heads and ranks, then counts, and how many there are of each.
    inputs: Matrix
    widths: tuple[int, int, int]
    ranks: Matrix
    signs: list[TurnSigns]
    #: What the votes come to, and what the veto of each feature leaves of it.
    voted: Vector
    left: Matrix
    votes: Vector
    n_truncated: int
    #: How content the other side's next turns are; NaN where there is none.
    satisfied: Vector

    @property
    def values(self) -> Vector:
        """Votes times vetoes."""
        kept: Vector = self.voted * self.left.prod(axis=1)
        return kept

    def single(self, number: int) -> ReadReplies:
        """One of them."""
        part = slice(number, number + 1)
        return replace(
            self,
            inputs=self.inputs[part],
            ranks=self.ranks[part],
            signs=self.signs[part],
            voted=self.voted[part],
            left=self.left[part],
            satisfied=self.satisfied[part],
            n_truncated=0,
        )

    def corrected(self, correction: Matrix) -> ReadReplies:
        """With the votes as a user's own ratings change them: its rows are what to subtract from `[inputs, votes, 1]`,
        and weights. A missing input is taken as its mean.

        A reply without a word keeps its votes: no rating of others tells that it is better than nothing.
        """
        means, weights = correction
        read = np.column_stack([self.inputs, self.voted, np.ones(len(self.voted))])
        spoken = [row.wordless is None for row in self.signs]
        return replace(self, voted=np.where(spoken, np.clip(np.nan_to_num(read - means) @ weights, 0, 1), self.voted))

    def without(self, vetoes: Sequence[str]) -> ReadReplies:
        """Where ratings speak against these vetoes."""
        return replace(self, left=np.where([name in vetoes for name in FEATURES], 1.0, self.left))


@dataclass(frozen=True)
class ReadDialogues:
    """All that is computed of some conversations, on the features' own scales."""

    features: Matrix
    #: What the vetoes of the replies leave.
    left: Vector
    signs: list[DialogueSigns]
    #: Of all judged turns, conversation by conversation; None where there are none.
    replies: ReadReplies | None


def aspect_values(ranks: Matrix, weights: Vector, table: Mapping[str, Feature]) -> dict[str, Vector]:
    """Each aspect between 0 and 1: the weighted mean of its features' ranks, or 1 where no fault is seen; NaN where all
    of its features are missing.
    """
    names, values = list(table), {}
    for aspect, features in _by_aspect(table).items():
        columns = [names.index(name) for name in features]
        part, weight = ranks[:, columns], np.maximum(weights[columns], 1e-9)
        if aspect in FAULT_ASPECTS:
            part = soundness(part)
        known = np.isfinite(part)
        total = (known * weight).sum(axis=1)
        mean = np.where(known, part, 0.0) @ weight
        values[aspect] = np.divide(mean, total, out=np.full(len(ranks), np.nan), where=total > 0)
    return values


class Judge(LearnedMetric):
    """How good people would find a reply, with its aspects and the reason."""

    info = MetricInfo(
        name="judge",
        title="JUDGE",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="How good people would find the reply: relevant, specific, fluent, not repetitive, using what is "
        "known. 0.5 lies in the middle of what it learned from.",
        citation="The dialeval developers: opinions learned from human ratings of no benchmark, and plain signs",
        aspects=tuple(ASPECTS),
        dialogue_aspects=(*DIALOGUE_ASPECTS, WORST_OF_TURNS, CONTENT),
        explains=True,
        of_dialogues="one side of each dialogue: the bot's where speakers are named so, else that of who speaks second",
    )
    network_class = JudgeNetwork
    network: JudgeNetwork

    def __init__(self, checkpoint: Any = None, *, reasons: Literal["short", "full"] = "short", **options: Any) -> None:
        """`reasons="full"` names every aspect that moved a value, and by how much."""
        if reasons not in ("short", "full"):
            raise ValueError(f"reasons is {reasons!r}; it is short or full")
        super().__init__(checkpoint, **options)
        self.reasons = reasons

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode, read the signs, combine."""
        return self._replies(self.read(exchanges, progress=progress))

    def read(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> ReadReplies:
        """Everything but the reasons."""
        encoded, read, cut = self.encoded(exchanges, progress=progress)
        features, seen = turn_features(self.network, encoded, read)
        ranks = turn_ranks(features, read, self.network.tables("turn"), has_unit=self.network.has_unit)
        votes = self.network.votes
        ends = np.append(encoded.starts[1:], len(encoded.states))
        for number in np.flatnonzero(ends - encoded.starts > 1):
            lowest = encoded.starts[number] + seen[encoded.starts[number] : ends[number]].argmin(axis=0)
            passages = {name: encoded.parts[place] for name, place in zip(FAULT_ASPECTS, lowest, strict=True)}
            read[number] = replace(read[number], passages=passages)
        states = np.add.reduceat(encoded.states, encoded.starts) / (ends - encoded.starts)[:, None]
        logits = [whole_reply(part, encoded.starts, WEAKEST) for part in encoded.logits.values()]
        ranked = ranks[:, : len(self.network.features["turn"])]
        blocks = [states, np.column_stack([*logits, ranked]), np.array([counts(row) for row in exchanges])]
        widths = (blocks[0].shape[1], blocks[1].shape[1], blocks[2].shape[1])
        replies = ReadReplies(
            np.hstack(blocks), widths, ranks, read, combine(ranks, votes), vetoes(ranks), votes, cut, encoded.satisfied
        ).without(self.network.lifted)
        corrected = self.network.config.architecture.get("corrected")
        return replies.corrected(self.array("correction")) if corrected else replies

    def aspects_of(self, read: ReadReplies) -> dict[str, Vector]:
        """The aspects of replies, as `Scores.aspects` has them."""
        return aspect_values(read.ranks, read.votes, TURN)

    def features_of(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Matrix, list[TurnSigns]]:
        """The features of replies on their own scales, and the signs behind some of them."""
        encoded, read, _ = self.encoded(exchanges, progress=progress)
        return turn_features(self.network, encoded, read)[0], read

    def encoded(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> tuple[Encoded, list[TurnSigns], int]:
        """What the network makes of replies, part by part, and of what follows them; signs; how many rows were cut."""
        windows, starts = self.windows(exchanges)
        answered = [number for number, row in enumerate(exchanges) if row.following and row.following.strip()]
        has_head = "satisfied" in self.network.head_names
        followed = [as_answered(exchanges[number]) for number in answered if has_head]
        read = self.encoder.encode([*windows, *followed], progress=progress)
        states, logits = self.network.split(read.rows)
        texts, wording = signs.Texts(), self.network.wording()
        prose = [texts[row.response].prose for row in windows]
        satisfied = np.full(len(exchanges), np.nan)
        if followed:
            satisfied[answered] = logits["satisfied"][len(windows) :]
        encoded = Encoded(
            states[: len(windows)],
            {name: columns[: len(windows)] for name, columns in logits.items()},
            [row.response for row in windows],
            np.array([wording.of(text) for text in prose]),
            np.array([not any(map(str.isalpha, text)) for text in prose]),
            starts,
            satisfied,
        )
        table = self.array("rarity")
        cut = np.logical_or.reduceat(read.cut[: len(windows)], starts)
        return encoded, [read_signs(row, table, texts) for row in exchanges], int(cut.sum())

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Read both sides of whole conversations; the judged side's replies are judged one by one, too."""
        read = self.read_dialogues(dialogues, progress=progress)
        replies, ranks = read.replies, rank_all(read.features, self.network.tables("dialogue"))
        moves, values = dialogue_moves(ranks, read.left), dialogue_values(ranks, read.left)
        cut = replies.n_truncated if replies else 0
        whole = self._judged(ranks, moves, read.signs, "dialogue", values=values, cut=cut)
        column = FEATURES.index(WORST_OF_TURNS)
        each, civil = (replies.values, soundness(replies.ranks[:, column])) if replies else (np.zeros(0),) * 2
        turns, reasons, worst, start = [], list(whole.reasons), np.full(len(dialogues), np.nan), 0
        for number, dialogue in enumerate(dialogues):
            places = [place for place in judged_side(number, dialogue) if place]
            part = slice(start, start + len(places))
            turns.append(np.full(len(dialogue.turns), np.nan))
            turns[-1][places] = each[part]
            worst[number] = np.fmin.reduce(civil[part], initial=np.nan)
            if replies and len(places) > 1:
                low = int(each[part].argmin())
                why = self._replies(replies.single(part.start + low), lowered_only=True).statements[0]
                reasons[number] = with_weakest(reasons[number], places[low], why)
            start = part.stop
        content = ranks[:, DIALOGUE_FEATURES.index(CONTENT)]
        aspects = {**whole.aspects, WORST_OF_TURNS: worst, CONTENT: content}
        return replace(whole, reasons=tuple(reasons), turns=turns, aspects=aspects)

    def read_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> ReadDialogues:
        """Everything but the reasons."""
        sides = [judged_side(number, dialogue) for number, dialogue in enumerate(dialogues)]
        answered = [judged_replies(number, dialogue) for number, dialogue in enumerate(dialogues)]
        rows = [row for replies in answered for row in replies]
        read = self.read(rows, progress=progress) if rows else None
        left_of = read.left if read else np.zeros((0, len(FEATURES)))
        values, satisfied = (read.values, read.satisfied) if read else (np.zeros(0),) * 2
        bounds = np.cumsum([0, *map(len, answered)])
        table, texts, signs_read, left = self.array("rarity"), signs.Texts(), [], []
        wholes = self._wholes(answered)
        for number, replies in enumerate(answered):
            part = slice(bounds[number], bounds[number + 1])
            kept = left_of[part]
            row = read_dialogue(dialogues[number].turns, sides[number], values[part], satisfied[part], table, texts)
            civil, agrees = kept[:, FEATURES.index(WORST_OF_TURNS)], kept[:, FEATURES.index("consistent")]
            rude = replies[int(civil.argmin())].response if replies and INSULT * civil.min() < 1 else ""
            denying = replies[int(agrees.argmin())].response if replies and agrees.min() < 1 else ""
            signs_read.append(replace(row, whole=wholes[number], rude=rude, denying=denying))
            left.append(dialogue_vetoes(kept, row.said_again))
        features = np.array([[getattr(row, name) for name in DIALOGUE_FEATURES] for row in signs_read])
        return ReadDialogues(features, np.array(left), signs_read, read)

    def _wholes(self, answered: Sequence[Sequence[Exchange]]) -> Vector:
        """What the head for whole conversations makes of each: of its last judged reply and all that fits before it."""
        whole = np.full(len(answered), np.nan)
        numbers = [number for number, replies in enumerate(answered) if replies]
        if numbers and "whole" in self.network.head_names:
            encoder, longest = copy(self.encoder), min(WHOLE_TOKENS, self.layout.max_length)
            layout = replace(self.layout, max_length=longest, turns=None)
            encoder.tokenizer = PairTokenizer(self.network.tokenizer, layout)
            last = [Exchange(answered[number][-1].context, answered[number][-1].response) for number in numbers]
            whole[numbers] = self.network.split(encoder.encode(last).rows)[1]["whole"]
        return whole

    def faults(self, level: Level = Level.TURN) -> Mapping[str, Fault]:
        """Where a veto takes from the value of a reply; in conversations, an insult."""
        if level is Level.DIALOGUE:
            takes_from = (1 / INSULT - VETO_LEAVES) / (1 - VETO_LEAVES)
            return {WORST_OF_TURNS: Fault(takes_from, FAULTY[WORST_OF_TURNS])}
        vetoed = [feature.aspect for name, feature in TURN.items() if feature.veto and name not in self.network.lifted]
        return {aspect: Fault(1.0 if aspect in FAULT_ASPECTS else VETO_BELOW, FAULTY[aspect]) for aspect in vetoed}

    def array(self, name: str) -> Vector:
        """A buffer of the checkpoint."""
        return self.network.array(name)

    def _replies(self, read: ReadReplies, *, lowered_only: bool = False) -> Judged:
        moves = turn_moves(read.ranks, read.left, read.votes)
        for names in ASPECTS.values() if lowered_only else ():  # what speaks for a reply is no reason why it is weak
            columns = [FEATURES.index(name) for name in names]
            raised = moves[:, columns].sum(axis=1) >= 0
            moves[np.ix_(raised, columns)] = 0.0
        return self._judged(
            read.ranks, moves, read.signs, "turn", values=read.values, cut=read.n_truncated, votes=read.votes
        )

    def _judged(
        self,
        ranks: Matrix,
        moved: Matrix,
        read: Sequence[TurnSigns | DialogueSigns],
        level: str,
        *,
        values: Vector,
        cut: int,
        votes: Vector = DIALOGUE_VOTES,
    ) -> Judged:
        table = TURN if level == "turn" else DIALOGUE
        low, high = self.interval(level).around(values)
        aspects = aspect_values(ranks, votes, table)
        shares = {name: self._human_shares(f"{level}.{name}", column) for name, column in aspects.items()}
        full = self.reasons == "full"
        row_statements = tuple(
            statements(
                dict(zip(table, moved[number], strict=True)),
                _by_aspect(table),
                row,
                {name: (float(below[number]), float(above[number])) for name, (below, above) in shares.items()},
                full=full,
                doubted={name for name in FAULT_ASPECTS if name in aspects and not aspects[name][number] < 1},
            )
            for number, row in enumerate(read)
        )
        reasons = tuple(in_a_sentence(parts, full=full) for parts in row_statements)
        if full and level == "turn" and "corrected" in self.network.config.architecture:
            added = values - (0.5 + moved.sum(axis=1))
            reasons = tuple(
                f"{why.rstrip('.')}; your ratings [{more:+.2f}]." for why, more in zip(reasons, added, strict=True)
            )
        ends = np.stack([low, high], axis=1)
        return Judged(values, cut, aspects=aspects, reasons=reasons, statements=row_statements, interval=ends)

    def interval(self, level: str) -> RankInterval:
        """The fitted 90 % interval of outcomes."""
        edges, low, high = self.array(f"{level}_interval")
        return RankInterval(edges, low[:INTERVAL_BINS], high[:INTERVAL_BINS])

    def _human_shares(self, key: str, values: Vector) -> tuple[Vector, Vector]:
        """Shares of human replies below and above: together less than one where some of them are as good.

        NaN where the checkpoint does not know them or the value is missing.
        """
        curves = self.network.config.quantiles.get(key)
        if not curves:
            return np.full(len(values), np.nan), np.full(len(values), np.nan)
        human, known = np.asarray(curves["human"]), np.isfinite(values)
        below, above = percentile(values, human), percentile(-values, -human[::-1])
        return np.where(known, below, np.nan), np.where(known, above, np.nan)

    @property
    def quantile_key(self) -> str:
        """Overall values of single replies."""
        return "turn.overall"

    def rescale_aspect(self, aspect: str, values: Vector, scale: Scale) -> Vector:
        """Every aspect has the quantiles of human replies, too."""
        if scale != "human_percentile":
            return super().rescale_aspect(aspect, values, scale)
        below, above = self._human_shares(f"turn.{aspect}", values)
        # Most human replies have the maximum; a tie with them counts as typical.
        return 1 - above if any(TURN[name].veto for name in ASPECTS[aspect]) else below

    def score_dialogues(self, dialogues: Sequence[Sequence[str]], *, scale: Scale = "native", **options: Any) -> Scores:
        """Score whole dialogues, see `Metric`."""
        if scale != "native":
            raise ValueError(
                f"the judge compares replies with human ones, not dialogues; it has no scale {scale!r} there"
            )
        return super().score_dialogues(dialogues, **options)
