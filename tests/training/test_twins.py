"""The twins with faults: what `training/twins.py` puts in place of a sound reply, and what it counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corpora.ratings import Rated
from dialeval.core.exchange import Exchange
from dialeval.judge.metric import Judge
from twins import CONVERSATION_FAULTS, FAULTS, contradictions, twins_of, written_pairs

TURNS = ("Hi, what do you do?", "I have two dogs in Boston.", "Nice, what are they called?",
         "Their names are Max and Bella.", "Do you walk them a lot?", "We go to the park every day.")  # fmt: skip
TRUE = Exchange(context=TURNS[:5], response=TURNS[5], facts=("your persona: I like green tea.",))
CANDIDATES = [TRUE, replace(TRUE, response="It rained all over the country.")]


@pytest.mark.parametrize("name", FAULTS)
def test_a_twin_differs_in_its_reply_alone(name: str) -> None:
    for seed in range(5):
        ((sound, faulty),) = twins_of(FAULTS[name], [CANDIDATES], np.random.default_rng(seed))
        assert replace(faulty, response=sound.response) == sound
        assert faulty.response != sound.response
        assert sound.response.startswith(TRUE.response)
    if name.startswith("itself denied"):
        assert len(faulty.response) > len(TRUE.response)
        assert (sound == TRUE) == (name == "itself denied")
    if name == "echo":
        assert faulty.response == TURNS[4]


@pytest.mark.parametrize("name", CONVERSATION_FAULTS)
def test_only_the_judged_side_of_a_conversation_is_spoiled(name: str) -> None:
    own = [1, 3, 5]
    said = CONVERSATION_FAULTS[name](TURNS, [f"Other {at}." for at in range(4)], own, np.random.default_rng(3))
    assert said
    assert set(said) <= set(own)
    assert any(turn != TURNS[at] for at, turn in said.items())


def test_contradictions_are_counted_beside_those_that_raters_name() -> None:
    def rated(response: str, named: float) -> Rated:
        one = Exchange(context=(*TURNS[:2], "And?"), response=response)
        return Rated(one, "abc_eval", "abc_eval", "dev", {"self contradiction": named})

    told = contradictions(
        Judge(), [rated("I have three dogs.", 1.0), rated("I have four dogs.", 0.0), rated("Fine.", 1.0)]
    )
    rows, called, both = (int(word) for word in told.split() if word.isdecimal())
    assert rows == 3
    assert both <= min(called, 2)
    assert told.endswith(" 2.")


def test_written_pairs_are_counted_by_kind() -> None:
    def pair(better: str, worse: str, kind: str) -> dict[str, object]:
        return {"kind": kind, "context": ["Do you have a pet?"], "better": better, "worse": worse}

    dog, salad = "Yes, a small dog.", "You dog stupid pet have the a idiot small moron small small."
    table = list(
        written_pairs(Judge(), [pair(dog, salad, "made"), pair(salad, dog, "made"), pair(dog, salad, "other")])
    )
    assert [[cell.strip() for cell in line.strip("| ").split("|")] for line in table[2:]] == [
        ["made", "50% of 2", "100% of 1"],
        ["other", "100% of 1", "100% of 1"],
    ]
