"""What is read from whole conversations."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.approaches.row_signs import read_dialogue

RARITY = np.zeros(2**16)
OPENINGS = ["Hi there.", "Wow, that is great, I love it!", "This is wrong, that makes no sense. You are useless."]


@pytest.mark.parametrize("opening", OPENINGS)
def test_an_opening_turn_is_no_reaction(opening: str) -> None:
    signs = read_dialogue([opening, "Hello.", "I see.", "Indeed."], (1, 3), np.zeros(2), RARITY)
    plain = read_dialogue(["Hi there.", "Hello.", "I see.", "Indeed."], (1, 3), np.zeros(2), RARITY)
    reactions = ("engaged", "positive", "lively", "not_complaining", "complaint", "warm", "exclaimed")
    assert [getattr(signs, name) for name in reactions] == [getattr(plain, name) for name in reactions]


def test_without_a_reaction_nothing_is_known_of_one() -> None:
    signs = read_dialogue(["Great, thank you!", "Hello."], (1,), np.zeros(1), RARITY)
    assert np.isnan([signs.engaged, signs.positive, signs.lively, signs.not_complaining]).all()
    assert (signs.warm, signs.exclaimed) == ("", "")
