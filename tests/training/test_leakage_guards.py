"""What must not be trained on is not: every reader of training data, asked for data that holds what is to be left out.

One guard each for dialogues, for contexts that share text with a benchmark, and for contexts that come from the
dialogue of a test context; and the held-out part shares no dialogue with the training part.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import common
import deb
import stages
from corpora.grouped import Group, hold_out
from refusals import refused
from shell import write_rows

#: Of the grouped contexts d0…d9 two share text with a benchmark, and two come from dialogues of test contexts.
BENCHMARK, FROM_TEST = {"d0", "d1"}, {"d2", "d3"}
ALLOWED = {f"d{number}" for number in range(4, 10)}


def group(name: str) -> dict[str, Any]:
    replies = [f"reply {number} to {name} as people write" for number in range(8)]
    return {"id": name, "context": [f"what {name} says first"], "positive_responses": replies}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("guards")
    for split in ("train", "validation"):
        rows = [
            {"id": f"{split}-{one}", "utterances": [f"{split} {one} turn {turn}" for turn in range(4)]}
            for one in range(8)
        ]
        write_rows(root / "chat" / f"{split}.jsonl", rows)
    write_rows(root / "pp" / "dev.jsonl", [group(f"d{number}") for number in range(10)])
    write_rows(root / "pp" / "more.jsonl", [group(f"m{number}") for number in range(20)])
    overlaps = {
        "chat": {"train vs validation": ["train-0"], "shares text with a benchmark": {"some": {"chat": ["train-1"]}}},
        "pp": {"shares text with a benchmark": {"some": {"pp": ["d0"]}, "other": {"pp": ["d1", "m0"]}}},
        "dailydialog_pp": {
            "dailydialog_pp test in dailydialog train": {"t0": ["x0"], "t1": ["x1", "x2"]},
            "dailydialog_pp dev in dailydialog train": {"d2": ["x0"], "d3": ["x9", "x1"], "d4": ["x4"], "d5": ["x5"]},
            "dailydialog_pp more in dailydialog train": {"m1": ["x2"], "m2": ["x4"], "m3": ["x7"]},
        },
    }
    (root / "overlaps.json").write_text(json.dumps(overlaps))
    return root


@pytest.fixture
def recipe() -> dict[str, Any]:
    return {
        "seed": 0,
        "encoder": "none",
        "leave_out": "overlaps.json",
        "corpora": [{"name": "chat", "splits": ["train"], "share": 1.0}],
        "negatives": {"random": 2, "same_dialogue": 1},
        "groups": {"name": "pp", "split": "dev", "held_out": 0.34, "seed": 0},
        "augmentation": [],
    }


def dialogues_of(texts: Iterable[str]) -> set[str]:
    """Which dialogues of the corpus some of its turns belong to."""
    return {f"train-{text.split()[1]}" for text in texts}


def test_candidate_sets_read_no_listed_dialogue_neither_as_context_nor_as_a_wrong_reply(
    corpora: Path, recipe: dict[str, Any]
) -> None:
    sets, shares = common.read_candidate_sets(recipe, corpora)
    assert shares == [1.0]
    seen = [sets[0].get(index) for index in range(len(sets[0]))]
    texts = [text for one in seen for text in (*one.exchange.context, *one.responses)]
    assert dialogues_of(texts) == {f"train-{number}" for number in range(2, 8)}
    everything, _ = common.read_candidate_sets({**recipe, "leave_out": None}, corpora)
    assert len(everything[0]) == 8 * 3


def test_debs_ordinary_chat_holds_no_listed_dialogue(corpora: Path, recipe: dict[str, Any]) -> None:
    sets, _ = deb.chat_corpora(recipe, corpora)
    assert {dialogue.id for dialogue in sets[0].dialogues} == {f"train-{number}" for number in range(2, 8)}


def test_grouped_contexts_share_neither_text_nor_dialogue_with_a_test(corpora: Path, recipe: dict[str, Any]) -> None:
    train, held = stages.split_groups(recipe, corpora)
    names = {one.id for one in train}, {one.id for one in held}
    assert not (names[0] | names[1]) & BENCHMARK
    assert not (names[0] | names[1]) & FROM_TEST
    assert (names[0] | names[1], names[0] & names[1]) == (ALLOWED, set())
    assert stages.unwanted_groups(recipe, corpora) >= BENCHMARK | FROM_TEST


def test_further_contexts_share_no_dialogue_with_a_test_or_with_the_main_part(
    corpora: Path, recipe: dict[str, Any]
) -> None:
    more = {"name": "pp", "split": "more", "share": 0.3, "contexts": 100, "random": 1}
    chat = {"name": "chat", "splits": ["train"], "share": 0.2, "contexts": 100, "negatives": {"random": 1}}
    augmentation = [{**more, "mined_by_words": 0, "mined_by_embedding": 0}, chat]
    sources, shares, held = stages.read_grouped({**recipe, "augmentation": augmentation}, corpora)
    assert shares == pytest.approx([0.5, 0.3, 0.2])
    # m0 shares text with a benchmark, m1 a dialogue with a test context, m2 one with a context of the main part.
    assert {one.id for one in sources["pp/more"]} == {f"m{number}" for number in range(3, 20)}
    assert {one.id for one in [*sources["pp/dev"], *held]} == ALLOWED
    ordinary = sources["chat/train"]
    assert {one.id.partition("#")[0] for one in ordinary} == {f"train-{number}" for number in range(2, 8)}
    texts = [text for one in ordinary for text in (*one.context, *one.positives, *one.mined, *one.random)]
    assert dialogues_of(texts) == {f"train-{number}" for number in range(2, 8)}


def test_a_context_that_shares_a_long_turn_with_a_held_out_one_is_in_neither_part() -> None:
    long, short = "these are six words of a turn", "five words in this turn"
    pool = [Group(f"g{number}", (f"turn {number}", long if number < 5 else short), ("yes",)) for number in range(10)]
    for seed in range(20):
        train, held = hold_out(pool, 0.2, seed)
        assert len(held) == 2
        shared = [one for one in held if long in one.context]
        wanted = [one for one in pool if one not in held and not (shared and long in one.context)]
        assert train == wanted  # in the order of the file


def test_every_context_beside_a_held_out_one_leaves_nothing() -> None:
    pool = [Group(f"g{number}", ("these are six words of one turn",), ("yes",)) for number in range(4)]
    refused(ValueError, "context", hold_out, pool, 0.5, 0)


def test_without_the_list_nothing_is_trained(corpora: Path, recipe: dict[str, Any]) -> None:
    for read in (common.read_candidate_sets, stages.split_groups):
        refused(FileNotFoundError, "none.json.gz", read, {**recipe, "leave_out": "none.json.gz"}, corpora)
