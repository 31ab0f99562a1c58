"""What the judge reads from the words of one reply, and of a whole conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import BadRow, Dialogue, Exchange
from dialeval.judge import lexical
from dialeval.judge.lexical import Texts

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TurnSigns:
    """What the words of one row tell."""

    repetition: lexical.Repetition
    facts: lexical.FactUse | None
    specific: float
    #: Whether its speaker said something before, or something is known of them, that it could deny.
    has_said: bool = False
    has_said_itself: bool = False
    n_facts: int = 0
    n_words: int = 0
    #: What the other side said next.
    following: str = ""
    #: Whether the turn before asks something.
    asked: bool = False
    #: Of a reply that was read in parts, the part in which each head sees most of a fault.
    passages: Mapping[str, str] = field(default_factory=dict)
    #: The reply itself, if it holds no word: there is nothing in it that could be judged.
    wordless: str | None = None


def own_turns(row: Exchange) -> tuple[str, ...]:
    """Earlier turns of whoever gives the reply: those of the other speakers than the last, else every second turn."""
    if row.speakers:
        return tuple(turn for turn, name in zip(row.context, row.speakers, strict=True) if name != row.speakers[-1])
    return row.context[-2::-2]


def read_signs(row: Exchange, table: Vector, texts: Texts) -> TurnSigns:
    """Plain signs of one reply. A missing input is a missing sign."""
    reply, earlier = texts[row.response], [texts[turn] for turn in row.context]
    facts = [texts[fact] for fact in row.facts]
    said_itself = any(texts[turn].content for turn in own_turns(row))
    return TurnSigns(
        repetition=lexical.repetition(reply, earlier, table),
        facts=lexical.fact_use(reply, facts, earlier, table) if facts else None,
        specific=lexical.specificity(reply, table),
        has_said=said_itself or bool(facts),
        has_said_itself=said_itself,
        n_facts=len(facts),
        n_words=len(row.response.split()),
        following=row.following or "",
        asked=bool(earlier) and earlier[-1].asks,
        wordless=None if reply.words else row.response.strip(),
    )


#: Counts of a reply and what surrounds it, which a correction may go by.
COUNTS = ("words", "turns before", "words of the last turn", "question marks", "words that follow")


def counts(row: Exchange) -> list[float]:
    """The logarithms of `COUNTS`."""
    last, following = (row.context[-1] if row.context else ""), row.following or ""
    numbers = (len(row.response.split()), len(row.context), len(last.split()), row.response.count("?"))
    return [float(np.log1p(number)) for number in (*numbers, len(following.split()))]


@dataclass(frozen=True)
class DialogueSigns:
    """The features of one conversation; NaN where a side says nothing."""

    coherent: float
    weakest: float
    not_repetitive: float
    not_echoing: float
    engaged: float
    lively: float
    satisfied: float
    #: What a head for whole conversations says, where there is one.
    whole: float = float("nan")
    #: Share of its turns that the judged side has said before, word by word.
    said_again: float = 0.0
    #: The reply that repeats most of its side's earlier ones, and the one that says most of the turn before it again.
    repeated: str = ""
    echoed: str = ""
    #: The other side's turn that is least content with the reply before it.
    complaint: str = ""
    #: The rudest reply of the judged side, and the one that most seems to deny something, where the whole loses by it.
    rude: str = ""
    denying: str = ""
    #: The first turn of the other side with an exclamation mark.
    exclaimed: str = ""


def judged_side(number: int, dialogue: Dialogue) -> tuple[int, ...]:
    """Positions of the turns to judge; no speaker to judge is refused, and so are two who could both be the bot."""
    side = tuple(dialogue.answers)
    if not side:
        raise BadRow(number, "only one side speaks; a conversation has two")
    bots = list(dict.fromkeys(dialogue.speakers[place] for place in side)) if dialogue.speakers else []
    if len(bots) > 1:
        raise BadRow(number, f"speakers {bots[0]} and {bots[1]} could both be the one to judge; name only one so")
    return side


def judged_replies(number: int, dialogue: Dialogue) -> list[Exchange]:
    """The judged turns that answer something, each with what the other side said next."""
    side, turns = judged_side(number, dialogue), dialogue.turns
    return [
        Exchange(
            context=turns[:place],
            response=turns[place],
            facts=dialogue.facts,
            following=turns[place + 1] if place + 1 < len(turns) and place + 1 not in side else None,
            speakers=dialogue.speakers[:place] if dialogue.speakers else (),
        )
        for place in side
        if place
    ]


def read_dialogue(
    turns: Sequence[str], side: Sequence[int], values: Vector, content: Vector, table: Vector, texts: Texts
) -> DialogueSigns:
    """Signs of both sides, `values` of the judged replies, and how `content` the turns are that follow them.

    What the other side says before the first judged turn is no reaction to it.
    """
    judged = set(side)
    others = [turn for place, turn in enumerate(turns) if place not in judged and place > min(side, default=0)]
    words = [texts[turns[place]].words for place in side]
    # Who says a turn again repeats themselves, even if "okay" is all that it holds.
    same = [words[number] in words[:number] for number in range(len(words))]
    earlier = [texts[turns[place]] for place in side]
    again = [
        1.0 if same[number] else lexical.repetition(reply, earlier[:number], table).share
        for number, reply in enumerate(earlier)
    ]
    echoed = {place: lexical.echo(texts[turns[place]], texts[turns[place - 1]]) for place in side if place}
    nothing = float("nan")
    known = np.isfinite(content)
    followed = [turns[place + 1] for place in side if place and place + 1 < len(turns) and place + 1 not in judged]
    return DialogueSigns(
        coherent=float(values.mean()) if len(values) else nothing,
        weakest=float(values.min()) if len(values) else nothing,
        not_repetitive=1 - float(np.mean(again)) if again else nothing,
        not_echoing=1 - float(np.mean(list(echoed.values()))) if echoed else nothing,
        engaged=float(np.mean([np.log1p(len(texts[turn].words)) for turn in others])) if others else nothing,
        lively=float(np.mean(["!" in turn for turn in others])) if others else nothing,
        satisfied=float(content[known].mean()) if known.any() else nothing,
        said_again=float(np.mean(same)) if same else 0.0,
        repeated=turns[side[int(np.argmax(again))]] if any(again) else "",
        echoed=turns[max(echoed, key=lambda place: echoed[place])] if any(echoed.values()) else "",
        complaint=followed[int(np.nanargmin(content[known]))] if known.any() and len(followed) == known.sum() else "",
        exclaimed=next((turn for turn in others if "!" in turn), ""),
    )
