"""Plain signs of a reply and of a conversation: what its words alone tell, without any network.

Each sign is one number that a reader can recount by hand, so an explanation can name the words behind it. None of
them counts how long a reply is: people like long replies in one setting and dislike them in another.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from dialeval.engine.formatting import tidy

#: Words are counted in this many buckets, so that a checkpoint holds how rare words are without holding the words.
IDF_BUCKETS = 16_384

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
_POSITIVE = frozenset(
    "love loved great good nice cool awesome amazing fun funny happy glad thanks thank interesting wonderful best "
    "haha lol wow sweet excellent perfect enjoy enjoyed fantastic lovely beautiful exciting excited agree "
    "definitely absolutely cute neat".split()
)
_NEGATIONS = frozenset("not never no none nobody nothing neither nor cannot without".split())
#: What only sounds like a negation.
_NO_NEGATION = re.compile(
    r"\b(?:can(?:no|')t wait|not (?:only|much|sure|just)|no (?:wonder|worries|problem|doubt))\b", re.IGNORECASE
)
_LIKING = frozenset("like likes liked love loves loved enjoy enjoys enjoyed favorite favourite adore".split())
_DISLIKING = frozenset("hate hates hated dislike dislikes despise loathe".split())
_PAST = frozenset("was wasn't were weren't once used ago".split())
_FIRST_PERSON = frozenset("i me my mine i'm i'd i've i'll we our we're we've myself".split())
#: Words that say little of what a statement is about.
_VAGUE = frozenset(
    "much lot ever any even actually sure know think heard yet see say said time thing things good want something "
    "anything".split()
)
_NUMBERS = {word: number for number, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_ABOUT_NOTHING = _NEGATIONS | _VAGUE | _LIKING | _DISLIKING | _NUMBERS.keys()
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
#: What parts words that stand side by side.
_PAUSE = re.compile(r"[.!?;:,…]+(?=\s|$)|\s[-–—]+\s")
#: What people say twice for emphasis, or because grammar has it so.
_SAID_TWICE = frozenset(
    "very really so much more many long far never ever again no yes yeah yep ha haha hey hi hello bye oh wow ok "
    "okay well thanks now knock night there come go had that la na yay woo hoo tut tsk meow woof tick beep".split()
)
#: Words with capitals side by side (Walla Walla, Duran Duran), or a hyphen between equal ones (yo-yo): a name.
_NAME_OF_TWO = re.compile(r"\b([A-Z][a-z]+)(?: \1)+\b|\b(\w+)(?:-\2)+\b")
#: Letters and numbers stand twice in names: J.R.R, 3.3.
_SPELLED = re.compile(r"[^\Wia]|\d+")
_CLAUSE = re.compile(
    r"[.!?;:,]+|\b(?:but|and|because|although|though|so(?= (?:i|we|you|he|she|it|they|that|there|my)\b))\b",
    re.IGNORECASE,
)
#: What people say to a partner that has lost them.
_COMPLAINT = re.compile(
    "|".join(
        (
            r"^(?:what|huh|pardon|sorry|excuse me|um+|uh+)\s*\?+",
            r"\bwhat (?:do|are|did) you (?:mean|talking|say)\b",
            r"\b(?:makes?|made) no sense\b",
            r"n't (?:make (?:any )?sense|understand|follow|get it)\b",
            r"\b(?:i|you) (?:already|just) (?:said|told|asked|answered|mentioned)\b",
            r"\b(?:i said|you said that|are you (?:a )?(?:bot|robot|ok|okay|listening|even))\b",
            r"\bnot (?:what i|an answer|relevant)\b",
            r"\byou(?:'re| are) (?:not|repeating|weird|confus\w*)\b",
            r"\bstop (?:saying|repeating|asking|it|that)\b",
            r"\bwhy (?:do|did|are) you (?:keep|say|ask)",
            r"\b(?:wrong|confus\w+|weird|boring|stupid|dumb|nonsense|repeat\w*|off topic|never ?mind|whatever)\b",
        )
    ),
    re.IGNORECASE,
)

#: What people call whom they want to hurt.
_RUDE = (
    r"(?:stupid|dumb|idiot\w*|moron\w*|imbecile|dumbass|jackass|losers?|jerks?|assholes?|ass|bastards?|bitch\w*|whore|"
    r"slut|cunt|twat|twit|nitwit|dimwit|halfwit|cretin|dunce|blockhead|airhead|freak|weirdo|coward|douche\w*|wanker|"
    r"pervert|retard\w*|scum\w*|swine|pig|worthless|pathetic|useless|hopeless|clueless|disgusting|brainless|"
    r"brain ?dead|ignorant|ugly|fool|clown|creep|dick\w*|prick|parasite|vermin|"
    r"(?:piece|sack|load|waste) of (?:shit|crap|garbage|trash|time|space))"
)
#: What may stand between "you" and that; nothing that takes it back.
_BETWEEN = (
    rf"(?:(?:are|re|r|were|look|sound|seem|must|be|being|such|so|as|an?|the|really|very|just|all|only|fucking|damn|"
    rf"total|absolute|complete|utter|little|big|fat|old|boring|annoying|ridiculous|{_RUDE})[ ,'’]+){{0,5}}"
)
#: What is meant to hurt whom it is said to.
_INSULT = re.compile(
    "|".join(
        (
            rf"(?<!call )(?<!calls )(?<!called )(?<!calling )(?<!made )(?<!make )(?<!makes )\b(?:you|u|ya|youre)[ ,'’]+"
            rf"{_BETWEEN}{_RUDE}\b(?! (?:question|idea|thing|of you|to|for|that))",
            rf"\b(?:are|how|what an?|only an?) {_BETWEEN}{_RUDE} (?:can you be|you are|are you|would say that)\b",
            rf"^(?:listen|hey|look),? {_RUDE}\b",
            r"\bshut (?:the \w+ )?(?:up|your (?:mouth|face|trap))\b",
            r"\b(?:f+u+c+k+|screw|curse) (?:you|off|yourself)\b|\bpiss off\b|\bgo to hell\b|\bdrop dead\b",
            r"\bkiss my ass\b|\bgo (?:kill|hang|screw) yourself\b|\byou (?:disgust|sicken|bore) me\b",
            r"\b(?:i|we|everyone|everybody) (?:hates?|despises?|can't stand) you\b|\byou make me sick\b",
            r"\b(?:nobody|no one) (?:likes|asked|loves|wants) you\b",
        )
    ),
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """Words in lower case, apostrophes within them kept."""
    return _WORD.findall(tidy(text).lower())


def content_words(text: str) -> list[str]:
    """Words that carry a topic."""
    return [word for word in words(text) if word not in _FUNCTION_WORDS and len(word) > 1]


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
    rarity: NDArray[np.float32] = np.log((1 + total) / (1 + counts)).astype(np.float32)
    return rarity


def rarity(word: str, table: NDArray[np.floating]) -> float:
    """Inverse document frequency of a word."""
    return float(table[_bucket(word)])


def rarest(response: str, table: NDArray[np.floating]) -> list[str]:
    """The three rarest distinct content words, or as many as there are; of equal ones those said first."""
    return sorted(dict.fromkeys(content_words(response)), key=lambda word: -rarity(word, table))[:3]


def specificity(response: str, table: NDArray[np.floating]) -> float:
    """Mean rarity of the three rarest distinct content words; fewer words count as words without content.

    The mean over all words would fall with every word that is added, the sum would rise.
    """
    return sum(rarity(word, table) for word in rarest(response, table)) / 3


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


#: What stands in quotation marks, which a reply may take from an earlier turn to speak about it.
_QUOTED = re.compile(r"[\"\u201c][^\"\u201c\u201d]+[\"\u201d]")


def repetition(response: str, earlier: Sequence[str], table: NDArray[np.floating]) -> Repetition:
    """Repeated pairs of words within a reply, and what it copies from earlier turns without quoting it."""
    parts = _parts(_QUOTED.sub(" ", response))
    said = [word for part in parts for word in part]
    weights = np.array([_weight(word, table) for word in said])
    before: set[tuple[str, str]] = set()
    stutters = _stutters(parts)
    again = whole = 0.0
    for part in parts:
        for pair in pairwise(part):
            if pair[0] == pair[1] and pair[0] not in _SAID_TWICE:
                continue  # a stutter
            weight = _weight(pair[0], table) + _weight(pair[1], table)
            whole += weight
            again += weight if pair in before else 0.0
            before.add(pair)
    known = {run for turn in earlier for run in _runs(words(turn), _RUN)}
    copied = np.zeros(len(said), dtype=bool)
    for start, run in enumerate(_runs(said, _RUN)):
        if run in known:
            copied[start : start + _RUN] = True
    phrase, times = _most_repeated(said) if again else ("", 0)
    if not phrase and stutters:
        phrase, times = " ".join(stutters[0]), 2
    once = float(again / whole) if whole else 0.0
    return Repetition(
        1 - (1 - once) * (1 - _STUTTER) ** len(stutters),
        float(weights[copied].sum() / weights.sum()) if weights.any() else 0.0,
        phrase,
        times,
    )


_RUN = 4
#: What a stutter, of whichever words, comes to among other repetition: few human replies repeat so much.
_STUTTER = 0.6


def _parts(text: str) -> list[list[str]]:
    """The words between pauses; a name that says a word twice says it once."""
    once = _NAME_OF_TWO.sub(
        lambda name: name[0] if (name[1] or "").lower() in _FUNCTION_WORDS else name[1] or name[2], text
    )
    return [part for between in _PAUSE.split(tidy(once)) if (part := words(between))]


def _stutters(parts: Sequence[Sequence[str]]) -> list[list[str]]:
    """Runs of up to three words that stand there twice on end: "it's so, it's so bad", "The sea. sea."

    Over a pause people go on with the same words: "I bet! I bet you do.", "Yes, I do. Do you?", "Paris! Paris it is."
    """
    said = [word for part in parts for word in part]
    ends = set(accumulate(map(len, parts)))
    found = []
    at = 0
    while at < len(said):
        length = next((one for one in (1, 2, 3) if _stutters_at(said, ends, at, one)), 0)
        if length:
            found.append(said[at : at + length])
        at += length or 1
    return found


def _stutters_at(said: Sequence[str], ends: Collection[int], at: int, length: int) -> bool:
    run, seam, end = said[at : at + length], at + length, at + 2 * length
    if run != said[seam:end] or (length == 1 and (run[0] in _SAID_TWICE or _SPELLED.fullmatch(run[0]))):
        return False
    if length > 1 and (len(set(run)) == 1 or (length == 2 and "and" in run)):  # ha ha ha ha; again and again and again
        return False
    its_end = end in ends and at > 0 and at not in ends
    return seam not in ends or its_end or (length > 1 and run == said[end : end + length])


def _weight(word: str, table: NDArray[np.floating]) -> float:
    return 0.0 if word in _FUNCTION_WORDS else rarity(word, table)


def _runs(said: list[str], length: int) -> list[str]:
    return [" ".join(said[at : at + length]) for at in range(len(said) - length + 1)]


def _most_repeated(said: list[str]) -> tuple[str, int]:
    """The longest of the runs of two to five words that occur most often."""
    best: tuple[int, int, str] = (1, 0, "")
    for length in range(2, 6):
        counts = Counter(zip(*(said[start:] for start in range(length)), strict=False))
        if counts:
            run, times = counts.most_common(1)[0]
            if times > 1 and (times, length) > best[:2]:
                best = (times, length, " ".join(run))
    return best[2], best[0] if best[2] else 0


#: So many runs of one to three words are counted, the most frequent ones.
RUNS = 2**20
#: Counts are kept as logarithms in so many steps each, in one byte.
_STEPS = 16
#: So many words stand for all that were never said.
_NEVER_SAID = 2**16
_WORD_OR_STOP = re.compile(_WORD.pattern + r"|[.?!]")


def _in_order(text: str) -> list[str]:
    """The words of a text, with a full stop before, between and after its sentences."""
    found = (one if one not in "?!" else "." for one in _WORD_OR_STOP.findall(tidy(text).lower()))
    return [".", *found, "."]


def _keys(runs: Sequence[str]) -> NDArray[np.int32]:
    return np.array([zlib.crc32(run.encode()) for run in runs], dtype=np.uint32).view(np.int32)


def count_runs(texts: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """How often runs of words stand in human replies: keys in order, and counts. The empty run counts all words."""
    counts: Counter[str] = Counter()
    for text in texts:
        said = _in_order(text)
        counts[""] += len(said)
        for length in (1, 2, 3):
            counts.update(_runs(said, length))
    kept = sorted(counts, key=lambda run: (-counts[run], run))[:RUNS]
    keys, places = np.unique(_keys(kept), return_inverse=True)
    totals = np.bincount(places, weights=[counts[run] for run in kept])
    steps = np.clip(np.round(_STEPS * np.log1p(totals)), 0, 255).astype(np.uint8)
    missing = (0, RUNS - len(keys))
    return np.pad(keys, missing, mode="edge"), np.pad(steps, missing)


#: Letters as keys pressed at random give them: no vowel, neighbours on the keyboard that are none in English, more
#: consonants than a syllable has.
_MASH = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{3,}|[a-z]*[bcdfghjklmnpqrstvwxz]{5,}[a-z]*"
    r"|(?=[a-z]*(?:j[dfghkls]|[fghkls]j|[dfhg]k|k[dfg]|[fh]g|g[df]|[lf]h|h[dgl]|df))[asdfghjkl]{4,}"
    r"|(?!s[cpt][hlr]|s[hkqw]r|[cst]hr|chl|phr|phl|sch|spl|sph)[bcdfghjklmnpqrstvwxz]{3}[a-z]*"
)


#: What has no vowel and is no mash.
_SHORT_FORMS = frozenset(
    "tsp tbsp str pdf http https html css sql xml png jpg jpeg svg txt csv php ssh url mph kph rpm lbs hrs wks yrs "
    "pls plz thx thnx ppl srsly msg brb btw tmrw idk smh nvm ngl tbh lmk wdym hmu hmm shh psst pfft grr brr mmm".split()
)
#: Addresses of pages, files and people.
_ADDRESS = re.compile(r"\S*[/\\@]\S*")


class Wording:
    """How usual the words of a reply and their order are, by the runs that `count_runs` found."""

    #: What `of` tells.
    SIGNS = 5

    def __init__(self, keys: NDArray[np.int32], counts: NDArray[np.uint8]) -> None:
        self._keys, self._steps = keys, counts
        self._total = float(self._counts([""])[0]) + _NEVER_SAID

    def _counts(self, runs: Sequence[str]) -> NDArray[np.float64]:
        wanted = _keys(runs)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, np.expm1(self._steps[at] / _STEPS), 0.0)

    def mashed(self, text: str) -> str:
        """The first word that nobody has said and that is no word by its letters; names and acronyms have capitals."""
        strange = [word for word in _WORD.findall(tidy(_ADDRESS.sub(" ", text))) if _MASH.fullmatch(word)]
        return next((word for word in strange if word not in _SHORT_FORMS and not self._counts([word])[0]), "")

    def of(self, text: str) -> tuple[float, ...]:
        """How much more likely its words are behind the two before them than anywhere (in logarithms): the mean, the
        mean of the lowest quarter, and that of the last full stop; the share of words that nobody has said; and how
        many runs of up to three words stand twice in a row, three at most.
        """
        said = _in_order(text)
        one, two, three = (self._counts(_runs(said, length)) for length in (1, 2, 3))
        anywhere = (one + 1) / self._total
        likely = (two + anywhere[1:]) / (one[:-1] + 1)
        likely[1:] = (three + likely[1:]) / (np.maximum(two[:-1], three) + 1)
        found = np.log(likely / anywhere[1:])
        found[[pair == (".", ".") for pair in pairwise(said)]] = 0.0
        again = len(_stutters(_parts(text)))
        lowest = np.sort(found)[: max(1, len(found) // 4)]
        unknown = float((one < 1).mean())
        return float(found.mean()), float(lowest.mean()), float(found[-1]), unknown, float(min(again, 3))


@dataclass(frozen=True)
class FactUse:
    """Which words of the facts a reply brings in."""

    #: Rarity of these words, saturating: between 0 and 1.
    amount: float
    words: tuple[str, ...]


#: Rarity of about one telling word.
_ONE_WORD = 5.0


def fact_use(response: str, facts: Sequence[str], context: Sequence[str], table: NDArray[np.floating]) -> FactUse:
    """Content words that the facts hold and the context has not used yet."""
    known = {_stem(word) for fact in facts for word in content_words(fact)}
    used = {_stem(word) for turn in context for word in words(turn)}
    fresh = {_stem(word): word for word in content_words(response) if _stem(word) in known - used}
    weight = sum(rarity(word, table) for word in fresh.values())
    return FactUse(weight / (weight + 2 * _ONE_WORD), tuple(sorted(fresh.values())))


def _stem(word: str) -> str:
    """Plural and simple verb endings off, so that "dogs" finds "dog"."""
    for ending in ("'s", "ies", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@dataclass(frozen=True)
class Contradiction:
    """A statement of a reply and an earlier one of the same speaker that cannot both be true."""

    said: str
    before: str


def statements(text: str) -> list[str]:
    """What a speaker says of themselves, clause by clause; questions state nothing."""
    sentences = (sentence for sentence in _SENTENCE.split(tidy(text)) if not sentence.strip().endswith("?"))
    clauses = (clause.strip() for sentence in sentences for clause in _CLAUSE.split(sentence))
    return [clause for clause in clauses if _FIRST_PERSON & set(words(clause))]


def contradiction(response: str, own: Sequence[str]) -> Contradiction | None:
    """The first statement of a reply that denies, or counts otherwise, what its speaker said of the same thing.

    One of the two says no and the other does not, or one likes what the other dislikes, and who says no is about
    nothing that the other is not about; or both count the same thing and come to another number; or the shorter ends
    the longer but for a denial or, of five words or more, for one that matters. What takes knowledge of the world to
    see is not seen.
    """
    for said in statements(response):
        for before in (one for turn in own for one in statements(turn)):
            if _are_at_odds(said, before):
                return Contradiction(said, before)
    return None


def _are_at_odds(one: str, other: str) -> bool:
    said, before = _undenied(one), _undenied(other)
    length = min(len(said), len(before))
    both = list(zip(said[-length:], before[-length:], strict=True))
    differing = [(word, earlier) for (word, _), (earlier, _) in both if word != earlier]
    denied = sum(denials + of_earlier for (_, denials), (_, of_earlier) in both) % 2 == 1
    contrary = denied != _feel_differently(one, other)
    if length >= 3 and not differing:
        return contrary
    other_word = length >= 5 and len(differing) == 1 and not _FUNCTION_WORDS & set(differing[0])
    return (other_word and not contrary) or _denies(one, other) or _counts_otherwise(one, other)


def _denies(one: str, other: str) -> bool:
    """Whether one says no, and is about nothing that the other is not about: "I don't speak French fluently" leaves "I
    speak French" as it is, and so does what was so once."""
    if (_is_negated(one) != _is_negated(other)) == _feel_differently(one, other) or _is_past(one) != _is_past(other):
        return False
    no, yes = map(_about, (one, other) if _says_no(one) else (other, one))
    always = "never" in words(one) + words(other)  # "never in my life" restricts nothing
    return bool(no and yes) and (no <= yes or (always and yes <= no))


def _says_no(clause: str) -> bool:
    return _is_negated(clause) != bool(_DISLIKING & set(words(clause)))


def _is_past(clause: str) -> bool:
    return bool(_PAST & set(words(clause)))


def _counts_otherwise(one: str, other: str) -> bool:
    counted, of_other = _counted(one), _counted(other)
    return any(counted[thing] != of_other[thing] for thing in counted.keys() & of_other.keys())


def _undenied(clause: str) -> list[tuple[str, int]]:
    """Stems of a statement without what denies it, and how often each is denied: "I don't like" and "I hate" are the
    same."""
    plain = _NO_NEGATION.sub(lambda found: found[0].split()[-1], clause)
    opened = " ".join(words(plain)).replace("'m", " am").replace("n't", " not").split()
    found = []
    denials = 0
    for word in opened:
        if word in _NEGATIONS:
            denials += 1
        elif word not in ("do", "does", "did", "ca", "wo"):
            found.append((_stem("like" if word in _LIKING | _DISLIKING else word), denials))
            denials = 0
    return found


def _is_negated(clause: str) -> bool:
    said = words(_NO_NEGATION.sub(" ", clause))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in said) % 2 == 1


def _feel_differently(one: str, other: str) -> bool:
    said, before = set(words(one)), set(words(other))
    return bool((said & _LIKING and before & _DISLIKING) or (said & _DISLIKING and before & _LIKING))


def _about(clause: str) -> set[str]:
    """Stems of the words that a statement is about."""
    plain = (word for word in content_words(clause) if not word.endswith("n't") and not word.isdecimal())
    return {_stem(word) for word in plain if word not in _ABOUT_NOTHING}


def _counted(clause: str) -> dict[str, int]:
    """The number that stands before each word, "one" aside, which often counts nothing."""
    found = {}
    for number, thing in pairwise(words(clause)):
        value = int(number) if number.isdecimal() and len(number) < 4 else _NUMBERS.get(number, 1)
        if value != 1:
            found[_stem(thing)] = value
    return found


@dataclass(frozen=True)
class Reaction:
    """How one side takes what the other says, over one or more of its turns."""

    #: Logarithm of the words a turn.
    engaged: float
    #: Share of turns with a positive word.
    positive: float
    #: Share of turns with an exclamation mark.
    lively: float
    #: Share of turns that complain or do not follow.
    complaining: float

    @property
    def total(self) -> float:
        """One number: engagement, warmth and no complaints, in equal parts."""
        warm = (self.positive + self.lively) / 2
        return (min(1.0, self.engaged / 3) + warm + 1 - self.complaining) / 3


def reaction(turns: Sequence[str]) -> Reaction:
    """Signs of a user's own turns."""
    if not turns:
        raise ValueError("there is no turn to read a reaction from")
    said = [words(turn) for turn in turns]
    return Reaction(
        engaged=float(np.mean([np.log1p(len(one)) for one in said])),
        positive=float(np.mean([is_warm(turn) for turn in turns])),
        lively=float(np.mean(["!" in turn for turn in turns])),
        complaining=float(np.mean([complains(turn) for turn in turns])),
    )


def insult(text: str) -> str:
    """The words of a text that insult whom it is said to; empty where there are none, or where it only quotes them."""
    found = _INSULT.search(tidy(_QUOTED.sub(" ", text)))
    return found[0].strip(" ,.!?") if found else ""


def is_warm(turn: str) -> bool:
    """Whether a turn holds a positive word."""
    return any(word in _POSITIVE for word in words(turn))


def complains(turn: str) -> bool:
    """Whether a turn says that the other side does not make sense."""
    return _COMPLAINT.search(tidy(turn).strip()) is not None


def echo(response: str, previous: str) -> float:
    """Share of a reply's content words that the turn before it said."""
    said = content_words(response)
    before = set(content_words(previous))
    return sum(word in before for word in said) / len(said) if said else 0.0
