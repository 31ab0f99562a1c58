"""What the attacks know about words: which are stop-words, punctuation, nouns, and which mean the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import Any

#: A word, with the apostrophes and hyphens inside it.
WORD = re.compile(r"\w+(?:['’-]\w+)*")

#: What is left of clitics where a corpus splits them off ("do n't", "I ' m").
_CLITICS = frozenset(("s", "t", "m", "re", "ve", "ll", "d", "n't", "nt"))


def is_punctuation(text: str, place: int) -> bool:
    """Whether the character at this place is punctuation and no part of a word."""
    if not unicodedata.category(text[place]).startswith("P"):
        return False
    # The apostrophe of "don't" and the hyphen of "well-known" belong to the word.
    inside = 0 < place < len(text) - 1 and text[place - 1].isalnum() and text[place + 1].isalnum()
    return not (inside and text[place] in "'’-")


def is_stopword(word: str) -> bool:
    """Whether scikit-learn's list has the word, or the word without its clitic."""
    plain = word.lower().replace("’", "'")
    return plain in _stopwords() or plain.partition("'")[0] in _stopwords()


@cache
def _stopwords() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS) | _CLITICS


def synonym(word: str) -> str:
    """The first synonym of the word's commonest sense that has one; the word itself if there is none.

    Another form of the same word is no synonym ("go" for "went").
    """
    from dialeval.baselines.wordnet import load_wordnet

    wordnet = load_wordnet("the attack synonyms")
    plain = word.lower()
    if is_stopword(plain):
        return word
    same = {plain, *(form for letter in "nvar" if (form := wordnet.morphy(plain, letter)) is not None)}
    for synset in sorted(wordnet.synsets(plain), key=lambda synset: -_frequency(synset, same)):
        for name in synset.lemma_names():
            if name.lower() not in same:
                word_for_it = str(name).replace("_", " ")
                return word_for_it.capitalize() if word[0].isupper() else word_for_it
    return word


def _frequency(synset: Any, forms: Collection[str]) -> int:
    """How often the word has this sense in the texts that WordNet's makers annotated."""
    return sum(int(lemma.count()) for lemma in synset.lemmas() if lemma.name().lower() in forms)


def nouns(text: str) -> list[str]:
    """The nouns of a text, by nltk's tagger."""
    import nltk

    from dialeval.baselines.words import split_words

    require_tagger()
    tagged = nltk.pos_tag(list(split_words(text, lowercase=False)))
    return [word for word, tag in tagged if tag.startswith("NN")]


def require_tagger() -> None:
    """Say what is missing if nltk's tagger cannot be used."""
    import nltk

    from dialeval.baselines.wordnet import MissingResource

    try:
        nltk.data.find("taggers/averaged_perceptron_tagger_eng")
    except LookupError:
        raise MissingResource(
            "the attack nouns_only needs nltk's part-of-speech tagger, whose data is not here; "
            "install it with `python -m nltk.downloader averaged_perceptron_tagger_eng`"
        ) from None
