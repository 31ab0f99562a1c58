"""The harness from rows to results, on a small benchmark of our own, with gaps, constants and hostile names, too."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dialeval import benchmarks
from dialeval.agreement.prepare import benchmark_names
from dialeval.agreement.results import Half, read_records
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import find_sources
from dialeval.cli.options import command_line
from dialeval.io.files import safe_name, without_machine
from dialeval.reports.leaderboard import render_markdown, render_page
from dialeval.reports.output import write_outputs
from dialeval.statistics.raters import human_ceiling
from refusals import refused
from shell import write_rows
from toy_benchmark import (
    Length,
    Repetition,
    count_words,
    few_words,
    labelled_rows,
    noise,
    picky,
    rated_rows,
    word_share,
)

QUICK = Settings(resamples=400, slow_resamples=200)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return benchmarks.load(write_rows(tmp_path_factory.mktemp("toy") / "toy.jsonl", rated_rows()))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    return [
        benchmarks.load(write_rows(folder / f"{name}.jsonl", labelled_rows(name, seed=seed)))
        for seed, name in enumerate(("test", "validation"))
    ]


def by_key(report):
    return {(result.metric, result.level, result.aspect, result.statistic): result for result in report.results}


def people(toy):
    return np.array([row["scores"]["overall"] for row in toy.dataset])


def words(toy):
    return np.array([len(row["response"].split()) for row in toy.dataset], dtype=float)


def test_turn_level_results_are_the_plain_correlations(toy):
    results = by_key(run([count_words], [toy], settings=QUICK))
    result = results["count_words", "turn", "overall", "pearson"]
    assert result.value == pytest.approx(stats.pearsonr(words(toy), people(toy)).statistic)
    assert result.p == pytest.approx(stats.pearsonr(words(toy), people(toy)).pvalue)
    assert result.low < result.value < result.high
    assert (result.n, result.n_excluded, result.n_left_out, result.n_groups, result.n_systems) == (180, 0, 0, 30, 6)
    assert (result.resamples, results["count_words", "turn", "overall", "kendall"].resamples) == (400, 200)
    ratings = [row["ratings"]["overall"] for row in toy.dataset]
    assert result.ceiling == pytest.approx(human_ceiling(ratings, "pearson"))
    assert result.alpha < result.attainable < 1
    assert results["count_words", "turn", "overall", "kendall"].value == pytest.approx(
        stats.kendalltau(words(toy), people(toy)).statistic
    )


def test_system_level_results_come_beside_where_there_are_five_systems(toy):
    results = by_key(run([count_words], [toy], settings=QUICK))
    result = results["count_words", "system", "overall", "spearman"]
    x, y = words(toy).reshape(30, 6).mean(axis=0), people(toy).reshape(30, 6).mean(axis=0)
    assert result.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert result.n == 6
    assert result.p_method == "permutation, exact"
    assert result.low <= result.value <= result.high


def test_direction_is_the_metrics_own(toy):
    (lower,) = find_sources(["python:toy_benchmark:few_words?lower_is_better=true"])
    turned, plain = by_key(run([lower], [toy], settings=QUICK)), by_key(run([count_words], [toy], settings=QUICK))
    wrong = by_key(run([few_words], [toy], settings=QUICK))
    for statistic in ("pearson", "spearman", "kendall"):
        value = plain["count_words", "turn", "overall", statistic].value
        assert turned["few_words", "turn", "overall", statistic].value == pytest.approx(value)
        assert wrong["few_words", "turn", "overall", statistic].value == pytest.approx(-value)


def test_few_systems_need_force(tmp_path):
    few = benchmarks.load(write_rows(tmp_path / "few.jsonl", rated_rows(systems=3)))
    auto = run([count_words], [few], settings=QUICK)
    assert {result.level for result in auto.results} == {"turn"}
    asked = run([count_words], [few], settings=Settings(resamples=0, levels="system"))
    assert not asked.results
    assert "3 systems" in asked.skipped[0].reason
    forced = run([count_words], [few], settings=Settings(resamples=0, levels="system", force_systems=True))
    assert {result.n for result in forced.results} == {3}
    assert {result.low is None or math.isnan(result.low) for result in forced.results} == {True}


def test_metrics_of_systems_have_system_level_results_only(toy, tmp_path):
    report = run([Repetition()], [toy], settings=QUICK)
    assert {result.level for result in report.results} == {"system"}
    assert all(math.isnan(result.low) for result in report.results)
    few = benchmarks.load(write_rows(tmp_path / "few.jsonl", rated_rows(systems=2)))
    assert run([Repetition()], [few], settings=QUICK).skipped


def test_all_aspects_or_named_ones(toy):
    every = run([count_words], [toy], settings=Settings(resamples=0, aspects=("all",), levels="own"))
    assert {result.aspect for result in every.results} == {"overall", "grammar"}
    named = by_key(run([count_words], [toy], settings=Settings(resamples=0, aspects=("Grammar",), levels="own")))
    assert named["count_words", "turn", "grammar", "pearson"].value < 0
    nothing = run([count_words], [toy], settings=Settings(aspects=("wit",)))
    assert nothing.skipped[0].metric == "*"


def test_rows_without_a_value(toy):
    report = run([picky, count_words], [toy], settings=QUICK)
    results = by_key(report)
    result = results["picky", "turn", "overall", "pearson"]
    assert (result.n, result.n_excluded, result.n_groups) == (168, 12, 28)
    assert results["count_words", "turn", "overall", "pearson"].n == 180
    assert {(row.metric, row.id) for row in report.excluded} == {
        ("picky", f"toy-{number}-{system}") for number in (3, 4) for system in range(6)
    }
    assert any("cannot count to three" in row.problem for row in report.excluded)


def test_a_metric_that_fails_and_a_benchmark_that_cannot_be_read_do_not_sink_the_others(toy, tmp_path):
    def broken(exchanges):
        raise RuntimeError("no model")

    report = run([broken, count_words], ["no_such_benchmark", tmp_path / "nothing.jsonl", toy], settings=QUICK)
    assert {(result.metric, result.benchmark) for result in report.results} == {("count_words", "toy")}
    *unread, failed = report.skipped
    assert [skipped.metric for skipped in unread] == ["*", "*"]
    assert (failed.metric, failed.benchmark, failed.reason.endswith("no model")) == ("broken", "toy", True)


def test_contaminated_metrics_are_marked_and_not_ranked(toy):
    report = run([Length(), word_share, noise], [toy], settings=QUICK)
    results = by_key(report)
    length = results["length", "turn", "overall", "spearman"]
    assert length.contaminated
    assert not length.in_best_group
    assert results["word_share", "turn", "overall", "spearman"].in_best_group
    assert not results["noise", "turn", "overall", "spearman"].in_best_group
    tests = [test for test in report.tests if test.level == "turn"]
    assert [(test.compared.first, test.compared.second) for test in tests] == [("word_share", "noise")]
    assert tests[0].compared.p_adjusted < 0.05


def test_labels_at_a_fixed_threshold(labelled):
    test, _ = labelled
    report = run(["python:toy_benchmark:word_share?range=0:1"], [test], settings=QUICK)
    results = by_key(report)
    values = np.array([min(len(row["response"].split()) / 20, 1) for row in test.dataset])
    labels, kinds = np.array(test.dataset["label"]), np.array(test.dataset["kind_of_reply"])
    for kind in ("random", "adversarial"):
        rows = (labels == 1) | (kinds == kind)
        aspect = f"positive/{kind}"
        assert results["word_share", "turn", aspect, "accuracy"].value == np.mean((values[rows] > 0.5) == labels[rows])
        assert results["word_share", "turn", aspect, "point_biserial"].value == pytest.approx(
            stats.pointbiserialr(labels[rows], values[rows]).statistic
        )
        assert results["word_share", "turn", aspect, "accuracy"].threshold == 0.5
        assert results["word_share", "turn", aspect, "auc"].n == 160
    easy, hard = (results["word_share", "turn", f"positive/{kind}", "auc"] for kind in ("random", "adversarial"))
    assert easy.value > hard.value


def test_thresholds_are_searched_on_the_validation_benchmark(labelled):
    test, validation = labelled
    lower = "python:toy_benchmark:few_words?lower_is_better=true&name=few"
    report = run([count_words, lower], [test, validation], settings=QUICK, validation=validation)
    results = {key: result for key, result in by_key(report).items() if result.benchmark == "test"}
    lengths = np.array([len(row["response"].split()) for row in validation.dataset])
    labels, kinds = np.array(validation.dataset["label"]), np.array(validation.dataset["kind_of_reply"])
    rows = (labels == 1) | (kinds == "random")
    errors = [np.sum((lengths[rows] > t) != labels[rows]) for t in range(20)]
    result = results["count_words", "turn", "positive/random", "accuracy"]
    assert result.threshold == int(np.argmin(errors))
    assert result.threshold_method.startswith("searched over observed values on 160 rows, smallest of ")
    # The same metric with its sign turned and declared lower-is-better decides alike.
    other = results["few", "turn", "positive/random", "accuracy"]
    assert (other.value, other.threshold) == (result.value, -result.threshold)
    # Nothing is searched on the rows that it would be used on.
    assert not [
        result for result in report.results if result.benchmark == "validation" and result.statistic == "accuracy"
    ]


def test_every_choice_is_in_the_signature(toy):
    plain = {"resamples": 60, "slow_resamples": 50, "statistics": ("kendall",), "levels": "own"}
    choices = [{}, {"ratings": "without_outliers"}, {"seed": 1}, {"confidence": 0.9}, {"slow_resamples": 9}]
    seen = {run([count_words], [toy], settings=Settings(**plain | choice)).results[0].signature for choice in choices}
    assert len(seen) == len(choices)
    (result,) = run([count_words], [toy], settings=Settings(resamples=0, statistics=("kendall",), levels="own")).results
    assert f"benchmark:toy@{toy.info.revision}|protocol:" in result.signature
    assert "|ties:tau-b|" in result.signature
    assert result.metric_signature in result.signature


def test_the_same_seed_gives_the_same_results(toy):
    seeds = [replace(QUICK, seed=seed) for seed in (0, 0, 1)]
    once, again, other = (run([count_words, word_share], [toy], settings=seed).to_rows() for seed in seeds)
    assert once == again
    assert once[0]["value"] == other[0]["value"]
    assert once[0]["low"] != other[0]["low"]


@pytest.mark.parametrize(
    "choice",
    [{"levels": "mixed"}, {"statistics": ("pearsn",)}, {"confidence": 95}, {"resamples": -1}, {"threshold": "best"}],
)
def test_settings_are_checked(choice):
    refused(ValueError, next(iter(choice)).rstrip("s"), Settings, **choice)


def test_score_files_about_other_benchmarks_are_passed_over(toy, labelled, tmp_path):
    scores = [{"id": row["id"], "mine": number} for number, row in enumerate(toy.dataset)]
    path = write_rows(tmp_path / "scores.jsonl", scores)
    report = run([f"scores:{path}"], [toy, labelled[0]], settings=QUICK)
    assert {result.benchmark for result in report.results} == {"toy"}
    assert report.skipped == []
    (only,) = run([f"scores:{path}"], [labelled[0]], settings=QUICK).skipped
    assert (only.metric, only.benchmark) == ("mine", "every benchmark")


class Leaky(Length):
    """Says which of the rows it was trained on."""

    def leaked_rows(self, benchmark):
        return frozenset(f"toy-{number}-{system}" for number in range(10) for system in range(6))


def test_a_contaminated_metric_is_measured_on_both_halves(toy, tmp_path):
    report = run([Leaky(), count_words], [toy], settings=QUICK)
    leaked, clean = report.halves
    assert (leaked.leaked, leaked.n, clean.leaked, clean.n) == (True, 60, False, 120)
    assert {result.metric for result in report.halves} == {"length"}
    assert {result.level for result in report.halves} == {"turn"}
    for half, rows in ((leaked, slice(0, 60)), (clean, slice(60, 180))):
        assert half.value == pytest.approx(stats.spearmanr(words(toy)[rows], people(toy)[rows]).statistic)
        assert half.low < half.value < half.high
    line = f"- length †, Spearman: {leaked.value:.3f} [{leaked.low:.3f}, {leaked.high:.3f}] on the 60 rows whose text"
    report.write(tmp_path)
    assert read_records(tmp_path / "halves.jsonl", Half) == report.halves
    assert line in render_markdown(report)
    assert "on the 120 others" in render_page(report)
    assert not run([Length()], [toy], settings=QUICK).halves


def measured(tmp_path, rows, *metrics, settings=QUICK, **options):
    loaded = benchmarks.load(write_rows(tmp_path / "rows.jsonl", rows))
    return run(metrics or [count_words], [loaded], settings=settings, **options)


@pytest.mark.slow
def test_a_constant_metric_constant_people_and_one_row(tmp_path):
    def always_one(exchanges):
        return [1.0 for _ in exchanges]

    report = measured(tmp_path, rated_rows(contexts=5), always_one, count_words)
    constant = [result for result in report.results if result.metric == "always_one"]
    assert all(math.isnan(result.value) and result.resamples == 0 and not result.in_best_group for result in constant)
    write_outputs(report, tmp_path / "out")
    rows = [{**row, "ratings": {"overall": [3, 3]}} for row in rated_rows(contexts=5)]
    for few in (rows, rated_rows(contexts=1, systems=1)):
        nothing = measured(tmp_path, few)
        assert all(math.isnan(result.value) for result in nothing.results)
        write_outputs(nothing, tmp_path / "out")


def test_rows_without_a_score_or_a_system(tmp_path):
    rows = rated_rows(contexts=6)
    rows[0]["ratings"] = {"overall": [], "grammar": [1, 2]}
    del rows[1]["system"]
    report = measured(tmp_path, rows)
    by_level = {result.level: result for result in report.results if result.statistic == "pearson"}
    assert by_level["turn"].n == 35
    assert by_level["system"].n == 6
    nobody = [{key: value for key, value in row.items() if key != "system"} for row in rated_rows(contexts=6)]
    assert {result.level for result in measured(tmp_path, nobody).results} == {"turn"}
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
