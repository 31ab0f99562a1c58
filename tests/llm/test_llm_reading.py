"""How answers become numbers: kept to the form, in prose, half, beside the scale; and token probabilities."""

import math

import pytest

pytest.importorskip("openai")

from dialeval.llm.reading import NoAnswer, expectation, read_aspects, read_choice, read_number

PAIR = ("grammar", "relevance")


@pytest.mark.parametrize(
    "text",
    [
        '{"grammar": 4, "relevance": 2.5}',
        'Sure! Here it is:\n```json\n{"grammar": 4, "relevance": 2.5}\n```\nTell me if you need more.',
        '{"scores": {"grammar": 4, "relevance": "2.5"}}',
        "Grammar: 4\nRelevance: 2.5",
        "**grammar**: 4 (no mistakes)\n**relevance** = 2.5",
        'A reply {as it is} deserves {"grammar": 4, "relevance": 2.5, "other": 9}.',
    ],
)
def test_aspects_in_json_and_in_prose(text):
    assert read_aspects(text, PAIR, 0, 5) == {"grammar": 4.0, "relevance": 2.5}


@pytest.mark.parametrize(
    "text",
    ['{"grammar": 4', '{"grammar": 4}', '{"grammar": 4, "relevance": 2} or {"grammar": 4, "relevance": 5}',
     *(f'{{"grammar": 4, "relevance": {value}}}' for value in ("null", "7", "true", "NaN", "9" * 400)),
     *(f"grammar: 4, relevance: {value}" for value in ("2, relevance: 3", "2-3", "2,5", "2½")),
     "I cannot judge that.", ""],
)  # fmt: skip
def test_what_is_no_answer_about_aspects(text):
    with pytest.raises(NoAnswer) as caught:
        read_aspects(text, PAIR, 0, 5)
    # Only what gives one of the scores lacks the other.
    assert "lacks" not in str(caught.value) or "4" in text


@pytest.mark.parametrize(
    ("text", "value"),
    [("4", 4), (" 4.\n", 4), ("Score: 4", 4), ("**Rating:** 4", 4), ("4/5", 4), ("I would give it 4 out of 5.", 4),
     ("The reply has 2 clauses. Score: 4", 4), ("Well, it is a 3.5 to me", 3.5), ("3 ... yes, 3", 3), ("Score: <4>", 4),
     ("Score: 4 - the reply fits", 4), ("Score: 4, for 2 reasons: 4/5", 4)],
)  # fmt: skip
def test_a_number_in_prose(text, value):
    assert read_number(text, 1, 5)[0] == value


#: Two numbers, the bound of one, or the beginning of one.
PARTS = ["3–4", "3 - 4", "3 to 4", "3 or 4", "> 4", "≤4", "3,5", "3½", "4+", "4%", "3e0", "2²", "4-5/5", "<4", "4.5.1"]
PARTS = [f"{before}{part}" for part in PARTS for before in ("", "Score: ", "**Rating**: ")]


@pytest.mark.parametrize("text", ["", "great", "7", "8/10", "between 3 and 4", "0", "100%", *PARTS])
def test_what_is_no_number(text):
    with pytest.raises(NoAnswer):
        read_number(text, 1, 5)


@pytest.mark.parametrize(
    ("text", "points"),
    [("A", 1), (" b.", 0), ("Tie", 0.5), ("**A**", 1), ("Reply B", 0), ("My answer: A", 1), ("Reply B is better.", 0)],
)
def test_choices(text, points):
    assert read_choice(text) == points


@pytest.mark.parametrize("text", ["", "C", "A better answer would be nice", "A is better. No: B is better."])
def test_no_choices(text):
    with pytest.raises(NoAnswer):
        read_choice(text)


def token(text: str, *likely: tuple[str, float]) -> dict[str, object]:
    tops = [{"token": one, "logprob": math.log(share)} for one, share in likely]
    return {"token": text, "logprob": tops[0]["logprob"] if tops else 0.0, "top_logprobs": tops}


def test_expectation_by_hand():
    # Of "4" .5, " 4" .1, "5" .2 and "1" .2; what is no score or beside the scale counts for nothing.
    tokens = [token("4", ("4", 0.5), (" 4", 0.1), ("5", 0.1), ("1", 0.1), ("The", 0.15), ("9", 0.05))]
    assert expectation("4", tokens, 1, 5) == pytest.approx((4 * 0.6 + 5 * 0.1 + 1 * 0.1) / 0.8)


def test_expectation_stands_where_the_answer_stands():
    tokens = [token("Score"), token(":"), token(" ", (" ", 0.9), ("1", 0.1)), token("3", ("3", 0.75), ("2", 0.25))]
    assert expectation("Score: 3", tokens, 1, 5) == pytest.approx(2.75)


@pytest.mark.parametrize("thought", ['<think>Perhaps {"content": 1}, or 5? B is better.</think>\n', "It is 1.</think>"])
def test_what_a_model_thinks_is_no_answer(thought):
    assert read_aspects(f'{thought}{{"content": 4}}', ["content"], 1, 5) == {"content": 4}
    assert read_choice(f"{thought}A") == 1
    assert read_number(f"{thought}Score: 4", 1, 5) == (4, len(f"{thought}Score: "))
    tokens = [token(thought), token("1", ("1", 1.0))]
    assert expectation(f"{thought}1", tokens, 1, 5) == 1
    for read in (read_choice, lambda text: read_number(text, 1, 5), lambda text: read_aspects(text, ["content"], 1, 5)):
        with pytest.raises(NoAnswer, match="max-tokens"):
            read('<think>Perhaps 4, {"content": 4}: A')


def test_expectation_where_tokens_do_not_add_up_to_the_text():
    tokens = [token("\ufffd"), token("\ufffd"), token("3", ("3", 1.0))]
    assert expectation("✓ 3", tokens, 1, 5) == pytest.approx(3)
    with pytest.raises(NoAnswer):
        expectation("3", [token("three")], 1, 5)


@pytest.mark.parametrize(
    "text",
    ["{" * 10**6, '{"' * 500_000, '{"x":"' + "{" * 10**6, '{"x":' * 200_000, "Score: " + "1" * 100_000, "1/" * 50_000,
     '{"grammar": ' + "9" * 100_000 + "}", "Score: " * 100_000],
)  # fmt: skip
def test_long_answers_are_read_in_the_time_that_their_length_asks_for(text):
    for read in (
        lambda: read_aspects(text, ["grammar"], 1, 5),
        lambda: read_number(text, 1, 5),
        lambda: read_choice(text),
    ):
        with pytest.raises(NoAnswer):
            read()


@pytest.mark.parametrize(
    "text",
    [
        '{"grammar": 1, "grammar": 5, "content": 3}',
        '{"grammar": 4, "content": 3, "grammar": 4}',
        '{"scores": {"grammar": 1, "content": 2, "content": 3}}',
        'Sure!\n```json\n{"why": "good", "why": "bad", "grammar": 4, "content": 3}\n```',
    ],
)
def test_a_key_that_stands_twice_is_no_answer(text):
    with pytest.raises(NoAnswer, match="two values of"):
        read_aspects(text, ["grammar", "content"], 1, 5)
