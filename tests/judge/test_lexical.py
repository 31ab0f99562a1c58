"""Plain signs of words, against values counted by hand."""

import math

import numpy as np
import pytest

from dialeval.judge import lexical
from dialeval.judge.lexical import Texts
from dialeval.judge.row_signs import DialogueSigns, read_dialogue
from refusals import refused

FLAT = np.full(lexical.IDF_BUCKETS, 5.0)


def repetition(reply: str, earlier: list[str], rare: np.ndarray) -> lexical.Repetition:
    return lexical.repetition(lexical.Text(reply), [lexical.Text(turn) for turn in earlier], rare)


def specificity(reply: str, rare: np.ndarray) -> float:
    return lexical.specificity(lexical.Text(reply), rare)


def fact_use(reply: str, facts: list[str], context: list[str]) -> lexical.FactUse:
    return lexical.fact_use(lexical.Text(reply), [*map(lexical.Text, facts)], [*map(lexical.Text, context)], FLAT)


def table(**rarities: float) -> np.ndarray:
    """Words that are not named are as common as can be."""
    made = np.zeros(lexical.IDF_BUCKETS)
    for word, value in rarities.items():
        made[int(lexical.idf_table([word]).argmin())] = value  # the place where a word is counted
    return made


def test_words_are_read_as_people_write_them() -> None:
    assert lexical.words("Don’t you LIKE it , my friend_s? 7 times") == "don't you like it my friend s 7 times".split()
    # "did n't" is what corpora print for "didn't"; function words and single letters carry no topic.
    assert lexical.content_words("I did n't see a big X at the station") == ["see", "big", "station"]
    assert lexical.words(" \n…") == []


def test_rarity_is_the_logarithm_of_texts_over_texts_with_the_word() -> None:
    found = lexical.idf_table(["the cat", "the dog the dog", "the end"])
    assert lexical.rarity("the", found) == pytest.approx(math.log(4 / 4))
    assert lexical.rarity("dog", found) == pytest.approx(math.log(4 / 2))  # twice in one text counts once
    assert lexical.rarity("unseen", found) == pytest.approx(math.log(4 / 1))
    refused(ValueError, "texts", lexical.idf_table, [])


def test_specificity_is_that_of_the_three_rarest_words() -> None:
    rare = table(zebra=9, lion=6, animal=3, house=1)
    assert specificity("a zebra, a lion and an animal", rare) == pytest.approx(6.0)
    assert specificity("a zebra, a lion, an animal in a house", rare) == pytest.approx(6.0)  # longer, not more
    assert specificity("zebra zebra zebra", rare) == pytest.approx(3.0)  # said thrice, counted once
    assert specificity("oh yes i do", rare) == 0.0
    assert specificity("", rare) == 0.0


def test_repetition_within_a_reply() -> None:
    # Pairs: red blue, blue sky, sky red, red blue, blue sea, sea red, red blue: two were said before.
    found = repetition("red blue sky red blue sea red blue", [], FLAT)
    assert found.within == pytest.approx(2 / 7)
    assert (found.phrase, found.times) == ("red blue", 3)
    assert found.copied == 0.0
    assert found.share == pytest.approx(2 / 7)
    # Pairs weigh what their content words do: swim and, and i, i like, like to, to swim; here only those with "swim".
    long = repetition("i like to swim and i like to swim", [], FLAT)
    assert (long.phrase, long.times) == ("i like to swim", 2)  # of equally frequent runs the longest
    assert long.within == pytest.approx(1 / 3)
    assert repetition("every word is new", [], FLAT) == lexical.Repetition(0.0, 0.0, "", 0)
    assert repetition("", ["hello"], FLAT).share == 0.0
    assert repetition("so", ["so"], FLAT).share == 0.0


def test_little_words_may_come_back() -> None:
    assert repetition("i have a dog and i have a cat", ["i have a garden"], FLAT).share == 0.0
    assert repetition("do you like me and do you like it", [], FLAT).share == 0.0


@pytest.mark.parametrize("reply", ["Ha ha ha ha!", "It was really, really good.", "Walla Walla.", "Bye bye bye."])
def test_a_word_on_end_is_no_repetition(reply: str) -> None:
    assert repetition(reply, [], FLAT).share == 0.0


def test_an_answer_takes_up_the_words_of_its_question() -> None:
    asked = ["What is the capital of Australia?"]
    assert repetition("The capital of Australia is Canberra.", asked, FLAT).share == 0.0
    assert repetition("What is the capital of Australia", asked, FLAT).copied == 1.0
    assert repetition("The capital of Australia is Canberra.", ["the capital of Australia is nice."], FLAT).copied > 0.5


def test_repetition_of_earlier_turns() -> None:
    earlier = ["Do you like to eat fish?", "No thanks."]
    # Of the content words "well" is none: "eat" and "fish" are two of three.
    found = repetition("well you like to eat fish today", earlier, FLAT)
    assert found.copied == pytest.approx(2 / 3)
    assert found.within == 0.0
    assert repetition("like to eat cake", earlier, FLAT).copied == 0.0  # three words in a row are no copy
    assert repetition("cats to eat fish", earlier, FLAT).copied == 0.0  # also where both end with them
    # A rare word weighs more.
    assert repetition("you like to eat fish today", earlier, table(fish=8, eat=2, today=10)).copied == 0.5
    # What is quoted is spoken about, and code names the same things again.
    code = "```\nred = blue(red)\nred = blue(red)\n```"
    assert repetition(f"Like this: {code}", [f"Why is it wrong? {code} I do not see it."], FLAT).share == 0.0
    assert repetition('why do you ask "do you like to eat fish"?', earlier, FLAT).copied == 0.0
    both = lexical.Repetition(within=0.5, copied=0.5)
    assert both.share == pytest.approx(0.75)


def test_the_order_of_words_is_counted_in_human_replies() -> None:
    texts = ["i like green tea.", "i like green apples.", "do you like tea?", "we drink tea."] * 20
    wording = lexical.Wording(*lexical.count_runs(texts))
    usual, least, _, unknown, again = wording.of("i like green tea")
    assert unknown == again == 0
    shuffled = wording.of("tea green like i")
    assert shuffled[0] < usual
    assert shuffled[1] < least
    # Five of the seven that are counted, a full stop before and after among them, were said by nobody.
    assert wording.of("asdf qwer zxcv uiop hjkl")[3] == pytest.approx(5 / 7)
    # Nobody ends with "green", and a run twice in a row is counted, whichever words it holds.
    assert wording.of("i like green")[2] < wording.of("i like green tea")[2]
    assert wording.of("do you do you like tea")[4] == 1
    # Pairs in their order are not enough: "like green tea" and "green tea ." were said, "do you drink" was not.
    assert wording.of("do you drink tea")[0] < wording.of("do you like tea")[0]


def test_fact_words_that_the_context_has_not_used() -> None:
    facts = ["i have two dogs .", "my brother is a plumber"]
    found = fact_use("My dog met a plumber", facts, ["do you like plumbers ?"])
    # "plumber" was said before; one word of rarity 5: 5 / (5 + 10).
    assert found.words == ("dog",)
    assert found.amount == pytest.approx(1 / 3)
    two = fact_use("My dog and my brother", facts, ["hi"])
    assert two.words == ("brother", "dog")
    assert two.amount == pytest.approx(10 / 20)
    assert fact_use("Nice weather", facts, ["hi"]) == lexical.FactUse(0.0, ())
    assert fact_use("dog dog dog", facts, []).amount == pytest.approx(1 / 3)


def test_an_echo_is_measured_in_content_words() -> None:
    assert lexical.echo(lexical.Text("you like pizza"), lexical.Text("I like pizza and pasta")) == 1.0
    assert lexical.echo(lexical.Text("pizza tastes good"), lexical.Text("I like pizza")) == pytest.approx(1 / 3)
    assert lexical.echo(lexical.Text("oh yes"), lexical.Text("oh yes")) == 0.0  # words without content echo nothing


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
