"""Replies with a fault of a known kind, made from sound ones: what the aspects of the judge learn from.

Every function takes the generator that draws, and returns None where the text holds nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import numpy as np

Draw = np.random.Generator

_NUMBERS = "one two three four five six seven eight nine ten".split()
#: Words between which a sentence stays a sentence and says something else.
_EXCHANGES = tuple(
    tuple(group.split())
    for group in (
        "boston chicago paris london texas florida denver seattle toronto berlin",
        "dog cat bird fish horse rabbit hamster",
        "dogs cats birds horses rabbits",
        "red blue green yellow purple orange pink",
        "brother sister cousin uncle aunt",
        "teacher nurse lawyer engineer chef doctor waitress",
        "pizza sushi pasta tacos steak salad",
        "football baseball tennis hockey basketball soccer",
        "guitar piano violin drums flute",
        "summer winter spring autumn",
        "monday tuesday wednesday thursday friday saturday sunday",
        "love hate",
        "always never",
        "married single",
        "morning evening",
        "mother father",
        "mom dad",
        "son daughter",
        "old young",
        "big small",
        "coffee tea beer wine",
        "french spanish german italian chinese japanese",
        "rock jazz country rap classical",
    )
)
_GROUP_OF = {word: group for group in _EXCHANGES for word in group}
_AUXILIARIES = "am is are was were do did have has had can could will would".split()
_NEGATED = {word: f"{word}n't" for word in _AUXILIARIES} | {"am": "am not", "can": "can't", "will": "won't"}
_UNDENIED = {"can't ": "can ", "won't ": "will ", "n't ": " ", " not ": " ", " never ": " "}
_FIRST_VERB = re.compile(
    r"\b(i|we|my \w+) "
    r"(like|love|have|enjoy|want|play|work|live|own|eat|drink|watch|study|speak|need|know|read|drive)\b",
    re.IGNORECASE,
)


# --- wording ---------------------------------------------------------------------------------------


def _shuffled(words: list[str], draw: Draw) -> list[str]:
    return [words[int(index)] for index in draw.permutation(len(words))]


def _shuffled_within_three(words: list[str], draw: Draw) -> list[str]:
    return [word for start in range(0, len(words), 3) for word in _shuffled(words[start : start + 3], draw)]


def _dropped(words: list[str], draw: Draw) -> list[str]:
    kept = sorted(draw.permutation(len(words))[: max(2, int(len(words) * draw.uniform(0.5, 0.75)))])
    return [words[int(index)] for index in kept]


def _doubled(words: list[str], draw: Draw) -> list[str]:
    start = int(draw.integers(len(words) - 1))
    span = words[start : start + int(draw.integers(1, 4))]
    return words[:start] + span * int(draw.integers(2, 4)) + words[start + len(span) :]


def _misinflected(words: list[str], draw: Draw) -> list[str]:
    """Endings and little words of several words broken."""
    swaps = {"a": "an", "an": "a", "is": "are", "are": "is", "was": "were", "has": "have", "have": "has", "the": "",
             "to": "", "i": "me", "do": "does", "does": "do", "am": "is", "my": "me"}  # fmt: skip
    broken = []
    for word in words:
        plain = word.lower()
        if plain in swaps and draw.random() < 0.7:
            broken.append(swaps[plain])
        elif len(plain) > 3 and plain.isalpha() and draw.random() < 0.35:
            broken.append(word[:-1] if plain.endswith("s") else word + str(draw.choice(["s", "ing", "ed"])))
        else:
            broken.append(word)
    return [word for word in broken if word]


def _fragment(words: list[str], draw: Draw) -> list[str]:
    return words[: max(1, int(len(words) * draw.uniform(0.25, 0.6)))]


def _mashed(words: list[str], draw: Draw) -> list[str]:
    """Keys pressed at random, alone or within the reply."""
    keys = "asdfghjkl" if draw.random() < 0.5 else "qwertyuiopasdfghjklzxcvbnm;"
    mash = ["".join(draw.choice(list(keys), size=int(draw.integers(3, 9)))) for _ in range(int(draw.integers(1, 6)))]
    if draw.random() < 0.6:
        return mash
    place = int(draw.integers(len(words)))
    return words[:place] + mash[:3] + words[place:]


#: Ways of damaging the words of a reply; one that is glued to another needs that other one, see `damage`.
DAMAGES: Mapping[str, Callable[[list[str], Draw], list[str]]] = {
    "shuffled": _shuffled,
    "shuffled_within_three": _shuffled_within_three,
    "dropped": _dropped,
    "doubled": _doubled,
    "misinflected": _misinflected,
    "fragment": _fragment,
    "mashed": _mashed,
}


def damage(reply: str, kind: str, draw: Draw) -> str | None:
    """A reply of four words or more, damaged as `kind` of `DAMAGES` says; "glued" drops a cut end onto itself."""
    words = reply.split()
    if len(words) < 4:
        return None
    if kind == "glued":
        cut = int(draw.integers(1, len(words) - 1))
        return " ".join(words[cut:] + words[: max(2, len(words) // 2)]).replace(".", "").replace("?", "")
    broken = " ".join(DAMAGES[kind](words, draw))
    return broken if broken and broken != reply else None


# --- saying otherwise ------------------------------------------------------------------------------


def negated(sentence: str, draw: Draw) -> str | None:
    """The sentence with one of its verbs denied, or no longer denied."""
    for denial, otherwise in _UNDENIED.items():
        if denial in sentence:
            return sentence.replace(denial, otherwise, 1)
    if draw.random() < 0.3 and (verb := _FIRST_VERB.search(sentence)):
        never = f"{verb[1]} never {'had' if verb[2].lower() == 'have' else verb[2] + 'd' * verb[2].endswith('e')}"
        return sentence[: verb.start()] + never + sentence[verb.end() :]
    if verb := _FIRST_VERB.search(sentence):
        return f"{sentence[: verb.start()]}{verb[1]} don't {verb[2]}{sentence[verb.end() :]}"
    words = sentence.split()
    for index, word in enumerate(words):
        before = words[index - 1].lower() if index else ""
        if word.lower() in _NEGATED and before in ("i", "we", "he", "she", "it", "they", "there"):
            return " ".join([*words[:index], _NEGATED[word.lower()], *words[index + 1 :]])
    if sentence.lower().startswith("i'm "):
        return f"I'm not {sentence[4:]}"
    return None


def exchanged(sentence: str, draw: Draw) -> str | None:
    """The sentence with a number, or a word of a closed group (towns, animals, family), exchanged."""
    words = sentence.split()
    candidates = []
    for index, word in enumerate(words):
        plain = word.strip(".,!?;").lower()
        if plain.isdecimal() and len(plain) < 5:
            candidates.append((index, plain, str(int(plain) + int(draw.integers(1, 9)))))
        elif plain in _NUMBERS[1:]:
            candidates.append((index, plain, str(draw.choice([other for other in _NUMBERS[1:] if other != plain]))))
        elif plain in _GROUP_OF:
            candidates.append((index, plain, str(draw.choice([other for other in _GROUP_OF[plain] if other != plain]))))
    if not candidates:
        return None
    index, plain, other = candidates[int(draw.integers(len(candidates)))]
    words[index] = re.sub(re.escape(plain), other, words[index], flags=re.IGNORECASE)
    return " ".join(words)


def contradicted(sentence: str, draw: Draw) -> str | None:
    """The sentence, saying otherwise."""
    first, second = (negated, exchanged) if draw.random() < 0.5 else (exchanged, negated)
    return first(sentence, draw) or second(sentence, draw)


def statement_of(text: str) -> str | None:
    """The first sentence in which somebody says something of themselves."""
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        words = sentence.lower().split()
        if 3 <= len(words) <= 16 and words[0] in ("i", "i'm", "i've", "my", "we") and not sentence.endswith("?"):
            return sentence
    return None


# --- rudeness --------------------------------------------------------------------------------------

_NOUNS = (
    "idiot moron fool loser jerk imbecile dimwit clown creep pig dumbass asshole bastard bitch scumbag halfwit "
    "dunce nitwit blockhead airhead cretin weirdo slob rat worm parasite donkey twit coward freak"
).split()
_ADJECTIVES = (
    "stupid dumb pathetic worthless useless disgusting ugly ridiculous brainless clueless ignorant hopeless lazy "
    "fat boring annoying miserable vile dense braindead"
).split()
_PHRASES = (
    "shut up|shut your mouth|nobody likes you|get lost|go to hell|nobody asked you|you make me sick|i hate you|"
    "screw you|you are a waste of time|drop dead|fuck you|fuck off|what is wrong with you|go away|"
    "you disgust me|no one cares what you think|kiss my ass|bite me|you should be ashamed of yourself|"
    "i don't give a damn about you|you know nothing|piss off|you bore me to death"
).split("|")
_FRAMES = (
    "you {a} {n}|you are such a {n}|you're a {a} {n}|what a {a} {n} you are|are you {a}|how {a} can you be|"
    "only a {n} would say that|you {n}|don't be so {a}, you {n}|you are {a}|listen, {n}"
).split("|")
#: The same words where they are not meant for the other side: denied, of others, of oneself.
_KIND_FRAMES = (
    "you are not {a} at all|you're not a {n}|no, you are not {a}|don't let them call you {a}|he is such a {n}|"
    "nobody should call you a {n}|they had no right to call you a {n}|what a {n} he is|she was so {a} to you|"
    "my boss is a {a} {n}|i feel like a {n}|i was {a} to say that|i am so {a} sometimes|that sounds {a}|"
    "it was a {a} day|you must feel {a}"
).split("|")


def _of_part(words: Sequence[str], held_out: bool) -> list[str]:
    """A fifth of the vocabulary is held out, so that insults are tested by words that were not learned."""
    return [word for word in words if (crc32(word.encode()) % 5 == 0) == held_out]


def insult(draw: Draw, *, held_out: bool = False) -> str:
    """A few rude words to the other side."""
    if draw.random() < 0.35:
        return str(draw.choice(_of_part(_PHRASES, held_out)))
    return _framed(_FRAMES, draw, held_out)


def _framed(frames: Sequence[str], draw: Draw, held_out: bool) -> str:
    noun, adjective = (str(draw.choice(_of_part(part, held_out))) for part in (_NOUNS, _ADJECTIVES))
    return str(draw.choice(frames)).format(a=adjective, n=noun)


def insulting(reply: str, draw: Draw, *, held_out: bool = False) -> str:
    """The reply with an insult before it, behind it, or in its place."""
    return _beside(reply, insult(draw, held_out=held_out), draw)


def civil(reply: str, draw: Draw, *, held_out: bool = False) -> str:
    """The reply with rude words that insult nobody who listens before it, behind it, or in its place."""
    return _beside(reply, _framed(_KIND_FRAMES, draw, held_out), draw)


def _beside(reply: str, rude: str, draw: Draw) -> str:
    rude = rude.capitalize() if draw.random() < 0.5 else rude
    end = str(draw.choice([".", "!", ",", ""]))
    where = draw.random()
    if where < 0.4:
        return f"{rude}{end} {reply}"
    return f"{reply} {rude}{end}" if where < 0.8 else f"{rude}{end}"
