"""Anybody's benchmark as JSON lines: what is understood, what is inferred, and what is refused by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dialeval import benchmarks
from dialeval.benchmarks import BadFile, Scale


def write(folder: Path, *items: Any, name: str = "mine.jsonl") -> Path:
    path = folder / name
    text = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in items)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


TURN = {"context": ["Hi.", "Tea?"], "response": "Yes.", "scores": {"wit": 0.5, "Overall": 4}}


def test_a_full_turn(tmp_path: Path) -> None:
    row = {
        "id": "r1",
        "dataset": "teatime",
        "level": "turn",
        "context": ["Hi.", "Tea?"],
        "response": "Yes.",
        "reference": "Please.",
        "system": "S2S",
        "scores": {"wit": 0.5, "Overall": None},
        "ratings": {"Overall": [4, 5]},
        "facts": ["I like tea."],
        "published_score": 4.5,
    }
    found = benchmarks.load(write(tmp_path, row))
    assert found.dataset[0] == {
        "id": "r1",
        "dataset": "teatime",
        "level": "turn",
        "context": ["Hi.", "Tea?"],
        "response": "Yes.",
        "references": ["Please."],
        "facts": ["I like tea."],
        "system": "S2S",
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


def test_systems_that_no_machine_wrote_can_be_left_out(tmp_path: Path) -> None:
    rows = [{**TURN, "system": system} for system in ("S2S", "Human", "negative-sample", "S2S")]
    found = benchmarks.load(write(tmp_path, *rows))
    assert found.info.systems == ("S2S", "Human", "negative-sample")
    assert found.info.default_exclusion == "none"
    assert len(found.select()) == 4
    assert found.select(exclusion="generated")["system"][:] == ["S2S", "S2S"]


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


def test_the_revision_follows_the_content(tmp_path: Path) -> None:
    first = benchmarks.load(write(tmp_path, TURN)).info.revision
    assert benchmarks.load(write(tmp_path, TURN)).info.revision == first
    assert benchmarks.load(write(tmp_path, {**TURN, "response": "No."})).info.revision != first


REFUSED: list[tuple[Any, str]] = [
    ("{", "mine.jsonl line 2: not JSON"),
    ("[1]", "mine.jsonl line 2: a list; write a JSON object"),
    ({**TURN, "response": 3}, "mine.jsonl line 2: response is a int; pass a string"),
    ({**TURN, "response": None, "level": "turn"}, "mine.jsonl line 2: response is None; pass a string"),
    ({**TURN, "context": None}, "mine.jsonl line 2: context is None"),
    ({**TURN, "context": ["a", 1]}, r"mine.jsonl line 2: context\[1\] is a int"),
    ({**TURN, "response": "\ud800"}, "mine.jsonl line 2: response holds a lone surrogate at character 0"),
    ({**TURN, "references": ["a", None]}, r"mine.jsonl line 2: references\[1\] is None"),
    ({**TURN, "facts": {"a": 1}}, "mine.jsonl line 2: facts is a dict"),
    ({**TURN, "system": ["a"]}, "mine.jsonl line 2: system is a list"),
    ({**TURN, "dataset": 5}, "mine.jsonl line 2: dataset is a int"),
    ({**TURN, "level": "system"}, "mine.jsonl line 2: level is 'system'; write turn or dialogue"),
    ({**TURN, "scores": {"wit": float("nan")}}, "mine.jsonl line 2: the score of wit is nan; give a number"),
    ({**TURN, "scores": {"wit": 10**400}}, "mine.jsonl line 2: the score of wit is 1000"),
    ({**TURN, "scores": {"wit": "good"}}, "mine.jsonl line 2: the score of wit is 'good'"),
    ({**TURN, "scores": [1]}, "mine.jsonl line 2: scores and ratings must be objects"),
    ({**TURN, "ratings": {"wit": 3}}, "mine.jsonl line 2: ratings of wit are a int; give a list"),
    ({**TURN, "ratings": {"wit": [1, "N/A"]}}, "mine.jsonl line 2: a rating of wit is 'N/A'"),
    ({**TURN, "ratings": {"wit": [True]}}, "mine.jsonl line 2: a rating of wit is True"),
    ({"context": ["a"], "response": "b"}, "mine.jsonl line 2: nothing to compare with"),
    ({**TURN, "level": "dialogue", "context": []}, "mine.jsonl line 2: a dialogue item after turn items"),
    ({"context": ["a"], "response": "b", "label": 1}, "mine.jsonl line 2: a labels item after ratings items"),
    ({**TURN, "id": "mine-00000"}, "mine.jsonl line 2: id 'mine-00000' was used in line 1"),
]


@pytest.mark.parametrize(("bad", "message"), REFUSED)
def test_bad_lines_are_named(tmp_path: Path, bad: Any, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        benchmarks.load(write(tmp_path, TURN, bad))


ALONE: list[tuple[Any, str]] = [
    ({"level": "dialogue", "context": ["a"], "scores": {"x": 1}}, "context has 1 turns; a dialogue needs at least two"),
    ({"dialogue": ["a", "b"], "speakers": ["A"], "scores": {"x": 1}}, "1 speakers for 2 turns"),
    ({"level": "dialogue", "context": ["a", "b"], "label": 1}, "a dialogue needs scores or ratings"),
    ({"context": ["a"], "response": "b", "label": 2}, "label is 2; write 1 for a valid reply"),
    ({"context": ["a"], "responses": {"random": ["x"]}}, "responses has no positive reply"),
    ({"context": ["a"], "responses": ["x"]}, "responses must be lists of replies under positive, adversarial, random"),
    ({"context": ["a"], "responses": {"positive": [1]}}, r"responses.positive\[0\] is a int"),
    ({"context": ["a"], "response": "b", "adversarial_response": 1}, "adversarial_response is a int"),
    ({"context": ["a"], "response": "b", "adversarial_response": "c", "harmful": "no"}, "harmful is 'no'"),
]


@pytest.mark.parametrize(("bad", "message"), ALONE)
def test_bad_items_of_other_kinds_are_named(tmp_path: Path, bad: Any, message: str) -> None:
    with pytest.raises(BadFile, match=f"mine.jsonl line 1: {message}"):
        benchmarks.load(write(tmp_path, bad))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"none.jsonl cannot be read \(No such file or directory\)"):
        benchmarks.load(tmp_path / "none.jsonl")
    with pytest.raises(BadFile, match=r"mine.jsonl has no rows; write one JSON object per line"):
        benchmarks.load(write(tmp_path, "", ""))
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"context": ["é"]}'.encode("latin-1"))
    with pytest.raises(BadFile, match=r"latin.jsonl is not UTF-8 \(byte 14\)"):
        benchmarks.load(latin)
    whole = write(tmp_path, TURN, name="whole.jsonl.gz").read_bytes()
    for damaged in (whole[:-9], b"no gzip"):
        (tmp_path / "cut.jsonl.gz").write_bytes(damaged)
        with pytest.raises(BadFile, match=r"cut.jsonl.gz is no complete gzip file"):
            benchmarks.load(tmp_path / "cut.jsonl.gz")
    with pytest.raises(ValueError, match="has no protocols"):
        benchmarks.load(write(tmp_path, TURN), protocol="clean")


def test_an_aspect_that_nobody_rated_is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, TURN, {**TURN, "scores": {"overall": 4, "engaging": None}})
    with pytest.raises(BadFile, match=r"mine.jsonl line 2: no row rates 'engaging'; leave that aspect out"):
        benchmarks.load(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
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
        assert str(error).startswith("mine.jsonl line 1: ")  # noqa: PT017 - both outcomes are allowed
    else:
        assert len(found.dataset) == found.info.rows
