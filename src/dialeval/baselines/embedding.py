"""Embedding Average, Greedy Matching and Vector Extrema: similarity of static word vectors.

The vectors are those of a text file, or of the input layer of an encoder that is at hand anyway.
"""

from __future__ import annotations

import gzip
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.baselines.models import quiet_loading, weights_identity
from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values
from dialeval.baselines.words import split_words
from dialeval.checkpoints.find import BASE_ENCODER, file_sha256, find_encoder
from dialeval.checkpoints.load import read_tokenizer


class EmbeddingMetric(ReferenceMetric):
    """Compares the word vectors of the reply with those of a reference.

    `vectors` is a text file in word2vec's or GloVe's format, or None for the input embeddings of
    the encoder named by `model`. A pair of texts in which one has no known word has no value (NaN).
    """

    def __init__(
        self, *, vectors: str | Path | None = None, model: str | None = None, aggregation: Aggregation | None = None
    ) -> None:
        super().__init__(aggregation)
        if vectors is not None and model is not None:
            raise ValueError("both vectors and model are given; word vectors come from one of them")
        self._vectors: WordVectors = EncoderVectors(model or BASE_ENCODER) if vectors is None else FileVectors(vectors)

    @abstractmethod
    def similarity(self, candidate: Vector, reference: Vector) -> float:
        """Compare two texts, each with at least one known word."""

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Similarity of each candidate to its one reference."""
        pairs = [(split_words(text), split_words(known)) for text, (known,) in zip(candidates, references, strict=True)]
        self._vectors.prepare(word for pair in pairs for words in pair for word in words)
        matrices = [(self._vectors.matrix(words), self._vectors.matrix(known)) for words, known in pairs]
        return np.array([math.nan if a is None or b is None else self.similarity(a, b) for a, b in matrices])

    def options(self) -> Mapping[str, str]:
        """Vectors, words, and what stands for a pair without a known word."""
        return {"vectors": self._vectors.identity, "words": "treebank", "case": "lower", "unknown": "nan"}


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


Vector = NDArray[np.float32]


class WordVectors(ABC):
    """Looks words up; what was looked up once is remembered, also that a word is unknown."""

    def __init__(self) -> None:
        self._looked_up: dict[str, Vector | None] = {}

    @property
    @abstractmethod
    def identity(self) -> str:
        """Name and digest for a signature."""

    @abstractmethod
    def _find(self, words: set[str]) -> Iterable[tuple[str, Vector]]:
        """The vectors of those of the words that are known."""

    def prepare(self, words: Iterable[str]) -> None:
        """Look many words up at once, which for a file means reading it through once."""
        missing = set(words) - self._looked_up.keys()
        if missing:
            vectors = {word: vector for word, vector in self._find(missing) if np.any(vector)}
            self._looked_up.update((word, vectors.get(word)) for word in missing)

    def matrix(self, words: Iterable[str]) -> Vector | None:
        """One row per known word, in order; None if no word is known. A vector of zeros counts as unknown."""
        known = [vector for word in words if (vector := self._looked_up[word]) is not None]
        return np.stack(known) if known else None


class FileVectors(WordVectors):
    """Vectors in the text format of word2vec (with a head line) or GloVe (without), plain or gzipped.

    Only the words that are asked for are kept, so a file of several gigabytes needs no such memory.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path).expanduser()
        if not self.path.is_file():
            raise FileNotFoundError(
                f"there is no file of word vectors at {self.path}; pass a GloVe or word2vec text file"
            )

    @cached_property
    def identity(self) -> str:
        """File name and digest."""
        return f"{self.path.name}@{file_sha256(self.path)}"

    def _find(self, words: set[str]) -> Iterator[tuple[str, Vector]]:
        opened: Any = gzip.open if self.path.suffix == ".gz" else open
        with opened(self.path, "rt", encoding="utf-8", newline="\n") as lines:
            try:
                yield from self._read(lines, set(words))
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.path} is not UTF-8 text ({error.reason}); pass the text format") from None

    def _read(self, lines: Iterable[str], wanted: set[str]) -> Iterator[tuple[str, Vector]]:
        width = 0
        for number, line in enumerate(lines, start=1):
            fields = line.rstrip().split(" ")
            if number == 1 and len(fields) == 2:
                continue
            width = width or len(fields) - 1
            # Some of GloVe's words contain spaces, so the numbers are counted from the end.
            word = " ".join(fields[:-width])
            if word in wanted:
                wanted.discard(word)
                yield word, self._numbers(fields[-width:], width, number)

    def _numbers(self, fields: list[str], width: int, number: int) -> Vector:
        try:
            vector = np.array(fields, dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if vector.shape != (width,) or not np.isfinite(vector).all():
            raise ValueError(f"line {number} of {self.path} does not hold a word and {width} numbers; repair the file")
        return vector


class EncoderVectors(WordVectors):
    """The input embeddings of an encoder: a word is the mean of its word pieces, so nearly all are known."""

    def __init__(self, model: str) -> None:
        super().__init__()
        from transformers import AutoModel

        located = find_encoder(model)
        self._tokenizer = read_tokenizer(located.folder)
        with quiet_loading():
            encoder = AutoModel.from_pretrained(located.folder, local_files_only=True, use_safetensors=True)
        self._table: Vector = encoder.get_input_embeddings().weight.detach().float().numpy().copy()
        self._located = located
        self._model = model

    @cached_property
    def identity(self) -> str:
        """Model and digest of its weights."""
        return f"input layer of {weights_identity(self._model, self._located)}"

    def _find(self, words: set[str]) -> Iterator[tuple[str, Vector]]:
        ordered = sorted(words)
        pieces = self._tokenizer(ordered, add_special_tokens=False)["input_ids"]
        unknown = self._tokenizer.unk_token_id
        for word, ids in zip(ordered, pieces, strict=True):
            if kept := [piece for piece in ids if piece != unknown]:
                yield word, self._table[kept].mean(axis=0)


def cosine(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Cosine of two vectors; NaN where one of them is zero."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    length = math.sqrt(float(a @ a) * float(b @ b))
    return float(np.clip(a @ b / length, -1, 1)) if length > 0 else math.nan
