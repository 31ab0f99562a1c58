"""Embedding Average, Greedy Matching and Vector Extrema: similarity of static word vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values
from dialeval.baselines.vectors import EncoderVectors, FileVectors, Vector, WordVectors, cosine
from dialeval.baselines.words import split_words


class EmbeddingMetric(ReferenceMetric):
    """Compares the word vectors of the reply with those of a reference.

    `vectors` is a text file in word2vec's or GloVe's format, or None for the input embeddings of
    the encoder named by `model`. A pair of texts in which one has no known word has no value (NaN).
    """

    def __init__(
        self,
        *,
        vectors: str | Path | None = None,
        model: str | None = None,
        aggregation: Aggregation | None = None,
    ) -> None:
        super().__init__(aggregation)
        if vectors is not None and model is not None:
            raise ValueError("both vectors and model are given; word vectors come from one of them")
        self._vectors: WordVectors
        if vectors is not None:
            self._vectors = FileVectors(vectors)
        else:
            self._vectors = EncoderVectors(model) if model is not None else EncoderVectors()

    @abstractmethod
    def similarity(self, candidate: Vector, reference: Vector) -> float:
        """Compare two texts, each with at least one known word."""

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Similarity of each candidate to its one reference."""
        pairs = [(split_words(text), split_words(known)) for text, (known,) in zip(candidates, references, strict=True)]
        self._vectors.prepare(word for pair in pairs for words in pair for word in words)
        return np.array([self._pair(candidate, known) for candidate, known in pairs])

    def options(self) -> Mapping[str, str]:
        """Vectors, words, and what stands for a pair without a known word."""
        return {"vectors": self._vectors.identity, "words": "treebank", "case": "lower", "unknown": "nan"}

    def _pair(self, candidate: Sequence[str], reference: Sequence[str]) -> float:
        words, known = self._vectors.matrix(candidate), self._vectors.matrix(reference)
        if words is None or known is None:
            return math.nan
        return self.similarity(words, known)


class EmbeddingAverage(EmbeddingMetric):
    """Cosine of the mean word vectors."""

    info = ReferenceMetric.declared(
        "embedding_average",
        "Embedding Average",
        "cosine of the mean word vectors of reply and reference",
        "Wieting et al. 2015, Towards Universal Paraphrastic Sentence Embeddings",
        low=-1.0,
    )

    def similarity(self, candidate: Vector, reference: Vector) -> float:
        """Cosine of the means."""
        return cosine(*(vectors.mean(axis=0, dtype=np.float64) for vectors in (candidate, reference)))


class EmbeddingGreedy(EmbeddingMetric):
    """Each word takes its most similar word of the other text; mean, averaged over both directions."""

    info = ReferenceMetric.declared(
        "embedding_greedy",
        "Greedy Matching",
        "mean similarity of each word to its best match in the other text",
        "Rus and Lintean 2012, A Comparison of Greedy and Optimal Assessment of Natural Language Student Input",
        low=-1.0,
    )

    def similarity(self, candidate: Vector, reference: Vector) -> float:
        """Mean over both directions of the mean best cosine."""
        best = unit(candidate) @ unit(reference).T
        return float(best.max(axis=1).mean() + best.max(axis=0).mean()) / 2

    def options(self) -> Mapping[str, str]:
        """The shared options, and what the means are divided by."""
        return {**super().options(), "divide": "known words"}


class EmbeddingExtrema(EmbeddingMetric):
    """Cosine of the vectors that hold, per dimension, the value of largest magnitude of any word, with its sign."""

    info = ReferenceMetric.declared(
        "embedding_extrema",
        "Vector Extrema",
        "cosine of the most extreme values of the word vectors of reply and reference",
        "Forgues et al. 2014, Bootstrapping Dialog Systems with Word Embeddings",
        low=-1.0,
    )

    def similarity(self, candidate: Vector, reference: Vector) -> float:
        """Cosine of the extremes."""
        return cosine(signed_extrema(candidate), signed_extrema(reference))

    def options(self) -> Mapping[str, str]:
        """The shared options, and which extreme is taken."""
        return {**super().options(), "extrema": "signed_abs"}


def signed_extrema(vectors: NDArray[Any]) -> NDArray[Any]:
    """Per dimension the value of largest magnitude; of two equally large ones the positive one."""
    highest, lowest = vectors.max(axis=0), vectors.min(axis=0)
    return np.asarray(np.where(highest >= -lowest, highest, lowest))


def unit(vectors: Vector) -> NDArray[np.float64]:
    """Rows scaled to length 1; none of them is zero, because such words count as unknown."""
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))
