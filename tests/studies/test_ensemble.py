"""One combined judge: combination, fit, leave-one-out and tests, on columns of our own making."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.approaches.ensemble import combined
from dialeval.cli import build_app
from dialeval.metric import Judged, Level, Metric, MetricInfo
from dialeval.scores import Signature
from dialeval.statistics.paired_tests import permutation_test, permutation_test_over_sets
from dialeval.studies.ensemble import Field, fit_weights, percentile_mean, rank_mean, weighted_percentiles
from dialeval.studies.ensemble_study import BEST_SINGLE, MEAN, study
from toy_benchmark import rated_rows, write_rows

QUICK = Settings(resamples=200)


def field_with(name, human, columns, *, percentiles=None, contaminated=(), groups=None):
    human = np.asarray(human, dtype=float)
    columns = {key: np.asarray(column, dtype=float) for key, column in columns.items()}
    groups = np.arange(len(human)) if groups is None else np.asarray(groups)
    shown = columns if percentiles is None else percentiles
    shown = {key: np.asarray(column, dtype=float) for key, column in shown.items()}
    return Field(name, human, groups, int(groups.max()) + 1, columns, shown, frozenset(contaminated))


def noisy_fields(noise, *, count=4, rows=120, contaminated=None):
    """Benchmarks on which each metric is the human score plus noise of its own."""
    found = []
    for number in range(count):
        random = np.random.default_rng(number)
        human = random.normal(size=rows)
        columns = {
            name: stats.norm.cdf((human + level * random.normal(size=rows)) / 3) for name, level in noise.items()
        }
        found.append(field_with(f"set{number}", human, columns, contaminated=(contaminated or {}).get(number, ())))
    return found


def test_where_a_metric_has_no_value_the_others_share_its_weight():
    nan = np.nan
    table = np.array([[0.2, nan, nan], [0.6, 0.5, nan]])
    assert combined(table)[:2] == pytest.approx([0.4, 0.5])
    assert combined(table, [3, 1])[:2] == pytest.approx([0.3, 0.5])
    assert np.isnan(combined(table)[2])
    assert np.isnan(combined(table, [1, 0])[1])


def test_ranks_are_taken_within_the_benchmark_and_percentiles_are_not():
    one = field_with(
        "one",
        [1, 2, 3, 4],
        {"a": [10, 30, 20, 40], "b": [1, 1, 2, np.nan]},
        percentiles={"a": [0.1, 0.3, 0.2, 0.4], "b": [0.5, 0.5, 0.7, np.nan]},
    )
    # a: 1/8, 5/8, 3/8, 7/8; b among its three rows, the first two tied: 1/3, 1/3, 5/6
    assert rank_mean(one, ["a", "b"]) == pytest.approx(
        [(1 / 8 + 1 / 3) / 2, (5 / 8 + 1 / 3) / 2, (3 / 8 + 5 / 6) / 2, 7 / 8]
    )
    assert percentile_mean(one, ["a", "b"]) == pytest.approx([0.3, 0.4, 0.45, 0.4])
    assert weighted_percentiles(one, {"a": 0.25, "b": 0.75}) == pytest.approx([0.4, 0.45, 0.575, 0.4])


def test_weights_are_those_of_least_squares():
    # Orthogonal columns; people's standardised ranks are ±1.342 and ±0.447, so the slopes are 1.789 and 0.894.
    one = field_with("one", [1, 2, 3, 4], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    assert fit_weights([one], ["a", "b"]) == pytest.approx({"a": 2 / 3, "b": 1 / 3})


def test_weights_are_never_negative_and_never_undefined():
    one = field_with("one", [1, 2, 3, 4], {"a": [0, 0, 1, 1], "b": [1, 0, 1, 0]})
    assert fit_weights([one], ["a", "b"]) == pytest.approx({"a": 1, "b": 0})
    against = field_with("one", [4, 3, 2, 1], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    assert fit_weights([against], ["a", "b"]) == {"a": 0.5, "b": 0.5}
    flat = field_with("one", [1, 1, 1, 1], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    assert fit_weights([flat], ["a", "b"]) == {"a": 0.5, "b": 0.5}


def test_a_benchmark_counts_the_same_whatever_its_size():
    small = field_with("small", [1, 2, 3, 4], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    turned = field_with("turned", [1, 2, 3, 4], {"b": [0, 0, 1, 1], "a": [0, 1, 0, 1]})
    large = field_with(
        "large", np.tile([1, 2, 3, 4], 50), {key: np.tile(column, 50) for key, column in turned.columns.items()}
    )
    assert fit_weights([small, large], ["a", "b"]) == pytest.approx({"a": 0.5, "b": 0.5}, abs=0.01)


def test_what_a_metric_was_trained_on_enters_neither_fit_nor_ensemble_nor_mean():
    def fields(spoiled):
        plain = noisy_fields({"a": 1, "b": 1, "c": 2}, contaminated={0: ("a",)})
        first = plain[0]
        columns = {**first.columns, "a": spoiled(first)}
        return [field_with("set0", first.human, columns, contaminated=("a",)), *plain[1:]]

    honest = study(fields(lambda one: one.columns["a"]), ["a", "b", "c"], QUICK)
    learned_by_heart = study(fields(lambda one: stats.norm.cdf(one.human)), ["a", "b", "c"], QUICK)
    assert learned_by_heart.weights == honest.weights
    assert learned_by_heart.chosen == honest.chosen
    assert learned_by_heart.tests == honest.tests
    by_key = {(one.judge, one.benchmark): one for one in learned_by_heart.agreements}
    assert by_key["a", "set0"].contaminated
    assert by_key["a", "set0"].value == pytest.approx(1)
    assert by_key["a", MEAN].over == ("set1", "set2", "set3")
    assert by_key["a", MEAN].value == pytest.approx(np.mean([by_key["a", f"set{k}"].value for k in (1, 2, 3)]))
    assert by_key["rank_mean", MEAN].over == ("set0", "set1", "set2", "set3")


def test_the_single_metric_to_beat_is_chosen_without_the_benchmark_it_is_measured_on():
    fields = noisy_fields({"a": 1.0, "b": 1.8}, count=3)
    # b is perfect on the last benchmark: there it must not be chosen for that, elsewhere it is.
    last = fields[2]
    fields[2] = field_with("set2", last.human, {"a": last.columns["a"], "b": stats.norm.cdf(last.human)})
    found = study(fields, ["a", "b"], QUICK)
    value = {(one.judge, one.benchmark): one.value for one in found.agreements}
    assert value["a", "set0"] + value["a", "set1"] > value["b", "set0"] + value["b", "set1"]
    assert found.chosen == {"set0": "b", "set1": "b", "set2": "a"}
    assert value[BEST_SINGLE, "set2"] == value["a", "set2"]


def test_independent_errors_cancel_and_the_ensemble_wins():
    found = study(noisy_fields({"a": 1.0, "b": 1.0, "c": 1.0}), ["a", "b", "c"], QUICK)
    assert found.winner is not None
    assert all(test.p < 0.05 and test.difference > 0 for test in found.tests if test.ensemble == found.winner)
    mean = {one.judge: one.value for one in found.agreements if one.benchmark == MEAN}
    assert mean["percentile_mean"] > max(mean["a"], mean["b"], mean["c"])


def test_beside_one_good_metric_noise_only_hurts_and_nothing_is_shipped():
    found = study(noisy_fields({"good": 0.2, "bad": 30.0, "worse": 60.0}), ["good", "bad", "worse"], QUICK)
    assert found.winner is None
    assert {one.weakest for one in found.verdicts} <= {"good", BEST_SINGLE}


def test_verdict_asks_every_test_to_succeed():
    found = study(noisy_fields({"a": 1.0, "b": 1.0, "c": 1.0}), ["a", "b", "c"], QUICK)
    for verdict in found.verdicts:
        own = [test.p for test in found.tests if test.ensemble == verdict.ensemble]
        assert verdict.p >= max(own)


def test_permutations_over_one_set_are_those_of_the_set():
    random = np.random.default_rng(1)
    x, y, human = random.normal(size=(3, 40))
    groups = np.repeat(np.arange(20), 2)
    one = permutation_test(x, y, human, groups, resamples=500)
    assert permutation_test_over_sets([(x, y, human, groups)], resamples=500) == one


def test_permutations_over_sets_by_hand():
    sets = [
        (np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3]), np.array([1.0, 2, 3, 4]), np.arange(4)),
        (np.array([3.0, 1, 2]), np.array([1.0, 3, 2]), np.array([3.0, 1, 2]), np.arange(3)),
    ]

    def difference(swaps):
        parts = []
        for (x, y, human, _), swap in zip(sets, np.split(np.array(swaps), [4]), strict=True):
            a, b = np.where(swap, y, x), np.where(swap, x, y)
            parts.append(np.corrcoef(a, human)[0, 1] - np.corrcoef(b, human)[0, 1])
        return np.mean(parts)

    with np.errstate(invalid="ignore"):
        drawn = np.array([difference(swaps) for swaps in itertools.product((0, 1), repeat=7)])
    found = permutation_test_over_sets(sets, resamples=1000)
    assert found.statistic == pytest.approx(drawn[0])
    assert found.method == "permutation, exact"
    # A swap that makes a column constant has no correlation and does not count as reaching the observed one.
    assert found.p == pytest.approx(np.nansum(np.abs(drawn) >= abs(drawn[0]) - 1e-12) / len(drawn))


def test_a_constant_set_leaves_the_test_undefined():
    flat = (np.ones(4), np.arange(4.0), np.arange(4.0), np.arange(4))
    fine = (np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3]), np.arange(4.0), np.arange(4))
    assert np.isnan(permutation_test_over_sets([fine, flat], resamples=100).p)
    assert np.isnan(permutation_test_over_sets([], resamples=100).p)


@given(st.lists(st.lists(st.floats(0, 1), min_size=5, max_size=5), min_size=1, max_size=4), st.data())
def test_a_combination_lies_between_its_parts(rows, data):
    table = np.array(rows)
    weights = data.draw(st.lists(st.floats(0.01, 10), min_size=len(rows), max_size=len(rows)))
    found = combined(table, weights)
    assert (found >= table.min(axis=0) - 1e-9).all()
    assert (found <= table.max(axis=0) + 1e-9).all()


def test_too_little_is_refused_in_a_sentence():
    fields = noisy_fields({"a": 1.0, "b": 1.0})
    with pytest.raises(ValueError, match="at least three"):
        study(fields[:2], ["a", "b"], QUICK)
    with pytest.raises(ValueError, match="at least two"):
        study(fields, ["a"], QUICK)
    nobody = field_with("empty", fields[0].human, {"z": fields[0].columns["a"]})
    with pytest.raises(ValueError, match="no member has values for empty"):
        study([*fields, nobody], ["a", "b"], QUICK)


class Longer(Metric):
    """A metric with percentiles: long replies are good, thirty words are the best there can be."""

    info = MetricInfo("longer", "Longer", Level.TURN, True, (0, np.inf), "Counts words.")
    scales = ("native", "human_percentile")
    weight, runs = 1.0, 0

    def judge(self, exchanges, *, progress=False):
        type(self).runs += 1
        return Judged(np.array([float(len(row.response.split())) for row in exchanges]))

    def rescale(self, values, scale):
        return np.clip(values / 30, 0, 1) if scale == "human_percentile" else values

    def signature(self):
        return Signature(metric=self.info.name)


class Vowels(Longer):
    """Another one: the share of vowels, which says nothing."""

    info = MetricInfo("vowels", "Vowels", Level.TURN, True, (0, 1), "Counts vowels.")

    def judge(self, exchanges, *, progress=False):
        return Judged(np.array([sum(row.response.count(v) for v in "aeiou") / len(row.response) for row in exchanges]))


SPECS = "python:test_ensemble:Longer,python:test_ensemble:Vowels"


@pytest.fixture
def measured(tmp_path: Path) -> tuple[list[str], Path]:
    """Three benchmarks as files, and the values that a run left."""
    files = []
    for number in range(3):
        rows = [{**row, "dataset": f"toy{number}", "id": f"{number}-{row['id']}"} for row in rated_rows(seed=number)]
        files.append(str(write_rows(tmp_path / f"toy{number}.jsonl", rows)))
    run(SPECS.split(","), files, settings=Settings(resamples=0), values=tmp_path / "values")
    return files, tmp_path


@pytest.mark.slow
def test_the_command_writes_the_study_from_kept_values_only(measured):
    files, folder = measured
    before = Longer.runs
    options = ["-m", SPECS, "-b", ",".join(files), "--values", str(folder / "values"), "--resamples", "100"]
    found = CliRunner().invoke(build_app(), ["ensemble", *options, "--out", str(folder / "out")])
    assert found.exit_code == 0, found.output
    assert Longer.runs == before
    rows = [json.loads(line) for line in (folder / "out/ensemble.jsonl").read_text().splitlines()]
    value = {(row["judge"], row["benchmark"]): row["value"] for row in rows if row["kind"] == "agreement"}
    kept = run(SPECS.split(","), files, settings=Settings(resamples=0), values=folder / "values").results
    record = {
        (one.metric, one.benchmark): one.value for one in kept if one.statistic == "spearman" and one.level == "turn"
    }
    assert {key: value[key] for key in record} == pytest.approx(record)
    about = json.loads((folder / "out/ensemble.json").read_text())
    assert about["members"] == {"longer": "metric:longer", "vowels": "metric:vowels"}
    assert sum(about["weights"]["weighted_percentiles"].values()) == pytest.approx(1)
    page = (folder / "out/ensemble.md").read_text()
    assert "None is to be shipped" in page
    assert str(folder) not in page
    assert (folder / "out/ensemble.png").stat().st_size > 10_000


def test_what_was_not_measured_is_not_measured_now(measured):
    files, folder = measured
    before = Longer.runs
    options = ["-m", SPECS, "-b", ",".join(files), "--values", str(folder / "nowhere"), "--out", str(folder / "out")]
    found = CliRunner().invoke(build_app(), ["ensemble", *options])
    assert found.exit_code == 2
    assert "from an earlier run" in found.output
    assert Longer.runs == before
    assert not (folder / "out").exists()


def test_only_metrics_with_percentiles_can_be_members(measured):
    files, folder = measured
    options = ["-m", f"{SPECS},bleu1", "--members", "longer,bleu1", "-b", ",".join(files), "--values", str(folder)]
    found = CliRunner().invoke(build_app(), ["ensemble", *options, "--out", str(folder / "out")])
    assert found.exit_code == 2
    assert "bleu1 cannot be a member; those with human percentiles are longer, vowels" in found.output
