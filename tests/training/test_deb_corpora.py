"""Grouped corpora, hold-outs, labelled rows, batches, mined and random negatives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from corpora.batches import mixed_batches
from corpora.grouped import (
    Group,
    GroupSet,
    hold_out,
    labelled_rows,
    read_groups,
    sharing_dialogues,
    with_random,
)
from corpora.mining import with_mined, word_overlap
from refusals import refused
from resources import MIRROR
from training_runs import write_lines


def write(root: Path, rows: list[dict[str, Any]], name: str = "pp", split: str = "dev") -> Path:
    return write_lines(root / name / f"{split}.jsonl", rows)


def groups(count: int = 20) -> list[Group]:
    return [
        Group(
            f"g{number}",
            (f"let us now talk about topic number {number}",),
            (f"topic {number} is a fine thing", f"tell me more about {number}"),
            adversarial=(f"wrong talk of {number}", f"more wrong talk of {number}"),
            random=(f"random one for {number}", f"random two for {number}"),
        )
        for number in range(count)
    ]


# --- reading ---------------------------------------------------------------------------------------


def test_reads_kinds_and_drops_contradictions(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "context": ["Hi .", " "],
        "positive_responses": ["Hello !", "Good day"],
        "adversarial_negative_responses": ["Hi is short", ""],
        "random_negative_responses": ["Good day", "Seven"],
    }
    other = {"id": "b", "context": ["Bye"], "positive_responses": ["See you"]}
    write(tmp_path, [row, other, {"id": "c", "context": [], "positive_responses": ["x"]}])
    assert read_groups(tmp_path, "pp", "dev") == [
        Group("a", ("Hi .",), ("Hello !", "Good day"), ("Hi is short",), ("Seven",)),
        Group("b", ("Bye",), ("See you",)),
    ]
    assert [one.id for one in read_groups(tmp_path, "pp", "dev", leave_out=frozenset({"a"}))] == ["b"]


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"context": "Hi", "positive_responses": ["x"]}, "dev.jsonl line 1: context"),
        ({"context": ["Hi"], "positive_responses": [3]}, "line 1: positive_responses"),
        ({"context": ["Hi"]}, "positive"),
    ],
)
def test_malformed_rows_are_named(tmp_path: Path, row: dict[str, Any], named: str) -> None:
    write(tmp_path, [row])
    refused(ValueError, named, read_groups, tmp_path, "pp", "dev")


def test_contexts_of_the_same_dialogue_are_found(tmp_path: Path) -> None:
    overlaps = {
        "dailydialog_pp": {
            "dailydialog_pp test in dailydialog train": {"t0": ["d1"], "t1": ["d2"]},
            "dailydialog_pp test in dailydialog test": {"t2": ["d9"]},
            "dailydialog_pp dev in dailydialog train": {"v0": ["d5"]},
            "dailydialog_pp extra in dailydialog train": {"e0": ["d1"], "e1": ["d3"], "e2": ["d5", "d6"]},
            "dailydialog_pp extra in dailydialog test": {"e1": ["d9"]},
        }
    }
    path = tmp_path / "overlaps.json.gz"
    path.write_bytes(gzip.compress(json.dumps(overlaps).encode()))
    assert sharing_dialogues(path, "extra", ["test"]) == {"e0", "e1"}
    assert sharing_dialogues(path, "extra", ["test", "dev"]) == {"e0", "e1", "e2"}
    assert sharing_dialogues(path, "unknown", ["test"]) == set()


# --- splitting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, 0.001])
def test_nothing_to_hold_out_or_to_train_on(share: float) -> None:
    refused(ValueError, "held out", lambda: hold_out(groups(), share, 0))


# --- rows ------------------------------------------------------------------------------------------


def test_positives_are_repeated_until_classes_balance() -> None:
    (group,) = groups(1)
    rows = labelled_rows([group])
    assert [row.valid for row in rows] == [True] * 4 + [False] * 4
    assert [row.kind for row in rows][4:] == ["random", "random", "adversarial", "adversarial"]
    assert rows[0].exchange.context == group.context
    once = labelled_rows([group], repeat_positives=False)
    assert [row.valid for row in once] == [True] * 2 + [False] * 4
    assert len(labelled_rows([group], negatives="random")) == 4
    assert {row.kind for row in labelled_rows([group], negatives="adversarial")} == {"positive", "adversarial"}


def test_random_replies_come_from_other_contexts() -> None:
    bare = [Group(one.id, one.context, one.positives) for one in groups()]
    filled = with_random(bare, 3, seed=1)
    everything = {reply for one in bare for reply in one.positives}
    for one in filled:
        assert len(set(one.random)) == 3
        assert set(one.random) <= everything - set(one.positives)
    assert with_random(bare, 3, seed=1) == filled
    assert with_random(groups(), 2, seed=1) == groups()  # those that have enough stay as they are
    refused(ValueError, "few", with_random, bare[:2], 3, seed=1)


# --- batches ---------------------------------------------------------------------------------------


def test_groups_as_batches_take_turns_with_the_right_replies() -> None:
    group = Group("g", ("hello",), ("right", "other", "third"), adversarial=("wrong",), random=("far",))
    source = GroupSet([group, Group("h", ("well",), ("only",), random=("odd",))])
    first, second = source.get(0), source.get(0, epoch=1)
    assert first.responses == ("right", "wrong", "far")
    assert first.exchange.references == ("other",)
    assert second.responses[0] == second.exchange.response == "other"
    assert second.exchange.references == ("third",)
    assert source.get(1, epoch=5).exchange.references == ()
    batch = next(mixed_batches([source], [1.0], batch_contexts=2, seed=0))
    assert sorted(one.exchange.context for one in batch) == [("hello",), ("well",)]


# --- mining ----------------------------------------------------------------------------------------

TALK = [
    Group("piano", ("Do you still play the piano at night?",), ("Every night, until the neighbours knock.",)),
    Group("tuner", ("Who can repair old instruments?",), ("Ask the man who tuned the piano at school.",)),
    Group("soup", ("The soup needs some salt.",), ("There is salt beside the stove, help yourself.",)),
    Group("sea", ("Why is the sea salty?",), ("Rivers carry salt into it all the time.",)),
    Group("keys", ("I lost my keys again.",), ("They were under your coat this morning.",)),
    Group("again", ("I lost my keys again!",), ("Look beside the door, you left your keys there.",)),
]


def mined_by_id(count: int = 1) -> dict[str, tuple[str, ...]]:
    texts = [turn for one in TALK for turn in one.context] + [reply for one in TALK for reply in one.positives]
    return {one.id: one.mined for one in with_mined(TALK, count, word_overlap(texts), seed=0)}


def test_mining_finds_replies_that_share_rare_words() -> None:
    mined = mined_by_id()
    assert mined["piano"] == ("Ask the man who tuned the piano at school.",)
    assert mined["soup"] == ("Rivers carry salt into it all the time.",)
    assert mined["tuner"] == ()  # nothing shares a word with it


def test_mining_passes_over_replies_to_nearly_the_same_context() -> None:
    # The only reply that speaks of keys answers the same words, so it would be right here too.
    assert mined_by_id()["keys"] == ()


# --- the public files ------------------------------------------------------------------------------


@pytest.mark.data
def test_dailydialog_plus_plus_dev_file(tmp_path: Path) -> None:
    path = MIRROR / "iitmnlp/DailyDialog-plusplus/4b02f9ff671e7e27d8e6b8a1925158bd5729abda/dataset/dev.json"
    if not path.is_file():
        pytest.skip("DailyDialog++'s dev file is not in the folder that DIALEVAL_MIRROR names")
    (tmp_path / "pp").mkdir()
    (tmp_path / "pp" / "dev.jsonl").write_text(path.read_text("utf-8"), "utf-8")
    found = read_groups(tmp_path, "pp", "dev")
    assert len(found) == 1028
    # Six contexts have a random reply that is also given as a right one.
    assert sum(len(one.random) < 5 for one in found) == 6
    assert all(len(one.positives) == len(one.adversarial) == 5 for one in found)
    train, held = hold_out(found, 0.15, 42)
    assert len(held) == 154
    assert 860 <= len(train) <= 874
