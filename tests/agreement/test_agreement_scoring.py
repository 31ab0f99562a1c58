"""Running a metric on a benchmark: chunks, resuming after a kill, rows on which it fails."""

from __future__ import annotations

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
from dialeval.agreement.sources import find_sources
from dialeval.registry.metric import Judged
from refusals import refused
from toy_benchmark import (
    KILL_AT,
    SEEN,
    AgainstReferences,
    Repetition,
    count_words,
    picky,
    rated_rows,
    watched,
    write_rows,
)


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
    first = score(watched, toy, tmp_path / "values")
    assert len(SEEN) == 60
    assert first.by_id == {row["id"]: float(len(row["response"].split())) for row in toy.dataset}
    assert score(watched, toy, tmp_path / "values") == first
    assert len(SEEN) == 60
    score(watched, toy)
    assert len(SEEN) == 120
    files = [path for path in (tmp_path / "values").rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".jsonl"]


def test_progress_adds_up_to_the_rows(toy, tmp_path):
    for _ in range(2):
        lines: list[int] = []
        score(watched, toy, tmp_path / "values", advance=lines.append)
        assert sum(lines) == 60


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
    for damage in ("", whole[: len(whole) // 2], whole.replace('"value"', '"valve"', 1), "[]\n", whole.split("\n")[0]):
        path.write_text(damage)
        assert score(watched, toy, tmp_path / "values") == expected
        assert path.read_text() == whole
    assert len(SEEN) == 6 * 60


def test_another_signature_or_other_rows_have_their_own_values(toy, tmp_path):
    score(watched, toy, tmp_path / "values")
    (source,) = find_sources([watched])
    shorter = toy.dataset.select(range(20))
    assert len(values_of(source, toy.info, shorter, tmp_path / "values").by_id) == 20
    assert len(SEEN) == 80


def test_failing_rows_are_named_and_the_others_have_values(toy, tmp_path):
    found = score(picky, toy, tmp_path / "values")
    raised = {key for key, why in found.problems.items() if why == "RuntimeError: cannot count to three"}
    empty = {key for key, why in found.problems.items() if why == "picky gave nan for it"}
    assert raised == {f"toy-3-{system}" for system in range(6)}
    assert empty == {f"toy-4-{system}" for system in range(6)}
    assert len(found.by_id) == 48
    assert score(picky, toy, tmp_path / "values") == found


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
    found = score(AgainstReferences(), some)
    assert found.problems == {"toy-0-5": "it needs a reference and the row has none"}
    assert len(found.by_id) == 11
    assert found.n_truncated == 1
    for row in rows:
        row.pop("reference", None)
    none = benchmarks.load(write_rows(tmp_path / "none.jsonl", rows))
    refused(NotApplicable, "reference", lambda: score(AgainstReferences(), none))


def test_silent_systems_are_scored_and_counted(tmp_path):
    rows = rated_rows(contexts=1)
    rows[0]["response"] = ""
    toy = benchmarks.load(write_rows(tmp_path / "silent.jsonl", rows))
    found = score(count_words, toy)
    assert found.by_id["toy-0-0"] == 0.0
    assert found.n_empty == 1


def test_dialogues_are_the_mean_of_their_turns(tmp_path, monkeypatch):
    monkeypatch.setitem(agreement_score.CHUNK, "dialogue", 2)
    rows = [
        {"id": f"d{number}", "dataset": "talks", "dialogue": ["hi", "one two", "a b c d"][: 3 - number % 2],
         "scores": {"overall": number}}
        for number in range(5)
    ]  # fmt: skip
    talks = benchmarks.load(write_rows(tmp_path / "talks.jsonl", rows))
    found = score(count_words, talks, tmp_path / "values")
    assert found.by_id == {"d0": 3.0, "d1": 2.0, "d2": 3.0, "d3": 2.0, "d4": 3.0}
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
    found = score(Repetition(), same, tmp_path / "values")
    assert found.by_id == {"bot0": 0.75} | {f"bot{number}": 0.0 for number in range(1, 6)}
    # Other rows of the same systems are another question, not one that was answered before.
    (source,) = find_sources([Repetition()])
    part = values_of(source, same.info, same.dataset.select(range(12)), tmp_path / "values")
    assert part.by_id["bot0"] == 0.5


def test_a_system_that_fails_does_not_take_the_others_with_it(toy, tmp_path):
    rows = rated_rows(contexts=2)
    rows[2]["response"] = ""
    some = benchmarks.load(write_rows(tmp_path / "some.jsonl", rows))
    done = []
    found = score(Repetition(), some, tmp_path / "values", advance=done.append)
    assert found.problems == {"bot2": "RuntimeError: nothing was said"}
    assert found.by_id == {f"bot{number}": 0.0 for number in (0, 1, 3, 4, 5)}
    assert sum(done) == 6
    refused(MetricFailed, "one", lambda: score(OneForAll(), some))


@pytest.mark.parametrize("kind", ["fbd", "prd"])
@pytest.mark.filterwarnings("ignore:fewer")
@pytest.mark.slow
def test_fbd_and_prd_are_what_a_direct_call_gives(kind, tmp_path, tiny_encoder):
    """The systems answer different contexts, so a human side of their own would give them other values."""
    rows = [row for row in rated_rows(contexts=12, systems=3) if hash_of(row) % 3]
    del rows[4]["reference"]
    some = benchmarks.load(write_rows(tmp_path / "some.jsonl", rows))
    metric = dialeval.load(kind, checkpoint=tiny_encoder, resamples=0, **({"clusters": 3} if kind == "prd" else {}))
    found = score(metric, some, tmp_path / "values")
    kept = [row for row in some.dataset if row["references"]]
    columns = {name: [row[name] for row in kept] for name in ("response", "context", "references", "system")}
    direct = metric.score(columns["response"], columns["context"], columns["references"], systems=columns["system"])
    assert found.by_id == dict(zip(direct.ids, direct.values, strict=True))
    assert found.problems == {rows[4]["id"]: "it needs a reference and the row has none"}
    alone = [number for number, system in enumerate(columns["system"]) if system == "bot1"]
    own = metric.score(*([columns[name][n] for n in alone] for name in ("response", "context", "references")))
    assert own.aggregate != found.by_id["bot1"]


def hash_of(row):
    return zlib.crc32(row["id"].encode())


def test_scores_of_a_file_are_looked_up_by_id(toy, tmp_path):
    path = tmp_path / "scores.jsonl"
    entries = [("toy-0-0", 1.5), ("toy-0-1", None), ("other", 2.0)]
    path.write_text("".join(json.dumps({"id": key, "scores": {"s": value}}) + "\n" for key, value in entries))
    found = score(f"scores:{path}", toy)
    assert found.by_id == {"toy-0-0": 1.5}
    assert found.problems["toy-0-1"] == "the score is missing"
    assert found.problems["toy-9-5"] == "no row of this id"
    assert math.isnan(found.column(["toy-0-1"])[0])
    path.write_text('{"id": "other", "scores": {"s": 2.0}}\n')
    refused(NotApplicable, "toy", score, f"scores:{path}", toy)
