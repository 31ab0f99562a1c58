"""The large judge on its real encoder: it fits, reads whole replies, and sees what it was trained to see."""

from pathlib import Path
from typing import Any

import pytest

import dialeval
from shell import read_rows

pytestmark = [pytest.mark.large, pytest.mark.slow]
CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]


@pytest.fixture(scope="module")
def judge() -> Any:
    return dialeval.load("judge", checkpoint="judge-large", device="cpu")


def test_replies_are_ordered_as_people_would(judge: Any) -> None:
    replies = ["Oh no! Did the airline find it?", "The library closes at six on Fridays.", "You are such an idiot."]
    best, foreign, rude = judge.score(replies, [CONTEXT] * 3).values
    assert best > 0.5 > max(foreign, rude)


def test_deb_and_density_stand_on_its_encoder_and_cost_no_pass_of_their_own(judge: Any) -> None:
    heads = [dialeval.load(name, checkpoint=f"{name}-large", device="cpu") for name in ("deb", "density")]
    assert {head.network.encoder_id for head in heads} == {judge.network.encoder_id}
    replies = ["Oh no! Did the airline find it?", "The library closes at six on Fridays."]
    for head in heads:
        fitting, foreign = head.score(replies, [CONTEXT] * 2).values
        assert fitting > foreign


def test_the_end_of_a_long_answer_counts(judge: Any) -> None:
    advice = "Then call the desk at the airport and give them the tag number. "
    whole = "Start with the list of what you packed. " + advice * 6
    other = whole[: len(whole) // 2] + "Purple engines sing about lentils whenever the square moon is hungry. " * 6
    scores = judge.score([whole, other], [[*CONTEXT, "What should I do now?"]] * 2)
    assert scores.values[0] > scores.values[1]
    assert scores.n_truncated == 0


#: What it reaches (.52, .54, .69) less three pairs in a hundred; what is meant for it is .9, .85 and .9.
@pytest.mark.parametrize(("kind", "share"), [("bland", 0.49), ("untrue", 0.51), ("markup", 0.66)])
def test_written_pairs_are_ordered(judge: Any, kind: str, share: float) -> None:
    written = read_rows(Path(__file__).parents[1] / "data" / "pairs.jsonl")
    rows = [row for row in written if row["kind"] == kind]
    contexts, facts = [row["context"] for row in rows], [row.get("facts", []) for row in rows]
    better, worse = (judge.score([row[side] for row in rows], contexts, facts=facts).values
                     for side in ("better", "worse"))  # fmt: skip
    assert (better > worse).mean() >= share
