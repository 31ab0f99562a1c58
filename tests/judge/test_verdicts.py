"""Answers in words: which reply is better, and which turn of a conversation is weak."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.exchange import Dialogue, Exchange
from dialeval.judge.rule import TURN
from dialeval.judge.verdicts import compare_replies, judge_conversation
from refusals import refused
from shell import invoke

pytestmark = pytest.mark.encoder
CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]
GOOD, BAD = "Oh no! Did the airline find it?", "The library closes at six on Fridays."


@pytest.fixture(scope="module")
def judge() -> Any:
    return dialeval.load("judge", device="cpu")


def test_the_better_reply_is_named_first_wherever_it_stands(judge: Any) -> None:
    for replies in ([GOOD, BAD], [BAD, GOOD]):
        found = compare_replies(judge, CONTEXT, replies)
        best = replies.index(GOOD)
        assert found.order[0] == best
        assert found.sentence.startswith(f"Reply {'AB'[best]} ")
        assert found.scores.values == pytest.approx(judge.score(replies, [CONTEXT] * 2).values)


def test_equal_replies_are_not_told_apart_and_one_alone_has_its_reason(judge: Any) -> None:
    same = compare_replies(judge, CONTEXT, [GOOD] * 3)
    assert np.ptp(same.scores.values) < 1e-12  # a product of matrices may round each row in its own way
    assert same.order == (0, 1, 2)
    assert same.sentence.count(" A, B and C ") == 1
    (alone,) = judge.score([GOOD], [CONTEXT]).reasons
    assert compare_replies(judge, CONTEXT, [GOOD]).sentence == alone


def test_what_speaks_for_a_turn_is_no_reason_why_it_is_weakest(judge: Any) -> None:
    turns = ["Hi, did you have a good weekend?", "Yes, I went hiking in the mountains!", "Nice! Was it cold there?",
             "A bit, but the sun was out all day."]  # fmt: skip
    why = judge.score_dialogues([turns]).explain(0).partition("Weakest is turn ")[2]
    assert [good for good in ("it fits", "it answers", "it reads well", "it repeats") if good in why or not why] == []


def test_replies_as_sound_as_most_are_not_below_most(judge: Any) -> None:
    scores = judge.score([GOOD, "You stupid idiot.", "I like it."], [CONTEXT] * 3, scale="human_percentile")
    assert (scores.aspects["respectful"] < 0.2).tolist() == [False, True, False]
    assert scores.aspects["not_repetitive"].min() > 0.9


def test_one_insult_is_seen_in_a_whole_conversation(judge: Any) -> None:
    talk = ["How was your trip?", "It was great.", "Where did you go?", "To the sea.", "Was it warm?", "Yes, very."]
    civil, insulted = judge.score_dialogues([talk, [*talk[:3], "You stupid idiot.", *talk[4:]]]).aspects["respectful"]
    assert insulted < 0.2
    assert civil > 0.5
    assert "You idiot." in judge.score_dialogues([[*talk[:-1], "You idiot."]]).explain(0).split(". Weakest")[0]


def test_the_weakest_turn_of_a_conversation(judge: Any) -> None:
    asked = ["Hi, did you have a good weekend?", "Where did you go?", "What?"]
    turns = [asked[0], "Yes, I went hiking.", asked[1], BAD, asked[2], "To the lake."]
    speakers = ("user", "assistant") * 3
    found = judge_conversation(judge, Dialogue(tuple(turns), speakers=speakers))
    assert (found.positions, found.weakest) == ((1, 3, 5), 3)
    assert "turn 4" in found.sentence
    assert found.whole.values == pytest.approx(judge.score_dialogues([turns], speakers=[speakers]).values)
    # What the user says next counts as a reaction to the turn before it.
    assert np.isfinite(found.turns.aspects["reaction"]).tolist() == [True, True, False]
    alone = Dialogue(("Hi", "Hello"), speakers=("assistant", "user"))
    refused(ValueError, "turn", judge_conversation, judge, alone)


def test_unknown_options_are_refused_with_those_that_there_are() -> None:
    for name, known in (("judge", "reasons"), ("bleu2", "aggregation"), ("deb", "checkpoint")):
        told = refused(TypeError, "'foo'", dialeval.load, name, foo=1)
        assert known in told
    assert "'device'" in refused(TypeError, "'devise'", dialeval.load, "judge", devise="cpu")


@pytest.mark.slow
def test_the_command(judge: Any) -> None:
    printed = invoke("judge", *CONTEXT, "--reply", BAD, "--reply", GOOD)
    first, *rest = printed.output.splitlines()
    assert first == compare_replies(judge, CONTEXT, [BAD, GOOD]).sentence
    worse, better = judge.score([BAD, GOOD], [CONTEXT] * 2).values
    cells = [[word for word in line.split() if word.isascii()] for line in rest]
    assert [row for row in cells if row][:2] == [["B", "A"], ["value", f"{better:.2f}", f"{worse:.2f}"]]
    invoke("judge", *CONTEXT, "--reply", " ", code=2)
    german = invoke("judge", *CONTEXT, "-r", GOOD, "-r", "Das ist nicht gut für mich.")
    assert "1 of 2" in german.stderr
    assert "de 1" in german.stderr
    assert "warning" not in printed.stderr


def test_comparisons_of_the_judge_name_a_reply_in_every_clause(judge: Any) -> None:
    replies = [GOOD, BAD, "You stupid idiot.", CONTEXT[-1], "I I I went went to to",
               "It was fine, thanks.", "Yes.", "..."]  # fmt: skip
    for pair in itertools.combinations(replies, 2):
        found = compare_replies(judge, CONTEXT, pair)
        head, _, why = found.sentence.partition(": ")
        best, lower = (f"reply {found.names[at]} " for at in found.order)
        clauses = why.rstrip(".").split("; ") if why else []
        assert all(one.removeprefix("but ").removeprefix("in ").startswith((best, lower)) for one in clauses), (
            found.sentence
        )
        assert clauses or "cannot be told apart" in head
        merits = [one for one in clauses if one.startswith(best)]
        assert not [one for one in merits if re.search("does not|worse than|is rude|is hard|repeats an", one)]


CIVIL = [
    ("Do you smoke?", "I used to, but I quit in 2015."),
    ("Can you hear me?", "Yes, loud and clear."),
    ("What do you drink?", "Coffee in the morning, tea in the afternoon."),
    ("Should I take the job?", "Only you can know that. What does your wife say?"),
    ("Should I take the job?", "You know best. What does your wife say?"),
    ("What did the sign say?", 'It said "Keep out, you idiot", so we turned back.'),
    ("How much salt?", "1 tsp of salt and 2 tbsp of oil per cup."),
    ("What music do you like?", "Mostly Duran Duran and Talk Talk."),
    ("Where is the file?", "It is in /home/anna/reports/2023/q3.pdf"),
    ("What is 12 times 12?", "144"),
]


@pytest.mark.parametrize(("turn", "reply"), CIVIL)
def test_civil_replies_have_no_veto(judge: Any, turn: str, reply: str) -> None:
    assert (judge.read([Exchange((turn,), reply)]).left == 1).all()


@pytest.mark.parametrize(
    ("reply", "aspect"),
    [("You are such an idiot.", "respectful"), ("Listen, nobody asked you, you ugly rat.", "respectful"),
     ("I like to eat, I like to eat, I like to eat.", "not_repetitive"),
     ("trip good was the my suitcase lost but", "fluent")],
)  # fmt: skip
def test_faults_have_their_veto(judge: Any, reply: str, aspect: str) -> None:
    assert judge.read([Exchange(tuple(CONTEXT), reply)]).left[0, list(TURN).index(aspect)] < 1
