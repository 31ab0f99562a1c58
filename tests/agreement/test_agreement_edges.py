"""Benchmarks with gaps, constants and hostile names."""

from __future__ import annotations

import math

import pytest

from dialeval import benchmarks
from dialeval.agreement.prepare import benchmark_names
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.cli.options import command_line
from dialeval.io.files import safe_name, without_machine
from dialeval.reports.output import write_outputs
from refusals import refused
from shell import write_rows
from toy_benchmark import count_words, rated_rows

QUICK = Settings(resamples=50, slow_resamples=50)


def measured(tmp_path, rows, *metrics, settings=QUICK, **options):
    loaded = benchmarks.load(write_rows(tmp_path / "rows.jsonl", rows))
    return run(metrics or [count_words], [loaded], settings=settings, **options)


@pytest.mark.slow
def test_a_constant_metric_constant_people_and_one_row(tmp_path):
    def always_one(exchanges):
        return [1.0 for _ in exchanges]

    report = measured(tmp_path, rated_rows(contexts=5), always_one, count_words)
    constant = [one for one in report.results if one.metric == "always_one"]
    assert all(math.isnan(one.value) and one.resamples == 0 and not one.in_best_group for one in constant)
    write_outputs(report, tmp_path / "out")
    rows = [{**row, "ratings": {"overall": [3, 3]}} for row in rated_rows(contexts=5)]
    for few in (rows, rated_rows(contexts=1, systems=1)):
        nothing = measured(tmp_path, few)
        assert all(math.isnan(one.value) for one in nothing.results)
        write_outputs(nothing, tmp_path / "out")


def test_rows_without_a_score_or_a_system(tmp_path):
    rows = rated_rows(contexts=6)
    rows[0]["ratings"] = {"overall": [], "grammar": [1, 2]}
    del rows[1]["system"]
    report = measured(tmp_path, rows)
    by_level = {one.level: one for one in report.results if one.statistic == "pearson"}
    assert by_level["turn"].n == 35
    assert by_level["system"].n == 6
    nobody = [{key: value for key, value in row.items() if key != "system"} for row in rated_rows(contexts=6)]
    assert {one.level for one in measured(tmp_path, nobody).results} == {"turn"}
    asked = measured(tmp_path, nobody, settings=Settings(levels="system", force_systems=True))
    assert not asked.results
    assert asked.skipped


def test_labels_that_are_all_good_ask_no_question(tmp_path):
    rows = [{"id": str(n), "context": ["a"], "response": "b " * n, "label": 1} for n in range(4)]
    report = measured(tmp_path, rows)
    assert not report.results
    assert report.skipped


@pytest.mark.slow
def test_names_cannot_lead_out_of_the_folder(tmp_path):
    rows = [{**row, "dataset": "../../outside/.."} for row in rated_rows(contexts=3)]
    report = measured(tmp_path, rows, "python:toy_benchmark:count_words?name=../up", values=tmp_path / "in" / "values")
    write_outputs(report, tmp_path / "in" / "out", ("png",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "rows.jsonl"]
    assert all(path.is_relative_to(tmp_path / "in") for path in (tmp_path / "in").rglob("*"))
    assert len(list((tmp_path / "in" / "values").rglob("*.jsonl"))) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [("a b/c", "a_b_c"), ("..", "_"), ("", "_"), (".hidden", "hidden"), ("ü?*", "ü_"), ("x" * 300, "x" * 120)],
)
def test_safe_names(text, name):
    assert safe_name(text) == name


FBD = ["fbd_personam", "fbd_dailyh", "fbd_convai2", "fbd_empathetic", "fbd_dailyz", "fbd_personaz"]


def test_all_counts_no_row_twice(tmp_path):
    names = benchmark_names(["all"])
    assert "dailydialog_zhao" in names
    assert not {"dailydialogpp_positives", "adversarial_khalid"} & set(names)
    assert not {name for name in names if name.startswith("fbd_")}
    originals = {benchmarks.info(name, protocol).repeats for name in FBD for protocol in benchmarks.protocols(name)}
    assert originals <= set(names)
    assert benchmark_names(["all", "fbd_dailyz", "all"]) == [*names, "fbd_dailyz"]
    assert benchmark_names(["fbd"]) == FBD
    assert benchmark_names(["fbd@as_released"]) == [f"{name}@as_released" for name in FBD]
    (tmp_path / "mine.jsonl").touch()
    assert benchmark_names(["persona_zhao", str(tmp_path / "mine.jsonl")])[1:] == [str(tmp_path / "mine.jsonl")]
    for unknown in ("persona_zhao@x", "fb", "fbd@x", "nothing.jsonl"):
        refused((ValueError, OSError), unknown.partition("@")[0], benchmark_names, ["persona_zhao", unknown])


def test_no_folder_of_this_machine_stands_beside_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = f"{tmp_path}/data/rows.jsonl"
    shown = command_line(
        ["agreement", "-m", f"scores:{here}#gpt", "-b", here, f"--mirror={here}", "-o", "/a b/o p", "."]
    )
    assert shown == (
        "dialeval agreement -m 'scores:data/rows.jsonl#gpt' -b data/rows.jsonl --mirror=data/rows.jsonl -o 'o p' ."
    )
    for kept in ("https://some.where/a/b", "s3://bucket/a/b.jsonl", "a/b/c", "../a/b", "python:pack.mod:f", "3/4"):
        assert without_machine(kept) == kept
    assert without_machine("/some/where/else.jsonl: row 3 is odd; see '/x/y'") == "else.jsonl: row 3 is odd; see 'y'"
    report = run([count_words], [tmp_path / "none.jsonl"], settings=QUICK)
    assert str(tmp_path) not in str(report.skipped)
