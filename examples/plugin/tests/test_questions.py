"""Values, not shapes: computed by hand."""

from __future__ import annotations

import math

import dialeval


def test_values_by_hand() -> None:
    metric = dialeval.load("questions")
    scores = metric.score(responses=["Fine. And you?", "Fine.", "Why? Really?"], contexts=[["How are you?"]] * 3)
    assert list(scores) == [0.5, 0.0, 1.0]
    assert dialeval.load("questions", last_only=True).score(responses=["Why? No."], contexts=[["Hi!"]])[0] == 0.0


def test_order_does_not_matter() -> None:
    metric = dialeval.load("questions")
    texts = ["Fine. And you?", "Fine.", "Why?"]
    forwards = list(metric.score(responses=texts, contexts=[["Hi!"]] * 3))
    assert forwards == list(metric.score(responses=texts[::-1], contexts=[["Hi!"]] * 3))[::-1]


def test_the_signature_tells_the_option() -> None:
    assert dialeval.load("questions", last_only=True).signature()["last_only"] == "true"
    assert not math.isnan(dialeval.load("questions").score(responses=["Hi"], contexts=[["Hi!"]])[0])
