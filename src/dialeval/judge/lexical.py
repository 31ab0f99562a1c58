"""What the words of a reply tell without a network: how rare they are, what repeats, what comes from the facts.

None of it counts how long a reply is: people like long replies in one setting and dislike them in another. Whether a
reply is rude, contradicts itself or is hard to read, heads of the judge say; counts of neighbouring words are one of
their inputs.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dialeval.encoders.layout import tidy

#: Words are counted in this many buckets, so that a checkpoint holds how rare words are without holding the words.
IDF_BUCKETS = 16_384
#: Words in a row that an earlier turn must have said for them to count as copied.
_RUN = 4
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
#: Words that say little by themselves.
_FUNCTION_WORDS = frozenset(
    "a about after again all also am an and any are as at be because been before being but by can could did do does "
    "doing down for from had has have having he her here hers him his how i if in into is it its just me more most my "
    "myself no nor not now of off on once only or other our out over own same she should so some such than that the "
    "their them then there these they this those through to too under until up very was we were what when where which "
    "while who whom why will with would you your yours i'm i'd i've i'll you're you've it's that's don't didn't isn't "
    "doesn't can't won't he's she's they're we're there's what's let's oh well yes yeah ok okay really like know get "
    "got think go going".split()
)
#: What stands in quotation marks, which a reply may take from an earlier turn to speak about it.
_QUOTED = re.compile(r"[\"\u201c][^\"\u201c\u201d]+[\"\u201d]")
#: Blocks and pieces of code: their words are read, their wording is not judged.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


class Text:
    """A text whose words are looked for once, whichever signs read them."""

    def __init__(self, raw: str) -> None:
        self.raw = raw

    @cached_property
    def tidied(self) -> str:
        """As every encoder reads it."""
        return tidy(self.raw)

    @cached_property
    def words(self) -> list[str]:
        """Words in lower case, apostrophes within them kept."""
        return _WORD.findall(self.tidied.lower())

    @cached_property
    def content(self) -> list[str]:
        """Words that carry a topic."""
        return [word for word in self.words if word not in _FUNCTION_WORDS and len(word) > 1]

    @cached_property
    def runs(self) -> frozenset[str]:
        """Runs of so many words that saying them again is copying."""
        return frozenset(_runs(self.words, _RUN))

    @cached_property
    def prose(self) -> str:
        """What is no code."""
        return _CODE.sub(" ", self.raw)

    @property
    def asks(self) -> bool:
        """Whether it ends with a question."""
        return self.raw.rstrip().endswith("?")


class Texts(dict[str, Text]):
    """The texts of some rows, each parsed once."""

    def __missing__(self, raw: str) -> Text:
        self[raw] = text = Text(raw)
        return text


def words(text: str) -> list[str]:
    """See `Text.words`."""
    return Text(text).words


def content_words(text: str) -> list[str]:
    """See `Text.content`."""
    return Text(text).content


# --- rarity ----------------------------------------------------------------------------------------


def _bucket(word: str) -> int:
    return zlib.crc32(word.encode()) % IDF_BUCKETS


def idf_table(texts: Iterable[str]) -> NDArray[np.float32]:
    """How rare the words of each bucket are: log of texts over texts that hold one of them."""
    counts = np.zeros(IDF_BUCKETS, dtype=np.int64)
    total = 0
    for text in texts:
        total += 1
        counts[list({_bucket(word) for word in words(text)})] += 1
    if not total:
        raise ValueError("there are no texts to count words in")
    rare: NDArray[np.float32] = np.log((1 + total) / (1 + counts)).astype(np.float32)
    return rare


def rarity(word: str, table: NDArray[np.floating]) -> float:
    """Inverse document frequency of a word."""
    return float(table[_bucket(word)])


def specificity(reply: Text, table: NDArray[np.floating]) -> float:
    """Mean rarity of the three rarest distinct content words; fewer words count as words without content.

    The mean over all words would fall with every word that is added, the sum would rise.
    """
    return sum(sorted((rarity(word, table) for word in set(reply.content)), reverse=True)[:3]) / 3


# --- repetition ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repetition:
    """What a reply says again, weighted by how rare its words are: "do you have a" may come back."""

    #: Share of its pairs of neighbouring words that it has said before.
    within: float
    #: Share of its words that stand, in runs of four, in an earlier turn.
    copied: float
    #: The run of words said most often, and how often; empty when nothing is repeated.
    phrase: str = ""
    times: int = 0

    @property
    def share(self) -> float:
        """Both together, between 0 and 1."""
        return 1 - (1 - self.within) * (1 - self.copied)


#: An answer takes up words of its question. It repeats the question where so little of it is new.
_NEARLY_ALL = 0.9


def repetition(reply: Text, earlier: Sequence[Text], table: NDArray[np.floating]) -> Repetition:
    """Repeated pairs of words within a reply, and what it copies from earlier turns without quoting it.

    Code names the same things again and again, and takes up the code that it corrects.
    """
    spoken = _QUOTED.sub(" ", reply.prose)
    tokens = reply.words if spoken == reply.raw else Text(spoken).words
    weights = np.array([_weight(word, table) for word in tokens])
    before: set[tuple[str, str]] = set()
    again = whole = 0.0
    for number, pair in enumerate(pairwise(tokens)):
        if pair[0] == pair[1]:
            continue  # "ha ha ha": the head for wording tells emphasis from a stutter
        weight = float(weights[number] + weights[number + 1])
        whole += weight
        again += weight if pair in before else 0.0
        before.add(pair)
    asked = earlier[-1:] if earlier and earlier[-1].asks else ()
    copied = _copied(tokens, weights, earlier[: len(earlier) - len(asked)])
    of_question = _copied(tokens, weights, asked)
    phrase, times = _most_repeated(tokens) if again else ("", 0)
    return Repetition(
        again / whole if whole else 0.0, max(copied, of_question if of_question >= _NEARLY_ALL else 0.0), phrase, times
    )


def _copied(tokens: list[str], weights: NDArray[np.float64], earlier: Sequence[Text]) -> float:
    """Share of the words, by their weights, that stand in runs of an earlier turn."""
    copied = np.zeros(len(tokens), dtype=bool)
    for start, run in enumerate(_runs(tokens, _RUN) if earlier else ()):
        if any(run in turn.runs for turn in earlier):
            copied[start : start + _RUN] = True
    return float(weights[copied].sum() / weights.sum()) if weights.any() else 0.0


def _weight(word: str, table: NDArray[np.floating]) -> float:
    return 0.0 if word in _FUNCTION_WORDS else rarity(word, table)


def _runs(tokens: Sequence[str], length: int) -> list[str]:
    return [" ".join(tokens[start : start + length]) for start in range(len(tokens) - length + 1)]


def _most_repeated(tokens: list[str]) -> tuple[str, int]:
    """The longest of the runs of two to five words that occur most often."""
    best: tuple[int, int, str] = (1, 0, "")
    for length in range(2, 6):
        counts = Counter(zip(*(tokens[start:] for start in range(length)), strict=False))
        if counts:
            run, times = counts.most_common(1)[0]
            if times > 1 and (times, length) > best[:2]:
                best = (times, length, " ".join(run))
    return best[2], best[0] if best[2] else 0


def echo(reply: Text, previous: Text) -> float:
    """Share of a reply's content words that the turn before it said."""
    before = set(previous.content)
    return sum(word in before for word in reply.content) / len(reply.content) if reply.content else 0.0


# --- wording ---------------------------------------------------------------------------------------

#: So many runs of one to three words are counted, the most frequent ones.
RUNS = 2**20
#: Counts are kept as logarithms in so many steps each, in one byte.
_STEPS = 16
#: So many words stand for all that were never said.
_NEVER_SAID = 2**16
_WORD_OR_STOP = re.compile(_WORD.pattern + r"|[.?!]")


def _in_order(text: str) -> list[str]:
    """The words of a text, with a full stop before, between and after its sentences."""
    parts = ("." if part in "?!" else part for part in _WORD_OR_STOP.findall(tidy(text).lower()))
    return [".", *parts, "."]


def _keys(runs: Sequence[str]) -> NDArray[np.int32]:
    return np.array([zlib.crc32(run.encode()) for run in runs], dtype=np.uint32).view(np.int32)


def count_runs(texts: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """How often runs of words stand in human replies: keys in order, and counts. The empty run counts all words."""
    counts: Counter[str] = Counter()
    for text in texts:
        tokens = _in_order(text)
        counts[""] += len(tokens)
        for length in (1, 2, 3):
            counts.update(_runs(tokens, length))
    kept = sorted(counts, key=lambda run: (-counts[run], run))[:RUNS]
    keys, places = np.unique(_keys(kept), return_inverse=True)
    totals = np.bincount(places, weights=[counts[run] for run in kept])
    steps = np.clip(np.round(_STEPS * np.log1p(totals)), 0, 255).astype(np.uint8)
    missing = (0, RUNS - len(keys))
    return np.pad(keys, missing, mode="edge"), np.pad(steps, missing)


class Wording:
    """How usual the words of a reply and their order are, by the runs that `count_runs` counted."""

    #: What `of` tells.
    SIGNS = 5

    def __init__(self, keys: NDArray[np.int32], counts: NDArray[np.uint8]) -> None:
        self._keys, self._steps = keys, counts
        self._total = float(self._counts([""])[0]) + _NEVER_SAID

    def _counts(self, runs: Sequence[str]) -> NDArray[np.float64]:
        wanted = _keys(runs)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[places] == wanted, np.expm1(self._steps[places] / _STEPS), 0.0)

    def of(self, text: str) -> tuple[float, ...]:
        """How much more likely its words are behind the two before them than anywhere (in logarithms): the mean, the
        mean of the lowest quarter, and that of the last full stop; the share of words that nobody has said; and how
        many runs of up to three words stand twice on end, three at most.
        """
        tokens = _in_order(text)
        single, double, triple = (self._counts(_runs(tokens, length)) for length in (1, 2, 3))
        anywhere = (single + 1) / self._total
        likely = (double + anywhere[1:]) / (single[:-1] + 1)
        likely[1:] = (triple + likely[1:]) / (np.maximum(double[:-1], triple) + 1)
        gains = np.log(likely / anywhere[1:])
        gains[[pair == (".", ".") for pair in pairwise(tokens)]] = 0.0
        lowest = np.sort(gains)[: max(1, len(gains) // 4)]
        unknown = float((single < 1).mean())
        return float(gains.mean()), float(lowest.mean()), float(gains[-1]), unknown, float(min(_doubled(tokens), 3))


def _doubled(tokens: Sequence[str]) -> int:
    """Runs of up to three words that stand there twice on end."""
    start = count = 0
    while start < len(tokens):
        length = next(
            (size for size in (1, 2, 3) if tokens[start : start + size] == tokens[start + size : start + 2 * size]), 0
        )
        count += length > 0
        start += length or 1
    return count


# --- facts -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FactUse:
    """Which words of the facts a reply brings in."""

    #: Rarity of these words, saturating: between 0 and 1.
    amount: float
    words: tuple[str, ...]


#: Half of what can be reached: two words that one reply in 150 holds.
_HALF = 10.0


def fact_use(reply: Text, facts: Sequence[Text], context: Sequence[Text], table: NDArray[np.floating]) -> FactUse:
    """Content words that the facts hold and the context has not used yet."""
    known = {_stem(word) for fact in facts for word in fact.content}
    used = {_stem(word) for turn in context for word in turn.words}
    unsaid = known - used
    fresh = {_stem(word): word for word in reply.content if _stem(word) in unsaid}
    weight = sum(rarity(word, table) for word in fresh.values())
    return FactUse(weight / (weight + _HALF), tuple(sorted(fresh.values())))


def _stem(word: str) -> str:
    """Plural and simple verb endings off, so that "dogs" finds "dog"."""
    for ending in ("'s", "ies", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word
