"""What is judged and how its values are had: metrics, files and functions, in chunks that are kept."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import zlib

import numpy as np
import pytest

import dialeval
from dialeval import benchmarks
from dialeval.agreement import on_benchmark as agreement_score
from dialeval.agreement.on_benchmark import MetricFailed, NotApplicable, values_of
from dialeval.agreement.sources import find_sources, score_pairs
from dialeval.core.exchange import Exchange
from dialeval.core.specs import split_options
from dialeval.readers.score_files import BadScoreFile, read_scores
from dialeval.registry.interface import Judged
from refusals import refused
from shell import write_rows
from toy_benchmark import KILL_AT, SEEN, AgainstReferences, Length, Repetition, count_words, picky, rated_rows, watched


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setitem(agreement_score.CHUNK, "exchange", 16)
    SEEN.clear()
    KILL_AT[0] = -1
    return benchmarks.load(write_rows(tmp_path / "toy.jsonl", rated_rows(contexts=10)))


def score(function, toy, folder=None, **options):
    (source,) = find_sources([function])
    return values_of(source, toy.info, toy.dataset, folder, **options)


def test_values_are_kept_and_not_computed_again(toy, tmp_path):
    done = []
    first = score(watched, toy, tmp_path / "values", advance=done.append)
    assert len(SEEN) == sum(done) == 60
    assert first.by_id == {row["id"]: float(len(row["response"].split())) for row in toy.dataset}
    assert score(watched, toy, tmp_path / "values", advance=done.append) == first
    assert (len(SEEN), sum(done)) == (60, 120)
    score(watched, toy)
    assert len(SEEN) == 120
    files = [path for path in (tmp_path / "values").rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".jsonl"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to kill a process in the middle")
def test_a_killed_run_loses_one_chunk(toy, tmp_path):
    expected = score(count_words, toy)
    KILL_AT[0] = 40
    if not (child := os.fork()):
        score(watched, toy, tmp_path / "values")
        os.abort()  # it was to be killed before
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list((tmp_path / "values").rglob("0*.jsonl"))) == 2
    KILL_AT[0] = -1
    assert score(watched, toy, tmp_path / "values") == expected
    assert [row["id"] for row in toy.dataset][32:] == SEEN


def test_damaged_files_are_computed_again(toy, tmp_path):
    expected = score(watched, toy, tmp_path / "values")
    (path,) = (tmp_path / "values").rglob("*.jsonl")
    whole = path.read_text()
    flipped = whole.replace('"value": ', '"value": 1', 1)
    renamed = whole.replace('"value"', '"valve"', 1)
    for damage in ("", whole[: len(whole) // 2], renamed, flipped, "[]\n", whole.split("\n")[0]):
        path.write_text(damage)
        assert score(watched, toy, tmp_path / "values") == expected
        assert path.read_text() == whole
    assert len(SEEN) == 7 * 60


def test_another_signature_or_other_rows_have_their_own_values(toy, tmp_path):
    score(watched, toy, tmp_path / "values")
    (source,) = find_sources([watched])
    shorter = toy.dataset.select(range(20))
    assert len(values_of(source, toy.info, shorter, tmp_path / "values").by_id) == 20
    assert len(SEEN) == 80


def test_failing_rows_are_named_and_the_others_have_values(toy, tmp_path):
    values = score(picky, toy, tmp_path / "values")
    raised = {key for key, why in values.problems.items() if why == "RuntimeError: cannot count to three"}
    empty = {key for key, why in values.problems.items() if why == "picky gave nan for it"}
    assert raised == {f"toy-3-{system}" for system in range(6)}
    assert empty == {f"toy-4-{system}" for system in range(6)}
    assert len(values.by_id) == 48
    assert score(picky, toy, tmp_path / "values") == values


def test_a_metric_that_always_fails_is_given_up(toy, monkeypatch):
    calls = []

    def broken(exchanges):
        calls.append(len(exchanges))
        raise OSError("no model")

    monkeypatch.setitem(agreement_score.CHUNK, "exchange", 512)
    refused(MetricFailed, "no model", score, broken, toy)
    assert len(calls) < 80


def test_a_metric_with_too_few_values_is_given_up(toy):
    refused(MetricFailed, "15", lambda: score(lambda exchanges: [0.0] * (len(exchanges) - 1), toy))


def test_an_interruption_passes_through(toy):
    def interrupted(exchanges):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(interrupted, toy)


def test_rows_without_a_needed_reference_are_left_out(tmp_path):
    rows = rated_rows(contexts=2)
    del rows[5]["reference"]
    some = benchmarks.load(write_rows(tmp_path / "some.jsonl", rows))
    values = score(AgainstReferences(), some)
    assert values.problems == {"toy-0-5": "it needs a reference and the row has none"}
    assert len(values.by_id) == 11
    assert values.n_truncated == 1
    for row in rows:
        row.pop("reference", None)
    none = benchmarks.load(write_rows(tmp_path / "none.jsonl", rows))
    refused(NotApplicable, "reference", lambda: score(AgainstReferences(), none))


def test_silent_systems_are_scored_and_counted(tmp_path):
    rows = rated_rows(contexts=1)
    rows[0]["response"] = ""
    toy = benchmarks.load(write_rows(tmp_path / "silent.jsonl", rows))
    values = score(count_words, toy)
    assert values.by_id["toy-0-0"] == 0.0
    assert values.n_empty == 1


def test_dialogues_are_the_mean_of_their_turns(tmp_path, monkeypatch):
    monkeypatch.setitem(agreement_score.CHUNK, "dialogue", 2)
    rows = [
        {"id": f"d{number}", "dataset": "talks", "dialogue": ["hi", "one two", "a b c d"][: 3 - number % 2],
         "scores": {"overall": number}}
        for number in range(5)
    ]  # fmt: skip
    talks = benchmarks.load(write_rows(tmp_path / "talks.jsonl", rows))
    values = score(count_words, talks, tmp_path / "values")
    assert values.by_id == {"d0": 3.0, "d1": 2.0, "d2": 3.0, "d3": 2.0, "d4": 3.0}
    refused(NotApplicable, "references", lambda: score(AgainstReferences(), talks))


class OneForAll(Repetition):
    """What a metric of systems must not do: one value, whatever it was given."""

    def judge(self, exchanges, *, progress=False):
        return Judged(np.array([1.0]))


def test_system_level_metrics_get_all_rows_in_one_call(toy, tmp_path):
    rows = rated_rows(contexts=4)
    for row in rows[::6]:
        row["response"] = "Always the same."
    same = benchmarks.load(write_rows(tmp_path / "same.jsonl", rows))
    values = score(Repetition(), same, tmp_path / "values")
    assert values.by_id == {"bot0": 0.75} | {f"bot{number}": 0.0 for number in range(1, 6)}
    # Other rows of the same systems are another question, not one that was answered before.
    (source,) = find_sources([Repetition()])
    part = values_of(source, same.info, same.dataset.select(range(12)), tmp_path / "values")
    assert part.by_id["bot0"] == 0.5


def test_a_system_that_fails_does_not_take_the_others_with_it(toy, tmp_path):
    rows = rated_rows(contexts=2)
    rows[2]["response"] = ""
    some = benchmarks.load(write_rows(tmp_path / "some.jsonl", rows))
    done = []
    values = score(Repetition(), some, tmp_path / "values", advance=done.append)
    assert values.problems == {"bot2": "RuntimeError: nothing was said"}
    assert values.by_id == {f"bot{number}": 0.0 for number in (0, 1, 3, 4, 5)}
    assert sum(done) == 6
    refused(MetricFailed, "one", lambda: score(OneForAll(), some))


@pytest.mark.parametrize("kind", ["fbd", "prd"])
@pytest.mark.filterwarnings("ignore:fewer")
@pytest.mark.slow
def test_fbd_and_prd_are_what_a_direct_call_gives(kind, tmp_path, tiny_encoder):
    """The systems answer different contexts, so a human side of their own would give them other values."""
    rows = [row for row in rated_rows(contexts=12, systems=3) if zlib.crc32(row["id"].encode()) % 3]
    del rows[4]["reference"]
    some = benchmarks.load(write_rows(tmp_path / "some.jsonl", rows))
    metric = dialeval.load(kind, checkpoint=tiny_encoder, resamples=0, **({"clusters": 3} if kind == "prd" else {}))
    values = score(metric, some, tmp_path / "values")
    kept = [row for row in some.dataset if row["references"]]
    columns = {name: [row[name] for row in kept] for name in ("response", "context", "references", "system")}
    direct = metric.score(columns["response"], columns["context"], columns["references"], systems=columns["system"])
    assert values.by_id == dict(zip(direct.ids, direct.values, strict=True))
    assert values.problems == {rows[4]["id"]: "it needs a reference and the row has none"}
    alone = [number for number, system in enumerate(columns["system"]) if system == "bot1"]
    own = metric.score(*([columns[name][n] for n in alone] for name in ("response", "context", "references")))
    assert own.aggregate != values.by_id["bot1"]


def test_scores_of_a_file_are_looked_up_by_id(toy, tmp_path):
    path = tmp_path / "scores.jsonl"
    entries = [("toy-0-0", 1.5), ("toy-0-1", None), ("other", 2.0)]
    path.write_text("".join(json.dumps({"id": key, "scores": {"s": value}}) + "\n" for key, value in entries))
    values = score(f"scores:{path}", toy)
    assert values.by_id == {"toy-0-0": 1.5}
    assert values.problems["toy-0-1"] == "the score is missing"
    assert values.problems["toy-9-5"] == "no row of this id"
    assert math.isnan(values.column(["toy-0-1"])[0])
    path.write_text('{"id": "other", "scores": {"s": 2.0}}\n')
    refused(NotApplicable, "toy", score, f"scores:{path}", toy)


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
    other = write_rows(tmp_path / "c.jsonl", [{"id": "1", "p": 1, "q": 2}])
    refused(ValueError, "c.jsonl", score_pairs, str(a), str(other))
