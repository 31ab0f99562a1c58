"""Rated rows as a judge's training reads them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.core.exchange import BadRow, Exchange
from refusals import refused

WHOLE = {
    "id": "c-1", "source": "chats", "family": "chat", "level": "turn", "context": ["hi", "hello"], "response": "bye",
    "references": ["see you"], "speakers": ["a", "b"], "following": "oh", "facts": ["i ski"], "system": "s",
    "scores": {"overall": 4, "human": None}, "ratings": {"overall": [3, 5]}, "split": "validation", "dialogue": "d",
}  # fmt: skip


def write(root: Path, *rows: Any, name: str = "chats.jsonl") -> Path:
    shown = "".join(json.dumps(row) + "\n" for row in rows)
    (root / name).write_bytes(gzip.compress(shown.encode()) if name.endswith(".gz") else shown.encode())
    return root


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.jsonl.gz"])
def test_a_row_is_read_as_it_stands(tmp_path: Path, name: str) -> None:
    (found,) = read_ratings(write(tmp_path, WHOLE, name=name), "chats")
    assert found == Rated(
        exchange=Exchange(("hi", "hello"), "bye", ("see you",), ("i ski",), "s", "c-1", "oh"),
        source="chats",
        family="chat",
        split="validation",
        scores={"overall": 4.0},  # an aspect that nobody rated is not there
        ratings={"overall": [3, 5]},
        speakers=("a", "b"),
        dialogue="d",
    )


def test_rows_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    without_level = {key: value for key, value in WHOLE.items() if key != "level"} | {"id": "c-3"}
    unusable = [
        {**without_level, "response": ""},
        {**WHOLE, "id": "listed"},
        {**WHOLE, "response": " "},
        {**WHOLE, "response": None},
        {**WHOLE, "scores": {}},
        {**WHOLE, "scores": None},
        {**WHOLE, "scores": {"overall": None}},
        {**WHOLE, "level": "dialogue"},
    ]
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
