"""Metrics, score files and functions as they are named on the command line."""

from __future__ import annotations

import gzip
import math

import pytest

from dialeval.agreement.sources import find_sources, score_pairs
from dialeval.core.exchange import Exchange
from dialeval.core.specs import split_options
from dialeval.readers.score_files import BadScoreFile, read_scores
from refusals import refused
from toy_benchmark import Length, count_words, write_rows


def test_score_files_of_several_columns(tmp_path):
    rows = [
        {"id": "a", "dataset": "d", "scores": {"one": 0.5, "two": None}},
        {"id": "b", "dataset": "d", "scores": {"one": 2, "two": 0.25}},
    ]
    path = write_rows(tmp_path / "published.jsonl", rows)
    packed = tmp_path / "published.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        table = read_scores(file)
        assert table.columns["one"] == {"a": 0.5, "b": 2.0}
        assert math.isnan(table.columns["two"]["a"])
        assert table.columns["two"]["b"] == 0.25
    one, two = find_sources([f"scores:{path}"])
    assert (one.name, two.name, one.higher_is_better, one.range) == ("one", "two", True, (-math.inf, math.inf))
    assert one.signature.startswith("scores:published.jsonl#one|sha256:")
    assert [source.name for source in find_sources([f"scores:{path}#two?name=mine&range=0:1"])] == ["mine"]


def test_parquet_scores(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "mine.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a", "b"], "mine": [1.5, None]}), path)
    column = read_scores(path).columns["mine"]
    assert column["a"] == 1.5
    assert math.isnan(column["b"])
    path.write_bytes(b"PAR1 not really")
    refused(BadScoreFile, "mine.parquet", read_scores, path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"scores": {"x": 1}}', "line 1"),
        ('{"id": "a", "scores": {"x": 1}}\n{"id": "a", "scores": {"x": 2}}', "line 2"),
        ('{"id": "a", "scores": {"x": "high"}}', "line 1: x"),
        ('{"id": "a", "scores": {"x": true}}', "line 1: x"),
        ('{"id": "a"', "line 1"),
        ('{"id": "a"}', "scores.jsonl"),
        ("", "scores.jsonl"),
    ],
)
def test_bad_score_files_are_named(tmp_path, text, named):
    path = tmp_path / "scores.jsonl"
    path.write_text(text)
    assert "scores.jsonl" in refused(BadScoreFile, named, read_scores, path)


def test_missing_score_files_and_columns(tmp_path):
    refused(BadScoreFile, "nothing.jsonl", find_sources, [f"scores:{tmp_path / 'nothing.jsonl'}"])
    path = write_rows(tmp_path / "s.jsonl", [{"id": "a", "scores": {"quantidce": 1}}])
    refused(ValueError, "quantidce", find_sources, [f"scores:{path}#quantdce"])
    refused(ValueError, "dtype", find_sources, [f"scores:{path}?dtype=bfloat16"])
    refused(ValueError, "low:high", find_sources, [f"scores:{path}?range=1"])
    refused(ValueError, "lower_is_better", find_sources, [f"scores:{path}?lower_is_better=perhaps"])
    csv = tmp_path / "s.csv"
    csv.write_text("name,score\na,1\n")
    refused(BadScoreFile, "id", read_scores, csv)


def test_a_csv_may_say_that_there_is_no_value_and_nothing_else(tmp_path):
    path = tmp_path / "scores.csv"
    for missing in ("NA", "n/a", "#N/A", "NaN", "None", "null", " ", "-"):
        path.write_text(f"id,gpt,note\na,1,good\nb,{missing},7\nc,3,bad\n")
        columns = read_scores(path).columns
        assert columns.keys() == {"gpt"}
        assert (columns["gpt"]["a"], columns["gpt"]["c"]) == (1.0, 3.0)
        assert math.isnan(columns["gpt"]["b"])
    path.write_text("id,gpt\na,1\nb,good\nc,3\n")
    assert "'good'" in refused(BadScoreFile, "line 3: gpt", read_scores, path)


@pytest.mark.parametrize(("bounds", "holds"), [("0:4", True), ("0:3.9999999", True), ("0:3", False), ("1:9", False)])
def test_no_value_lies_outside_of_the_range_that_is_declared(tmp_path, bounds, holds):
    path = write_rows(tmp_path / "s.jsonl", [{"id": "a", "s": 4}, {"id": "b", "s": 0}, {"id": "c", "s": None}])
    exchanges = [Exchange(("hi",), "one two three four"), Exchange(("hi",), "")]
    source = f"python:toy_benchmark:count_words?range={bounds}"
    if holds:
        assert find_sources([f"scores:{path}?range={bounds}"])[0].table["a"] == 4.0
        assert find_sources([source])[0].metric.score_exchanges(exchanges).values.tolist() == [4.0, 0.0]
    else:
        refused(ValueError, f"declared as {bounds}", find_sources, [f"scores:{path}?range={bounds}"])
        refused(ValueError, f"declared as {bounds}", find_sources([source])[0].metric.score_exchanges, exchanges)


def test_functions(tmp_path):
    (source,) = find_sources(["python:toy_benchmark:count_words?name=words&range=0:99"])
    assert (source.name, source.range, source.higher_is_better, source.cacheable) == ("words", (0, 99), True, True)
    scores = source.metric.score_exchanges([Exchange(("hi",), "one two three")])
    assert scores.values.tolist() == [3.0]
    (direct,) = find_sources([count_words])
    assert direct.name == "count_words"
    assert direct.signature == find_sources(["python:toy_benchmark:count_words"])[0].signature
    offset = 3
    (closure,) = find_sources([lambda exchanges: [offset for _ in exchanges]])
    assert not closure.cacheable


def test_a_changed_function_has_another_signature(tmp_path, monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "changing_metric.py"
    signatures = []
    for factor in (1, 2):
        module.write_text(f"def judge(exchanges):\n    return [{factor} for _ in exchanges]\n")
        importlib.invalidate_caches()
        signatures.append(find_sources(["python:changing_metric:judge"])[0].signature)
    assert signatures[0] != signatures[1]


def test_metrics_and_their_contamination():
    (by_class,) = find_sources(["python:toy_benchmark:Length"])
    (source,) = find_sources([Length()])
    assert source.name == by_class.name == "length"
    assert source.is_contaminated_by("toy", ())
    assert source.is_contaminated_by("other", ("length",))
    assert not source.is_contaminated_by("other", ("density",))


def test_names_that_cannot_be_found():
    refused(ValueError, "length", lambda: find_sources([Length(), Length()]))
    refused(ValueError, "nowhere_at_all", find_sources, ["python:nowhere_at_all:f"])
    refused(ValueError, "nothing", find_sources, ["python:toy_benchmark:nothing"])
    refused(ValueError, "toy_benchmark", find_sources, ["python:toy_benchmark"])
    refused(ValueError, "densty", find_sources, ["densty"])
    refused(ValueError, "one", find_sources, [])


def test_options_after_a_question_mark():
    assert split_options("bleu2?aggregation=avg&n=2&x=0.5&on=true&path=a%20b") == (
        "bleu2",
        {"aggregation": "avg", "n": 2, "x": 0.5, "on": True, "path": "a b"},
    )
    assert split_options("x?revision=007") == ("x", {"revision": "007"})
    refused(ValueError, "avg", split_options, "bleu2?avg")


def test_columns_of_two_files_side_by_side(tmp_path):
    a = write_rows(tmp_path / "a.jsonl", [{"id": "1", "x": 1.0, "y": 2.0}])
    b = write_rows(tmp_path / "b.jsonl", [{"id": "1", "y": 3.0, "z": 2.0}])
    assert [(one.name, two.name) for one, two in score_pairs(str(a), f"scores:{b}")] == [("y", "y")]
    assert [(one.name, two.name) for one, two in score_pairs(f"{a}#x", f"{b}#z")] == [("x", "z")]
    refused(
        ValueError,
        "c.jsonl",
        lambda: score_pairs(str(a), str(write_rows(tmp_path / "c.jsonl", [{"id": "1", "p": 1, "q": 2}]))),
    )
