"""Splitting text into words, without any download."""

from __future__ import annotations

from functools import lru_cache

from nltk.tokenize import NLTKWordTokenizer

_TREEBANK = NLTKWordTokenizer()


@lru_cache(maxsize=2**15)
def split_words(text: str, *, lowercase: bool = True) -> tuple[str, ...]:
    """Words of a text, punctuation and clitics apart, so that "don't" and the "do n't" of tokenised corpora agree.

    Remembers what it split, because splitting is most of the work of the word metrics, and
    benchmarks repeat their references.
    """
    return tuple(_TREEBANK.tokenize(text.lower() if lowercase else text))
