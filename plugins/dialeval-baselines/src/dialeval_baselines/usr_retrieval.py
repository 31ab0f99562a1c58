"""USR's dialogue retrieval (Mehri and Eskenazi 2020): is this the reply of its context, or one drawn at random?"""

from __future__ import annotations

from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.pairs import PairMetric


class UsrRetrieval(PairMetric):
    """The probability of the true reply, from facts, context and reply read together."""

    info = MetricInfo(
        name="usr_retrieval",
        title="USR-Retrieval",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="probability that a reply is the true one of its context and facts rather than a random one",
        citation="Mehri and Eskenazi 2020, USR: An Unsupervised and Reference Free Evaluation Metric for Dialog "
        "Generation",
    )
    head_name = "next"
