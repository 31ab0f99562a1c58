"""Where numbers mislead: text that is not English, replies that are cut, and replies that are all the same.

Each caution is one sentence about a set of replies. A language is told by its script and its function words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dialeval.core.exchange import Dialogue, Exchange, is_blank

ENGLISH = "en"

_LETTERS_ONLY = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ENGLISH_WORDS = frozenset(
    "the a an and or but of to in on at for with from by about as is are was were be been am do does did have has had "
    "will would can could should i you he she it we they me him her us them my your his its our their this that these "
    "those there here what who when where why how which not no yes so if then than very just too also really like know "
    "think go get got good well all some any more much one it's i'm don't that's you're".split()
)
#: Function words of neighbours that English texts do not hold, one language each; a word of two languages counts
#: for both.
_WORDS = {
    "de": "ich du er sie wir ihr nicht und oder aber das der den dem ein eine einen einem ist sind bin bist habe hast "
    "haben hatte wird werden würde kann könnte mit von zu auf für nach bei auch noch nur schon sehr wie wo wenn "
    "weil dass ja nein mein meine dein es gibt mir dir mich dich sich uns gut danke bitte heute zum zur vom beim "
    "vielleicht leider schade mal hier doch keine ihnen wieder",
    "fr": "je tu il elle nous vous ils et ou mais le la les un une des du est sont suis es ai avez avons pas ne que "
    "qui pour avec dans sur ce cette c'est j'ai mon ma mes ton ta tes votre très bien oui non merci aussi comme "
    "quand où être fait moi toi au aux bonjour",
    "es": "yo tú él ella nosotros y o pero el la los las un una unos del es son soy eres estoy está están he has hay "
    "que quien para con por en muy bien sí mi tu su gracias también como cuando donde qué cómo ser tengo tiene "
    "de si nos hola me gusta",
    "it": "io tu lui lei noi voi e o ma il lo la gli le un una della del di è sono sei ho hai abbiamo non che chi per "
    "con in su molto bene sì mio mia tuo grazie anche come quando dove cosa essere ciao mi ti si questo questa",
    "pt": "eu tu ele ela nós você e ou mas o os as um uma do da é são sou está estou tenho não que quem para com por "
    "em muito bem sim meu minha seu obrigado obrigada também como quando onde ser de se olá",
    "nl": "ik jij je hij zij wij niet en of maar het de een is zijn ben bent heb hebt heeft met van naar op voor bij "
    "ook nog heel goed ja nee mijn jouw dat dit waar als dank wat hoe geen",
    "sv": "jag du han hon vi ni inte och eller men det den en ett är har hade med av till på för från också mycket "
    "bra ja nej min din som när var hur tack",
    "da": "jeg du han hun vi ikke og eller men det den en et er har havde med af til på for fra også meget godt ja "
    "nej min din som når hvor hvordan tak",
    "fi": "minä sinä hän me te he ja on ei että mutta niin kuin tämä se olen olet oli ovat myös hyvä hyvää kiitos mitä "
    "missä miten kun tai nyt sitten ole olisi minun sinun",
    "hu": "én te ő mi ti ők és vagy de hogy nem van vagyok egy ez az igen jó nagyon köszönöm mit hol "
    "mikor miért is volt",
    "cs": "já ty ona my vy oni nebo jak máte máš ale že ne je jsem jsi jsou se co kdo kde kdy velmi dobře ano děkuji "
    "mám na to",
    "ro": "eu tu el ea noi voi și sau dar că nu este sunt am ai are un o la cu pentru foarte bine da "
    "mulțumesc ce unde cum",
    "pl": "ja ty on ona my nie i lub ale to jest są jestem mam masz ma z do na w że się co kto jak gdzie kiedy bardzo "
    "dobrze tak mój moja dziękuję też dla czy",
    "tr": "ben sen o biz siz ve veya ama bu şu bir değil var yok mı mi için ile çok iyi evet hayır ne nasıl nerede da "
    "de teşekkür ederim",
    "id": "saya aku kamu dia kami kita dan atau tapi yang ini itu tidak bukan ada adalah di ke dari untuk dengan "
    "sangat baik ya apa siapa bagaimana terima kasih juga sudah akan bisa",
}
#: English words that are function words elsewhere, too: they tell nothing.
_AMBIGUOUS = _ENGLISH_WORDS | set("die war hat man du on or us hay son ten met ben van me o e i y ma my dear".split())
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in set(_words.split()) - _AMBIGUOUS:
        _LANGUAGES.setdefault(_word, []).append(_language)
#: Letters that one language has and its neighbours on this list have not.
_LETTERS = {letter: language for language, letters in {
    "pl": "ąęłżźśćń", "tr": "ğşı", "hu": "őű", "cs": "řůě", "ro": "țșă", "vi": "ỏĩũơưđạảậấầẩẫắặềếểệịọồốổộờớợụừứựỳỷỹ",
    "de": "ß", "es": "ñ¿¡", "pt": "ãõ",
}.items() for letter in letters}  # fmt: skip
#: Names inside a sentence, such as Los Angeles and Jean de la Fontaine: their words tell no language.
_NAMES = re.compile(
    r"(?<=[\w,;:] )[A-ZÀ-Þ][\w'’-]*(?: (?:del?|l[aeo]s?|du|d[eo]s|di|v[ao]n(?: de[rn]?)?))*(?: [A-ZÀ-Þ][\w'’-]*)+"
)
#: Inside a sentence nobody but English writers has a capital I of its own.
_I = re.compile(r"(?<=[\w,;:] )I\b")
#: The language that most texts in a script are written in.
_SCRIPTS = {
    "CYRILLIC": "ru", "CJK": "zh", "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "ARABIC": "ar", "HEBREW": "he",
    "GREEK": "el", "DEVANAGARI": "hi", "THAI": "th",
}  # fmt: skip
#: Letters of another script, and words, that a text must have to be told.
_FEW_LETTERS, _FEW_WORDS = 4, 3
#: Rows, and characters, that a long run keeps for a look at the end.
KEPT_ROWS, KEPT_CHARACTERS = 20_000, 2**24
CUT_SHARE = 0.1
#: One reply in three being the same is a habit, not a coincidence; below so many rows it is no pattern.
SAME_SHARE, ENOUGH_ROWS = 1 / 3, 12
ECHO_SHARE = 0.25

_WORD = re.compile(r"\w+(?:['’]\w+)?")


def cautions(exchanges: Sequence[Exchange], n_truncated: int = 0, *, english: bool = True) -> tuple[str, ...]:
    """What a reader of scores of these replies should know first; `english` metrics learned from English."""
    if not exchanges:
        return ()
    languages = [language_of(row.response) for row in exchanges]
    blank = sum(is_blank(row.response) for row in exchanges)
    sentences = [
        _other_languages(languages) if english else "",
        _unknown_language(languages, exchanges) if english else "",
        f"{blank} of {len(exchanges)} replies are blank and count as they are" if blank else "",
        cut_note(len(exchanges), n_truncated),
        *(_sameness(name, rows) for name, rows in _by_system(exchanges).items()),
    ]
    return tuple(sentence for sentence in sentences if sentence)


@dataclass
class FirstRows:
    """Keeps the first rows of a run that is too long to be held, for `cautions` at its end."""

    english: bool = True
    kept: list[Exchange] = field(default_factory=list)
    characters: int = 0

    def see(self, items: Iterable[Exchange | Dialogue]) -> None:
        """Look at some more rows; of each its reply and the turn before are kept."""
        for item in items:
            for row in _replies(item):
                if len(self.kept) == KEPT_ROWS or self.characters > KEPT_CHARACTERS:
                    return
                self.kept.append(replace(row, context=row.context[-1:]))
                self.characters += len(row.response) + sum(map(len, row.context[-1:]))

    def messages(self) -> list[str]:
        """What is to be said of what was seen."""
        return list(cautions(self.kept, english=self.english))


def _replies(item: Exchange | Dialogue) -> Iterator[Exchange]:
    if isinstance(item, Exchange):
        yield Exchange(item.context, item.response, system=item.system)
        return
    for turn in item.answers if item.speakers else range(len(item.turns)):
        if turn:
            yield Exchange(item.turns[turn - 1 : turn], item.turns[turn], system=item.system)


def _other_languages(languages: Sequence[str]) -> str:
    """How many replies are not English, and in which languages; a long run is judged by the rows that were kept."""
    others = {name: count for name, count in Counter(languages).most_common() if name not in ("", ENGLISH)}
    if not others:
        return ""
    shown = ", ".join(f"{language} {count}" for language, count in others.items())
    return (
        f"{sum(others.values())} of {len(languages)} replies are not English ({shown}); the metrics were trained on "
        "English and mean little there"
    )


def _unknown_language(languages: Sequence[str], exchanges: Sequence[Exchange]) -> str:
    """A question where most replies are long enough to hold an English function word, but hold none."""
    pairs = zip(languages, exchanges, strict=True)
    words_of_replies = [_words_of(row.response) for language, row in pairs if not language]
    strange = sum(len(words) > _FEW_WORDS and _ENGLISH_WORDS.isdisjoint(words) for words in words_of_replies)
    if strange <= max(_FEW_WORDS, len(languages) / 2):
        return ""
    return f"{strange} of {len(languages)} replies hold no common English word; are they English?"


def cut_note(rows: int, n_truncated: int) -> str:
    """A sentence where more than a tenth of the rows were truncated, else nothing."""
    if n_truncated <= CUT_SHARE * rows:
        return ""
    return (
        f"{n_truncated} of {rows} rows were truncated to what the encoder reads; their oldest turns, or the ends of "
        "very long replies, are not seen"
    )


def _sameness(system: str | None, rows: Sequence[Exchange]) -> str:
    texts = [" ".join(_WORD.findall(row.response.lower())) for row in rows if not is_blank(row.response)]
    if len(texts) < ENOUGH_ROWS:
        return ""
    whose = "the replies" if system is None else f"the replies of {system}"
    most, times = Counter(texts).most_common(1)[0]
    if times >= SAME_SHARE * len(texts):
        shown = most if len(most) <= 40 else f"{most[:37]}..."
        return f"{times} of {len(texts)} of {whose} are the same (“{shown}”); metrics of single replies cannot see that"
    echoes = sum(_echoes(row) for row in rows)
    if echoes >= ECHO_SHARE * len(texts):
        return f"{echoes} of {len(texts)} of {whose} repeat the turn before; relevance to the context is no merit there"
    distinct = len(set(texts))
    if len(texts) >= 3 * ENOUGH_ROWS and distinct <= len(texts) / 5:
        return f"{whose} are {distinct} different ones in {len(texts)} rows; metrics of single replies cannot see that"
    return ""


def _echoes(row: Exchange) -> bool:
    words = _WORD.findall(row.response.lower())
    return len(words) > 3 and words == _WORD.findall(" ".join(row.context[-1:]).lower())


def _by_system(exchanges: Sequence[Exchange]) -> dict[str | None, list[Exchange]]:
    systems: dict[str | None, list[Exchange]] = {}
    for row in exchanges:
        systems.setdefault(row.system, []).append(row)
    return systems


def language_of(text: str) -> str:
    """The language of a text as a code of two letters; empty where it is too short or has no known words.

    A script stands for the language that most texts in it are written in.

    >>> language_of("Das ist eine gute Frage."), language_of("That is a good question."), language_of("Danke!")
    ('de', 'en', '')
    """
    if not text.isascii() and (script := _language_of_script(text)):
        return script
    words = _words_of(text)
    others = Counter(language for word in set(_words_of(_NAMES.sub("", text))) for language in _LANGUAGES.get(word, ()))
    others.update(_LETTERS[letter] for letter in set(text.lower()) & _LETTERS.keys())
    if len(words) < _FEW_WORDS and not (len(words) > 1 and others.total() > 1):
        return ""
    english = sum(word in _ENGLISH_WORDS for word in words) + len(_I.findall(text))
    language, count = others.most_common(1)[0] if others else ("", 0)
    if count >= 2 and count > english and count >= 0.15 * len(words):
        return language
    return ENGLISH if english > count else ""


def _words_of(text: str) -> list[str]:
    return _LETTERS_ONLY.findall(text.lower().replace("’", "'"))


def _language_of_script(text: str) -> str:
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter(re.split("[ -]", unicodedata.name(letter, ""))[0] for letter in letters if ord(letter) > 0x24F)
    foreign = sum(scripts.values())
    if foreign < _FEW_LETTERS or 2 * foreign <= len(letters):
        return ""
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0.1 * foreign:
        return "ja"
    return _SCRIPTS.get(scripts.most_common(1)[0][0], "und")
