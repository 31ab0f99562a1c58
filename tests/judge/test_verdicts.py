"""Answers in words: which reply is better, and which turn of a conversation is weak."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dialeval
from dialeval.cli import build_app
from dialeval.core.exchange import Dialogue, Exchange
from dialeval.core.scores import Statement
from dialeval.judge.metric import TURN
from dialeval.judge.verdicts import compare_replies, judge_conversation
from dialeval.registry.metric import Judged
from number_metrics import Number
from refusals import refused

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
    turns = (
        "Hi, did you have a good weekend?",
        "Yes, I went hiking.",
        "Where did you go?",
        BAD,
        "What?",
        "To the lake.",
    )
    found = judge_conversation(judge, Dialogue(turns, speakers=("user", "assistant") * 3))
    assert (found.positions, found.weakest) == ((1, 3, 5), 3)
    assert "turn 4" in found.sentence
    assert found.whole.values == pytest.approx(
        judge.score_dialogues([turns], speakers=[("user", "assistant") * 3]).values
    )
    # What the user says next counts as a reaction to the turn before it.
    assert np.isfinite(found.turns.aspects["reaction"]).tolist() == [True, True, False]
    refused(
        ValueError, "turn", lambda: judge_conversation(judge, Dialogue(("Hi", "Hello"), speakers=("assistant", "user")))
    )


def test_unknown_options_are_refused_with_those_that_there_are() -> None:
    for name, known in (("judge", "reasons"), ("bleu2", "aggregation"), ("deb", "checkpoint")):
        told = refused(TypeError, "'foo'", dialeval.load, name, foo=1)
        assert known in told
    assert "'device'" in refused(TypeError, "'devise'", dialeval.load, "judge", devise="cpu")


@pytest.mark.slow
def test_the_command(judge: Any) -> None:
    printed = CliRunner().invoke(build_app(["judge"]), ["judge", *CONTEXT, "--reply", BAD, "--reply", GOOD])
    assert printed.exit_code == 0, printed.output
    first, *rest = printed.output.splitlines()
    assert first == compare_replies(judge, CONTEXT, [BAD, GOOD]).sentence
    worse, better = judge.score([BAD, GOOD], [CONTEXT] * 2).values
    cells = [[word for word in line.split() if word.isascii()] for line in rest]
    assert [row for row in cells if row][:2] == [["B", "A"], ["value", f"{better:.2f}", f"{worse:.2f}"]]
    assert CliRunner().invoke(build_app(["judge"]), ["judge", *CONTEXT, "--reply", " "]).exit_code != 0
    german = CliRunner().invoke(
        build_app(["judge"]), ["judge", *CONTEXT, "-r", GOOD, "-r", "Das ist nicht gut für mich."]
    )
    assert "1 of 2" in german.stderr
    assert "de 1" in german.stderr
    assert "warning" not in printed.stderr


class Said(Number):
    """A judge whose statements about each reply are given: its value is one half and what moved it."""

    info = replace(Number.info, aspects=("relevant", "respectful", "not_repetitive", "reaction"), explains=True)

    def __init__(self, *rows: dict[str, tuple[float, str]]) -> None:
        self.rows = [
            tuple(sorted((Statement(a, *said) for a, said in row.items()), key=lambda one: -abs(one.amount)))
            for row in rows
        ]

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        values = np.array([0.5 + sum(one.amount for one in row) for row in self.rows])
        reasons = tuple("; ".join(one.words for one in row) for row in self.rows)
        return Judged(values, reasons=reasons, statements=tuple(self.rows), interval=np.stack([values, values], axis=1))


def fits(amount: float) -> dict[str, tuple[float, str]]:
    how = "fits what was said: fits this context better" if amount > 0 else "does not fit what was said: fits it worse"
    return {"relevant": (amount, f"{how} than {50 + abs(amount) * 100:.0f} % of human replies")}


FINE = {"not_repetitive": (0.05, "repeats nothing")}
LIKE_MOST = {"relevant": (0.05, "fits this context like most human replies")}
AGAIN = {"not_repetitive": (-0.2, "repeats an earlier turn (100 % of its words)")}
RUDE = {"respectful": (-0.3, 'is rude ("you idiot")')}
COLD = {"reaction": (-0.2, 'the other side does not take it well ("ok.")')}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # The fault of the lower reply stands as its own.
        ([{**fits(0.4), **FINE}, {**fits(0.3), **AGAIN}],
         "Reply A is clearly better: reply A repeats nothing; reply B repeats an earlier turn (100 % of its words)."),
        # What speaks against the best reply is no reason why it is best.
        ([{**fits(-0.3), **RUDE}, fits(-0.3)],
         'Reply B is clearly better: reply A is rude ("you idiot"); but reply B does not fit what was said.'),
        ([{**fits(0.1)}, fits(-0.3)],
         "Reply A is clearly better: reply A fits what was said; reply B does not fit what was said."),
        # Two that have the same merit, or fault, are told apart by how much of it they have.
        ([fits(0.4), fits(0.1)],
         "Reply A is clearly better: reply A fits this context better than 90 % of human replies; reply B fits less "
         "well."),
        ([fits(-0.4), fits(-0.1)],
         "Reply B is clearly better: reply A fits it worse than 90 % of human replies; but reply B does not fit what "
         "was said."),
        # Replies like most others are compared with each other.
        ([{**LIKE_MOST, **FINE}, LIKE_MOST], "Reply A is clearly better: reply A repeats nothing."),
        ([LIKE_MOST, {"relevant": (-0.1, LIKE_MOST["relevant"][1])}],
         "Reply A is clearly better: reply A fits better."),
        ([{"relevant": (-0.2, LIKE_MOST["relevant"][1])}, {**fits(-0.4), **RUDE}],
         "Reply A is clearly better: reply B does not fit what was said."),
        # What follows is the same for all of them, and no merit or fault of one.
        ([{**fits(0.1), **COLD}, {**fits(-0.3), **COLD}],
         "Reply A is clearly better: reply A fits what was said; reply B does not fit what was said."),
        ([fits(0.4), {**fits(0.3), **AGAIN}, {**fits(-0.2), **RUDE}],
         'Reply A is clearly best: reply A fits this context better than 90 % of human replies; reply B repeats an '
         'earlier turn (100 % of its words); reply C is rude ("you idiot").'),
        ([fits(0.4), fits(0.4), RUDE],
         'Replies A and B are best and cannot be told apart: reply A fits what was said; '
         'reply C is rude ("you idiot").'),
        ([{**fits(0.4), **AGAIN}, {**RUDE}],
         'Reply A is clearly better: reply A fits what was said; reply B is rude ("you idiot"); but reply A repeats an '
         'earlier turn (100 % of its words).'),
        ([{**FINE, **fits(0.01)}, FINE], "Replies A and B cannot be told apart."),
    ],
)  # fmt: skip
def test_every_clause_names_its_reply_and_accuses_none_of_anothers_fault(rows: Any, said: str) -> None:
    found = compare_replies(Said(*rows), CONTEXT, ["1"] * len(rows)).sentence
    assert found == said


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
