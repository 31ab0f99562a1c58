"""Warnings where numbers mislead."""

from __future__ import annotations

import re

import pytest

import dialeval
from dialeval.core.cautions import FirstRows, cautions
from dialeval.core.exchange import Dialogue, Exchange
from notebooks import html_of

ENGLISH = [
    "I would love to go there some day, what about you?", "No, I have never been to the sea.",
    "That is a good question and I am not sure.", "We could meet at the station at nine.",
    "My brother has two dogs and a cat.", "It was raining when they left the house.",
    "Could you tell me more about your work?", "She said that the film was too long.",
    "You should try the soup, it is very good.", "There is no more bread in the kitchen.",
    "I think he will be here soon.", "How do you like the new place?", "Well, that was fun!",
]  # fmt: skip
GERMAN = [
    "Ich würde gerne einmal dorthin fahren, und du?", "Nein, ich war noch nie am Meer.",
    "Das ist eine gute Frage, ich weiß es nicht.", "Wir könnten uns um neun am Bahnhof treffen.",
    "Mein Bruder hat zwei Hunde und eine Katze.", "Es regnete, als sie das Haus verließen.",
]  # fmt: skip


def rows(replies: list[str], system: str | None = None) -> list[Exchange]:
    return [Exchange((f"turn {index}",), reply, system=system) for index, reply in enumerate(replies)]


def test_ordinary_english_replies_need_no_caution() -> None:
    assert cautions(rows(ENGLISH)) == ()
    assert cautions([]) == ()


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        (GERMAN, "not English"),
        (["Я никогда не был на море, а ты?", "Это хороший вопрос, я не знаю."], "not English"),
        (["我从来没有去过海边你呢我们九点在车站见面吧", "这是一个很好的问题我不知道他很快就会来"], "not English"),
        ([f"Podríamos vernos en la estación a las {n} si quieres" for n in "abcde"], "not English"),
    ],
)  # fmt: skip
def test_other_languages_are_told(replies: list[str], message: str) -> None:
    (row,) = cautions(rows(replies))
    assert message in row


def test_one_system_among_others_may_speak_another_language() -> None:
    (row,) = cautions([*rows(ENGLISH * 4, "a"), *rows(GERMAN * 2, "b"), *rows(ENGLISH * 4, "c")])
    assert "12 of 116" in row
    assert "de 12" in row


def test_of_conversations_the_judged_side_counts() -> None:
    turns = [turn for both in zip(GERMAN, ENGLISH, strict=False) for turn in both]
    for speakers, count in ((("user", "bot") * 6, 0), (("bot", "user") * 6, 5), ((), 5)):
        seen = FirstRows()
        seen.see([Dialogue(tuple(turns), speakers=speakers)])
        assert [message.split()[0] for message in seen.messages()] == ([str(count)] if count else [])


def test_replies_in_a_language_that_nobody_knows_are_asked_about() -> None:
    swahili = ["Ninapenda kupika chakula cha nyumbani", "Habari za asubuhi rafiki yangu",
               "Ninafurahi kukutana nawe leo", "Tutakutana kesho saa mbili asubuhi"]  # fmt: skip
    (row,) = cautions(rows([*swahili, *ENGLISH[:3]]))
    assert "4 of 7" in row
    assert cautions(rows([*swahili, *ENGLISH[:4]])) == ()


def test_a_few_words_have_no_language() -> None:
    assert cautions(rows(["Danke!", "Guten Morgen."])) == ()


def test_blank_replies_are_told() -> None:
    (row,) = cautions(rows([*ENGLISH[:10], " "]))
    assert row.startswith("1 of 11 replies are blank")


def test_many_cut_rows_are_told() -> None:
    assert cautions(rows(ENGLISH[:10]), n_truncated=1) == ()
    (row,) = cautions(rows(ENGLISH[:10]), n_truncated=2)
    assert row.startswith("2 of 10 rows")


def test_canned_replies_and_parrots_are_told_by_system() -> None:
    canned = rows(["I do not know."] * 6 + ENGLISH[:9], "canned")
    fine = rows(ENGLISH, "fine")
    (message,) = cautions([*fine, *canned])
    assert all(part in message for part in ("6 of 15", " canned ", "“i do not know”"))
    parrot = [Exchange(("Hi!", text), text.upper(), system="parrot") for text in ENGLISH]
    (message,) = cautions([*fine, *parrot])
    assert re.findall(r"\d+", message) == ["13", "13"]
    assert "parrot" in message
    six = rows([ENGLISH[n % 6] for n in range(48)])
    (message,) = cautions(six)
    assert re.findall(r"\d+", message) == ["6", "48"]
    assert cautions(rows(["I do not know."] * 6)) == ()  # too few to be a pattern


def test_scores_tell_them() -> None:
    metric = dialeval.load("bleu2")
    scores = metric.score(GERMAN, [["hm"]] * len(GERMAN), GERMAN)
    assert "not English" in scores.warnings[0]
    assert "not English" in html_of(scores)
    assert metric.score(ENGLISH, [["hm"]] * len(ENGLISH), ENGLISH).warnings == ()


def test_a_ranking_tells_them() -> None:
    made = [
        {"id": f"{system}{index}", "context": [str(index)], "response": reply, "reference": reply, "system": system}
        for system in ("a", "b")
        for index, reply in enumerate(GERMAN)
    ]
    assert "not English" in dialeval.rank(made, ["bleu2"]).warnings[0]
