"""METEOR: words aligned by form, stem and WordNet synonym, with a penalty for scattered matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
from nltk.stem import PorterStemmer
from nltk.translate.meteor_score import single_meteor_score

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version
from dialeval.baselines.wordnet import load_wordnet
from dialeval.baselines.words import split_words

_REMEMBERED = 2**16


class Meteor(ReferenceMetric):
    """nltk's METEOR (the parameters of METEOR 2, not those of the Java program 1.5).

    nltk looks synonyms up by the stem of a word, so pairs whose stem is no word are missed:
    "auto" meets "car", "automobile" does not. That is the number the field knows as nltk's METEOR.
    """

    info = ReferenceMetric.declared(
        "meteor",
        "METEOR",
        "words in common with the references by form, stem or synonym",
        "Banerjee and Lavie 2005, METEOR: An Automatic Metric for MT Evaluation",
    )

    def __init__(self, *, aggregation: Aggregation | None = None) -> None:
        super().__init__(aggregation)
        self._wordnet = load_wordnet("meteor")
        # nltk stems and looks up every word of every pair anew, which is nearly all of its time.
        self._stemmer = SimpleNamespace(stem=lru_cache(_REMEMBERED)(PorterStemmer().stem))
        self._synonyms = SimpleNamespace(synsets=lru_cache(_REMEMBERED)(self._wordnet.synsets))

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """METEOR of each candidate with its one reference."""
        values = []
        for candidate, (reference,) in zip(candidates, references, strict=True):
            known, words = split_words(reference), split_words(candidate)
            values.append(self._score(known, words) if known and words else 0.0)
        return np.array(values)

    def options(self) -> Mapping[str, str]:
        """Words, and the versions of WordNet and nltk."""
        return {"words": "treebank", "wordnet": str(self._wordnet.get_version()), "lib": library_version("nltk")}

    def _score(self, known: Sequence[str], words: Sequence[str]) -> float:
        return float(single_meteor_score(known, words, stemmer=self._stemmer, wordnet=self._synonyms))
