"""What the judge reads from the words of one reply, and of a whole conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.approaches import signs
from dialeval.exchange import BadRow, Dialogue, Exchange

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TurnSigns:
    """What the words of one row tell."""

    repetition: signs.Repetition
    facts: signs.FactUse | None
    reaction: signs.Reaction | None
    specific: float
    #: Whether there was anything to contradict, whether the speaker said it before, and what does.
    has_said: bool = False
    has_said_itself: bool = False
    contradiction: signs.Contradiction | None = None
    n_facts: int = 0
    #: What the other side said next.
    following: str = ""
    #: Whether the turn before asks something.
    asked: bool = False
    #: Words that insult the other side.
    insult: str = ""
    #: How usual the order of its words is, see `signs.Wording`.
    wording: tuple[float, ...] = (0.0,) * signs.Wording.SIGNS
    #: Whether it holds no letter, so that its wording tells nothing.
    numeric: bool = False
    #: A word of it that is only keys pressed at random.
    mashed: str = ""
    #: The reply itself, if it holds no word: there is nothing in it that could be judged.
    wordless: str | None = None


def own_turns(row: Exchange) -> tuple[str, ...]:
    """Earlier turns of whoever gives the reply: those of the other speakers than the last, else every second turn."""
    if row.speakers:
        return tuple(turn for turn, name in zip(row.context, row.speakers, strict=True) if name != row.speakers[-1])
    return row.context[-2::-2]


def speaks_of_itself(row: Exchange) -> bool:
    """Whether whoever gives the reply said something before that it could deny."""
    return any(map(signs.statements, own_turns(row)))


def denial_in(row: Exchange) -> signs.Contradiction | None:
    """What the reply denies of what its speaker said or is known for, as far as words alone tell it."""
    return signs.contradiction(row.response, (*row.facts, *own_turns(row)))


def read_signs(row: Exchange, table: Vector, wording: signs.Wording) -> TurnSigns:
    """Plain signs of one reply. A missing input is a missing sign."""
    said_itself = speaks_of_itself(row)
    return TurnSigns(
        repetition=signs.repetition(row.response, row.context, table),
        facts=signs.fact_use(row.response, row.facts, row.context, table) if row.facts else None,
        reaction=signs.reaction([row.following]) if row.following else None,
        specific=signs.specificity(row.response, table),
        has_said=said_itself or any(map(signs.statements, row.facts)),
        has_said_itself=said_itself,
        contradiction=denial_in(row),
        n_facts=len(row.facts),
        following=row.following or "",
        asked=bool(row.context) and row.context[-1].rstrip().endswith("?"),
        insult=signs.insult(row.response),
        wording=wording.of(row.response),
        numeric=not any(map(str.isalpha, row.response)),
        mashed=wording.mashed(row.response),
        wordless=None if signs.words(row.response) else row.response.strip(),
    )


#: Counts of a reply and what surrounds it, which a correction may go by.
COUNTS = ("words", "turns before", "words of the last turn", "question marks", "words that follow")


def counts(row: Exchange) -> list[float]:
    """The logarithms of `COUNTS`."""
    last, following = (row.context[-1] if row.context else ""), row.following or ""
    found = (len(row.response.split()), len(row.context), len(last.split()), row.response.count("?"))
    return [float(np.log1p(one)) for one in (*found, len(following.split()))]


@dataclass(frozen=True)
class DialogueSigns:
    """The features of one conversation; NaN where a side says nothing."""

    coherent: float
    weakest: float
    not_repetitive: float
    not_echoing: float
    engaged: float
    positive: float
    lively: float
    not_complaining: float
    #: Share of its turns that the judged side has said before, word by word.
    said_again: float = 0.0
    #: The reply that repeats most of its side's earlier ones, and the one that says most of the turn before it again.
    repeated: str = ""
    echoed: str = ""
    complaint: str = ""
    #: The rudest reply of the judged side, where the conversation loses by it, and what the side said and denied.
    rude: str = ""
    contradiction: signs.Contradiction | None = None
    #: The reply that most seems to deny something, where the conversation loses by it.
    denying: str = ""
    #: The first turns of the other side with a positive word, and with an exclamation mark.
    warm: str = ""
    exclaimed: str = ""


def judged_side(number: int, dialogue: Dialogue) -> tuple[int, ...]:
    """Positions of the turns to judge; no speaker to judge is refused, and so are two who could both be the bot."""
    side = tuple(dialogue.answers)
    if not side:
        raise BadRow(number, "only one side speaks; a conversation has two")
    bots = list(dict.fromkeys(dialogue.speakers[at] for at in side)) if dialogue.speakers else []
    if len(bots) > 1:
        raise BadRow(number, f"speakers {bots[0]} and {bots[1]} could both be the one to judge; name only one so")
    return side


def judged_replies(number: int, dialogue: Dialogue) -> list[Exchange]:
    """The judged turns that answer something, each with what the other side said next."""
    side, turns = judged_side(number, dialogue), dialogue.turns
    return [
        Exchange(
            context=turns[:at],
            response=turns[at],
            facts=dialogue.facts,
            following=turns[at + 1] if at + 1 < len(turns) and at + 1 not in side else None,
            speakers=dialogue.speakers[:at] if dialogue.speakers else (),
        )
        for at in side
        if at
    ]


def read_dialogue(turns: Sequence[str], side: Sequence[int], values: Vector, table: Vector) -> DialogueSigns:
    """Signs of both sides, and `values` of the judged replies.

    What the other side says before the first judged turn is no reaction to it.
    """
    own = set(side)
    others = [turn for at, turn in enumerate(turns) if at not in own and at > min(side, default=0)]
    taken = signs.reaction(others) if others else None
    said = [signs.words(turns[at]) for at in side]
    # Who says a turn again repeats themselves, even if "okay" is all that it holds.
    same = [said[number] in said[:number] for number in range(len(said))]
    again = [
        1.0 if same[number] else signs.repetition(turns[at], [turns[earlier] for earlier in side[:number]], table).share
        for number, at in enumerate(side)
    ]
    echoed = {at: signs.echo(turns[at], turns[at - 1]) for at in side if at}
    nothing = float("nan")
    return DialogueSigns(
        coherent=float(values.mean()) if len(values) else nothing,
        weakest=float(values.min()) if len(values) else nothing,
        not_repetitive=1 - float(np.mean(again)) if again else nothing,
        not_echoing=1 - float(np.mean(list(echoed.values()))) if echoed else nothing,
        engaged=taken.engaged if taken else nothing,
        positive=taken.positive if taken else nothing,
        lively=taken.lively if taken else nothing,
        not_complaining=1 - taken.complaining if taken else nothing,
        said_again=float(np.mean(same)) if same else 0.0,
        repeated=turns[side[int(np.argmax(again))]] if any(again) else "",
        echoed=turns[max(echoed, key=lambda at: echoed[at])] if any(echoed.values()) else "",
        complaint=next((turn for turn in others if signs.complains(turn)), ""),
        warm=next((turn for turn in others if signs.is_warm(turn)), ""),
        exclaimed=next((turn for turn in others if "!" in turn), ""),
    )
