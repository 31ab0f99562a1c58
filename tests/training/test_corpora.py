"""What training reads: dialogues, groups, candidates, negatives, batches, mined replies and rated rows."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest

from corpora.batches import Candidates, CandidateSet, mixed_batches
from corpora.dialogues import CorpusDialogue, find_split, overlapping_ids, read_corpus, read_rows
from corpora.grouped import Group, GroupSet, hold_out, labelled_rows, read_groups, sharing_dialogues, with_random
from corpora.mining import with_mined, word_overlap
from corpora.negatives import NegativeCounts, NegativeSampler, corrupt
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.core.exchange import BadRow, Exchange
from refusals import refused
from shell import write_rows


def lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def talk(count: int = 30, turns: int = 4) -> list[CorpusDialogue]:
    """Dialogues whose utterances tell where they stand: `d3 t1 …`."""
    return [
        CorpusDialogue(f"d{one}", tuple(f"d{one} t{turn} some words" + " more" * turn for turn in range(turns)), "chat")
        for one in range(count)
    ]


def test_a_corpus_is_read_as_it_stands(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "utterances": ["one", "two", "three"]},
        {"utterances": ["one", "two"]},
        {"id": "left out", "utterances": ["one", "two"]},
        {"id": "short", "utterances": ["one"]},
        {"id": "blank", "utterances": ["one", " ", "three"]},
        {"id": "none"},
        {"id": 7, "utterances": ["one", "two"]},
    ]
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "train.jsonl.gz").write_bytes(
        gzip.compress((lines(rows[:3]) + "\n" + lines(rows[3:])).encode())
    )
    found = read_corpus(tmp_path, "chat", "train", leave_out=frozenset({"left out"}))
    assert found == [
        CorpusDialogue("a", ("one", "two", "three"), "chat"),
        CorpusDialogue("chat-1", ("one", "two"), "chat"),
        CorpusDialogue("7", ("one", "two"), "chat"),
    ]


def test_facts_go_to_the_turns_of_their_speaker(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "utterances": ["hi", "hello", "bye"],
        "speakers": ["zoe", "ann", "zoe"],
        "persona": [["i am ann"], ["i am zoe", "i ski"]],  # in the alphabetical order of speakers
    }
    wrong_count = {**row, "id": "b", "speakers": ["zoe", "ann"]}
    nothing_known = {"id": "c", "utterances": ["hi", "hello"], "speakers": ["zoe", "ann"]}
    third = {**row, "id": "d", "speakers": ["zoe", "ann", "max"]}
    write_rows(tmp_path / "chat" / "dev.jsonl", [row, wrong_count, nothing_known, third])
    a, b, c, d = read_corpus(tmp_path, "chat", "dev")
    zoe = ("your persona: i am zoe", "your persona: i ski")
    assert a.facts == (zoe, ("your persona: i am ann",), zoe)
    assert (b.facts, c.facts) == ((), ())
    assert d.facts[2] == zoe  # the second in the alphabet; the third speaker has no facts
    assert d.facts[0] == ()
    assert a.exchange(1) == Exchange(("hi",), "hello", facts=("your persona: i am ann",), id="a#1")
    assert a.exchange(2) == Exchange(("hi", "hello"), "bye", facts=zoe, id="a#2")
    assert c.exchange(1).facts == ()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    refused(FileNotFoundError, "train", read_corpus, tmp_path, "chat", "train")
    write_rows(tmp_path / "chat" / "dev.jsonl", [{"utterances": ["one"]}])
    (tmp_path / "chat" / "test.jsonl.gz").write_bytes(b"")
    (tmp_path / "chat" / "notes.txt").write_text("")
    refused(FileNotFoundError, "dev.jsonl", find_split, tmp_path, "chat", "train")
    refused(ValueError, "chat", read_corpus, tmp_path, "chat", "dev")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n\n{"a": }\n')
    refused(ValueError, "line 3", lambda: list(read_rows(tmp_path / "bad.jsonl")))
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n[1]\n')
    refused(ValueError, "line 2", lambda: list(read_rows(tmp_path / "bad.jsonl")))


@pytest.mark.parametrize("column", ["utterances", "dialog", "dialogue", "turns"])
def test_a_dataset_is_read_from_its_column_of_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "data"
    write_rows(folder / "train.jsonl", [{column: ["hi", "hello"], "x": 1}, {column: ["a", "b"], "x": 2}])
    found = read_corpus(tmp_path, f"hub:{folder}", "train")
    assert [(one.id, one.turns) for one in found] == [
        (f"{folder}-train-0", ("hi", "hello")),
        (f"{folder}-train-1", ("a", "b")),
    ]
    write_rows(folder / "train.jsonl", [{"talk": ["hi", "hello"], "x": 1}])
    refused(ValueError, "talk", read_corpus, tmp_path, f"hub:{folder}", "train")


def test_listed_ids_are_those_of_every_section_but_trained_on_twice(tmp_path: Path) -> None:
    """Of overlaps with the positives-only part the dialogues stay; its contexts from evaluated splits go."""
    sections = {
        "chat": {"train vs test": ["a", "b"], "nested": {"deeper": [["c"], {"more": "d"}]}},
        "pp": {
            "pp train_positives_only in dailydialog train": {"p1": ["kept-1"]},
            "pp train_positives_only in dailydialog validation": {"p2": ["kept-2"]},
            "pp train_positives_only in dailydialog test": {"p3": ["kept-3"], "p4": ["kept-4"]},
            "pp test in dailydialog train": {"t1": ["e"]},
        },
        "count": 3,
    }
    plain, zipped = tmp_path / "overlaps.json", tmp_path / "overlaps.json.gz"
    plain.write_text(json.dumps(sections))
    zipped.write_bytes(gzip.compress(json.dumps(sections).encode()))
    assert overlapping_ids(plain) == overlapping_ids(zipped) == frozenset({"a", "b", "c", "d", "e", "p2", "p3", "p4"})


def test_every_prefix_of_every_dialogue_is_a_context() -> None:
    one = CandidateSet(talk(6), NegativeCounts(random=2), seed=3)
    assert len(one) == 6 * 3
    assert [one.get(index).exchange.id for index in (0, 1, 2, 3)] == ["d0#1", "d0#2", "d0#3", "d1#1"]
    third = one.get(2)
    turns = one.dialogues[0].turns
    assert third.exchange == Exchange(turns[:3], turns[3], id="d0#3")
    assert third.responses[0] == turns[3]
    assert len(set(third.responses)) == 3
    assert not set(third.responses[1:]) & set(turns)
    assert one.length(2) == sum(map(len, turns))
    assert one.length(0) == len(turns[0]) + len(turns[1])
    shown = third.exchanges()
    assert [exchange.response for exchange in shown] == list(third.responses)
    assert {exchange.context for exchange in shown} == {turns[:3]}


def test_negatives_depend_on_seed_epoch_and_pair_alone() -> None:
    one, again = (CandidateSet(talk(), NegativeCounts(random=3), seed=3) for _ in range(2))
    assert one.get(5) == again.get(5) == one.get(5, 0)
    assert one.get(5, 1) == again.get(5, 1)
    assert len({one.get(5, epoch).responses for epoch in range(4)}) == 4
    assert CandidateSet(talk(), NegativeCounts(random=3), seed=4).get(5) != one.get(5)


class Numbers:
    """A source that gives its numbers back; `longest` ones first where `reverse`."""

    def __init__(self, count: int, name: str = "") -> None:
        self.count, self.name = count, name

    def __len__(self) -> int:
        return self.count

    def get(self, index: int, epoch: int = 0) -> Candidates:
        return Candidates(Exchange((self.name,), f"{index}"), (f"{epoch}",))

    def length(self, index: int) -> int:
        return 10 * index


def drawn(batch: Sequence[Candidates]) -> list[int]:
    return [int(one.exchange.response) for one in batch]


def test_an_epoch_shows_each_context_once_and_the_next_ones_other_negatives() -> None:
    epochs = [list(islice(mixed_batches([Numbers(203)], [1], batch_contexts=4, seed=seed), 100)) for seed in (0, 0, 1)]
    first, second = epochs[0][:50], epochs[0][50:]
    assert epochs[0] == epochs[1] != epochs[2]
    for number, epoch in enumerate((first, second)):
        seen = [index for batch in epoch for index in drawn(batch)]
        assert len(set(seen)) == len(seen) == 200  # the incomplete batch of the last bucket is dropped
        assert {one.responses[0] for batch in epoch for one in batch} == {str(number)}
    assert [drawn(batch) for batch in first] != [drawn(batch) for batch in second]
    kept = list(islice(mixed_batches([Numbers(8)], [1], batch_contexts=4, seed=0, resample=False), 6))
    assert {one.responses[0] for batch in kept for one in batch} == {"0"}


def test_every_kind_of_negative_is_what_its_name_says() -> None:
    dialogues = talk(40)
    told = ("the volcano erupted", "which volcano was it", "a small one", "far away from here")
    shared = CorpusDialogue("s", told, "chat")
    other = CorpusDialogue("o", ("a volcano is a mountain", "with fire inside it", "i see now", "good to know"), "chat")
    counts = NegativeCounts(random=4, same_dialogue=2, shared_word=1, corrupted=1)
    assert counts.total == 8
    sampler = NegativeSampler([*dialogues, shared, other], counts)
    everything = {turn for dialogue in [*dialogues, shared, other] for turn in dialogue.turns}
    for seed in range(30):
        found = sampler.draw(shared, 2, np.random.default_rng(seed))
        assert len(found) == 8
        assert "a small one" not in found  # the answer itself
        assert found[0] == "a volcano is a mountain"  # the only reply elsewhere with a word of the context
        assert sorted(found[1].split()) != sorted("a small one".split())  # too short to be damaged, so an echo
        echoes, random = found[1:3], found[3:]
        assert len(set(echoes)) == 2
        assert set(echoes) < set(shared.turns)
        assert set(random) <= everything - {*shared.turns[:3], found[0]}
        assert len(set(random)) == 5


def test_a_shared_word_is_one_of_the_last_two_turns() -> None:
    first = CorpusDialogue("f", ("the volcano erupted", "oh", "a glacier melts", "then what"), "chat")
    told = ("a volcano is a mountain", "nothing here", "that glacier moves", "good to know")
    other = CorpusDialogue("o", told, "chat")
    sampler = NegativeSampler([*talk(40), first, other], NegativeCounts(random=0, shared_word=1))
    assert {sampler.draw(first, 3, np.random.default_rng(seed))[0] for seed in range(20)} == {"that glacier moves"}
    assert sampler.shares_word(first.turns[:3], "That GLACIER moves")
    assert not sampler.shares_word(first.turns[:3], "a volcano is a mountain")


def test_damage_shuffles_repeats_cuts_or_drops() -> None:
    reply = "one two three four five six seven eight nine ten"
    words = reply.split()
    kinds: Counter[str] = Counter()
    for seed in range(300):
        damaged = corrupt(reply, np.random.default_rng(seed))
        assert damaged is not None
        assert damaged != reply
        got = damaged.split()
        if got == words[: len(got)] and len(got) < 10:
            kinds["cut"] += 1
            assert 3 <= len(got) <= 6
        elif sorted(got) == sorted(words):
            kinds["shuffled"] += 1
        elif len(got) < 10:
            kinds["dropped"] += 1
            assert 5 <= len(got) <= 7
            assert got == [word for word in words if word in got]
        else:
            kinds["repeated"] += 1
            assert set(got) == set(words)
            assert 11 <= len(got) <= 16
            # What is repeated stands side by side: taking one span out once or twice gives the reply back.
            assert any(
                got[:at] + got[at + times * width :] == words
                for width in (1, 2, 3)
                for times in (1, 2)
                for at in range(len(got))
            )
    assert min(kinds.values()) > 50
    assert len(kinds) == 4
    assert corrupt("one two three", np.random.default_rng(0)) is None
    # What is shuffled or cut may be what it was: not damaged after all.
    assert None in {corrupt("so so so so", np.random.default_rng(seed)) for seed in range(20)}


def salty() -> list[Group]:
    """Groups whose replies all speak of salt, each with words of its own."""
    return [
        Group(f"g{letter}", (f"nothing{letter}", "salt please"), (f"salt lies beside thing{letter} {letter * 4}",))
        for letter in ascii_lowercase[:20]
    ]


def test_mined_replies_depend_on_the_seed_alone() -> None:
    groups = salty()
    embed = word_overlap([text for one in groups for text in (*one.context, *one.positives)])
    found = with_mined(groups, 2, embed, seed=0)
    assert found == with_mined(groups, 2, embed, seed=0) != with_mined(groups, 2, embed, seed=1)
    for one in found:
        assert len(set(one.mined)) == 2
        assert not {*one.positives} & {*one.mined}
        assert all(reply.startswith("salt lies beside thing") for reply in one.mined)
    assert len({one.mined for one in found}) > 10
    again = with_mined(found, 1, embed, seed=0)
    assert all(two.mined[:2] == one.mined and len(set(two.mined)) == 3 for one, two in zip(found, again, strict=True))


def test_a_rare_word_that_is_shared_counts_for_more_than_a_frequent_one_and_repetition_for_little() -> None:
    texts = ["volcano weather", "weather rain", "weather sun", "weather wind", "ab 123 the"]
    embed = word_overlap(texts)
    rare, common, repeated = (
        embed([text]).toarray()[0] for text in ("volcano rain", "weather rain", "rain rain weather")
    )
    asked = embed(["volcano weather"]).toarray()[0]
    assert asked @ rare > asked @ common > 0
    # Words of fewer than three letters, numbers and stop words are not words.
    assert embed(["ab 123 the"]).nnz == 0
    once = embed(["rain weather"]).toarray()[0]
    ratio = (repeated.max() / repeated[repeated > 0].min()) / (once.max() / once[once > 0].min())
    assert ratio == pytest.approx(1 + np.log(2))


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


def test_reads_kinds_and_drops_contradictions(tmp_path: Path) -> None:
    row = {"id": "a", "context": ["Hi .", " "], "positive_responses": ["Hello !", "Good day"],
           "adversarial_negative_responses": ["Hi is short", ""],
           "random_negative_responses": ["Good day", "Seven"]}  # fmt: skip
    other = {"id": "b", "context": ["Bye"], "positive_responses": ["See you"]}
    without_context = {"id": "c", "context": [], "positive_responses": ["x"]}
    write_rows(tmp_path / "pp" / "dev.jsonl", [row, other, without_context])
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
    write_rows(tmp_path / "pp" / "dev.jsonl", [row])
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


@pytest.mark.parametrize("share", [0.0, 1.0, 0.001])
def test_nothing_to_hold_out_or_to_train_on(share: float) -> None:
    refused(ValueError, "held out", lambda: hold_out(groups(), share, 0))


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


TALK = [
    Group("piano", ("Do you still play the piano at night?",), ("Every night, until the neighbours knock.",)),
    Group("tuner", ("Who can repair old instruments?",), ("Ask the man who tuned the piano at school.",)),
    Group("soup", ("The soup needs some salt.",), ("There is salt beside the stove, help yourself.",)),
    Group("sea", ("Why is the sea salty?",), ("Rivers carry salt into it all the time.",)),
    Group("keys", ("I lost my keys again.",), ("They were under your coat this morning.",)),
    Group("again", ("I lost my keys again!",), ("Look beside the door, you left your keys there.",)),
]


def test_mining_finds_replies_that_share_rare_words_but_none_to_nearly_the_same_context() -> None:
    embed = word_overlap([text for one in TALK for text in (*one.context, *one.positives)])
    mined = {one.id: one.mined for one in with_mined(TALK, 1, embed, seed=0)}
    assert mined["piano"] == ("Ask the man who tuned the piano at school.",)
    assert mined["soup"] == ("Rivers carry salt into it all the time.",)
    assert mined["tuner"] == ()  # nothing shares a word with it
    # The only reply that speaks of keys answers the same words, so it would be right here too.
    assert mined["keys"] == ()


WHOLE = {
    "id": "c-1", "source": "chats", "family": "chat", "level": "turn", "context": ["hi", "hello"], "response": "bye",
    "references": ["see you"], "speakers": ["a", "b"], "following": "oh", "facts": ["i ski"], "system": "s",
    "scores": {"overall": 4, "human": None}, "ratings": {"overall": [3, 5]}, "split": "validation", "dialogue": "d",
}  # fmt: skip


def write(root: Path, *rows: Any, name: str = "chats.jsonl") -> Path:
    shown = lines(rows).encode()
    (root / name).write_bytes(gzip.compress(shown) if name.endswith(".gz") else shown)
    return root


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.jsonl.gz"])
def test_a_row_is_read_as_it_stands(tmp_path: Path, name: str) -> None:
    (found,) = read_ratings(write(tmp_path, WHOLE, name=name), "chats")
    exchange = Exchange(("hi", "hello"), "bye", ("see you",), ("i ski",), "s", "c-1", "oh")
    beside: dict[str, Any] = {"ratings": {"overall": [3, 5]}, "speakers": ("a", "b"), "dialogue": "d"}
    # An aspect that nobody rated is not there.
    assert found == Rated(exchange, "chats", "chat", "validation", {"overall": 4.0}, **beside)


def test_rows_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    without_level = {key: value for key, value in WHOLE.items() if key != "level"} | {"id": "c-3"}
    changes = [{"id": "listed"}, {"level": "dialogue"}, *({"response": text} for text in (" ", None))]
    changes += [{"scores": scores} for scores in ({}, None, {"overall": None})]
    unusable = [{**without_level, "response": ""}, *(WHOLE | change for change in changes)]
    silent = {**WHOLE, "id": "c-2", "context": None}  # a reply that opens the conversation
    write(tmp_path, *unusable, WHOLE, silent, without_level)
    found = read_ratings(tmp_path, "chats", leave_out=frozenset({"listed", "c-9"}))
    assert [one.exchange.id for one in found] == ["c-1", "c-2", "c-3"]
    assert found[1].exchange.context == ()
    write(tmp_path, *unusable, name="none.jsonl")
    refused(ValueError, "none.jsonl", read_ratings, tmp_path, "none", leave_out=frozenset({"listed"}))


def test_a_bad_row_is_named_by_its_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, WHOLE, {**WHOLE, "facts": 7})
    assert "facts" in refused(BadRow, "chats.jsonl line 2", read_ratings, tmp_path, "chats")


def test_listed_rows_are_those_that_share_text_with_an_evaluation_set(tmp_path: Path) -> None:
    (tmp_path / "overlaps.json").write_text(json.dumps({"c-1": ["a set"], "c-2": ["another", "a set"]}))
    assert overlapping_ratings(tmp_path / "overlaps.json") == {"c-1", "c-2"}  # the ids, not the sets
    (tmp_path / "list.json.gz").write_bytes(gzip.compress(b'["c-3"]'))
    assert overlapping_ratings(tmp_path / "list.json.gz") == {"c-3"}
    refused(FileNotFoundError, "none.json", overlapping_ratings, tmp_path / "none.json")
