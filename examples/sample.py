"""Small talk to try things on, written for this project: contexts, what a person said, and what two systems said.

    python examples/sample.py CORPORA      # as a small training corpus, CORPORA/mine/{train,validation}.jsonl,
                                           # and two rows to score, CORPORA/rows.jsonl

Every scene is played once with each of its words, which gives as many rows as FBD and PRD need. One system answers what
was said to it; the other one repeats a few phrases, whatever it is asked.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

PLACES = (
    *("Lisbon", "Prague", "Oslo", "Naples", "Dublin", "Vienna", "Athens", "Porto"),
    *("Cracow", "Seville", "Ghent", "Bergen", "Riga", "Lyon", "Basel"),
)
PEOPLE = (
    *("my sister", "my brother", "my uncle", "my aunt", "my cousin", "my neighbour", "my boss", "my grandmother"),
    *("my old teacher", "my flatmate", "my best friend", "my daughter", "my son", "my nephew", "my doctor"),
)
DISHES = (
    *("lentil soup", "lasagne", "fish pie", "mushroom risotto", "pancakes", "chicken curry", "potato salad"),
    *("onion tart", "dumplings", "apple crumble", "paella", "ratatouille", "noodles", "chilli", "omelettes"),
)
HOBBIES = (
    *("painting", "swimming", "chess", "gardening", "climbing", "pottery", "sailing", "dancing"),
    *("photography", "knitting", "rowing", "baking", "cycling", "fencing", "archery"),
)
THINGS = (
    *("heating", "lift", "printer", "washing machine", "dishwasher", "fridge", "oven", "shower"),
    *("doorbell", "radio", "kettle", "toaster", "television", "boiler", "vacuum cleaner"),
)
PETS = (
    *("dog", "cat", "rabbit", "parrot", "hamster", "pony", "puppy", "kitten"),
    *("goat", "donkey", "duck", "tortoise", "goose", "hen", "lamb"),
)
SUBJECTS = (
    *("maths", "history", "physics", "French", "biology", "geography", "chemistry", "Spanish"),
    *("music", "law", "German", "Latin", "philosophy", "economics", "Italian"),
)


@dataclass(frozen=True)
class Scene:
    """A context, and replies of a person and of a system to it; `{}` stands for one of the words."""

    words: tuple[str, ...]
    context: tuple[str, ...]
    person: str
    system: str


SCENES = (
    Scene(
        PLACES,
        ("What are you doing this weekend?", "I am flying to {} to visit some friends."),
        "That sounds lovely! How long will you stay there?",
        "How nice! Have you been to {} before?",
    ),
    Scene(
        PLACES,
        ("Where did you go on holiday?",),
        "We went to {} for a week. It was wonderful.",
        "I went to {} with my family. We had a great time.",
    ),
    Scene(
        PLACES,
        ("I have just moved to {}.", "Really? Do you like it there?"),
        "Yes, I do. The people are very friendly.",
        "I love it, but it rains quite a lot.",
    ),
    Scene(
        PLACES,
        ("Excuse me, when does the next train to {} leave?",),
        "It leaves at half past ten from platform four.",
        "In twenty minutes. You can buy a ticket over there.",
    ),
    Scene(
        PEOPLE,
        ("Are you free tonight?", "No, I am having dinner with {}."),
        "What a pity. What about tomorrow night?",
        "No problem, maybe another time. Have fun!",
    ),
    Scene(
        PEOPLE,
        ("It is the birthday of {} on Sunday, and I have no present yet.",),
        "How about a nice book or some flowers?",
        "Why don't we go shopping together on Saturday?",
    ),
    Scene(
        PEOPLE,
        ("You look worried. What happened?", "I had an argument with {}."),
        "I am sorry to hear that. What was it about?",
        "Oh no. Do you want to talk about it?",
    ),
    Scene(
        PEOPLE,
        ("Who is that on the phone?",),
        "It is {}. I will be with you in a minute.",
        "That is {}. I have to answer it.",
    ),
    Scene(
        DISHES,
        ("I am hungry. What is for dinner?", "I was going to make {}."),
        "Great, that is my favourite! Can I help you?",
        "That sounds delicious. When will it be ready?",
    ),
    Scene(
        DISHES,
        ("Have you decided yet, madam?",),
        "Yes, I would like the {}, please.",
        "I will have the {} and a glass of water, please.",
    ),
    Scene(
        DISHES,
        ("I tried to cook {} last night.", "How did it turn out?"),
        "Not so well. I used far too much salt.",
        "It was quite good. I can give you the recipe.",
    ),
    Scene(
        DISHES,
        ("Do you like {}?",),
        "Yes, I could eat it every day!",
        "Not really. I prefer something lighter.",
    ),
    Scene(
        HOBBIES,
        ("What do you do in your free time?",),
        "I like {}. I do it every weekend.",
        "I enjoy {}, and I read a lot. What about you?",
    ),
    Scene(
        HOBBIES,
        ("I have started {} this year.", "That is great! Is it difficult?"),
        "It was at first, but I am getting better.",
        "A little, but my teacher is very patient.",
    ),
    Scene(
        HOBBIES,
        ("Would you like to come to my {} club on Thursday?",),
        "I would love to. What time does it start?",
        "Sorry, I have to work on Thursday. Maybe next week?",
    ),
    Scene(
        HOBBIES,
        ("How long have you been interested in {}?",),
        "Since I was a child. My father taught me.",
        "For about five years now. I really enjoy it.",
    ),
    Scene(
        THINGS,
        ("The {} is broken again.", "Oh no. Did you call somebody to repair it?"),
        "Yes, they are coming tomorrow morning.",
        "Not yet. Do you know a good repairman?",
    ),
    Scene(
        THINGS,
        ("How much did you pay for the new {}?",),
        "About two hundred pounds. It was on sale.",
        "It was quite expensive, but it works very well.",
    ),
    Scene(
        THINGS,
        ("Could you show me how the {} works?",),
        "Of course. You just press this button here.",
        "Sure, it is easy. Let me show you.",
    ),
    Scene(
        THINGS,
        ("Can I help you, sir?", "Yes, I bought this {} last week and it does not work."),
        "I am sorry about that. Do you have the receipt?",
        "Let me have a look. We can give you a new one.",
    ),
    Scene(
        PETS,
        ("My {} has not eaten anything since yesterday.",),
        "Poor thing. You should take it to the vet.",
        "Oh dear. Do you think that it is ill?",
    ),
    Scene(
        PETS,
        ("Do you have any pets?", "Yes, I have a {}. Do you?"),
        "No, I do not. My flat is too small.",
        "I used to have one too. What is its name?",
    ),
    Scene(
        PETS,
        ("Who will look after your {} while you are away?",),
        "My neighbour will. She loves animals.",
        "My parents said that they would take care of it.",
    ),
    Scene(
        PETS,
        ("Look at that {}! Isn't it cute?",),
        "Yes, it is adorable! How old is it?",
        "It is so sweet! I want to take it home.",
    ),
    Scene(
        SUBJECTS,
        ("How was your {} exam?",),
        "It was harder than I had expected.",
        "I think it went well. I studied for weeks.",
    ),
    Scene(
        SUBJECTS,
        ("I failed my {} test.", "I am sorry. What are you going to do?"),
        "I will study harder and take it again.",
        "I can take it again next month.",
    ),
    Scene(
        SUBJECTS,
        ("What do you study?", "I am studying {}. It is my second year."),
        "Interesting! What do you want to do afterwards?",
        "That sounds hard. Do you enjoy it?",
    ),
    Scene(
        SUBJECTS,
        ("Can you help me with my {} homework?",),
        "Sure. What is it that you do not understand?",
        "I am busy right now, but I can help you tonight.",
    ),
)
PHRASES = (
    "The library closes at six on Fridays.",
    "I do not know.",
    "You can pay by card at the counter.",
    "There is no milk left in the fridge.",
    "That is a very interesting question.",
    "Two tickets for the late show, please.",
    "My knee has hurt since the marathon.",
    "The meeting was moved to room twelve.",
)

CONTEXTS = [[turn.format(word) for turn in scene.context] for scene in SCENES for word in scene.words]
PERSON = [scene.person.format(word) for scene in SCENES for word in scene.words]
ANSWERS = [scene.system.format(word) for scene in SCENES for word in scene.words]
REPEATS = [PHRASES[number % len(PHRASES)] for number in range(len(CONTEXTS))]


def write_corpus(root: Path) -> None:
    """A hundred conversations of two scenes each, every fifth of them held out; and rows to score."""
    splits: dict[str, list[str]] = {"train": [], "validation": []}
    for count, number in enumerate(range(0, len(CONTEXTS), 4)):
        following = (number + len(CONTEXTS) // 2) % len(CONTEXTS)
        turns = [*CONTEXTS[number], PERSON[number], *CONTEXTS[following], ANSWERS[following]]
        splits["validation" if count % 5 == 4 else "train"].append(json.dumps({"utterances": turns}))
    (root / "mine").mkdir(parents=True, exist_ok=True)
    for split, lines in splits.items():
        (root / "mine" / f"{split}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    rows = [{"context": CONTEXTS[0], "response": reply[0]} for reply in (ANSWERS, REPEATS)]
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]))
