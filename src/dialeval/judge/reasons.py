"""Why the judge says what it says: the parts that moved a value, the largest first, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dialeval.core.scores import Statement
from dialeval.judge import lexical
from dialeval.judge.row_signs import DialogueSigns, TurnSigns


def aspect_moves(moved: Mapping[str, float], aspects: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How far each aspect moved the value from the middle; together they are all that moved it."""
    return {aspect: float(sum(moved[name] for name in features)) for aspect, features in aspects.items()}


#: An aspect that moved the value by less is not worth a word.
SHOWN_FROM = 0.01
#: How many aspects a short reason names.
SHOWN_AT_MOST = 2
#: Where so many human replies are better (or worse), an aspect is bad (or good) and not only less (or more).
CLEARLY = 0.75
MIDDLE = 0.5
#: A side that says a turn again, or the turn before it, in so many of its turns does so and little else.
OFTEN = 0.5
#: Where no aspect moved the value.
NOTHING = "Nothing stands out."
#: With whom a reply in their middle is compared.
MOST = "most human replies"
#: Shares of human replies below and above, where the checkpoint knows neither.
_UNKNOWN = (float("nan"), float("nan"))

#: Of an aspect that raised the value, and of one that lowered it: what is said where it does so clearly, and how it
#: compares with human replies; then what is said of one in their middle.
_WORDS: Mapping[str, tuple[tuple[str, str], tuple[str, str], str]] = {
    "relevant": (
        ("fits what was said", "fits this context better than most"),
        ("does not fit what was said", "fits this context worse than most"),
        f"fits this context like {MOST}",
    ),
    "specific": (
        ("says something particular", "is more specific than most"),
        ("says little in particular", "is less specific than most"),
        f"is as specific as {MOST}",
    ),
    "coherent": (
        ("", "its replies fit better than most"),
        ("", "its replies fit worse than most"),
        f"its replies fit like {MOST}",
    ),
}
#: The same where words of the row tell more than a comparison.
_SAID: Mapping[str, tuple[str, str]] = {
    "uses_facts": ("uses what is known", "uses little of what is known"),
    "fluent": ("reads well", "is hard to read"),
    "respectful": ("is civil", "is rude"),
    "faithful": ("agrees with what is known", "contradicts what is known"),
    "consistent": ("agrees with what was said", "seems to contradict itself"),
    "reaction": ("the other side takes it well", "the other side does not take it well"),
    "engaged": ("the other side says more than most", "the other side says less than most"),
    "lively": ("the other side is livelier than most", "the other side is less lively than most"),
    "satisfied": ("the other side is content", "the other side is not content"),
}


def _clause(subject: str, words: str) -> str:
    """What is said of a reply as a clause; what is said of the other side, or quotes first, has a subject."""
    return words if words.startswith(("the other side ", '"')) else f"{subject} {words}"


def with_weakest(whole: str, position: int, of_turn: Sequence[Statement]) -> str:
    """The reason of a conversation, and which of its turns is weakest and, if that can be said, why."""
    why = f": {_clause('it', of_turn[0].words.split(': ')[0])}" if of_turn else ""
    return f"{whole.rstrip('.')}. Weakest is turn {position + 1}{why}."


def reason(
    moved: Mapping[str, float],
    aspects: Mapping[str, Sequence[str]],
    read: TurnSigns | DialogueSigns,
    shares: Mapping[str, tuple[float, float]],
    *,
    full: bool = False,
) -> str:
    """The statements in one sentence."""
    return in_a_sentence(statements(moved, aspects, read, shares, full=full), full=full)


def in_a_sentence(statements: Sequence[Statement], *, full: bool = False) -> str:
    """What moved a value; a `full` reason names every aspect, and by how much it moved the value."""
    parts = [f"{statement.words} [{statement.amount:+.2f}]" if full else statement.words for statement in statements]
    sentence = "; ".join(dict.fromkeys(parts if full else parts[:SHOWN_AT_MOST]))  # two aspects may have one fault
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else NOTHING


#: Of a fault that a head doubts and does not charge.
_DOUBTS: Mapping[str, str] = {
    "fluent": "is worded less usually than most",
    "respectful": "sounds less civil than most",
    "faithful": "is less borne out by what is known than most",
    "consistent": "agrees less with what was said than most",
}


def statements(
    moved: Mapping[str, float],
    aspects: Mapping[str, Sequence[str]],
    read: TurnSigns | DialogueSigns,
    shares: Mapping[str, tuple[float, float]],
    *,
    full: bool = False,
    doubted: Collection[str] = (),
) -> tuple[Statement, ...]:
    """The aspects that moved the value, the largest first, with the words behind them.

    `moved` says how far each feature moved it, `shares` which parts of human replies lie below and above, by aspect.
    `full` ones name wording that is like that of many others, too, and what is `doubted`: faults that no head charges.
    """
    moves = aspect_moves(moved, aspects)
    if isinstance(read, TurnSigns) and read.wordless is not None:
        taken = moves.pop("reaction", 0.0)
        moves = {"wordless": sum(moves.values()), "reaction": taken}
    if not full:
        moves = {aspect: amount for aspect, amount in moves.items() if aspect not in doubted}
    # An insult comes first where it took most.
    rude = isinstance(read, TurnSigns) and moves.get("respectful", 0.0) == min(moves.values(), default=0.0)
    strongest = sorted(
        (item for item in moves.items() if abs(item[1]) >= SHOWN_FROM and (full or not _is_mild(*item, shares))),
        key=lambda item: (not rude or item[0] != "respectful", -abs(item[1])),
    )
    return tuple(
        Statement(
            aspect,
            amount,
            _DOUBTS[aspect]
            if aspect in doubted and amount < 0
            else _said_of(aspect, amount, moved, read, shares.get(aspect, _UNKNOWN)),
        )
        for aspect, amount in strongest
    )


def _is_mild(aspect: str, amount: float, shares: Mapping[str, tuple[float, float]]) -> bool:
    """Whether a reply is worded like many others, which makes none hard to read and is no praise."""
    return aspect == "fluent" and shares.get(aspect, _UNKNOWN)[amount < 0] < CLEARLY


def _said_of(
    aspect: str, amount: float, moved: Mapping[str, float], read: TurnSigns | DialogueSigns, shares: tuple[float, float]
) -> str:
    """An aspect in words: those of the row where they tell it, else where it lies among human replies."""
    words = (
        _of_dialogue(aspect, amount, moved, read) if isinstance(read, DialogueSigns) else _of_turn(aspect, amount, read)
    )
    if words:
        return words
    lowered = amount < 0
    raised_words, lowered_words, middle = _WORDS[aspect]
    clearly, compared = lowered_words if lowered else raised_words
    share = shares[lowered]
    if aspect == "relevant" and isinstance(read, TurnSigns) and read.asked:
        clearly = "does not answer the question" if lowered else "answers the question"
    if share < MIDDLE:
        compared = middle
    elif np.isfinite(share):
        # Never all of them, and never none: there are always replies that were not asked.
        beaten = min(99, max(1, int(100 * share + 1e-9)))
        compared = f"{compared.removesuffix('most')}{beaten} % of human replies"
    if share >= CLEARLY and clearly:
        compared = f"{clearly}: {compared}"
    return compared


def _of_turn(aspect: str, amount: float, read: TurnSigns) -> str:
    lowered = amount < 0
    if aspect == "wordless":
        return f'says no word ("{_short(read.wordless)}")' if read.wordless else "is blank"
    if aspect == "not_repetitive":
        return _repetition_sentence(read.repetition, lowered=lowered)
    if aspect in ("fluent", "respectful", "faithful", "consistent"):
        return _quoting(_SAID[aspect][lowered], read.passages.get(aspect, "") if lowered else "")
    if aspect == "uses_facts" and read.facts is not None:
        if read.facts.words:
            return f"{_SAID[aspect][lowered]} ({', '.join(read.facts.words[:5])})"
        return "does not use the one fact" if read.n_facts == 1 else f"uses none of the {read.n_facts} facts"
    if aspect == "reaction":
        return _quoting(_SAID[aspect][lowered], read.following)
    return ""


def _repetition_sentence(repetition: lexical.Repetition, *, lowered: bool) -> str:
    if not lowered:
        return "repeats little" if repetition.share else "repeats nothing"
    if repetition.within >= repetition.copied and repetition.phrase:
        return f'says "{repetition.phrase}" {"twice" if repetition.times == 2 else f"{repetition.times} times"}'
    return f"repeats an earlier turn ({100 * repetition.copied:.0f} % of its words)"


def _of_dialogue(aspect: str, amount: float, moved: Mapping[str, float], read: DialogueSigns) -> str:
    lowered = amount < 0
    if aspect == "coherent" and lowered:
        return _why_incoherent(read)
    if aspect == "not_repetitive":
        if not lowered and moved["not_echoing"] > moved["not_repetitive"]:
            return "does not echo the turn before"
        if not lowered:
            return "repeats little" if read.repeated else "repeats nothing"
        if moved["not_repetitive"] <= moved["not_echoing"]:
            return _quoting("repeats itself", read.repeated)
        return _quoting("echoes the turn before", read.echoed)
    if aspect != "reaction":
        return ""
    part = (min if lowered else max)(("engaged", "lively", "satisfied"), key=lambda name: moved[name])
    quoted = {"satisfied": read.complaint} if lowered else {"lively": read.exclaimed}
    return _quoting(_SAID[part][lowered], quoted.get(part, ""))


def _why_incoherent(read: DialogueSigns) -> str:
    """The fault of the replies that a reader would name first; empty where they have none of these."""
    if read.rude:
        return _quoting("a reply is rude", read.rude)
    if read.said_again >= OFTEN:
        return _quoting("repeats itself", read.repeated)
    if read.not_echoing <= 1 - OFTEN:
        return _quoting("echoes the turn before", read.echoed)
    return _quoting("a reply seems to contradict an earlier one", read.denying) if read.denying else ""


def _quoting(sentence: str, text: str) -> str:
    return f'{sentence} ("{_short(text)}")' if text.strip() else sentence


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
