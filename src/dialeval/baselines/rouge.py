"""ROUGE-L: the longest common subsequence of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version
from dialeval.baselines.words import WordSplitter, check_splitter, split_words
from dialeval.metric import Level, MetricInfo


class RougeL(ReferenceMetric):
    """ROUGE-L F-measure by rouge-score.

    As it stands it is rouge-score's own: plain F1, the best reference counts. Studies that used the
    older nlg-eval tool took the best precision and the best recall, each over all references, and
    weighted recall more: `aggregation="standard", beta=1.2`.
    """

    has_own_rule = True
    info = MetricInfo(
        name="rougeL",
        title="ROUGE-L",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="longest common subsequence of words with the references",
        needs=frozenset({"references"}),
        citation="Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries",
    )

    def __init__(
        self,
        *,
        aggregation: Aggregation | None = None,
        beta: float = 1.0,
        splitter: WordSplitter = "rouge",
    ) -> None:
        super().__init__(aggregation)
        if not beta > 0:
            raise ValueError(f"beta is {beta}; it must be positive")
        check_splitter(splitter)
        self.beta = beta
        self.splitter: WordSplitter = splitter

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """F-measure of the best precision and the best recall among the references given."""
        scorer = RougeScorer([self.info.name], tokenizer=_Words(self.splitter))
        values = []
        for candidate, texts in zip(candidates, references, strict=True):
            found: list[Any] = [scorer.score(text, candidate)[self.info.name] for text in texts]
            values.append(f_measure(max(one.precision for one in found), max(one.recall for one in found), self.beta))
        return np.array(values)

    def options(self) -> Mapping[str, str]:
        """Beta and words."""
        return {"beta": f"{self.beta:g}", "words": self.splitter, "lib": library_version("rouge-score")}


class Rouge1(RougeL):
    """Single words in common, counted as ROUGE-L counts its subsequence."""

    info = replace(RougeL.info, name="rouge1", title="ROUGE-1", summary="words in common with the references")


class Rouge2(RougeL):
    """Pairs of neighbouring words in common, counted as ROUGE-L counts its subsequence."""

    info = replace(RougeL.info, name="rouge2", title="ROUGE-2", summary="pairs of words in common with the references")


def f_measure(precision: float, recall: float, beta: float) -> float:
    """F with recall weighted by beta²; 0 where nothing is in common."""
    if precision + recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


class _Words:
    """rouge-score's interface of a tokenizer."""

    def __init__(self, splitter: WordSplitter) -> None:
        self._splitter = splitter

    def tokenize(self, text: str) -> list[str]:
        return list(split_words(text, self._splitter, lowercase=True))
