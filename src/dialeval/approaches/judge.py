"""JUDGE: one encoder that learned from people's ratings, plain signs beside it, and a reason for every value.

Not one of the papers: our own. An adapter trained on ratings of dialogue gives several opinions of a reply (a valid
next turn, can the conversation go on, does it fit, does it tell something, is it fluent); signs of its words tell
what it repeats, which facts it brings in, how the other side takes it. A stack with weights that are never negative
makes one value of them. The stack knows no benchmark: it was fitted on ratings that belong to none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dialeval import signs, stack
from dialeval.approaches.density import squared_mahalanobis
from dialeval.checkpoints import Network
from dialeval.exchange import BadRow, Dialogue, Exchange
from dialeval.learned import LearnedMetric, percentile
from dialeval.metric import Judged, Level, MetricInfo, Scale

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: What the heads say, one logit each; the name is the task that taught it.
HEADS = ("valid", "follows", "fits", "informative", "fluent")

#: The features of the stack, decided upon before any of them was measured on a benchmark.
FEATURES = (
    "valid",  # a valid next turn, against random and adversarial replies
    "follows",  # the conversation can go on after it (dialogue breakdown)
    "fits",  # relevance
    "human_like",  # nearer to human pairs of turns than to random ones
    "informative",  # informativeness
    "specific",  # how rare its rarest words are
    "fluent",  # not a damaged reply
    "not_repetitive",  # neither its own words again nor those of earlier turns
    "uses_facts",  # words of the facts that the context has not used yet
    "reaction",  # how the user answers it
)
#: Aspects that users see, and the features that each of them stands for.
ASPECTS: Mapping[str, tuple[str, ...]] = {
    "relevant": ("valid", "follows", "fits", "human_like"),
    "specific": ("informative", "specific"),
    "uses_facts": ("uses_facts",),
    "fluent": ("fluent",),
    "not_repetitive": ("not_repetitive",),
    "reaction": ("reaction",),
}
#: The features of a whole conversation, seen from the judged side.
DIALOGUE_FEATURES = (
    "coherent",  # mean over the judged side's replies
    "not_repetitive",
    "not_echoing",  # says other things than the turn before it
    "specific",
    "engaged",  # the other side's signs from here on
    "positive",
    "lively",
    "not_complaining",
)
DIALOGUE_ASPECTS: Mapping[str, tuple[str, ...]] = {
    "coherent": ("coherent", "specific"),
    "not_repetitive": ("not_repetitive", "not_echoing"),
    "reaction": ("engaged", "positive", "lively", "not_complaining"),
}


# --- architecture ----------------------------------------------------------------------------------


class JudgeNetwork(Network):
    """Encoder and a linear head per task. A row is the first token's features, then one logit per head."""

    approach = "judge"

    def build_heads(self, width: int) -> None:
        """Heads, the two Gaussians of relative density, the tables and weights of the stack."""
        self.heads = nn.Linear(width, len(HEADS))
        for name in ("human", "random"):
            self.register_buffer(f"{name}_mean", torch.zeros(width))
            self.register_buffer(f"{name}_precision", torch.eye(width))
        self.register_buffer("rarity", torch.zeros(signs.IDF_BUCKETS))
        for level, features in (("turn", FEATURES), ("dialogue", DIALOGUE_FEATURES)):
            grid = torch.linspace(0, 1, stack.TABLE_SIZE).repeat(len(features), 1)
            self.register_buffer(f"{level}_tables", grid)
            self.register_buffer(f"{level}_weights", torch.ones(len(features)))
            self.register_buffer(f"{level}_interval", torch.zeros(3, stack.INTERVAL_BINS + 1))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, width + heads]`."""
        encoder: Any = self.encoder
        output = encoder(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        first = output.last_hidden_state[:, 0].float()
        return torch.cat([first, self.heads(first)], dim=-1)

    def array(self, name: str) -> Vector:
        """A buffer as numpy keeps it."""
        return np.asarray(getattr(self, name).detach().cpu().numpy(), dtype=np.float64)

    def set_array(self, name: str, values: Any) -> None:
        """Fill a buffer."""
        buffer: Tensor = getattr(self, name)
        buffer.copy_(torch.as_tensor(np.asarray(values), dtype=buffer.dtype).reshape(buffer.shape))


# --- losses ----------------------------------------------------------------------------------------


def soft_label_loss(logits: Tensor, shares: Tensor) -> Tensor:
    """Cross-entropy against the share of raters who said yes."""
    return F.binary_cross_entropy_with_logits(logits, shares)


def ranking_loss(logits: Tensor, ratings: Tensor, raters: Tensor) -> Tensor:
    """Bradley and Terry's loss over all pairs of a batch, weighted by the gap and the root of the number of raters.

    Ratings of one source only: the scale drops out, and a pair that raters could not tell apart teaches nothing.
    """
    gap = ratings[:, None] - ratings[None, :]
    weight = gap.clamp(min=0) * torch.sqrt(torch.minimum(raters[:, None], raters[None, :]))
    margin = logits[:, None] - logits[None, :]
    return (weight * F.softplus(-margin)).sum() / weight.sum().clamp(min=1e-6)


# --- scoring rule ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TurnSigns:
    """What the words of one row tell."""

    repetition: signs.Repetition
    facts: signs.FactUse | None
    reaction: signs.Reaction | None
    specific: float
    complaint: str = ""


def read_signs(row: Exchange, table: Vector) -> TurnSigns:
    """Plain signs of one reply. A missing input is a missing sign."""
    return TurnSigns(
        repetition=signs.repetition(row.response, row.context),
        facts=signs.fact_use(row.response, row.facts, row.context, table) if row.facts else None,
        reaction=signs.reaction([row.following]) if row.following else None,
        specific=signs.specificity(row.response, table),
        complaint=row.following if row.following and signs.complains(row.following) else "",
    )


def turn_features(network: JudgeNetwork, rows: NDArray[np.float32], read: Sequence[TurnSigns]) -> Matrix:
    """`[rows, FEATURES]` on their own scales; NaN where the input that a feature needs is missing."""
    features, logits = rows[:, : -len(HEADS)], rows[:, -len(HEADS) :].astype(np.float64)
    of = {name: logits[:, at] for at, name in enumerate(HEADS)}
    of["human_like"] = squared_mahalanobis(
        features, network.array("random_mean"), network.array("random_precision")
    ) - squared_mahalanobis(features, network.array("human_mean"), network.array("human_precision"))
    of["specific"] = np.array([one.specific for one in read])
    of["not_repetitive"] = np.array([1 - one.repetition.share for one in read])
    of["uses_facts"] = np.array([np.nan if one.facts is None else one.facts.amount for one in read])
    of["reaction"] = np.array([np.nan if one.reaction is None else one.reaction.total for one in read])
    return np.stack([of[name] for name in FEATURES], axis=1)


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
        dialogue_aspects=tuple(DIALOGUE_ASPECTS),
    )
    network_class = JudgeNetwork
    network: JudgeNetwork

    def values_of(self, rows: NDArray[np.float32]) -> Vector:
        """The network's part alone is no value; see `judge`."""
        raise NotImplementedError("the judge reads signs of the words beside the network's rows")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode, read the signs, combine."""
        features, read, cut = self.features_of(exchanges, progress=progress)
        return self._judged(features, read, "turn", cut=cut)

    def features_of(
        self, exchanges: Sequence[Exchange], *, progress: bool = False
    ) -> tuple[Matrix, list[TurnSigns], int]:
        """The stack's features, the signs behind some of them, and how many rows were cut."""
        encoded = self.encoder.encode(exchanges, progress=progress)
        table = self.network.array("rarity")
        read = [read_signs(row, table) for row in exchanges]
        return turn_features(self.network, encoded.rows, read), read, int(encoded.cut.sum())

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Read both sides of whole conversations; the judged side's replies are judged one by one, too."""
        features, read, cut = self.dialogue_features_of(dialogues, progress=progress)
        return self._judged(features, read, "dialogue", cut=cut)

    def dialogue_features_of(
        self, dialogues: Sequence[Dialogue], *, progress: bool = False
    ) -> tuple[Matrix, list[DialogueSigns], int]:
        """The features of whole conversations."""
        sides = [judged_side(number, dialogue) for number, dialogue in enumerate(dialogues)]
        replies = [
            Exchange(context=one.turns[:at], response=one.turns[at], facts=one.facts)
            for one, side in zip(dialogues, sides, strict=True)
            for at in side
            if at
        ]
        coherent, cut = np.zeros(0), 0
        if replies:
            features, _, cut = self.features_of(replies, progress=progress)
            ranks = stack.rank_all(features, self.array("turn_tables"))
            coherent = aspect_values(ranks, self.array("turn_weights"), FEATURES, ASPECTS)["relevant"]
        table = self.array("rarity")
        read, start = [], 0
        for one, side in zip(dialogues, sides, strict=True):
            count = sum(at > 0 for at in side)
            read.append(read_dialogue(one.turns, side, coherent[start : start + count], table))
            start += count
        return np.array([[getattr(one, name) for name in DIALOGUE_FEATURES] for one in read]), read, cut

    def array(self, name: str) -> Vector:
        """A buffer of the checkpoint."""
        return self.network.array(name)

    def _judged(self, features: Matrix, read: Sequence[TurnSigns | DialogueSigns], level: str, *, cut: int) -> Judged:
        names, aspects = (FEATURES, ASPECTS) if level == "turn" else (DIALOGUE_FEATURES, DIALOGUE_ASPECTS)
        ranks, weights = stack.rank_all(features, self.array(f"{level}_tables")), self.array(f"{level}_weights")
        values = stack.combine(ranks, weights)
        low, high = self.interval(level).around(values)
        found = aspect_values(ranks, weights, names, aspects)
        shares = {name: self._human_share(f"{level}.{name}", column) for name, column in found.items()}
        moved = stack.contributions(ranks, weights)
        reasons = [
            reason(
                aspect_moves(moved[row], names, aspects),
                one,
                {name: float(share[row]) for name, share in shares.items()},
            )
            for row, one in enumerate(read)
        ]
        return Judged(
            values,
            n_truncated=cut,
            aspects=found,
            details={"low": low, "high": high, "reasons": reasons},
        )

    def interval(self, level: str) -> stack.Interval:
        """The fitted 90 % interval of outcomes."""
        edges, low, high = self.array(f"{level}_interval")
        return stack.Interval(edges, low[: stack.INTERVAL_BINS], high[: stack.INTERVAL_BINS])

    def _human_share(self, key: str, values: Vector) -> Vector:
        """Share of human replies below; NaN where the checkpoint does not know them or the value is missing."""
        curves = self.network.config.quantiles.get(key)
        if not curves:
            return np.full(len(values), np.nan)
        return np.where(np.isfinite(values), percentile(values, np.asarray(curves["human"])), np.nan)

    @property
    def quantile_key(self) -> str:
        """Overall values of single replies."""
        return "turn.overall"

    def rescale_aspect(self, aspect: str, values: Vector, scale: Scale) -> Vector:
        """Every aspect has the quantiles of human replies, too."""
        if scale != "human_percentile":
            return super().rescale_aspect(aspect, values, scale)
        return self._human_share(f"turn.{aspect}", values)


# --- whole conversations ---------------------------------------------------------------------------


@dataclass(frozen=True)
class DialogueSigns:
    """The features of one conversation; NaN where a side says nothing."""

    coherent: float
    not_repetitive: float
    not_echoing: float
    specific: float
    engaged: float
    positive: float
    lively: float
    not_complaining: float
    complaint: str = ""


#: What the judged side is called where speakers are named; else it is who speaks second.
_BOTS = frozenset("system assistant bot model chatbot agent gpt".split())


def judged_side(number: int, dialogue: Dialogue) -> tuple[int, ...]:
    """Positions of the turns to judge: the bot's, if the speakers are named so, else those of the second speaker."""
    speakers = dialogue.speakers or tuple(str(at % 2) for at in range(len(dialogue.turns)))
    names = list(dict.fromkeys(speakers))
    bots = [name for name in names if name.strip().lower() in _BOTS]
    if len(bots) > 1:
        raise BadRow(number, f"speakers {bots[0]} and {bots[1]} could both be the one to judge; name only one so")
    chosen = bots[0] if bots else names[min(1, len(names) - 1)]
    return tuple(at for at, name in enumerate(speakers) if name == chosen)


def read_dialogue(turns: Sequence[str], side: Sequence[int], coherent: Vector, table: Vector) -> DialogueSigns:
    """Signs of both sides."""
    own = set(side)
    others = [turn for at, turn in enumerate(turns) if at not in own]
    taken = signs.reaction(others) if others else None
    replies = [turns[at] for at in side]
    again = [signs.repetition(turns[at], [turns[earlier] for earlier in side if earlier < at]).share for at in side]
    echoed = [signs.echo(turns[at], turns[at - 1]) for at in side if at]
    nothing = float("nan")
    return DialogueSigns(
        coherent=float(coherent.mean()) if len(coherent) else nothing,
        not_repetitive=1 - float(np.mean(again)) if again else nothing,
        not_echoing=1 - float(np.mean(echoed)) if echoed else nothing,
        specific=float(np.mean([signs.specificity(one, table) for one in replies])) if replies else nothing,
        engaged=taken.engaged if taken else nothing,
        positive=taken.positive if taken else nothing,
        lively=taken.lively if taken else nothing,
        not_complaining=1 - taken.complaining if taken else nothing,
        complaint=next((turn for turn in others if signs.complains(turn)), ""),
    )


# --- reasons ---------------------------------------------------------------------------------------


def aspect_moves(moved: Vector, names: Sequence[str], aspects: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How far each aspect moved the value from the middle; together they are all that moved it."""
    return {aspect: float(sum(moved[names.index(name)] for name in features)) for aspect, features in aspects.items()}


#: An aspect that moved the value by less is not worth a word.
TOLD_FROM = 0.01
#: How many aspects a reason names at most.
TOLD_AT_MOST = 3

_WORDS: Mapping[str, tuple[str, str]] = {
    "relevant": ("fits what was said", "does not fit what was said"),
    "specific": ("tells something", "tells little"),
    "uses_facts": ("brings in what is known", "brings in nothing of what is known"),
    "fluent": ("reads well", "reads as if damaged"),
    "not_repetitive": ("repeats nothing", "repeats itself or earlier turns"),
    "reaction": ("is taken well by the other side", "is not taken well by the other side"),
    "coherent": ("its replies fit the conversation", "its replies do not fit the conversation"),
}


def reason(moves: Mapping[str, float], read: TurnSigns | DialogueSigns, shares: Mapping[str, float]) -> str:
    """One sentence that names the aspects that moved the value, the largest first, with the words behind them.

    `shares` are those of human replies that lie below, by aspect.
    """
    told = sorted((item for item in moves.items() if abs(item[1]) >= TOLD_FROM), key=lambda item: -abs(item[1]))
    if not told:
        return "Nothing stands out."
    parts = [_part(aspect, amount, read, shares.get(aspect, float("nan"))) for aspect, amount in told[:TOLD_AT_MOST]]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _part(aspect: str, amount: float, read: TurnSigns | DialogueSigns, share: float) -> str:
    words = _WORDS[aspect][amount < 0]
    because = _because(aspect, amount, read)
    if not because and np.isfinite(share) and aspect != "not_repetitive":
        because = (
            f" (below {1 - share:.0%} of human replies)" if amount < 0 else f" (above {share:.0%} of human replies)"
        )
    return f"{words}{because} [{amount:+.2f}]"


def _because(aspect: str, amount: float, read: TurnSigns | DialogueSigns) -> str:
    """The words that caused it, where words did."""
    if isinstance(read, DialogueSigns):
        return f' ("{_short(read.complaint)}")' if aspect == "reaction" and amount < 0 and read.complaint else ""
    if aspect == "not_repetitive" and amount < 0:
        if read.repetition.phrase:
            return f' ("{read.repetition.phrase}" {read.repetition.times} times)'
        if read.repetition.copied:
            return f" ({read.repetition.copied:.0%} of its words stand in an earlier turn)"
    if aspect == "uses_facts" and read.facts is not None and read.facts.words:
        return f" ({', '.join(read.facts.words[:5])})"
    if aspect == "reaction" and read.complaint and amount < 0:
        return f' ("{_short(read.complaint)}")'
    return ""


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
