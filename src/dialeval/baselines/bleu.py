"""BLEU: clipped n-gram precisions, their geometric mean, and a penalty for short replies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version
from dialeval.baselines.words import WordSplitter, check_splitter, split_words
from dialeval.exchange import Exchange
from dialeval.metric import Judged, Level, MetricInfo

Smoothing = Literal["none", "add-epsilon", "exp"]

#: nltk stands in the smallest float for a precision of zero; what is left after its root is no score.
_ZERO = 1e-60


class Bleu(ReferenceMetric):
    """Sentence BLEU of the reply; several references are clipped together by default.

    Without smoothing most replies have BLEU-4 zero, because a short reply shares no four-gram with
    its references. The default, `exp`, halves the credit of each further order without a match (as
    sacrebleu does); `add-epsilon` gives such an order 0.1 matches; `none` gives it none.
    With `aggregate="corpus"` the aggregate is the corpus BLEU of all rows, not the mean of the rows.
    """

    order: ClassVar[int]
    default_aggregation = "standard"
    has_own_rule = True

    def __init__(
        self,
        *,
        aggregation: Aggregation | None = None,
        smoothing: Smoothing = "exp",
        splitter: WordSplitter = "treebank",
        lowercase: bool = True,
        aggregate: Literal["mean", "corpus"] = "mean",
    ) -> None:
        super().__init__(aggregation)
        if smoothing not in get_args(Smoothing):
            raise ValueError(f"smoothing is {smoothing!r}; it is one of {', '.join(get_args(Smoothing))}")
        if aggregate not in ("mean", "corpus"):
            raise ValueError(f"aggregate is {aggregate!r}; it is 'mean' or 'corpus'")
        if aggregate == "corpus" and self.aggregation in ("avg", "max"):
            raise ValueError(f"corpus BLEU takes all references at once; {self.aggregation!r} is for single replies")
        check_splitter(splitter)
        self.smoothing = smoothing
        self.splitter = splitter
        self.lowercase = lowercase
        self.aggregate = aggregate

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Sentence BLEU of each candidate."""
        return np.array([self._bleu([texts], [text]) for text, texts in zip(candidates, references, strict=True)])

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Values per row, and corpus BLEU where it was asked for."""
        judged = super().judge(exchanges, progress=progress)
        if self.aggregate == "mean":
            return judged
        used = slice(1) if self.aggregation == "single" else slice(None)
        corpus = self._bleu([row.references[used] for row in exchanges], [row.response for row in exchanges])
        return Judged(values=judged.values, aggregate=corpus)

    def options(self) -> Mapping[str, str]:
        """Order, smoothing, words and the kind of aggregate."""
        return {
            "n": str(self.order),
            "smooth": self.smoothing,
            "words": self.splitter,
            "case": "lower" if self.lowercase else "kept",
            "aggregate": self.aggregate,
            "lib": library_version("nltk"),
        }

    def _bleu(self, references: Sequence[Sequence[str]], candidates: Sequence[str]) -> float:
        with warnings.catch_warnings():
            # nltk warns of every reply without a match, which is the usual case here.
            warnings.simplefilter("ignore")
            value = corpus_bleu(
                [[self._words(text) for text in texts] for texts in references],
                [self._words(text) for text in candidates],
                weights=(1 / self.order,) * self.order,
                smoothing_function=_smoother(self.smoothing),
            )
        return float(value) if value > _ZERO else 0.0

    def _words(self, text: str) -> tuple[str, ...]:
        return split_words(text, self.splitter, lowercase=self.lowercase)


def _smoother(smoothing: Smoothing) -> Callable[..., Any]:
    methods = SmoothingFunction(epsilon=0.1)
    chosen: Callable[..., Any] = {
        "none": methods.method0,
        "add-epsilon": methods.method1,
        "exp": methods.method3,
    }[smoothing]
    return chosen


def _info(order: int) -> MetricInfo:
    return MetricInfo(
        name=f"bleu{order}",
        title=f"BLEU-{order}",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary=f"overlap of n-grams up to length {order} with the references",
        needs=frozenset({"references"}),
        citation="Papineni et al. 2002, BLEU: a Method for Automatic Evaluation of Machine Translation",
    )


class Bleu1(Bleu):
    """BLEU with single words."""

    order = 1
    info = _info(1)


class Bleu2(Bleu):
    """BLEU with up to two words."""

    order = 2
    info = _info(2)


class Bleu3(Bleu):
    """BLEU with up to three words."""

    order = 3
    info = _info(3)


class Bleu4(Bleu):
    """BLEU with up to four words."""

    order = 4
    info = _info(4)
