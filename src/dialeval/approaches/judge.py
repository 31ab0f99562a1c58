"""JUDGE: one encoder that learned from people's ratings, plain signs beside it, and a reason for every value.

Not one of the papers: our own. Heads on the encoder say whether a reply is a valid next turn, how people rated such
replies, and whether it is sound English, civil, and in line with the facts; signs of its words tell what it repeats,
which facts it brings in, how the other side takes it. Features vote on the value; what nobody forgives has no vote but
a veto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.approaches import row_signs, signs
from dialeval.approaches.learned import LearnedMetric, percentile, rank_all, squared_mahalanobis
from dialeval.approaches.reasons import in_a_sentence, statements, with_weakest
from dialeval.approaches.row_signs import (
    DialogueSigns,
    TurnSigns,
    counts,
    judged_replies,
    judged_side,
    read_dialogue,
    read_signs,
)
from dialeval.exchange import Dialogue, Exchange
from dialeval.metric import Fault, Judged, Level, MetricInfo, Scale
from dialeval.scores import Scores
from dialeval.weights.network import Network, unit_matrix

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Reference values kept of each feature, and the bins of outcomes that have an interval of their own.
TABLE_SIZE, INTERVAL_BINS = 401, 5
#: What the heads say, one logit each. The encoder learned with the first five (that of judge-open without `consistent`,
#: which is zero there); the others are fitted on it.
HEADS = ("next", "follows", "valid", "fluent", "consistent", "respectful", "faithful")


@dataclass(frozen=True)
class Feature:
    """Which aspect a feature stands for, how much it counts, and whether the value falls when it is very low."""

    aspect: str
    votes: float
    veto: bool = False


def _by_aspect(table: Mapping[str, Feature]) -> dict[str, tuple[str, ...]]:
    aspects = dict.fromkeys(one.aspect for one in table.values())
    return {aspect: tuple(name for name, one in table.items() if one.aspect == aspect) for aspect in aspects}


#: The judge as a table. Relevance, which four features see, leads; facts and the other side's next turn tell what
#: those cannot see; how people like a reply hardly depends on rare words. Votes and vetoes are our own judgement,
#: informed by benchmarks, and for the shares of relevance by ratings; a checkpoint records what they reach on those.
TURN: Mapping[str, Feature] = {
    "next": Feature("relevant", 0.5),  # what was said next, among other replies
    "follows": Feature("relevant", 2.5),  # people could go on after it (dialogue breakdown)
    "valid": Feature("relevant", 0.5),  # a valid next turn, against adversarial and random replies
    "human_like": Feature("relevant", 0.5),  # nearer to human pairs of turns than to random ones
    "specific": Feature("specific", 0),  # how rare its rarest words are
    "uses_facts": Feature("uses_facts", 3),  # words of the facts that the context has not used yet
    "reaction": Feature("reaction", 1),  # how the user answers it
    "not_repetitive": Feature("not_repetitive", 1, veto=True),  # neither its own words again nor earlier turns'
    "fluent": Feature("fluent", 0.5, veto=True),  # no damaged words or order
    "respectful": Feature("respectful", 0, veto=True),  # no insult
    "faithful": Feature("faithful", 0, veto=True),  # the facts do not speak against it
    "consistent": Feature("consistent", 0, veto=True),  # denies nothing that its speaker said or that is known of them
}
FEATURES = tuple(TURN)
#: A feature with a veto that ranks below this takes from the value, and the last of all leaves it this share.
VETO_BELOW, VETO_LEAVES = 0.03, 0.3
#: An insult takes less from a whole conversation than from its reply: what the veto leaves, times this.
INSULT = 1.5
#: What a conversation would lose if all turns of the judged side had been said before.
SAID_AGAIN = 0.3
#: Logits from which on a reply counts as sound; how far above tells nothing of how good it is.
SOUND = 0.0
#: What its words make sure of lies below all that a head says.
SURE = -1e3
#: Aspects that users see, and the features that each of them stands for.
ASPECTS = _by_aspect(TURN)
#: The same of a whole conversation, seen from the judged side. Votes that agreed with ratings of whole conversations;
#: what the vetoes of its replies leave of it, `dialogue_vetoes` says.
DIALOGUE: Mapping[str, Feature] = {
    "coherent": Feature("coherent", 6),  # mean value of the judged side's replies
    "weakest": Feature("coherent", 1),  # the lowest of them
    "not_repetitive": Feature("not_repetitive", 1),
    "not_echoing": Feature("not_repetitive", 0.5),  # says other things than the turn before it
    "engaged": Feature("reaction", 0.5),  # the other side's signs from here on
    "positive": Feature("reaction", 1.5),
    "lively": Feature("reaction", 1),
    "not_complaining": Feature("reaction", 2),
}
DIALOGUE_FEATURES = tuple(DIALOGUE)
DIALOGUE_ASPECTS = _by_aspect(DIALOGUE)
#: Beside them, without a vote: the lowest of the judged side's replies, since one insult is one too many.
WORST_OF_TURNS = "respectful"
#: What a reply under the veto of an aspect is.
FAULTY = {
    "not_repetitive": "repetitive",
    "fluent": "hard to read",
    "respectful": "rude",
    "faithful": "at odds with the facts",
    "consistent": "at odds with what its side said",
}
TURN_VOTES, DIALOGUE_VOTES = (np.array([one.votes for one in table.values()]) for table in (TURN, DIALOGUE))


# --- architecture ----------------------------------------------------------------------------------


#: How many numbers of a reply a correction reads beside the encoder's: heads and ranks, counts.
READ_BESIDE = (len(HEADS) + len(FEATURES), len(row_signs.COUNTS))


class JudgeNetwork(Network):
    """Encoder, a linear head per task, what the signs are read with. A row: the first token's features, then logits."""

    approach = "judge"
    oldest_format = 4

    def build_heads(self, width: int) -> None:
        """Heads, the two Gaussians of relative density, the tables that make ranks of features."""
        self.heads = nn.Linear(width, len(HEADS))
        for name in ("human", "random"):
            self.register_buffer(f"{name}_mean", torch.zeros(width))
            self.register_buffer(f"{name}_precision", unit_matrix(width))
        self.register_buffer("rarity", torch.zeros(signs.IDF_BUCKETS))
        self.register_buffer("runs", torch.zeros(signs.RUNS, dtype=torch.int32))
        self.register_buffer("run_counts", torch.zeros(signs.RUNS, dtype=torch.uint8))
        self.register_buffer("fluency", unit_matrix(1, signs.Wording.SIGNS + 2)[0])
        if self.config.architecture.get("corrected"):
            self.register_buffer("correction", torch.zeros(2, width + sum(READ_BESIDE) + 2))
        for level, features in (("turn", FEATURES), ("dialogue", DIALOGUE_FEATURES)):
            grid = np.tile(np.linspace(0, 1, TABLE_SIZE, dtype=np.float32), (len(features), 1))
            self.register_buffer(f"{level}_tables", torch.from_numpy(grid))
            self.register_buffer(f"{level}_interval", torch.zeros(3, INTERVAL_BINS + 1))

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + heads]`."""
        return torch.cat([first, self.heads(first)], dim=-1)

    def correct(self, correction: Matrix, lifted: Sequence[str] = ()) -> None:
        """Keep what a user's ratings add, see `dialeval.tuning.correction`, and the vetoes that they speak against."""
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


def turn_features(network: JudgeNetwork, rows: NDArray[np.float32], read: Sequence[TurnSigns]) -> Matrix:
    """`[rows, FEATURES]` on their own scales; NaN where the input that a feature needs is missing."""
    features, logits = rows[:, : -len(HEADS)], rows[:, -len(HEADS) :].astype(np.float64)
    of = {name: logits[:, at] for at, name in enumerate(HEADS)}
    weights = network.array("fluency")
    of["fluent"] = np.column_stack([of["fluent"], np.array([one.wording for one in read])]) @ weights[:-1] + weights[-1]
    of["fluent"] = np.where([one.numeric for one in read], SOUND, of["fluent"])
    for name in ("fluent", "consistent", "respectful"):
        of[name] = np.minimum(of[name], SOUND)
    of["fluent"] = np.where([bool(one.mashed) for one in read], SURE, of["fluent"])
    of["human_like"] = squared_mahalanobis(
        features, network.array("random_mean"), network.array("random_precision")
    ) - squared_mahalanobis(features, network.array("human_mean"), network.array("human_precision"))
    of["specific"] = np.array([one.specific for one in read])
    of["not_repetitive"] = np.array([1 - one.repetition.share for one in read])
    of["uses_facts"] = np.array([np.nan if one.facts is None else one.facts.amount for one in read])
    of["reaction"] = np.array([np.nan if one.reaction is None else one.reaction.total for one in read])
    of["faithful"] = np.where([one.facts is not None for one in read], of["faithful"], np.nan)
    of["respectful"] = np.where([bool(one.insult) for one in read], SURE, of["respectful"])
    of["consistent"] = np.where([one.has_said_itself for one in read], of["consistent"], SOUND)
    of["consistent"] = np.where([one.contradiction is not None for one in read], SURE, of["consistent"])
    of["consistent"] = np.where([one.has_said for one in read], of["consistent"], np.nan)
    return np.stack([of[name] for name in FEATURES], axis=1)


def turn_ranks(features: Matrix, read: Sequence[TurnSigns], tables: Matrix) -> Matrix:
    """Every feature by its own table. A reply without a word is the last in all that it could be judged by.

    What the network makes of such a reply means nothing; it can neither repeat, contradict nor insult, and what follows
    it stays a sign.
    """
    ranks = rank_all(features, tables)
    wordless = np.array([one.wordless is not None for one in read], dtype=bool)
    for at, name in enumerate(FEATURES):
        if name != "reaction":
            worst = np.nan if TURN[name].veto and name != "fluent" else 0.0
            ranks[wordless, at] = np.where(np.isfinite(ranks[wordless, at]), worst, np.nan)
    return ranks


def combine(ranks: Matrix, weights: Vector) -> Vector:
    """Weighted mean of the features that a row has: one half and the contributions."""
    outcome: Vector = 0.5 + contributions(ranks, weights).sum(axis=1)
    return outcome


def contributions(ranks: Matrix, weights: Vector) -> Matrix:
    """How far each feature moves each row's outcome from one half; a missing feature moves nothing."""
    there = np.isfinite(ranks)
    total = (there * weights).sum(axis=1, keepdims=True)
    moved = np.where(there, ranks - 0.5, 0.0) * weights
    share: Matrix = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return share


def soundness(ranks: Matrix) -> Matrix:
    """1 above `VETO_BELOW`, where what has a veto is equal, and down to 0 below."""
    sound: Matrix = np.clip(ranks / VETO_BELOW, 0, 1)
    return sound


def vetoes(ranks: Matrix) -> Matrix:
    """What each feature with a veto leaves of a value: all of it above `VETO_BELOW`, less and less below."""
    left = VETO_LEAVES + (1 - VETO_LEAVES) * soundness(ranks)
    has_veto = np.array([one.veto for one in TURN.values()])
    kept: Matrix = np.where(has_veto & np.isfinite(ranks), left, 1.0)
    return kept


def turn_moves(ranks: Matrix, left: Matrix) -> Matrix:
    """How far each feature moves a value from one half, by its votes and by what its veto leaves."""
    moved = contributions(ranks, TURN_VOTES)
    voted = 0.5 + moved.sum(axis=1, keepdims=True)
    # Several vetoes share what they take together by how much each of them would take alone.
    taken, alone = voted * (1 - left.prod(axis=1, keepdims=True)), 1 - left
    share = np.divide(alone, alone.sum(axis=1, keepdims=True), out=np.zeros_like(alone), where=alone > 0)
    moves: Matrix = moved - taken * share
    return moves


def turn_values(ranks: Matrix, lifted: Sequence[str] = ()) -> Vector:
    """Votes times vetoes, but for those that were lifted."""
    left = np.where([name in lifted for name in FEATURES], 1.0, vetoes(ranks))
    values: Vector = 0.5 + turn_moves(ranks, left).sum(axis=1)
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
class ReadDialogues:
    """All that is computed of some conversations, on the features' own scales."""

    features: Matrix
    #: What the vetoes of the replies leave.
    left: Vector
    signs: list[DialogueSigns]
    #: Of all judged turns, conversation by conversation; None where there are none.
    replies: ReadReplies | None


@dataclass(frozen=True)
class ReadReplies:
    """All that is computed of some replies."""

    #: The encoder's numbers, then those of `READ_BESIDE`.
    inputs: Matrix
    ranks: Matrix
    signs: list[TurnSigns]
    #: What the votes come to, and what the veto of each feature leaves of it.
    voted: Vector
    left: Matrix
    n_truncated: int

    @property
    def values(self) -> Vector:
        """Votes times vetoes."""
        kept: Vector = self.voted * self.left.prod(axis=1)
        return kept

    def one(self, at: int) -> ReadReplies:
        """A single one of them."""
        part = slice(at, at + 1)
        return ReadReplies(self.inputs[part], self.ranks[part], self.signs[part], self.voted[part], self.left[part], 0)

    def corrected(self, correction: Matrix) -> ReadReplies:
        """With the votes as a user's own ratings change them: its rows are what to subtract from `[inputs, votes, 1]`,
        and weights. A missing input is taken as its mean.

        A reply without a word keeps its votes: no rating of others tells that it is better than nothing.
        """
        means, weights = correction
        own = np.column_stack([self.inputs, self.voted, np.ones(len(self.voted))])
        said = [one.wordless is None for one in self.signs]
        return replace(self, voted=np.where(said, np.clip(np.nan_to_num(own - means) @ weights, 0, 1), self.voted))

    def without(self, vetoes: Sequence[str]) -> ReadReplies:
        """Where ratings speak against these vetoes."""
        return replace(self, left=np.where([name in vetoes for name in FEATURES], 1.0, self.left))


def aspect_values(
    ranks: Matrix, weights: Vector, names: Sequence[str], aspects: Mapping[str, Sequence[str]]
) -> dict[str, Vector]:
    """Each aspect as the weighted mean of its features' ranks, between 0 and 1; NaN where all of them are missing."""
    found = {}
    for aspect, features in aspects.items():
        at = [names.index(name) for name in features]
        part, weight = ranks[:, at], np.maximum(weights[at], 1e-9)
        there = np.isfinite(part)
        total = (there * weight).sum(axis=1)
        mean = np.where(there, part, 0.0) @ weight
        found[aspect] = np.divide(mean, total, out=np.full(len(ranks), np.nan), where=total > 0)
    return found


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
        dialogue_aspects=(*DIALOGUE_ASPECTS, WORST_OF_TURNS),
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

    def values_of(self, rows: NDArray[np.float32]) -> Vector:
        """The network's part alone is no value; see `judge`."""
        raise NotImplementedError("the judge reads signs of the words beside the network's rows")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode, read the signs, combine."""
        return self._replies(self.read(exchanges, progress=progress))

    def read(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> ReadReplies:
        """Everything but the words about it."""
        rows, signs_read, cut = self._encoded(exchanges, progress)
        ranks = turn_ranks(turn_features(self.network, rows, signs_read), signs_read, self.array("turn_tables"))
        inputs = np.hstack([rows, ranks, [counts(row) for row in exchanges]])
        votes = combine(ranks, TURN_VOTES)
        read = ReadReplies(inputs, ranks, signs_read, votes, vetoes(ranks), cut).without(self.network.lifted)
        return read.corrected(self.array("correction")) if self.network.config.architecture.get("corrected") else read

    def aspects_of(self, read: ReadReplies) -> dict[str, Vector]:
        """The aspects of replies, as `Scores.aspects` has them."""
        return aspect_values(read.ranks, TURN_VOTES, FEATURES, ASPECTS)

    def features_of(
        self, exchanges: Sequence[Exchange], *, progress: bool = False
    ) -> tuple[Matrix, list[TurnSigns], int]:
        """The stack's features, the signs behind some of them, and how many rows were cut."""
        rows, read, cut = self._encoded(exchanges, progress)
        return turn_features(self.network, rows, read), read, cut

    def _encoded(
        self, exchanges: Sequence[Exchange], progress: bool
    ) -> tuple[NDArray[np.float32], list[TurnSigns], int]:
        encoded = self.encoder.encode(exchanges, progress=progress)
        table, wording = self.array("rarity"), self.network.wording()
        return encoded.rows, [read_signs(row, table, wording) for row in exchanges], int(encoded.cut.sum())

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Read both sides of whole conversations; the judged side's replies are judged one by one, too."""
        read = self.read_dialogues(dialogues, progress=progress)
        replies, ranks = read.replies, rank_all(read.features, self.array("dialogue_tables"))
        moves, values = dialogue_moves(ranks, read.left), dialogue_values(ranks, read.left)
        cut = replies.n_truncated if replies else 0
        whole = self._judged(ranks, moves, read.signs, "dialogue", values=values, cut=cut)
        at = FEATURES.index(WORST_OF_TURNS)
        each, civil = (replies.values, soundness(replies.ranks[:, at])) if replies else (np.zeros(0),) * 2
        turns, reasons, worst, start = [], list(whole.reasons), np.full(len(dialogues), np.nan), 0
        for number, dialogue in enumerate(dialogues):
            places = [at for at in judged_side(number, dialogue) if at]
            own = slice(start, start + len(places))
            turns.append(np.full(len(dialogue.turns), np.nan))
            turns[-1][places] = each[own]
            worst[number] = np.fmin.reduce(civil[own], initial=np.nan)
            if replies and len(places) > 1:
                low = int(each[own].argmin())
                why = self._replies(replies.one(own.start + low), lowered_only=True).statements[0]
                reasons[number] = with_weakest(reasons[number], places[low], why)
            start = own.stop
        aspects = {**whole.aspects, WORST_OF_TURNS: worst}
        return replace(whole, reasons=tuple(reasons), turns=turns, aspects=aspects)

    def read_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> ReadDialogues:
        """Everything but the words about them."""
        sides = [judged_side(number, dialogue) for number, dialogue in enumerate(dialogues)]
        answered = [judged_replies(number, dialogue) for number, dialogue in enumerate(dialogues)]
        rows = [row for own in answered for row in own]
        read = self.read(rows, progress=progress) if rows else None
        values, left_of = (read.values, read.left) if read else (np.zeros(0), np.zeros((0, len(FEATURES))))
        ends = np.cumsum([len(own) for own in answered])[:-1]
        table = self.array("rarity")
        signs_read = [
            read_dialogue(one.turns, side, own, table)
            for one, side, own in zip(dialogues, sides, np.split(values, ends), strict=True)
        ]
        features = np.array([[getattr(one, name) for name in DIALOGUE_FEATURES] for one in signs_read])
        left, said = [], iter(read.signs if read else ())
        for at, (kept, own) in enumerate(zip(np.split(left_of, ends), answered, strict=True)):
            left.append(dialogue_vetoes(kept, signs_read[at].said_again))
            civil = kept[:, FEATURES.index(WORST_OF_TURNS)]
            rude = own[int(civil.argmin())].response if own and INSULT * civil.min() < 1 else ""
            denied = [one.contradiction for one in islice(said, len(own)) if one.contradiction]
            agrees = kept[:, FEATURES.index("consistent")]
            denying = own[int(agrees.argmin())].response if own and agrees.min() < 1 else ""
            signs_read[at] = replace(
                signs_read[at], rude=rude, contradiction=denied[0] if denied else None, denying=denying
            )
        return ReadDialogues(features, np.array(left), signs_read, read)

    def faults(self, level: Level = Level.TURN) -> Mapping[str, Fault]:
        """Where a veto takes from the value of a reply; in conversations, an insult."""
        if level is Level.DIALOGUE:
            takes_from = (1 / INSULT - VETO_LEAVES) / (1 - VETO_LEAVES)
            return {WORST_OF_TURNS: Fault(takes_from, FAULTY[WORST_OF_TURNS])}
        vetoed = [one.aspect for name, one in TURN.items() if one.veto and name not in self.network.lifted]
        return {aspect: Fault(VETO_BELOW, FAULTY[aspect]) for aspect in vetoed}

    def array(self, name: str) -> Vector:
        """A buffer of the checkpoint."""
        return self.network.array(name)

    def _replies(self, read: ReadReplies, *, lowered_only: bool = False) -> Judged:
        moves = turn_moves(read.ranks, read.left)
        for names in ASPECTS.values() if lowered_only else ():  # what speaks for a reply is no reason why it is weak
            at = [FEATURES.index(name) for name in names]
            moves[:, at] *= moves[:, at].sum(axis=1, keepdims=True) < 0
        return self._judged(read.ranks, moves, read.signs, "turn", values=read.values, cut=read.n_truncated)

    def _judged(
        self,
        ranks: Matrix,
        moved: Matrix,
        read: Sequence[TurnSigns | DialogueSigns],
        level: str,
        *,
        values: Vector,
        cut: int,
    ) -> Judged:
        names, aspects = (FEATURES, ASPECTS) if level == "turn" else (DIALOGUE_FEATURES, DIALOGUE_ASPECTS)
        weights = TURN_VOTES if level == "turn" else DIALOGUE_VOTES
        low, high = self.interval(level).around(values)
        found = aspect_values(ranks, weights, names, aspects)
        shares = {name: self._human_shares(f"{level}.{name}", column) for name, column in found.items()}
        full = self.reasons == "full"
        said = tuple(
            statements(
                dict(zip(names, moved[row], strict=True)),
                aspects,
                one,
                {name: (float(below[row]), float(above[row])) for name, (below, above) in shares.items()},
                full=full,
            )
            for row, one in enumerate(read)
        )
        reasons = tuple(in_a_sentence(own, full=full) for own in said)
        if full and level == "turn" and "corrected" in self.network.config.architecture:
            added = values - (0.5 + moved.sum(axis=1))
            reasons = tuple(
                f"{why.rstrip('.')}; your ratings [{more:+.2f}]." for why, more in zip(reasons, added, strict=True)
            )
        ends = np.stack([low, high], axis=1)
        return Judged(values, cut, aspects=found, reasons=reasons, statements=said, interval=ends)

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
        # Most human replies are as sound as can be: who ties with them is not worse than most.
        return 1 - above if any(TURN[name].veto for name in ASPECTS[aspect]) else below

    def score_dialogues(self, dialogues: Sequence[Sequence[str]], *, scale: Scale = "native", **options: Any) -> Scores:
        """Score whole dialogues, see `Metric`."""
        if scale != "native":
            raise ValueError(
                f"the judge compares replies with human ones, not dialogues; it has no scale {scale!r} there"
            )
        return super().score_dialogues(dialogues, **options)
