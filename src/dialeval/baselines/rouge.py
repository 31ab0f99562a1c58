"""ROUGE-L: the longest common subsequence of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import fmeasure

from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version


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

    def __init__(self, *, aggregation: Aggregation | None = None) -> None:
        super().__init__(aggregation)

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """F-measure of the best precision and the best recall among the references given."""
        scorer = RougeScorer([self.info.name])
        values = []
        for candidate, texts in zip(candidates, references, strict=True):
            scores: list[Any] = [scorer.score(text, candidate)[self.info.name] for text in texts]
            values.append(fmeasure(max(score.precision for score in scores), max(score.recall for score in scores)))
        return np.array(values)

    def options(self) -> Mapping[str, str]:
        """Beta and words."""
        return {"beta": "1", "words": "rouge", "lib": library_version("rouge-score")}


class Rouge1(RougeL):
    """Single words in common, counted as ROUGE-L counts its subsequence."""

    info = replace(RougeL.info, name="rouge1", title="ROUGE-1", summary="words in common with the references")


class Rouge2(RougeL):
    """Pairs of neighbouring words in common, counted as ROUGE-L counts its subsequence."""

    info = replace(RougeL.info, name="rouge2", title="ROUGE-2", summary="pairs of words in common with the references")
