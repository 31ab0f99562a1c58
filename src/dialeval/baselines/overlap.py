"""Words in common with references: BLEU, deltaBLEU, ROUGE and METEOR."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from nltk.stem import PorterStemmer
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import fmeasure
from rouge_score.tokenizers import DefaultTokenizer

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version
from dialeval.baselines.words import load_wordnet, split_words
from dialeval.core.exchange import BadRow, Exchange

Smoothing = Literal["none", "add-epsilon", "exp"]

#: nltk stands in the smallest float for a precision of zero; what is left after its root is no score.
_ZERO = 1e-60


class Bleu(ReferenceMetric):
    """Sentence BLEU of the reply; several references are clipped together by default.

    Without smoothing most replies have BLEU-4 zero, because a short reply shares no four-gram with
    its references. The default, `exp`, halves the credit of each further order without a match (as
    sacrebleu does); `add-epsilon` gives such an order 0.1 matches; `none` gives it none.
    """

    order: ClassVar[int]
    default_aggregation = "standard"
    has_own_rule = True

    def __init_subclass__(cls, *, order: int | None = None) -> None:
        if order is None:  # what is made of one of those below declares itself
            return
        cls.order = order
        cls.info = ReferenceMetric.declared(
            f"bleu{order}",
            f"BLEU-{order}",
            f"overlap of n-grams up to length {order} with the references",
            "Papineni et al. 2002, BLEU: a Method for Automatic Evaluation of Machine Translation",
        )

    def __init__(self, *, aggregation: Aggregation | None = None, smoothing: Smoothing = "exp") -> None:
        super().__init__(aggregation)
        if smoothing not in get_args(Smoothing):
            raise ValueError(f"smoothing is {smoothing!r}; it must be one of {', '.join(get_args(Smoothing))}")
        self.smoothing = smoothing
        methods = SmoothingFunction(epsilon=0.1)
        of_name = {"none": methods.method0, "add-epsilon": methods.method1, "exp": methods.method3}
        self._smoother: Any = of_name[smoothing]

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Sentence BLEU of each candidate."""
        return np.array([self._bleu(texts, text) for text, texts in zip(candidates, references, strict=True)])

    def options(self) -> Mapping[str, str]:
        """Order, smoothing and words."""
        return {
            "n": str(self.order),
            "smooth": self.smoothing,
            "words": "treebank",
            "case": "lower",
            "aggregate": "mean",
            "lib": library_version("nltk"),
        }

    def _bleu(self, references: Sequence[str], candidate: str) -> float:
        with warnings.catch_warnings():
            # nltk warns of every reply without a match, which is the usual case here.
            warnings.simplefilter("ignore")
            value = corpus_bleu(
                [[split_words(text) for text in references]],
                [split_words(candidate)],
                weights=(1 / self.order,) * self.order,
                smoothing_function=self._smoother,
            )
        return float(value) if value > _ZERO else 0.0


class Bleu1(Bleu, order=1):
    """BLEU with single words."""


class Bleu2(Bleu, order=2):
    """BLEU with up to two words."""


class Bleu3(Bleu, order=3):
    """BLEU with up to three words."""


class Bleu4(Bleu, order=4):
    """BLEU with up to four words."""


# deltaBLEU: BLEU against references that carry a weight, negative for replies judged bad. No package computes it.


def delta_bleu(
    candidate: Sequence[str], references: Sequence[Sequence[str]], weights: Sequence[float], *, order: int
) -> float:
    """deltaBLEU of one tokenised candidate: 0 as soon as one order's weighted precision is not positive."""
    logarithms = 0.0
    for n in range(1, order + 1):
        precision = weighted_precision(candidate, references, weights, n)
        if precision <= 0:
            return 0.0
        logarithms += math.log(precision) / order
    closest = min((len(reference) for reference in references), key=lambda size: (abs(size - len(candidate)), size))
    return math.exp(logarithms + min(0.0, 1 - closest / len(candidate)))


def weighted_precision(
    candidate: Sequence[str], references: Sequence[Sequence[str]], weights: Sequence[float], n: int
) -> float:
    """The weighted clipped precision of one order; negative when bad replies outweigh good ones."""
    counts = _ngrams(candidate, n)
    if not counts:
        return 0.0
    of_references = [_ngrams(reference, n) for reference in references]
    matched = 0.0
    for gram, count in counts.items():
        known = [(weight, ngrams[gram]) for weight, ngrams in zip(weights, of_references, strict=True) if ngrams[gram]]
        matched += max((weight * min(count, most) for weight, most in known), default=0.0)
    return matched / (max(weights) * sum(counts.values()))


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))


class DeltaBleu(ReferenceMetric):
    """Sentence deltaBLEU. `weights` gives the weight of each reference by its place in the row.

    With two good and two bad replies: `weights=(1, 1, -1, -1)`, or as text `"1,1,-1,-1"`. Without
    weights every reference counts 1. Not smoothed, so the default stops at two words.
    """

    default_aggregation = "standard"
    has_own_rule = True
    info = ReferenceMetric.declared(
        "deltableu",
        "deltaBLEU",
        "overlap of n-grams with references that are weighted by how good they are",
        "Galley et al. 2015, deltaBLEU: A Discriminative Metric for Generation Tasks",
    )

    def __init__(self, *, weights: Sequence[float] | str | None = None, order: int = 2) -> None:
        super().__init__()
        if order < 1:
            raise ValueError(f"order is {order}; it must be at least 1")
        self.weights = None if weights is None else _checked_weights(weights)
        self.order = order

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """DeltaBLEU of each candidate."""
        values = []
        for candidate, texts in zip(candidates, references, strict=True):
            weights = self.weights or (1.0,) * len(texts)
            split = [split_words(text) for text in texts]
            values.append(delta_bleu(split_words(candidate), split, weights, order=self.order))
        return np.array(values)

    def check_needs(self, exchanges: Sequence[Exchange]) -> None:
        """Every row needs as many references as there are weights."""
        super().check_needs(exchanges)
        for row, exchange in enumerate(exchanges):
            if self.weights is not None and len(exchange.references) != len(self.weights):
                raise BadRow(
                    row, f"has {len(exchange.references)} references for {len(self.weights)} weights; give one each"
                )

    def options(self) -> Mapping[str, str]:
        """Order, weights and words."""
        return {
            "n": str(self.order),
            "weights": "1" if self.weights is None else ",".join(f"{weight:g}" for weight in self.weights),
            "words": "treebank",
            "case": "lower",
        }


def _checked_weights(weights: Sequence[float] | str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(weight) for weight in (weights.split(",") if isinstance(weights, str) else weights))
    except ValueError:
        numbers = ()
    if not all(map(math.isfinite, numbers)) or max(numbers, default=0) <= 0:
        raise ValueError(f"weights are {weights!r}; give one finite number per reference, at least one positive")
    return numbers


#: ROUGE's own words.
_WORDS = DefaultTokenizer(use_stemmer=False)


class RougeL(ReferenceMetric):
    """ROUGE-L F-measure by rouge-score.

    The best reference counts; `aggregation="standard"` takes the best precision and the best recall, each over all
    references, as the older nlg-eval tool does.
    """

    has_own_rule = True
    info = ReferenceMetric.declared(
        "rougeL",
        "ROUGE-L",
        "longest common subsequence of words with the references",
        "Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries",
    )

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """F-measure of the best precision and the best recall among the references given."""
        values = []
        for candidate, texts in zip(candidates, references, strict=True):
            scores = [self.precision_and_recall(text, candidate) for text in texts]
            values.append(fmeasure(*(max(each) for each in zip(*scores, strict=True))))
        return np.array(values)

    def precision_and_recall(self, reference: str, candidate: str) -> tuple[float, float]:
        """As the library has them; its table of two long texts would take gigabytes."""
        wanted, given = map(_WORDS.tokenize, (reference, candidate))
        common = in_order(wanted, given)
        return common / max(1, len(given)), common / max(1, len(wanted))

    def options(self) -> Mapping[str, str]:
        """Beta and words."""
        return {"beta": "1", "words": "rouge", "lib": library_version("rouge-score")}


def in_order(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, a row of the table in the bits of one number (Hyyrö 2004).

    >>> in_order("a b c d".split(), "b x d a".split())
    2
    """
    places: dict[str, int] = {}
    for index, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << index
    row = full = (1 << len(first)) - 1
    for word in second:
        shared = row & places.get(word, 0)
        row = (row + shared) | (row - shared)
    return len(first) - (row & full).bit_count()


class Rouge1(RougeL):
    """Single words in common, counted as ROUGE-L counts its subsequence."""

    def precision_and_recall(self, reference: str, candidate: str) -> tuple[float, float]:
        """Of runs of words, which the library counts."""
        score: Any = RougeScorer([self.info.name]).score(reference, candidate)[self.info.name]
        return score.precision, score.recall

    info = replace(RougeL.info, name="rouge1", title="ROUGE-1", summary="words in common with the references")


class Rouge2(Rouge1):
    """Pairs of neighbouring words in common, counted as ROUGE-L counts its subsequence."""

    info = replace(RougeL.info, name="rouge2", title="ROUGE-2", summary="pairs of words in common with the references")


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
