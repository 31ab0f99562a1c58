"""Anybody's benchmark as JSON lines: what is understood, what is inferred, and what is refused by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anything import JSON
from dialeval import benchmarks
from dialeval.benchmarks import BadFile, Scale
from refusals import refused


def write(folder: Path, *items: Any, name: str = "mine.jsonl") -> Path:
    path = folder / name
    text = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in items)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


TURN = {"context": ["Hi.", "Tea?"], "response": "Yes.", "scores": {"wit": 0.5, "Overall": 4}}


def test_a_full_turn(tmp_path: Path) -> None:
    kept = {key: TURN[key] for key in ("context", "response")}
    kept |= {"id": "r1", "dataset": "teatime", "level": "turn", "system": "S2S", "facts": ["I like tea."]}
    said = {"scores": {"wit": 0.5, "Overall": None}, "ratings": {"Overall": [4, 5]}}
    found = benchmarks.load(write(tmp_path, {**kept, **said, "reference": "Please.", "published_score": 4.5}))
    assert found.dataset[0] == {
        **kept,
        "references": ["Please."],
        "group": "teatime-context-00000",
        "scores": {"wit": 0.5, "Overall": 4.5},
        "ratings": {"wit": [], "Overall": [4.0, 5.0]},
    }
    assert (found.info.name, found.info.level, found.info.kind, found.info.rows) == ("teatime", "turn", "ratings", 1)
    assert found.info.main_aspect == "Overall"
    assert found.info.aspects == {"wit": Scale(0.5, 0.5), "Overall": Scale(4, 5)}


def test_the_least_that_a_turn_needs(tmp_path: Path) -> None:
    path = write(tmp_path, {"context": "Tea?", "response": "", "scores": {"wit": 1}}, "", TURN, name="mine.jsonl.gz")
    found = benchmarks.load(str(path))
    assert found.info.name == "mine"
    assert found.dataset["id"][:] == ["mine-00000", "mine-00001"]
    assert found.dataset["context"][:] == [["Tea?"], ["Hi.", "Tea?"]]
    assert found.dataset["response"][:] == ["", "Yes."]
    assert found.dataset["system"][:] == [None, None]
    assert found.dataset["scores"][:] == [{"wit": 1.0, "Overall": None}, {"wit": 0.5, "Overall": 4.0}]


@pytest.mark.parametrize(
    "item",
    [
        {"level": "dialogue", "context": ["Hi.", "", "Tea?"], "response": None},
        {"context": ["Hi.", "", "Tea?"]},
        {"level": "dialogue", "context": ["Hi.", ""], "response": "Tea?"},
        {"dialogue": ["Hi.", "", "Tea?"], "speakers": ["A", "B", "A"]},
    ],
)
def test_dialogues(tmp_path: Path, item: dict[str, Any]) -> None:
    found = benchmarks.load(write(tmp_path, {**item, "ratings": {"overall": [1, 4]}}))
    assert found.info.level == "dialogue"
    assert found.dataset[0]["dialogue"] == ["Hi.", "", "Tea?"]
    assert found.dataset[0]["speakers"] == item.get("speakers", [])
    assert found.dataset[0]["scores"] == {"overall": 2.5}


def test_labels_one_per_line(tmp_path: Path) -> None:
    good = {"context": ["Tea?"], "response": "Yes.", "label": 1, "references": ["Please.", "No."]}
    bad = {"context": ["Tea?"], "response": "Nine.", "label": 0, "kind_of_reply": "random"}
    found = benchmarks.load(write(tmp_path, good, {**bad, "label": False}))
    assert (found.info.kind, found.info.main_aspect) == ("labels", "label")
    assert found.dataset["label"][:] == [1, 0]
    assert found.dataset["kind_of_reply"][:] == ["positive", "random"]
    assert found.dataset["references"][:] == [["Please.", "No."], []]


@pytest.mark.parametrize("words", [("adversarial", "random"), ("adversarial_negative", "random_negative")])
def test_labels_as_lists_of_replies(tmp_path: Path, words: tuple[str, str]) -> None:
    first = {"id": "c", "context": ["Tea?"], "responses": {"positive": ["a", "b"], words[0]: ["x"], words[1]: ["y"]}}
    found = benchmarks.load(write(tmp_path, first, {"context": ["Hi."], "responses": {"positive": ["d"]}}))
    assert found.dataset["id"][:] == [
        "c#positive#0",
        "c#positive#1",
        "c#adversarial_negative#0",
        "c#random_negative#0",
        "mine-00001#positive#0",
    ]
    assert found.dataset["references"][:] == [["b"], ["a"], ["b"], ["b"], []]
    assert found.info.rows == 5


def test_attacked_pairs(tmp_path: Path) -> None:
    pair = {"context": ["Tea?"], "response": "Yes.", "adversarial_response": "Yes Yes.", "scores": {}}
    other = {**pair, "adversarial_context": ["Cold?"], "harmful": False, "attack": "echo", "domain": "kitchen"}
    found = benchmarks.load(write(tmp_path, pair, other))
    assert found.info.kind == "pairs"
    assert found.dataset["adversarial_context"][:] == [["Tea?"], ["Cold?"]]
    assert found.dataset["harmful"][:] == [True, False]
    assert found.dataset["attack"][:] == [None, "echo"]


#: A second line that cannot be read, and what the error names beside the line.
REFUSED: list[tuple[Any, str]] = [
    ("{", "JSON"),
    ("[1]", "list"),
    ({**TURN, "response": 3}, "response"),
    ({**TURN, "response": None, "level": "turn"}, "response"),
    ({**TURN, "context": None}, "context"),
    ({**TURN, "context": ["a", 1]}, "context[1]"),
    ({**TURN, "response": "\ud800"}, "response"),
    ({**TURN, "references": ["a", None]}, "references[1]"),
    ({**TURN, "facts": {"a": 1}}, "facts"),
    ({**TURN, "system": ["a"]}, "system"),
    ({**TURN, "dataset": 5}, "dataset"),
    ({**TURN, "level": "system"}, "level"),
    ({**TURN, "scores": {"wit": float("nan")}}, "wit"),
    ({**TURN, "scores": {"wit": 10**400}}, "wit"),
    ({**TURN, "scores": {"wit": "good"}}, "wit"),
    ({**TURN, "scores": [1]}, "scores"),
    ({**TURN, "ratings": {"wit": "3"}}, "wit"),
    ({**TURN, "ratings": {"wit": [1, "N/A"]}}, "wit"),
    ({**TURN, "ratings": {"wit": [True]}}, "wit"),
    ({"context": ["a"], "response": "b"}, "scores"),
    ({**TURN, "level": "dialogue", "context": []}, "dialogue"),
    ({"context": ["a"], "response": "b", "label": 1}, "labels"),
    ({**TURN, "id": "mine-00000"}, "line 1"),
]


@pytest.mark.parametrize(("bad", "named"), REFUSED)
def test_bad_lines_are_named(tmp_path: Path, bad: Any, named: str) -> None:
    assert named in refused(BadFile, "mine.jsonl, line 2", lambda: benchmarks.load(write(tmp_path, TURN, bad)))


#: An only line, and what the error names.
ALONE: list[tuple[Any, str]] = [
    ({"level": "dialogue", "context": ["a"], "scores": {"x": 1}}, "dialogue"),
    ({"dialogue": ["a", "b"], "speakers": ["A"], "scores": {"x": 1}}, "speakers"),
    ({"level": "dialogue", "context": ["a", "b"], "label": 1}, "dialogue"),
    ({"context": ["a"], "response": "b", "label": 2}, "label"),
    ({"context": ["a"], "responses": {"random": ["x"]}}, "positive"),
    ({"context": ["a"], "responses": ["x"]}, "responses"),
    ({"context": ["a"], "responses": {"positive": [1]}}, "responses.positive[0]"),
    ({"context": ["a"], "response": "b", "adversarial_response": 1}, "adversarial_response"),
    ({"context": ["a"], "response": "b", "adversarial_response": "c", "harmful": "no"}, "harmful"),
]


@pytest.mark.parametrize(("bad", "named"), ALONE)
def test_bad_items_of_other_kinds_are_named(tmp_path: Path, bad: Any, named: str) -> None:
    assert named in refused(BadFile, "mine.jsonl, line 1", lambda: benchmarks.load(write(tmp_path, bad)))


@pytest.mark.parametrize("content", ["", "\n\n", '{"context": ["é"]}', "cut"])
def test_files_that_cannot_be_read_are_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl.gz"
    packed = gzip.compress(json.dumps(TURN).encode())
    path.write_bytes(packed[:-9] if content == "cut" else content.encode("latin-1"))
    refused(BadFile, "mine.jsonl.gz", benchmarks.load, path)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    refused(BadFile, "none.jsonl", benchmarks.load, tmp_path / "none.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    refused(BadFile, "folder.jsonl", benchmarks.load, tmp_path / "folder.jsonl")
    refused(ValueError, "protocol", lambda: benchmarks.load(write(tmp_path, TURN), protocol="clean"))


FIELDS = ("level", "context", "dialogue", "response", "responses", "reference", "scores", "ratings", "label", "id",
          "adversarial_response", "harmful", "speakers", "facts", "dataset", "system")  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.booleans())
@example({"scores": {"": None}}, True)
@pytest.mark.slow
def test_whatever_a_line_holds_it_is_read_or_refused_by_name(
    tmp_path: Path, noise: dict[str, Any], over_a_good_row: bool
) -> None:
    item = {**TURN, **noise} if over_a_good_row else noise
    try:
        found = benchmarks.load(write(tmp_path, item))
    except BadFile as error:
        assert "mine.jsonl, line 1" in str(error)  # noqa: PT017 - both outcomes are allowed
    else:
        assert len(found.dataset) == found.info.rows
