"""Rows written by hand: sound replies that no fault may be charged to, frustrated users, what the pairs are like."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.judge.metric import Judge
from shell import invoke, read_rows, write_rows

pytestmark = pytest.mark.encoder
#: Kinds of sound replies whose words stand in an order, and from how many words on disorder shows.
PROSE, WORDS = {"small talk", "apology", "service", "instructions", "refusal", "empathy", "technical prose"}, 6
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


@pytest.fixture(scope="module")
def judge() -> Judge:
    return dialeval.load("judge", device="cpu")


def test_sound_replies_are_not_charged(judge: Judge) -> None:
    """One in a thousand is the aim, so of these 200 none."""
    assert charges(judge, rows_of("sound.jsonl")) == {}


@pytest.mark.parametrize(
    ("fault", "change", "least"),
    [
        ("rude", lambda reply: f"{reply} You are a complete moron.", 0.7),
        ("repetitive", lambda reply: " ".join([reply] * 3), 0.8),
        # The bar costs most here: words from back to front lower most values, but are charged to one in five.
        ("hard to read", lambda reply: " ".join(reply.split()[::-1]), 0.1),
    ],
)
def test_the_bar_is_not_held_by_silence(judge: Judge, fault: str, change: Callable[[str], str], least: float) -> None:
    rows = [row for row in rows_of("sound.jsonl") if row["kind"] in PROSE and len(row["response"].split()) >= WORDS]
    assert len(charges(judge, rows, change)[fault]) >= least * len(rows)


def test_a_flag_finds_users_who_are_frustrated_with_the_bot_and_not_with_something_else(tmp_path: Path) -> None:
    rows = rows_of("frustrated.jsonl")
    given, output = tmp_path / "chats.jsonl", tmp_path / "scores.jsonl"
    write_rows(given, [{"dialogue": row["turns"]} for row in rows])
    invoke("score", "-i", given, "-o", output, "--level", "dialogue", "--flag", "satisfied<0.05")
    flagged = [bool(row["flags"]) for row in read_rows(output)]
    right = [flag == row["frustrated"] for flag, row in zip(flagged, rows, strict=True)]
    # Missed are the user whose son is ill and those who end with "Just stop." and "just once?".
    assert sum(right) >= len(rows) - 3
    assert not any(flag for flag, row in zip(flagged, rows, strict=True) if not row["frustrated"])
