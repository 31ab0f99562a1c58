"""Splitting text into words, without any download."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, get_args

from nltk.tokenize import NLTKWordTokenizer
from rouge_score.tokenize import tokenize as rouge_words

_TREEBANK = NLTKWordTokenizer()

WordSplitter = Literal["treebank", "whitespace", "rouge"]


@lru_cache(maxsize=2**15)
def split_words(text: str, splitter: WordSplitter, *, lowercase: bool) -> tuple[str, ...]:
    """Words of a text.

    `treebank` separates punctuation and clitics, so that "don't" and the "do n't" of tokenised
    corpora agree; `whitespace` takes text as it was split before; `rouge` is rouge-score's own
    rule, which keeps only runs of a-z and 0-9 (and so sees nothing in other scripts).

    Remembers what it split, because splitting is most of the work of the word metrics, and
    benchmarks repeat their references.
    """
    if splitter == "rouge":
        return tuple(rouge_words(text, stemmer=None))
    prepared = text.lower() if lowercase else text
    if splitter == "whitespace":
        return tuple(prepared.split())
    return tuple(_TREEBANK.tokenize(prepared))


def check_splitter(splitter: str) -> None:
    """Refuse an unknown splitter when the metric is made, not when it is first used."""
    if splitter not in get_args(WordSplitter):
        raise ValueError(f"splitter is {splitter!r}; it is one of {', '.join(get_args(WordSplitter))}")
