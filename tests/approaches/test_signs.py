"""Plain signs of words, against values counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialeval.approaches import signs
from refusals import refused

#: Every word equally rare.
NOTHING_RARE = np.zeros(signs.IDF_BUCKETS)
FLAT = np.full(signs.IDF_BUCKETS, 5.0)


def table(**rarities: float) -> np.ndarray:
    """Words that are not named are as common as can be."""
    made = np.zeros(signs.IDF_BUCKETS)
    for word, value in rarities.items():
        made[int(signs.idf_table([word]).argmin())] = value  # the place where a word is counted
    return made


def test_words_are_read_as_people_write_them() -> None:
    assert signs.words("Don’t you LIKE it , my friend_s? 7 times") == "don't you like it my friend s 7 times".split()
    # "did n't" is what corpora print for "didn't"; function words and single letters carry no topic.
    assert signs.content_words("I did n't see a big X at the station") == ["see", "big", "station"]
    assert signs.words(" \n…") == []


def test_rarity_is_the_logarithm_of_texts_over_texts_with_the_word() -> None:
    found = signs.idf_table(["the cat", "the dog the dog", "the end"])
    assert signs.rarity("the", found) == pytest.approx(math.log(4 / 4))
    assert signs.rarity("dog", found) == pytest.approx(math.log(4 / 2))  # twice in one text counts once
    assert signs.rarity("unseen", found) == pytest.approx(math.log(4 / 1))
    refused(ValueError, "texts", signs.idf_table, [])


def test_specificity_is_that_of_the_three_rarest_words() -> None:
    rare = table(zebra=9, lion=6, animal=3, house=1)
    assert signs.specificity("a zebra, a lion and an animal", rare) == pytest.approx(6.0)
    assert signs.specificity("a zebra, a lion, an animal in a house", rare) == pytest.approx(6.0)  # longer, not more
    assert signs.specificity("zebra zebra zebra", rare) == pytest.approx(3.0)  # said thrice, counted once
    assert signs.specificity("oh yes i do", rare) == 0.0
    assert signs.specificity("", rare) == 0.0


def test_repetition_within_a_reply() -> None:
    # Pairs: red blue, blue sky, sky red, red blue, blue sea, sea red, red blue: two were said before.
    found = signs.repetition("red blue sky red blue sea red blue", [], FLAT)
    assert found.within == pytest.approx(2 / 7)
    assert (found.phrase, found.times) == ("red blue", 3)
    assert found.copied == 0.0
    assert found.share == pytest.approx(2 / 7)
    # Pairs weigh what their content words do: swim and, and i, i like, like to, to swim; here only those with "swim".
    long = signs.repetition("i like to swim and i like to swim", [], FLAT)
    assert (long.phrase, long.times) == ("i like to swim", 2)  # of equally frequent runs the longest
    assert long.within == pytest.approx(1 / 3)
    assert signs.repetition("every word is new", [], FLAT) == signs.Repetition(0.0, 0.0, "", 0)
    assert signs.repetition("", ["hello"], FLAT).share == 0.0
    assert signs.repetition("so", ["so"], FLAT).share == 0.0


def test_little_words_may_come_back() -> None:
    assert signs.repetition("i have a dog and i have a cat", ["i have a garden"], FLAT).share == 0.0
    assert signs.repetition("do you like me and do you like it", [], FLAT).share == 0.0


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        ("i i like dogs", 1),
        ("dogs dogs bark", 1),
        ("No, it's so, it's so, it's so bad.", 1),
        ("We swam in the sea. sea.", 1),
        ("They are crimes, and are crimes, and bad.", 1),
        ("I I go to to work", 2),
        ("Are you leaving? you leaving?", 1),
    ],
)
def test_a_stutter_counts_whichever_words_it_is_of(reply: str, count: int) -> None:
    assert signs.repetition(reply, [], NOTHING_RARE).share == pytest.approx(1 - 0.4**count)


@pytest.mark.parametrize(
    "reply",
    [
        "Yes, I do. Do you?",
        "Paris! Paris is lovely.",
        "It was really, really good.",
        "No, I'm not. Not at all.",
        "Lucky you, you could make a lot of sauce.",
        "I had had enough, bye bye.",
        "J.R.R. Tolkien got 3.3 million.",
        "Ha ha ha ha!",
        "Walla Walla.",
        "My yo-yo and Duran Duran.",
        "She called over and over and over.",
        "This one? This one is light.",
        "He wants to. He wants to go.",
    ],
)
def test_a_word_on_both_sides_of_a_pause_is_no_stutter(reply: str) -> None:
    assert signs.repetition(reply, [], NOTHING_RARE).share == 0.0


def test_a_stutter_is_named() -> None:
    assert signs.repetition("We swam in the sea. sea.", [], FLAT).phrase == "sea"
    found = signs.repetition("i i like dogs", [], FLAT)
    assert (found.phrase, found.times) == ("i", 2)


def test_repetition_of_earlier_turns() -> None:
    earlier = ["Do you like to eat fish?", "No thanks."]
    # Of the content words "well" is none: "eat" and "fish" are two of three.
    found = signs.repetition("well you like to eat fish today", earlier, FLAT)
    assert found.copied == pytest.approx(2 / 3)
    assert found.within == 0.0
    assert signs.repetition("like to eat cake", earlier, FLAT).copied == 0.0  # three words in a row are no copy
    assert signs.repetition("cats to eat fish", earlier, FLAT).copied == 0.0  # also where both end with them
    # A rare word weighs more.
    assert signs.repetition("you like to eat fish today", earlier, table(fish=8, eat=2, today=10)).copied == 0.5
    # What is quoted is spoken about.
    assert signs.repetition('why do you ask "do you like to eat fish"?', earlier, FLAT).copied == 0.0
    both = signs.Repetition(within=0.5, copied=0.5)
    assert both.share == pytest.approx(0.75)


def test_the_order_of_words_is_counted_in_human_replies() -> None:
    texts = ["i like green tea.", "i like green apples.", "do you like tea?", "we drink tea."] * 20
    wording = signs.Wording(*signs.count_runs(texts))
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
    found = signs.fact_use("My dog met a plumber", facts, ["do you like plumbers ?"], FLAT)
    # "plumber" was said before; one word of rarity 5: 5 / (5 + 10).
    assert found.words == ("dog",)
    assert found.amount == pytest.approx(1 / 3)
    two = signs.fact_use("My dog and my brother", facts, ["hi"], FLAT)
    assert two.words == ("brother", "dog")
    assert two.amount == pytest.approx(10 / 20)
    assert signs.fact_use("Nice weather", facts, ["hi"], FLAT) == signs.FactUse(0.0, ())
    assert signs.fact_use("dog dog dog", facts, [], FLAT).amount == pytest.approx(1 / 3)


def test_the_reaction_of_the_other_side() -> None:
    found = signs.reaction(["That is great!", "what?"])
    assert found.engaged == pytest.approx((math.log(4) + math.log(2)) / 2)
    assert (found.positive, found.lively, found.complaining) == (0.5, 0.5, 0.5)
    # Engagement counts up to 3, then warmth, then no complaint.
    assert found.total == pytest.approx((found.engaged / 3 + 0.5 + 0.5) / 3)
    happy = signs.Reaction(engaged=6.0, positive=1.0, lively=1.0, complaining=0.0)
    assert happy.total == pytest.approx(1.0)
    refused(ValueError, "turn", signs.reaction, [])


@pytest.mark.parametrize(
    "turn",
    ["What?", "huh ?", "What do you mean by that", "That makes no sense.", "I do n't understand", "i already told you",
     "Are you a bot?", "why do you keep asking", "You're repeating yourself", "stop it"],
)  # fmt: skip
def test_complaints(turn: str) -> None:
    assert signs.complains(turn)


@pytest.mark.parametrize(
    "turn", ["What is your name?", "I see, that makes sense.", "sorry to hear that", "I told my mum"]
)
def test_what_is_no_complaint(turn: str) -> None:
    assert not signs.complains(turn)


@pytest.mark.parametrize(
    ("turn", "words"),
    [("You idiot!", "you idiot"), ("Well, you are such a complete moron.", "you are such a complete moron"),
     ("What a loser you are", "what a loser you are"), ("Oh shut up, please", "shut up"), ("I hate you", "i hate you")],
)  # fmt: skip
def test_insults_are_quoted(turn: str, words: str) -> None:
    assert signs.insult(turn).lower() == words


@pytest.mark.parametrize(
    "turn",
    ["You are not stupid at all.", "That was a stupid question, sorry.", "Do you keep pigs?", "I felt like a fool.",
     "Don't let them call you a loser.", "He's such a jerk.", 'It said "Keep out, you idiot", so we left.'],
)  # fmt: skip
def test_what_is_no_insult(turn: str) -> None:
    assert signs.insult(turn) == ""


def test_an_echo_is_measured_in_content_words() -> None:
    assert signs.echo("you like pizza", "I like pizza and pasta") == 1.0
    assert signs.echo("pizza tastes good", "I like pizza") == pytest.approx(1 / 3)
    assert signs.echo("oh yes", "oh yes") == 0.0  # words without content echo nothing


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("I do not like coffee at all, I only drink tea.", "I drink coffee every morning."),
        ("I never eat meat, I am a vegan.", "we eat a lot of meat."),
        ("i hate dogs", "My favorite animals are dogs"),
        ("I have three kids.", "i have two kids."),
        ("I'm not married.", "What a day! I am married, and my wife sings."),
        # The same words but for one, or but for a denial of what is no content word.
        ("Yes, my sister works in a bank in Chicago.", "my sister works in a bank in Boston."),
        ("I do like him too.", "Well, I hate him too."),
        ("oh great i did not know that", "I did know that."),
        ("i hate being in nature.", "your persona: i love being in nature."),
        ("I am not so happy with my life.", "I am so happy with my life."),
        ("i never liked pizza", "i like pizza"),
        ("no he wants another one i don't like dancing its relaxing", "i like dancing its relaxing"),  # denied once
    ],
)
def test_what_denies_an_earlier_statement(said: str, before: str) -> None:
    found = signs.contradiction(said, ["hello there", before])
    assert found is not None
    assert found.said in said
    assert found.before.lower() in before.lower()


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("i love dogs", "i love dogs"),
        ("i do not love dogs", "i hate dogs"),  # no and dislike come to the same
        ("Don't you like coffee?", "I like coffee."),  # a question states nothing
        ("You never eat meat.", "I eat meat."),  # the other's habits
        ("I can't wait to see the sea.", "I love the sea."),
        ("I have three kids.", "I have two dogs."),
        ("I do not ski.", "I play chess."),
        ("i have one dog", "i have two dogs and a cat"),  # "one" often counts nothing
        ("i like red apples", "i like green apples"),  # short enough for both to be true
        ("I was glad to see her there.", "I am glad to see her there."),
        ("not as much as you I am serious", "I am serious"),  # what is denied is something else
        ("They were not there lol I was in my nightgown.", "I was in my nightgown."),
        # What denies more than was said restricts it.
        ("We are not open on Sundays.", "We are open from 9 to 5."),
        ("I don't speak French fluently.", "I speak French."),
        ("I don't like pizza with pineapple.", "I love pizza."),
        ("I was married once.", "I am not married."),
        ("", "i have two dogs"),
    ],
)
def test_what_denies_nothing(said: str, before: str) -> None:
    assert signs.contradiction(said, [before]) is None


@pytest.mark.parametrize("word", ["hklk", "kgajag", "ttvcfzx", "zvqqylde", "jfj", "fjlhkg"])
def test_keys_pressed_at_random_are_no_word(word: str) -> None:
    known = signs.Wording(*signs.count_runs(["a good movie"]))
    assert known.mashed(f"It was a good {word} movie.") == word


@pytest.mark.parametrize(
    "text",
    [
        "The NFL and ESPN",
        "rhythm",
        "pbs",
        "a strange schedule",
        "three phrases",
        "lightbulb",
        "Schwartz",
        "hmm",
        "shh",
        "2 tsp of it as pdf",
        "See https://qwrtz.org/sdfgh or sdf@jkl.de",
    ],
)
def test_words_that_are_rare_or_said_are_words(text: str) -> None:
    known = signs.Wording(*signs.count_runs(["the rhythm of pbs", "hmm", "shh"]))
    assert known.mashed(text) == ""
