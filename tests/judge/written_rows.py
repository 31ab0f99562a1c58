"""Rows of `tests/data`, written by hand for measuring: nothing is trained on them, and nothing chosen by them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.judge.metric import Judge
from shell import read_rows

Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    return read_rows(Path(__file__).parents[1] / "data" / name)


def charges(judge: Judge, rows: Rows, change: Callable[[str], str] = str) -> dict[str, list[str]]:
    """By fault, the replies that it is charged to."""
    replies = [change(row["response"]) for row in rows]
    facts = [row.get("facts", []) for row in rows]
    scores = judge.score(replies, [row["context"] for row in rows], facts=facts)
    charged = {
        fault.adjective: [replies[at] for at in np.flatnonzero(scores.aspects[aspect] < fault.below)]
        for aspect, fault in judge.faults().items()
    }
    return {fault: which for fault, which in charged.items() if which}
