"""What is read from whole conversations."""

import numpy as np
import pytest

from dialeval.judge.lexical import Texts
from dialeval.judge.row_signs import DialogueSigns, read_dialogue

RARITY = np.zeros(2**16)
OPENINGS = ["Hi there.", "Wow, that is great, I love it!", "This is wrong, that makes no sense. You are useless."]


def read(turns: list[str], side: tuple[int, ...], content: list[float]) -> DialogueSigns:
    return read_dialogue(turns, side, np.zeros(len(content)), np.array(content), RARITY, Texts())


@pytest.mark.parametrize("opening", OPENINGS)
def test_an_opening_turn_is_no_reaction(opening: str) -> None:
    signs, plain = (read([first, "Hello.", "I see.", "Indeed."], (1, 3), [0.5, np.nan]) for first in (opening, "Hi."))
    reactions = ("engaged", "lively", "satisfied", "complaint", "exclaimed")
    assert [getattr(signs, name) for name in reactions] == [getattr(plain, name) for name in reactions]


def test_without_a_reaction_nothing_is_known_of_one() -> None:
    signs = read(["Great, thank you!", "Hello."], (1,), [np.nan])
    assert np.isnan([signs.engaged, signs.lively, signs.satisfied]).all()
    assert (signs.complaint, signs.exclaimed) == ("", "")


def test_the_least_content_turn_is_named() -> None:
    signs = read(["Hi.", "Hello.", "Good!", "Fish.", "What?", "Bye."], (1, 3, 5), [2.0, -1.0, np.nan])
    assert signs.satisfied == pytest.approx(0.5)
    assert signs.complaint == "What?"
    assert signs.exclaimed == "Good!"
