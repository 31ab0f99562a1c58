"""Rows for the judge with all that it can read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dialeval.core.scores import Scores
from rated_rows import rated

CONTEXT = ["hello there", "do you like fish and chips"]

FACTS = ["i have a dog", "i like fish"]

#: Replies by what is wrong with them, or right.
SAID = {
    "uses a fact": "yes i like fish and my dog does",
    "repeats itself": "i like to eat i like to eat i like to eat",
    "repeats the turn before": "do you like fish and chips",
    "off topic": "the weather is nice today",
    "contradicts": "no i do not like fish",
    "blank": "  ",
    "german": "am wochenende gehe ich mit dem hund spazieren",
    "emoji": "\U0001f600\U0001f436",
}

FOLLOWING = ["great, thanks!", "what? you make no sense", None, "ok", "i already said that", None, None, None]

ROWS: list[dict[str, Any]] = [
    {"context": CONTEXT, "response": said, "facts": FACTS, "following": after, "id": name}
    for (name, said), after in zip(SAID.items(), FOLLOWING, strict=True)
]


def same(found: list[dict[str, Any]], scores: Scores) -> None:
    """Values, aspects, ends and reasons; batches of another size move the last digits of what a network says."""
    for name, column in scores.columns().items():
        messages = [row[name] for row in found]
        if name.endswith(".why"):
            assert messages == list(column)
        elif name.endswith(".turns"):
            for one, other in zip(messages, column, strict=True):
                assert np.array(one, float) == pytest.approx(np.array(other, float), abs=1e-4, nan_ok=True), name
        else:
            numbers = np.array(messages, dtype=np.float64)
            assert numbers == pytest.approx(np.asarray(column, dtype=np.float64), abs=1e-4, nan_ok=True), name


def many() -> list[dict[str, Any]]:
    """More rows than a chunk holds."""
    return [{**row, "id": f"{row['id']} {at}"} for at in range(90) for row in ROWS] + rated(60, seed=5)


def scores_of(judge: Any, rows: list[dict[str, Any]]) -> Scores:
    """What one process says of them."""
    columns = {key: [row.get(key) for row in rows] for key in ("facts", "following")}
    replies, contexts = [row["response"] for row in rows], [row["context"] for row in rows]
    scores: Scores = judge.score(replies, contexts, **columns, empty="score")
    return scores
