"""Statistics against vectors, their definitions by hand and scipy: correlations, tests, raters, resampling."""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval.agreement.settings import Settings
from dialeval.statistics import bootstrap, discrimination, paired_tests, raters, system_level
from dialeval.statistics.correlation import CORRELATIONS, ROWWISE, kendall, paired_columns, pearson, spearman
from dialeval.statistics.discrimination import auc
from refusals import refused

LABELS, SCORES = (1, 1, 1, 1, 0, 0, 0, 0), (0.91, 0.62, 0.55, 0.30, 0.58, 0.41, 0.20, 0.05)

columns = st.integers(3, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-5, 5), min_size=n, max_size=n), st.lists(st.integers(-5, 5), min_size=n, max_size=n)
    )
)


def brute_kendall(x, y) -> float:
    """Tau-b by visiting every pair."""
    agree = disagree = tied_x = tied_y = 0
    for (a, b), (c, d) in itertools.combinations(zip(x, y, strict=True), 2):
        tied_x += a == c
        tied_y += b == d
        agree += (a - c) * (b - d) > 0
        disagree += (a - c) * (b - d) < 0
    pairs = math.comb(len(x), 2)
    spread = (pairs - tied_x) * (pairs - tied_y)
    return (agree - disagree) / math.sqrt(spread) if spread else math.nan


@given(columns)
@settings(max_examples=60, deadline=None)
def test_correlations_match_their_definitions(pair):
    x, y = pair
    assert kendall(x, y).value == pytest.approx(brute_kendall(x, y), nan_ok=True)
    by_ranks = pearson(stats.rankdata(x), stats.rankdata(y)).value
    assert spearman(x, y).value == pytest.approx(by_ranks, nan_ok=True)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert pearson(x, y).value == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_point_biserial_and_accuracy():
    result = discrimination.point_biserial(LABELS, SCORES)
    assert result.value == pytest.approx(0.562211109, abs=1e-9)
    assert result.p == pytest.approx(0.146921320, abs=1e-9)
    assert discrimination.correct(LABELS, SCORES, 0.5).mean() == 0.75
    # A score that equals the threshold is refused.
    assert discrimination.correct([1, 0], [0.5, 0.5], 0.5).tolist() == [False, True]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12)), min_size=1, max_size=25),
    st.sampled_from([None, "observed"]),
)
@settings(max_examples=60, deadline=None)
def test_threshold_search_matches_trying_each(rows, kind):
    labels, scores = [label for label, _ in rows], [score / 12 for _, score in rows]
    grid = discrimination.observed_grid(scores) if kind else discrimination.UNIT_GRID
    errors = [sum((s > t) != bool(y) for s, y in zip(scores, labels, strict=True)) for t in grid]
    result = discrimination.search_threshold(labels, scores, grid=grid)
    assert result.errors == min(errors)
    assert result.value == grid[errors.index(min(errors))]
    assert (result.ties, result.n) == (errors.count(min(errors)), len(rows))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=25))
@settings(max_examples=60, deadline=None)
def test_auc_counts_pairs(rows):
    good, bad = ([score for label, score in rows if label == wanted] for wanted in (1, 0))
    result = discrimination.auc([label for label, _ in rows], [score for _, score in rows]).value
    if good and bad:
        wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
        assert result == pytest.approx(wins / (len(good) * len(bad)))
    else:
        assert math.isnan(result)


def test_corrections():
    assert paired_tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # R: p.adjust(c(.01, .02, .03, .04, .05, .5), "holm")
    assert paired_tests.holm([0.01, 0.02, 0.03, 0.04, 0.05, 0.5]) == pytest.approx([0.06, 0.10, 0.12, 0.12, 0.12, 0.5])
    assert len(paired_tests.holm([])) == 0
    undefined = paired_tests.holm([math.nan, 0.02, math.nan, 0.01])
    assert undefined == pytest.approx([math.nan, 0.02, math.nan, 0.02], nan_ok=True)


@pytest.mark.parametrize(
    ("ratings", "mean"), [((3, 3, 3, 5), 3.0), ((1, 1, 5, 5), 3.0), ((1, 2, 4, 5), 3.0), ((2, 2, 3, 5), 7 / 3)]
)
def test_outlier_rule(ratings, mean):
    assert raters.mean_rating(ratings, drop_outliers=True) == pytest.approx(mean, abs=1e-6)


def test_human_ceiling_over_systems():
    ratings = [[1, 2], [3, 2], [4, 4], [2, 4], [5, 5], [5, 3]]
    systems = ["a", "a", "b", "b", "c", "c"]
    assert raters.human_ceiling(ratings, "pearson", systems=systems) == pytest.approx(
        pearson([2, 3, 5], [2, 4, 4]).value
    )


def test_alpha_of_the_textbook_example():
    """Krippendorff's (2011) example of four observers and twelve units."""
    gap = math.nan
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    rows = [[x for x in unit if not math.isnan(x)] for unit in zip(*observers, strict=True)]
    assert raters.alpha(rows) == pytest.approx(0.849, abs=5e-4)
    assert math.isnan(raters.alpha([]))


def test_system_permutation_p_is_exact():
    assert system_level.permutation_p([1, 2, 3, 4], [10, 20, 30, 40], "spearman") == (pytest.approx(1 / 12), "exact")
    x, y = [0.3, 0.1, 0.9, 0.4, 0.8], [2.0, 1.0, 2.5, 3.0, 2.7]
    observed = abs(stats.pearsonr(x, y)[0])
    reached = sum(abs(stats.pearsonr(x, order)[0]) >= observed - 1e-12 for order in itertools.permutations(y))
    assert system_level.permutation_p(x, y, "pearson") == (pytest.approx(reached / 120), "exact")


def test_system_means_keep_the_order_of_first_occurrence():
    names, means = system_level.system_means([1.0, 5.0, 3.0], ["b", "a", "b"])
    assert names == ["b", "a"]
    assert means.tolist() == [2.0, 5.0]


def test_human_ceiling_weighs_positions_by_their_rows():
    ratings = [[1, 2, 2], [2, 1, 3], [3, 4, 4], [4, 3], [2, 5]]
    parts = []
    for k in range(3):
        rows = [row for row in ratings if len(row) > k]
        parts.append((pearson([r[k] for r in rows], [(sum(r) - r[k]) / (len(r) - 1) for r in rows]).value, len(rows)))
    expected = sum(value * n for value, n in parts) / sum(n for _, n in parts)
    assert raters.human_ceiling(ratings, "pearson") == pytest.approx(expected)
    # A row with a single rating has nobody to agree with.
    assert raters.human_ceiling([*ratings, [1]], "pearson") == pytest.approx(expected)
    assert math.isnan(raters.human_ceiling([[1], [2], [3]]))
    assert math.isnan(raters.human_ceiling([]))


rows = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 1), st.integers(0, 4)), min_size=3, max_size=25
)


def all_draws(n_groups: int, resamples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(bootstrap.draw_counts(n_groups, resamples, seed, 1)))


@given(rows, st.integers(0, 3))
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_every_resampled_statistic_equals_the_statistic_of_the_drawn_rows(drawn, seed):
    x, y, labels, groups = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    groups = groups.astype(int)
    systems = (x + y).astype(int) % 3
    _, systems = np.unique(systems, return_inverse=True)
    statistics = {
        "pearson": bootstrap.pearson_of(x, y, groups, 5),
        "spearman": bootstrap.spearman_of(x, y, groups, 5),
        "kendall": bootstrap.kendall_of(x, y, groups, 5),
        "auc": bootstrap.auc_of(labels, x, groups, 5),
        "mean": bootstrap.mean_of(x, groups, 5),
        "systems": bootstrap.over_systems("pearson", x, y, systems, groups, 5),
    }
    result = bootstrap.bootstrap(statistics, 5, resamples=20, seed=seed, rows=len(x))
    for number, counts in enumerate(all_draws(5, 20, seed)):
        taken = np.repeat(np.arange(len(x)), counts[groups].astype(int))
        a, b, good, owner = x[taken], y[taken], labels[taken], systems[taken]
        expected = {
            "pearson": pearson(a, b).value,
            "spearman": spearman(a, b).value,
            "kendall": kendall(a, b).value,
            "auc": auc(good, a).value,
            "mean": a.mean() if len(a) else math.nan,
            "systems": math.nan,
        }
        if len(set(owner)) == len(set(systems)):
            means = [[column[owner == s].mean() for s in sorted(set(systems))] for column in (a, b)]
            if all(np.ptp(column) > 1e-9 for column in means):
                expected["systems"] = pearson(*means).value
            else:
                expected.pop("systems")
        for name, value in expected.items():
            assert result[name][number] == pytest.approx(value, abs=1e-9, nan_ok=True), name


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 8), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_rowwise_correlations_match_scipy(table):
    x, y = np.array(table, float)[:, :4], np.array(table, float)[:, 4:]
    for name, one in (("pearson", pearson), ("spearman", spearman), ("kendall", kendall)):
        with np.errstate(all="ignore"):
            result = ROWWISE[name](x, y)
        assert result == pytest.approx([one(a, b).value for a, b in zip(x, y, strict=True)], nan_ok=True, abs=1e-9)


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_permutation_test_tries_every_swap_of_few_contexts(name):
    random = np.random.default_rng(5)
    human, x, y = random.normal(size=(3, 12))
    x += human
    groups = np.repeat(np.arange(6), 2)
    rank = stats.rankdata if name == "spearman" else np.asarray
    a, b, h = (stats.zscore(rank(column)) for column in (x, y, human))
    gaps = []
    for swaps in itertools.product((False, True), repeat=6):
        swapped = np.array(swaps)[groups]
        one, two = np.where(swapped, b, a), np.where(swapped, a, b)
        gaps.append(pearson(one, h).value - pearson(two, h).value)
    result = paired_tests.permutation_test(x, y, human, groups, statistic=name)
    assert result.method == "permutation, exact"
    assert result.statistic == pytest.approx(gaps[0])
    assert result.p == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-12))


def test_permutation_test_keeps_its_level():
    """Of two equally good metrics, about one pair in ten differs at p < .1."""
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        human = random.normal(size=40)
        x, y = human + random.normal(size=(2, 40))
        hits += paired_tests.permutation_test(x, y, human, np.arange(40), resamples=199).p <= 0.1
    assert 8 <= hits <= 36


def test_the_observed_order_is_one_of_those_tried() -> None:
    """No sampled p is zero: with N resamples that all fall short it is 1 / (N + 1)."""
    random = np.random.default_rng(6)
    human = random.normal(size=300)
    good, noise = human + 0.5 * random.normal(size=300), random.normal(size=300)
    groups = np.arange(300) // 3
    result = paired_tests.permutation_test(good, noise, human, groups, resamples=99)
    assert (result.p, result.method) == (1 / 100, "permutation, sampled")
    sets = [(good, noise, human, groups)] * 2
    assert paired_tests.permutation_test_over_sets(sets, resamples=49).p == 1 / 50
    assert paired_tests.paired_mean_test(good + 9, noise, groups, resamples=199).p == 1 / 200


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
    result = paired_tests.permutation_test_over_sets(sets, statistic="pearson")

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
    assert result.statistic == pytest.approx(means[0, 0])
    assert result.p == pytest.approx((np.abs(means) >= abs(means[0, 0]) - 1e-12).mean())
    assert result.method == "permutation, exact"
    constant = (np.ones(6), *sets[0][1:])
    assert paired_tests.permutation_test_over_sets([sets[1], constant]).method == "undefined"
    assert math.isnan(paired_tests.permutation_test_over_sets([]).p)


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
    result = paired_tests.paired_mean_test(x, y, np.array([0, 0, 1, 1]))
    assert (result.statistic, result.p, result.method) == (pytest.approx(1.5), 0.5, "permutation, exact")
    x = np.array([3.0, 1.0, 0.0, 0.0])  # 2, 0 in one context and -1, -1 in the other: the others' gaps are 0 and ±1
    result = paired_tests.paired_mean_test(x, y, np.array([0, 0, 1, 1]))
    assert (result.statistic, result.p) == (pytest.approx(0.0), 1.0)


def test_means_of_different_rows_are_tested_as_by_scipy() -> None:
    first, second = [5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 4.0]
    result = paired_tests.unpaired_mean_test(first, second)
    assert (result.statistic, result.method) == (pytest.approx(3.5), "permutation, unpaired")
    # Of 35 ways to deal the rows out none other has this side higher by as much; scipy doubles the share of one side.
    assert result.p == pytest.approx(2 / 35)
    again = [paired_tests.unpaired_mean_test(range(30), range(3, 40), resamples=200, seed=seed).p for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_groups_are_numbered_in_the_order_of_their_first_rows() -> None:
    result = bootstrap.number_groups(["b", ("a",), "b", None, ("a",)])
    assert (result.tolist(), result.dtype) == ([0, 1, 0, 2, 1], np.intp)


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
    assert whole[0].sum(axis=0).min() > 15  # of 33, more or less: no group is left out
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
        result = CORRELATIONS[name]([1.0, 2.0, 3.0], same)
        assert math.isnan(result.value)
        assert math.isnan(result.p)
        assert result.n == 3
    # All but one the same is something, wherever the one stands.
    for column in ([1.0, 2.0, 2.0], [2.0, 1.0, 2.0]):
        assert math.isfinite(CORRELATIONS[name]([1.0, 2.0, 3.0], column).value)
    # Two points always lie on a line, which is no evidence.
    assert math.isnan(CORRELATIONS[name]([1.0, 2.0], [3.0, 4.0]).p)


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
