"""Rows of benchmarks: groups, means, selections and revisions, and those of one's own files."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anything import JSON
from counted_rows import ROWS
from dialeval import benchmarks
from dialeval.benchmarks import BadFile
from dialeval.benchmarks.benchmark import (
    Benchmark,
    BenchmarkInfo,
    FileSource,
    Scale,
    SourceFile,
    Subset,
    complete,
    to_dataset,
)
from refusals import refused

RATED = BenchmarkInfo(
    name="toy",
    title="Toy",
    level="turn",
    rows=3,
    sources=(FileSource("someone/something", "0" * 40, (SourceFile("a", "1" * 64, 1),)),),
    licence="MIT",
    citation="nobody",
    aspects={"overall": Scale(1, 5), "wit": Scale(0, 1)},
    main_aspect="overall",
    systems=("truth", "S2S"),
    exclusions={"generated": ("truth",), "none": ()},
    default_exclusion="generated",
    subsets={"paper": Subset(without=("truth",), last_share=0.5)},
)


def raw(context: list[str], system: str, ratings: dict[str, list[float]]) -> dict[str, Any]:
    return {"context": context, "response": "Yes.", "system": system, "ratings": ratings}


RAW = [
    raw(["Hi."], "truth", {"overall": [4, 5, 5], "wit": [1]}),
    raw(["Hi.", "Tea?"], "S2S", {"overall": [1, 2]}),
    raw(["Hi."], "S2S", {"overall": [3], "wit": []}),
]


def test_rows_get_ids_groups_and_means() -> None:
    rows = complete(RATED, RAW)
    assert [row["id"] for row in rows] == ["toy-00000", "toy-00001", "toy-00002"]
    assert [row["group"] for row in rows] == ["toy-context-00000", "toy-context-00001", "toy-context-00000"]
    assert [row["scores"] for row in rows] == [
        {"overall": 14 / 3, "wit": 1.0},
        {"overall": 1.5, "wit": None},
        {"overall": 3.0, "wit": None},
    ]
    assert rows[1]["ratings"] == {"overall": [1.0, 2.0], "wit": []}


def test_another_number_of_rows_than_declared_is_refused() -> None:
    refused(ValueError, "3 rows", complete, RATED, RAW[:2])


def test_the_table_of_rated_turns() -> None:
    table = to_dataset(RATED, complete(RATED, RAW))
    assert table.column_names == [
        "id", "dataset", "level", "context", "response", "references", "facts", "system", "group", "scores", "ratings",
    ]  # fmt: skip
    assert (table["references"][:], table["facts"][:]) == ([[]] * 3, [[]] * 3)
    assert table[1]["scores"] == {"overall": 1.5, "wit": None}


def test_selecting_rows_by_exclusion_and_subset() -> None:
    toy = Benchmark(RATED, to_dataset(RATED, complete(RATED, RAW)))
    assert toy.select()["id"][:] == ["toy-00001", "toy-00002"]
    assert toy.select(exclusion="none")["id"][:] == ["toy-00000", "toy-00001", "toy-00002"]
    assert toy.select(subset="paper")["id"][:] == ["toy-00002"]
    assert toy.protocol == "standard"
    refused(ValueError, "humans", toy.select, exclusion="humans")
    refused(ValueError, "densty", toy.select, subset="densty")
    refused(ValueError, "exclusion", toy.select, exclusion="none", subset="paper")


def test_the_revision_changes_with_everything_that_changes_rows() -> None:
    other_file = (FileSource("someone/something", "0" * 40, (SourceFile("a", "2" * 64, 1),)),)
    changes: list[dict[str, Any]] = [
        {"name": "other"},
        {"protocol": "clean"},
        {"reader_version": 2},
        {"sources": other_file},
        {"companion": SourceFile("b", "3" * 64, 1)},
    ]
    assert len({RATED.revision, *(replace(RATED, **change).revision for change in changes)}) == 6
    assert replace(RATED, oddities=("a note",)).revision == RATED.revision
    assert re.fullmatch(r"[0-9a-f]{12}", RATED.revision)


EVERY = [(name, protocol) for name in benchmarks.available() for protocol in benchmarks.protocols(name)]


@pytest.mark.parametrize(("name", "protocol"), EVERY)
def test_declarations_hold_together(name: str, protocol: str) -> None:
    info = benchmarks.info(name, protocol)
    assert (info.name, info.protocol) == (name, protocol)
    assert info.licence
    assert info.citation
    assert info.default_exclusion in info.exclusions
    assert info.exclusions["none"] == ()
    left_out = [*info.exclusions.values(), *(subset.without for subset in info.subsets.values())]
    for systems in (*left_out, info.human_systems, info.negative_systems):
        assert set(systems) <= set(info.systems)
    assert len(set(info.systems)) == len(info.systems)
    if info.kind == "ratings":
        assert info.main_aspect in info.aspects
        assert all(scale.low < scale.high for scale in info.aspects.values())
    else:
        assert not info.aspects
    pinned = [file for _, file in info.files] + ([info.companion] if info.companion else [])
    assert pinned
    for file in pinned:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.bytes > 0
    for source in info.sources:
        assert re.fullmatch(r"[0-9a-f]{40}", source.commit)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repository)


def test_an_unknown_benchmark_or_protocol_gets_help() -> None:
    refused(ValueError, "convai_grade", benchmarks.info, "convai_grade")
    refused(ValueError, "zzz", benchmarks.load, "zzz")
    refused(ValueError, "released", benchmarks.info, "fbd_dailyz", "released")


def test_every_benchmark_is_counted_here() -> None:
    assert set(ROWS) == {(name, protocol) for name in benchmarks.available() for protocol in benchmarks.protocols(name)}


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
    loaded = benchmarks.load(write(tmp_path, {**kept, **said, "reference": "Please.", "published_score": 4.5}))
    assert loaded.dataset[0] == {
        **kept,
        "references": ["Please."],
        "group": "teatime-context-00000",
        "scores": {"wit": 0.5, "Overall": 4.5},
        "ratings": {"wit": [], "Overall": [4.0, 5.0]},
    }
    assert (loaded.info.name, loaded.info.level, loaded.info.kind, loaded.info.rows) == (
        "teatime",
        "turn",
        "ratings",
        1,
    )
    assert loaded.info.main_aspect == "Overall"
    assert loaded.info.aspects == {"wit": Scale(0.5, 0.5), "Overall": Scale(4, 5)}


def test_the_least_that_a_turn_needs(tmp_path: Path) -> None:
    path = write(tmp_path, {"context": "Tea?", "response": "", "scores": {"wit": 1}}, "", TURN, name="mine.jsonl.gz")
    loaded = benchmarks.load(str(path))
    assert loaded.info.name == "mine"
    assert loaded.dataset["id"][:] == ["mine-00000", "mine-00001"]
    assert loaded.dataset["context"][:] == [["Tea?"], ["Hi.", "Tea?"]]
    assert loaded.dataset["response"][:] == ["", "Yes."]
    assert loaded.dataset["system"][:] == [None, None]
    assert loaded.dataset["scores"][:] == [{"wit": 1.0, "Overall": None}, {"wit": 0.5, "Overall": 4.0}]


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
    loaded = benchmarks.load(write(tmp_path, {**item, "ratings": {"overall": [1, 4]}}))
    assert loaded.info.level == "dialogue"
    assert loaded.dataset[0]["dialogue"] == ["Hi.", "", "Tea?"]
    assert loaded.dataset[0]["speakers"] == item.get("speakers", [])
    assert loaded.dataset[0]["scores"] == {"overall": 2.5}


def test_labels_one_per_line(tmp_path: Path) -> None:
    good = {"context": ["Tea?"], "response": "Yes.", "label": 1, "references": ["Please.", "No."]}
    bad = {"context": ["Tea?"], "response": "Nine.", "label": 0, "kind_of_reply": "random"}
    loaded = benchmarks.load(write(tmp_path, good, {**bad, "label": False}))
    assert (loaded.info.kind, loaded.info.main_aspect) == ("labels", "label")
    assert loaded.dataset["label"][:] == [1, 0]
    assert loaded.dataset["kind_of_reply"][:] == ["positive", "random"]
    assert loaded.dataset["references"][:] == [["Please.", "No."], []]


@pytest.mark.parametrize("words", [("adversarial", "random"), ("adversarial_negative", "random_negative")])
def test_labels_as_lists_of_replies(tmp_path: Path, words: tuple[str, str]) -> None:
    first = {"id": "c", "context": ["Tea?"], "responses": {"positive": ["a", "b"], words[0]: ["x"], words[1]: ["y"]}}
    loaded = benchmarks.load(write(tmp_path, first, {"context": ["Hi."], "responses": {"positive": ["d"]}}))
    of_first = ("positive#0", "positive#1", "adversarial_negative#0", "random_negative#0")
    assert loaded.dataset["id"][:] == [*(f"c#{place}" for place in of_first), "mine-00001#positive#0"]
    assert loaded.dataset["references"][:] == [["b"], ["a"], ["b"], ["b"], []]
    assert loaded.info.rows == 5


def test_attacked_pairs(tmp_path: Path) -> None:
    pair = {"context": ["Tea?"], "response": "Yes.", "adversarial_response": "Yes Yes.", "scores": {}}
    other = {**pair, "adversarial_context": ["Cold?"], "harmful": False, "attack": "echo", "domain": "kitchen"}
    loaded = benchmarks.load(write(tmp_path, pair, other))
    assert loaded.info.kind == "pairs"
    assert loaded.dataset["adversarial_context"][:] == [["Tea?"], ["Cold?"]]
    assert loaded.dataset["harmful"][:] == [True, False]
    assert loaded.dataset["attack"][:] == [None, "echo"]


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
        loaded = benchmarks.load(write(tmp_path, item))
    except BadFile as error:
        assert "mine.jsonl, line 1" in str(error)  # noqa: PT017 - both outcomes are allowed
    else:
        assert len(loaded.dataset) == loaded.info.rows
