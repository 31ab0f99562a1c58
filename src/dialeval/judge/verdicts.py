"""Comparisons as sentences: which reply is better and why, which turn of a conversation is weak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dialeval.core.exchange import Dialogue, listing
from dialeval.core.scores import Scores, Statement
from dialeval.io.tables import Table, to_text
from dialeval.judge.reasons import MOST
from dialeval.judge.row_signs import judged_replies, judged_side
from dialeval.registry.interface import Metric

#: Values nearer than this are called equal; ratings of the same reply differ by more.
EQUAL = 0.02
#: The probability that people agree, from which on a reply is clearly or probably better.
CLEARLY, PROBABLY = 0.9, 0.7
#: Of two replies that are like others in an aspect, what is said of the one that is ahead in it, and of the other one.
_COMPARED = {
    "relevant": ("fits better", "fits less well"),
    "specific": ("says more in particular", "says less in particular"),
    "uses_facts": ("uses more of what is known", "uses less of what is known"),
    "not_repetitive": ("repeats less", "repeats more"),
    "fluent": ("reads better", "reads less well"),
    "respectful": ("is more civil", "is less civil"),
    "faithful": ("agrees more with what is known", "agrees less with what is known"),
    "consistent": ("agrees more with what was said", "agrees less with what was said"),
}
#: Of how many lower replies, the lowest, faults are told; what has taken so much of the best one is told of it, too.
FAULTS_SHOWN, GRAVE = 3, 0.1


@dataclass(frozen=True)
class Comparison:
    """Replies to one context, judged."""

    names: tuple[str, ...]
    scores: Scores
    #: Positions of the replies, best first.
    order: tuple[int, ...]
    #: Which reply is best, how sure that is, and why.
    sentence: str

    @property
    def table(self) -> Table:
        """The value and the aspects of each reply, the best reply first."""
        rows = [
            (name.replace("_", " "), *("" if np.isnan(column[row]) else f"{column[row]:.2f}" for row in self.order))
            for name, column in {"value": self.scores.values, **self.scores.aspects}.items()
            if not np.isnan(column).all()
        ]
        return Table(("", *(self.names[row] for row in self.order)), rows)

    def __str__(self) -> str:
        return to_text([self.sentence, self.table])


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
    'Reply A is clearly better: reply A answers the question; reply B does not answer the question.'
    """
    called = tuple(names or [chr(ord("A") + index) for index in range(len(replies))])
    rows = len(replies)
    scores = judge.score(
        replies,
        [context] * rows,
        facts=[facts] * rows if facts else None,
        following=[following] * rows if following else None,
    )
    order = tuple(sorted(range(rows), key=lambda index: -round(float(scores.values[index]), 9)))
    return Comparison(called, scores, order, _comparing(called, scores, order))


def judge_conversation(judge: Metric, dialogue: Dialogue) -> ConversationVerdict:
    """Judge a conversation: one value for the judged side, and one for each of its turns that answers something."""
    turns = dialogue.turns
    positions = tuple(position for position in judged_side(0, dialogue) if position)
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
    """Which reply is best, and why: what speaks for it, and the fault of each lower one, which every clause names."""
    if len(order) == 1:
        return scores.explain(0)
    best, second, worst = order[0], order[1], order[-1]
    if scores.values[best] - scores.values[worst] < EQUAL:
        return f"Replies {listing(names)} cannot be told apart."
    tied = sorted(index for index in order if scores.values[best] - scores.values[index] < EQUAL)
    if len(tied) > 1:
        head = f"Replies {listing([names[index] for index in tied])} are best and cannot be told apart"
    else:
        head = f"Reply {names[best]} {_sure(scores, best, second)} {'better' if len(order) == 2 else 'best'}"
    by_reply = scores.statements or ((),) * len(names)
    merit = _merit(by_reply[best], by_reply[order[len(tied)]])
    clauses = [_of(names[best], merit)] if merit else []
    for index in order[len(tied) :][-FAULTS_SHOWN:]:
        fault = _fault(by_reply[index], by_reply[best])
        if fault and (merit, fault) not in _COMPARED.values():  # the one says the other
            clauses.append(_of(names[index], fault))
    clauses.append(_though(names[best], by_reply[best], bare=not merit))
    why = "; ".join(filter(None, clauses))
    return f"{head}: {why}." if why else f"{head}."


def _by_aspect(statements: Sequence[Statement]) -> dict[str, Statement]:
    return {
        statement.aspect: statement for statement in statements if not statement.words.startswith("the other side ")
    }


def _ahead(of: Sequence[Statement], over: Sequence[Statement]) -> list[tuple[str, float]]:
    """The aspects in which one reply is ahead of another, the largest first, and by how much."""
    mine, other = _by_aspect(of), _by_aspect(over)
    gaps = {
        name: (mine[name].amount if name in mine else 0.0) - (other[name].amount if name in other else 0.0)
        for name in (*mine, *other)
    }
    return sorted(((name, gap) for name, gap in gaps.items() if gap > 0), key=lambda item: -item[1])


def _merit(best: Sequence[Statement], other: Sequence[Statement]) -> str:
    """What speaks for the best reply and less for the other one; empty where it is only less bad."""
    mine, theirs = _by_aspect(best), _by_aspect(other)
    for aspect, _ in _ahead(best, other):
        if aspect in mine and mine[aspect].amount > 0:
            if mine[aspect].words.endswith(MOST) and aspect in _COMPARED:
                return _COMPARED[aspect][0]
            return _words_beside(mine[aspect], theirs.get(aspect))
    return ""


def _fault(lower: Sequence[Statement], best: Sequence[Statement]) -> str:
    """What speaks against a lower reply more than against the best one, its first fault first; or in what it is behind,
    which is no praise of it.
    """
    mine, theirs = _by_aspect(lower), _by_aspect(best)
    behind = [aspect for aspect, _ in _ahead(best, lower) if aspect in mine]
    for aspect, fault in mine.items():
        if aspect in behind and fault.amount < 0 and not fault.words.endswith(MOST):
            return _words_beside(fault, theirs.get(aspect))
    return next((_COMPARED[aspect][1] for aspect in behind if aspect in _COMPARED), "")


def _though(name: str, best: Sequence[Statement], *, bare: bool) -> str:
    """The fault of the best reply, where it has a grave one, or nothing speaks for it."""
    reasons = _by_aspect(best).values()
    lowered = [reason for reason in reasons if reason.amount < 0 and not reason.words.endswith(MOST)]
    faults = sorted(lowered, key=lambda reason: reason.amount)
    if not faults or not (bare or faults[0].amount <= -GRAVE):
        return ""
    return f"but {_of(name, faults[0].words.split(': ')[0])}"


def _of(name: str, words: str) -> str:
    return f"in reply {name} {words}" if words.startswith('"') else f"reply {name} {words}"


def _words_beside(statement: Statement, beside: Statement | None) -> str:
    """The words of a statement; where another reply has the same ones, the comparison with human replies behind it."""
    first, _, compared = statement.words.partition(": ")
    return compared if compared and beside is not None and beside.words.partition(": ")[0] == first else first


def _sure(scores: Scores, best: int, second: int) -> str:
    """How sure it is that people would rate the first above the second.

    Their ratings are taken to spread around either value as its 90 % interval does.
    """
    if scores.interval is None:
        return "is"
    spread = np.diff(scores.interval[[best, second]], axis=1)[:, 0] / (2 * NormalDist().inv_cdf(0.95))
    agree = NormalDist().cdf((scores.values[best] - scores.values[second]) / max(float(np.hypot(*spread)), 1e-9))
    return "is clearly" if agree >= CLEARLY else "is probably" if agree >= PROBABLY else "may be"
