"""BLEU: clipped n-gram precisions, their geometric mean, and a penalty for short replies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version
from dialeval.baselines.words import split_words

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
                smoothing_function=_smoother(self.smoothing),
            )
        return float(value) if value > _ZERO else 0.0


def _smoother(smoothing: Smoothing) -> Callable[..., Any]:
    methods = SmoothingFunction(epsilon=0.1)
    chosen: Callable[..., Any] = {
        "none": methods.method0,
        "add-epsilon": methods.method1,
        "exp": methods.method3,
    }[smoothing]
    return chosen


class Bleu1(Bleu, order=1):
    """BLEU with single words."""


class Bleu2(Bleu, order=2):
    """BLEU with up to two words."""


class Bleu3(Bleu, order=3):
    """BLEU with up to three words."""


class Bleu4(Bleu, order=4):
    """BLEU with up to four words."""
