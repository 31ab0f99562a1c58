"""Why the judge says what it says: the parts that moved a value, the largest first, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialeval.approaches import signs
from dialeval.approaches.row_signs import DialogueSigns, TurnSigns


def aspect_moves(moved: Mapping[str, float], aspects: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How far each aspect moved the value from the middle; together they are all that moved it."""
    return {aspect: float(sum(moved[name] for name in features)) for aspect, features in aspects.items()}


#: An aspect that moved the value by less is not worth a word.
SHOWN_FROM = 0.01
#: How many aspects a reason names at most.
SHOWN_AT_MOST = 3
#: Shares of human replies below and above, where the checkpoint knows neither.
_UNKNOWN = (float("nan"), float("nan"))

#: What is said of an aspect that raised the value, and of one that lowered it. Both compare with the middle of the
#: replies that the judge learned from, because that is all that a contribution tells.
_WORDS: Mapping[str, tuple[str, str]] = {
    "relevant": ("more relevant than most", "less relevant than most"),
    "specific": ("more specific than most", "less specific than most"),
    "uses_facts": ("uses what is known", "uses little of what is known"),
    "fluent": ("more fluent than most", "less fluent than most"),
    "not_repetitive": ("repeats nothing", "repeats itself or earlier turns"),
    "consistent": ("contradicts nothing that it said", "contradicts itself"),
    "reaction": ("the other side takes it well", "the other side takes it less well than most"),
    "coherent": ("its replies fit better than most", "its replies fit less well than most"),
    "engaged": ("the other side says more than most", "the other side says less than most"),
    "positive": ("the other side is warmer than most", "the other side is less warm than most"),
    "lively": ("the other side is livelier than most", "the other side is less lively than most"),
    "not_complaining": ("the other side complains less than most", "the other side complains"),
}


def reason(
    moved: Mapping[str, float],
    aspects: Mapping[str, Sequence[str]],
    read: TurnSigns | DialogueSigns,
    shares: Mapping[str, tuple[float, float]],
) -> str:
    """One sentence that names the aspects that moved the value, the largest first, with the words behind them.

    `moved` says how far each feature moved it, `shares` which parts of human replies lie below and above, by aspect.
    """
    moves = aspect_moves(moved, aspects)
    if isinstance(read, TurnSigns) and read.wordless is not None:
        taken = moves.pop("reaction", 0.0)
        moves = {"wordless": sum(moves.values()), "reaction": taken}
    strongest = sorted((item for item in moves.items() if abs(item[1]) >= SHOWN_FROM), key=lambda item: -abs(item[1]))
    if not strongest:
        return "Nothing stands out."
    parts = [
        f"{_said_of(aspect, amount, moved, read, shares.get(aspect, _UNKNOWN))} [{amount:+.2f}]"
        for aspect, amount in strongest[:SHOWN_AT_MOST]
    ]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _said_of(
    aspect: str,
    amount: float,
    moved: Mapping[str, float],
    read: TurnSigns | DialogueSigns,
    shares: tuple[float, float],
) -> str:
    """An aspect in words: those of the row where they tell it, else where it lies among human replies."""
    found = (
        _of_dialogue(aspect, amount, moved, read) if isinstance(read, DialogueSigns) else _of_turn(aspect, amount, read)
    )
    if found:
        return found
    lowered = amount < 0
    plain = _compared(_WORDS[aspect][lowered], shares[lowered])
    if aspect == "specific" and isinstance(read, TurnSigns) and read.rarest and min(amount, moved["specific"]) > 0:
        return f"{plain} ({', '.join(read.rarest)})"
    return plain


def _compared(plain: str, share: float) -> str:
    """With human replies rather than with most, where their share is known."""
    if not np.isfinite(share):
        return plain
    # Never all of them, and never none: there are always replies that were not asked.
    beaten = min(99, max(1, int(100 * share + 1e-9)))
    return f"{plain.removesuffix('most')}{beaten}% of human replies"


def _of_turn(aspect: str, amount: float, read: TurnSigns) -> str:
    lowered = amount < 0
    if aspect == "wordless":
        return f'says no word ("{_short(read.wordless)}")' if read.wordless else "is blank"
    if aspect == "not_repetitive":
        return _repetition_sentence(read.repetition, lowered=lowered)
    if aspect == "consistent":
        if read.contradiction is None:
            return _WORDS[aspect][lowered]
        return f'"{_short(read.contradiction.said)}" contradicts "{_short(read.contradiction.before)}"'
    if aspect == "uses_facts" and read.facts is not None:
        if read.facts.words:
            return f"{_WORDS[aspect][lowered]} ({', '.join(read.facts.words[:5])})"
        return "does not use the one fact" if read.n_facts == 1 else f"uses none of the {read.n_facts} facts"
    if aspect == "reaction":
        complains = lowered and signs.complains(read.following)
        return _quoting(_WORDS["not_complaining" if complains else aspect][lowered], read.following)
    return ""


def _repetition_sentence(found: signs.Repetition, *, lowered: bool) -> str:
    if not lowered:
        return "repeats little" if found.share else "repeats nothing"
    if found.within >= found.copied and found.phrase:
        return f'says "{found.phrase}" {found.times} times'
    return f"{found.copied:.0%} of its words repeat an earlier turn"


def _of_dialogue(aspect: str, amount: float, moved: Mapping[str, float], read: DialogueSigns) -> str:
    lowered = amount < 0
    if aspect == "coherent":
        if abs(moved["specific"]) > abs(moved["coherent"]):
            return "its replies say less than most" if lowered else "its replies say more than most"
        return _WORDS[aspect][lowered]
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
    # What moved most in the direction of the whole; but a complaint that counted says it best.
    if lowered and read.complaint and moved["not_complaining"] <= -SHOWN_FROM:
        return _quoting(_WORDS["not_complaining"][True], read.complaint)
    part = (min if lowered else max)(("engaged", "positive", "lively", "not_complaining"), key=lambda name: moved[name])
    if part == "not_complaining" and not read.complaint:
        return "the other side does not complain"
    quoted = {} if lowered else {"positive": read.warm, "lively": read.exclaimed}
    return _quoting(_WORDS[part][lowered], quoted.get(part, ""))


def _quoting(sentence: str, text: str) -> str:
    return f'{sentence} ("{_short(text)}")' if text.strip() else sentence


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
