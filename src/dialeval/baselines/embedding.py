"""Embedding Average, Greedy Matching and Vector Extrema: similarity of static word vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values
from dialeval.baselines.vectors import EncoderVectors, FileVectors, Vector, WordVectors, cosine
from dialeval.baselines.words import WordSplitter, check_splitter, split_words
from dialeval.metric import Level, MetricInfo


class Words(NamedTuple):
    """The vectors of a text's known words, and how many words it has in all."""

    vectors: Vector
    total: int


class EmbeddingMetric(ReferenceMetric):
    """Compares the word vectors of the reply with those of a reference.

    `vectors` is a text file in word2vec's or GloVe's format, or None for the input embeddings of
    the encoder named by `model`. A pair of texts in which one has no known word has no value (NaN)
    unless `unknown` gives one.
    """

    def __init__(
        self,
        *,
        vectors: str | Path | None = None,
        model: str | None = None,
        aggregation: Aggregation | None = None,
        unknown: float = math.nan,
        splitter: WordSplitter = "treebank",
        lowercase: bool = True,
    ) -> None:
        super().__init__(aggregation)
        check_splitter(splitter)
        if vectors is not None and model is not None:
            raise ValueError("both vectors and model are given; word vectors come from one of them")
        self.unknown = float(unknown)
        self.splitter = splitter
        self.lowercase = lowercase
        self._vectors: WordVectors
        if vectors is not None:
            self._vectors = FileVectors(vectors)
        else:
            self._vectors = EncoderVectors(model) if model is not None else EncoderVectors()

    @abstractmethod
    def similarity(self, candidate: Words, reference: Words) -> float:
        """Compare two texts, each with at least one known word."""

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Similarity of each candidate to its one reference."""
        pairs = [(self._words(text), self._words(known)) for text, (known,) in zip(candidates, references, strict=True)]
        self._vectors.prepare(word for pair in pairs for words in pair for word in words)
        return np.array([self._pair(said, known) for said, known in pairs])

    def options(self) -> Mapping[str, str]:
        """Vectors, words, and what stands for a pair without a known word."""
        return {
            "vectors": self._vectors.identity,
            "words": self.splitter,
            "case": "lower" if self.lowercase else "kept",
            "unknown": f"{self.unknown:g}",
        }

    def _pair(self, candidate: Sequence[str], reference: Sequence[str]) -> float:
        said, known = self._vectors.matrix(candidate), self._vectors.matrix(reference)
        if said is None or known is None:
            return self.unknown
        value = self.similarity(Words(said, len(candidate)), Words(known, len(reference)))
        return self.unknown if math.isnan(value) else value

    def _words(self, text: str) -> tuple[str, ...]:
        return split_words(text, self.splitter, lowercase=self.lowercase)


def _info(name: str, title: str, summary: str, citation: str) -> MetricInfo:
    return MetricInfo(
        name=name,
        title=title,
        level=Level.TURN,
        higher_is_better=True,
        range=(-1.0, 1.0),
        summary=summary,
        needs=frozenset({"references"}),
        citation=citation,
    )


class EmbeddingAverage(EmbeddingMetric):
    """Cosine of the mean word vectors."""

    info = _info(
        "embedding_average",
        "Embedding Average",
        "cosine of the mean word vectors of reply and reference",
        "Wieting et al. 2015, Towards Universal Paraphrastic Sentence Embeddings",
    )

    def similarity(self, candidate: Words, reference: Words) -> float:
        """Cosine of the means."""
        return cosine(*(text.vectors.mean(axis=0, dtype=np.float64) for text in (candidate, reference)))


class EmbeddingGreedy(EmbeddingMetric):
    """Each word takes its most similar word of the other text; mean, averaged over both directions.

    `count_unknown=True` divides by all words, known or not, as one published implementation does.
    """

    info = _info(
        "embedding_greedy",
        "Greedy Matching",
        "mean similarity of each word to its best match in the other text",
        "Rus and Lintean 2012, A Comparison of Greedy and Optimal Assessment of Natural Language Student Input",
    )

    def __init__(self, *, count_unknown: bool = False, **shared: Any) -> None:
        super().__init__(**shared)
        self.count_unknown = count_unknown

    def similarity(self, candidate: Words, reference: Words) -> float:
        """Mean over both directions of the mean best cosine."""
        best = unit(candidate.vectors) @ unit(reference.vectors).T
        return (self._mean(best.max(axis=1), candidate) + self._mean(best.max(axis=0), reference)) / 2

    def options(self) -> Mapping[str, str]:
        """The shared options, and what the means are divided by."""
        return {**super().options(), "divide": "all words" if self.count_unknown else "known words"}

    def _mean(self, best: NDArray[np.float64], text: Words) -> float:
        return float(best.sum()) / (text.total if self.count_unknown else len(best))


class EmbeddingExtrema(EmbeddingMetric):
    """Cosine of the vectors that hold, per dimension, the most extreme value of any word.

    `extrema="signed_abs"` takes the value of largest magnitude with its sign, as the metric was
    defined; `"max"` takes the plain maximum, as two published implementations do.
    """

    info = _info(
        "embedding_extrema",
        "Vector Extrema",
        "cosine of the most extreme values of the word vectors of reply and reference",
        "Forgues et al. 2014, Bootstrapping Dialog Systems with Word Embeddings",
    )

    def __init__(self, *, extrema: Literal["signed_abs", "max"] = "signed_abs", **shared: Any) -> None:
        super().__init__(**shared)
        if extrema not in ("signed_abs", "max"):
            raise ValueError(f"extrema is {extrema!r}; it is 'signed_abs' or 'max'")
        self.extrema = extrema

    def similarity(self, candidate: Words, reference: Words) -> float:
        """Cosine of the extremes."""
        if self.extrema == "max":
            return cosine(candidate.vectors.max(axis=0), reference.vectors.max(axis=0))
        return cosine(signed_extrema(candidate.vectors), signed_extrema(reference.vectors))

    def options(self) -> Mapping[str, str]:
        """The shared options, and which extreme is taken."""
        return {**super().options(), "extrema": self.extrema}


def signed_extrema(vectors: NDArray[Any]) -> NDArray[Any]:
    """Per dimension the value of largest magnitude; of two equally large ones the positive one."""
    highest, lowest = vectors.max(axis=0), vectors.min(axis=0)
    return np.asarray(np.where(highest >= -lowest, highest, lowest))


def unit(vectors: Vector) -> NDArray[np.float64]:
    """Rows scaled to length 1; none of them is zero, because such words count as unknown."""
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))
