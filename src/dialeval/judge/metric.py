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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Dialogue, Exchange
from dialeval.core.scores import Scores
from dialeval.encoders.layout import PairTokenizer
from dialeval.judge import lexical as signs
from dialeval.judge.network import INTERVAL_BINS, OF_OTHERS, JudgeNetwork
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
from dialeval.judge.rule import (
    ASPECTS,
    CONTENT,
    DIALOGUE,
    DIALOGUE_ASPECTS,
    DIALOGUE_FEATURES,
    DIALOGUE_VOTES,
    FAULT_ASPECTS,
    FAULTS,
    FAULTY,
    FEATURES,
    INSULT,
    TURN,
    USUAL,
    VETO_BELOW,
    VETO_LEAVES,
    WORST_OF_TURNS,
    Matrix,
    RankInterval,
    Vector,
    allowance,
    aspect_values,
    by_aspect,
    combine,
    dialogue_moves,
    dialogue_values,
    dialogue_vetoes,
    soundness,
    turn_moves,
    turn_ranks,
    vetoes,
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

#: How much of the end of a conversation the head for whole ones reads.
WHOLE_TOKENS = 320


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
                by_aspect(table),
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
