"""What people ask of a judge, in words: which reply is better and why, which turn of a conversation is weak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dialeval.approaches.reasons import statement
from dialeval.approaches.row_signs import judged_replies, judged_side
from dialeval.exchange import Dialogue
from dialeval.metric import Metric
from dialeval.scores import Scores

#: Values nearer than this are called equal; ratings of the same reply differ by more.
EQUAL = 0.02
#: The probability that people agree, from which on a reply is clearly or probably better.
CLEARLY, PROBABLY = 0.9, 0.7


@dataclass(frozen=True)
class Comparison:
    """Replies to one context, judged."""

    names: tuple[str, ...]
    scores: Scores
    #: Positions of the replies, best first.
    order: tuple[int, ...]
    #: Which reply is best, how sure that is, and why.
    sentence: str


@dataclass(frozen=True)
class ConversationVerdict:
    """A conversation, judged as a whole and turn by turn."""

    dialogue: Dialogue
    #: One value, with aspects, interval and reason.
    whole: Scores
    #: Positions of the judged turns that answer something, and their scores.
    positions: tuple[int, ...]
    turns: Scores
    sentence: str

    @property
    def weakest(self) -> int:
        """The position of the judged turn with the lowest value."""
        return self.positions[self.turns.weakest(1)[0]]


def compare_replies(
    judge: Metric,
    context: Sequence[str],
    replies: Sequence[str],
    *,
    facts: Sequence[str] = (),
    following: str | None = None,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Judge several replies to the same context; replies are called A, B, C unless they have `names`.

    >>> import dialeval
    >>> judge = dialeval.load("judge")
    >>> compare_replies(judge, ["Do you have a pet?"], ["Yes, a small dog.", "It will rain."]).sentence
    'Reply A is clearly better: it answers the question; reply B does not answer the question.'
    """
    called = tuple(names or [chr(ord("A") + at) for at in range(len(replies))])
    rows = len(replies)
    scores = judge.score(
        list(replies),
        [list(context)] * rows,
        facts=[list(facts)] * rows if facts else None,
        following=[following] * rows if following else None,
    )
    order = tuple(sorted(range(rows), key=lambda at: -round(float(scores.values[at]), 9)))
    return Comparison(called, scores, order, _comparing(called, scores, order))


def judge_conversation(judge: Metric, dialogue: Dialogue) -> ConversationVerdict:
    """Judge a conversation: one value for the judged side, and one for each of its turns that answers something."""
    turns = dialogue.turns
    positions = tuple(at for at in judged_side(0, dialogue) if at)
    if not positions:
        raise ValueError("the judged side answers nothing; one of its replies needs a turn before it")
    each = judge.score_exchanges(judged_replies(0, dialogue))
    whole = judge.score_dialogues(
        [list(turns)],
        speakers=[list(dialogue.speakers)] if dialogue.speakers else None,
        facts=[list(dialogue.facts)] if dialogue.facts else None,
    )
    return ConversationVerdict(dialogue, whole, positions, each, whole.explain(0))


def _comparing(names: Sequence[str], scores: Scores, order: Sequence[int]) -> str:
    best, second, worst = order[0], order[1] if len(order) > 1 else order[0], order[-1]
    if len(order) == 1:
        return scores.explain(0)
    if scores.values[best] - scores.values[worst] < EQUAL:
        return f"Replies {', '.join(names[:-1])} and {names[-1]} cannot be told apart."
    word = "better" if len(order) == 2 else "best"
    sure = _sure(scores, best, second)
    head = f"Reply {names[best]} {sure} {word}"
    if scores.values[best] - scores.values[second] < EQUAL:
        head = f"Replies {names[best]} and {names[second]} are best and cannot be told apart"
    why = statement("it" if "Replies" not in head else names[best], scores.explain(best))
    return f"{head}: {why}; {statement(f'reply {names[worst]}', scores.explain(worst))}."


def _sure(scores: Scores, best: int, second: int) -> str:
    """How sure it is that people would rate the first above the second.

    Their ratings are taken to spread around either value as its 90 % interval does.
    """
    if scores.interval is None:
        return "is"
    spread = np.diff(scores.interval[[best, second]], axis=1)[:, 0] / (2 * NormalDist().inv_cdf(0.95))
    agree = NormalDist().cdf((scores.values[best] - scores.values[second]) / max(float(np.hypot(*spread)), 1e-9))
    return "is clearly" if agree >= CLEARLY else "is probably" if agree >= PROBABLY else "may be"
