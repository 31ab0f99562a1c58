"""Rules of the statistics that a plausible slip would break without any figure looking odd."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from dialeval.agreement.settings import Settings
from dialeval.statistics import bootstrap, paired_tests, raters, system_level
from dialeval.statistics.correlation import CORRELATIONS, paired_columns
from refusals import refused


def test_a_perfect_metric_reaches_what_is_attainable() -> None:
    """Four raters whose errors are as large as the differences: their mean has reliability .8, a correlation of √.8."""
    random = np.random.default_rng(0)
    truth = random.normal(size=10_000)
    ratings = np.round(2 * (truth[:, None] + random.normal(size=(10_000, 4)))) / 2
    reached = np.corrcoef(truth, ratings.mean(axis=1))[0, 1]
    assert raters.attainable(ratings.tolist()) == pytest.approx(math.sqrt(0.8), abs=0.02)
    assert raters.attainable(ratings.tolist()) == pytest.approx(reached, abs=0.02)


def test_the_observed_order_is_one_of_those_tried() -> None:
    """No sampled p is zero: with N resamples that all fall short it is 1 / (N + 1)."""
    random = np.random.default_rng(6)
    human = random.normal(size=300)
    good, noise = human + 0.5 * random.normal(size=300), random.normal(size=300)
    groups = np.arange(300) // 3
    found = paired_tests.permutation_test(good, noise, human, groups, resamples=99)
    assert (found.p, found.method) == (1 / 100, "permutation, sampled")
    sets = [(good, noise, human, groups)] * 2
    assert paired_tests.permutation_test_over_sets(sets, resamples=49).p == 1 / 50
    assert paired_tests.paired_mean_test(good + 9, noise, groups, resamples=199).p == 1 / 200
    # Of metrics that are the same every swap reaches the difference of zero.
    assert paired_tests.permutation_test(good, good, human, groups, resamples=99).p == 1.0


def test_the_observed_order_of_systems_is_one_of_those_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_level, "SAMPLED_ORDERS", 199)
    x = np.arange(30.0)
    assert system_level.permutation_p(x, x, "pearson") == (1 / 200, "sampled")


def test_all_swaps_are_tried_where_they_are_no_more_than_the_resamples() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, 10))
    groups = np.arange(10)
    assert paired_tests.paired_mean_test(x, y, groups, resamples=1024).method == "permutation, exact"
    assert paired_tests.paired_mean_test(x, y, groups, resamples=1023).method == "permutation, sampled"


def test_the_mean_over_sets_is_tested_as_it_stands() -> None:
    """By brute force over all swaps of both sets."""
    random = np.random.default_rng(2)
    sets = [(*random.normal(size=(3, size)), np.arange(size) // 2) for size in (6, 8)]
    found = paired_tests.permutation_test_over_sets(sets, statistic="pearson")

    def gaps(x: np.ndarray, y: np.ndarray, human: np.ndarray, groups: np.ndarray) -> np.ndarray:
        a, b = stats.zscore(x), stats.zscore(y)
        drawn = []
        for bits in range(2 ** (groups.max() + 1)):
            swapped = (bits >> groups) & 1 == 1
            one, two = np.where(swapped, b, a), np.where(swapped, a, b)
            drawn.append(np.corrcoef(one, human)[0, 1] - np.corrcoef(two, human)[0, 1])
        return np.array(drawn)

    first, second = (gaps(*one) for one in sets)
    means = (first[:, None] + second[None]) / 2
    assert found.statistic == pytest.approx(means[0, 0])
    assert found.p == pytest.approx((np.abs(means) >= abs(means[0, 0]) - 1e-12).mean())
    assert found.method == "permutation, exact"
    constant = (np.ones(6), *sets[0][1:])
    assert paired_tests.permutation_test_over_sets([sets[1], constant]).method == "undefined"
    assert math.isnan(paired_tests.permutation_test_over_sets([]).p)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.inf, math.nan])
def test_a_p_value_out_of_range_is_named(p: float) -> None:
    refused(ValueError, "p-value 1", paired_tests.holm, [0.5, p, 2.0])
    assert paired_tests.holm([0, 1]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_row_and_the_column_of_a_bad_value_are_named(bad: float) -> None:
    assert str(bad) in refused(ValueError, "row 2 of the first", paired_columns, [1, 2, bad, bad], [1, 2, 3, 4])
    assert str(bad) in refused(ValueError, "row 0 of the second", paired_columns, [1, 2], [bad, 3])
    refused(ValueError, "3 and 2", paired_columns, [1, 2, 3], [1, 2])
    refused(ValueError, "1 and 2", paired_columns, [1, 2], [[1, 2]])


def test_tests_say_how_their_p_was_found() -> None:
    nothing = paired_tests.paired_mean_test([], [], np.array([], int))
    assert (nothing.method, math.isnan(nothing.statistic), math.isnan(nothing.p)) == ("undefined", True, True)


def test_means_are_tested_in_blocks_as_by_hand() -> None:
    """Rows of one context change sides together: of the four ways to swap two contexts, two are as far apart."""
    x, y = np.array([3.0, 1.0, 4.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0])
    found = paired_tests.paired_mean_test(x, y, np.array([0, 0, 1, 1]))
    assert (found.statistic, found.p, found.method) == (pytest.approx(1.5), 0.5, "permutation, exact")
    x = np.array([3.0, 1.0, 0.0, 0.0])  # 2, 0 in one context and -1, -1 in the other: the others' gaps are 0 and ±1
    found = paired_tests.paired_mean_test(x, y, np.array([0, 0, 1, 1]))
    assert (found.statistic, found.p) == (pytest.approx(0.0), 1.0)


def test_means_of_different_rows_are_tested_as_by_scipy() -> None:
    first, second = [5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 4.0]
    found = paired_tests.unpaired_mean_test(first, second)
    assert (found.statistic, found.method) == (pytest.approx(3.5), "permutation, unpaired")
    # Of 35 ways to deal the rows out none other has this side higher by as much; scipy doubles the share of one side.
    assert found.p == pytest.approx(2 / 35)
    again = [paired_tests.unpaired_mean_test(range(30), range(3, 40), resamples=200, seed=seed).p for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_groups_are_numbered_in_the_order_of_their_first_rows() -> None:
    found = bootstrap.number_groups(["b", ("a",), "b", None, ("a",)])
    assert (found.tolist(), found.dtype) == ([0, 1, 0, 2, 1], np.intp)


def test_resamples_do_not_depend_on_the_blocks_they_are_drawn_in(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 40))
    groups = np.arange(40) // 2
    whole = list(bootstrap.draw_counts(20, 33, 7, 20))
    monkeypatch.setattr(bootstrap, "BLOCK", 200)
    parts = list(bootstrap.draw_counts(20, 33, 7, 20))
    assert (len(whole), [len(part) for part in parts]) == (1, [10, 10, 10, 3])
    assert np.array_equal(np.concatenate(parts), whole[0])
    assert not np.array_equal(next(bootstrap.draw_counts(20, 33, 8, 20)), parts[0])
    assert (whole[0].sum(axis=1) == 20).all()
    assert parts[0].dtype == np.float64
    assert [len(part) for part in bootstrap.draw_counts(20, 3, 7, 10**6)] == [1, 1, 1]
    assert list(bootstrap.draw_counts(0, 3, 7, 1)) == []
    assert paired_tests.permutation_test(x, y, x + y, groups, resamples=500, seed=1) != paired_tests.permutation_test(
        x, y, x + y, groups, resamples=500, seed=2
    )
    assert np.isnan([bootstrap.interval(np.array([])).low, bootstrap.interval(np.array([np.nan])).high]).all()


@pytest.mark.parametrize("name", list(CORRELATIONS))
def test_a_column_that_says_nothing_has_no_correlation_and_no_p(name: str) -> None:
    for same in ([2.0, 2.0, 2.0], [2, 2, 2]):
        found = CORRELATIONS[name]([1.0, 2.0, 3.0], same)
        assert math.isnan(found.value)
        assert math.isnan(found.p)
        assert found.n == 3
    # All but one the same is something, wherever the one stands.
    for column in ([1.0, 2.0, 2.0], [2.0, 1.0, 2.0]):
        assert math.isfinite(CORRELATIONS[name]([1.0, 2.0, 3.0], column).value)


def test_attainable_counts_raters_by_their_harmonic_mean() -> None:
    ratings = [[1.0, 2.0], [4.0, 4.0, 5.0], [2.0, 1.0, 1.0, 2.0], [5.0, 4.0], []]
    single, people = raters.alpha(ratings), 4 / (1 / 2 + 1 / 3 + 1 / 4 + 1 / 2)
    assert raters.attainable(ratings) == pytest.approx(math.sqrt(people * single / (1 + (people - 1) * single)))
    assert math.isnan(raters.attainable([[1.0, 5.0], [5.0, 1.0]]))


def test_intervals_hold_ninety_five_percent_unless_told_otherwise() -> None:
    drawn = np.arange(1001.0)
    assert astuple(bootstrap.interval(drawn)) == pytest.approx((25, 975, 1001))
    assert astuple(bootstrap.interval(drawn, 0.8)) == pytest.approx((100, 900, 1001))
    assert Settings().confidence == 0.95
