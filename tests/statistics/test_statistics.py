"""Statistics of one metric: vectors, scipy and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval.statistics import discrimination, paired_tests, raters, system_level
from dialeval.statistics.correlation import CORRELATIONS, kendall, pearson, spearman

X, Y = (1, 2, 2, 4, 5), (2, 1, 3, 5, 4)
LABELS, SCORES = (1, 1, 1, 1, 0, 0, 0, 0), (0.91, 0.62, 0.55, 0.30, 0.58, 0.41, 0.20, 0.05)

columns = st.integers(3, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-5, 5), min_size=n, max_size=n), st.lists(st.integers(-5, 5), min_size=n, max_size=n)
    )
)


def test_correlations_of_a_small_column_with_ties():
    assert pearson(X, Y).value == pytest.approx(0.769800359, abs=1e-9)
    assert pearson(X, Y).p == pytest.approx(0.127907, abs=1e-6)
    assert spearman(X, Y).value == pytest.approx(0.718184846, abs=1e-9)
    assert kendall(X, Y).value == pytest.approx(0.527046277, abs=1e-9)


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


@given(columns, st.floats(0.1, 50), st.floats(-1e3, 1e3))
@settings(max_examples=40, deadline=None)
def test_correlations_ignore_scale_and_follow_direction(pair, factor, shift):
    x, y = np.asarray(pair[0], float), np.asarray(pair[1], float)
    for name, correlate in CORRELATIONS.items():
        before = correlate(x, y)
        assert correlate(factor * x + shift, y).value == pytest.approx(before.value, abs=1e-7, nan_ok=True), name
        assert correlate(-x, y).value == pytest.approx(-before.value, abs=1e-9, nan_ok=True), name
        assert correlate(y, x).value == pytest.approx(before.value, abs=1e-9, nan_ok=True), name


def test_p_values_are_those_of_scipy():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, 60))
    assert pearson(x, y).p == stats.pearsonr(x, y).pvalue
    assert spearman(x, y).p == stats.spearmanr(x, y).pvalue
    assert kendall(x, y).p == stats.kendalltau(x, y).pvalue


def test_point_biserial_and_accuracy():
    found = discrimination.point_biserial(LABELS, SCORES)
    assert found.value == pytest.approx(0.562211109, abs=1e-9)
    assert found.p == pytest.approx(0.146921320, abs=1e-9)
    assert discrimination.correct(LABELS, SCORES, 0.5).mean() == 0.75
    # 13 of the 16 pairs of a good and a bad reply are in order.
    assert discrimination.auc(LABELS, SCORES).value == 13 / 16


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12)), min_size=1, max_size=25),
    st.sampled_from([None, "observed"]),
)
@settings(max_examples=60, deadline=None)
def test_threshold_search_matches_trying_each(rows, kind):
    labels, scores = [label for label, _ in rows], [score / 12 for _, score in rows]
    grid = discrimination.observed_grid(scores) if kind else discrimination.UNIT_GRID
    errors = [sum((s > t) != bool(y) for s, y in zip(scores, labels, strict=True)) for t in grid]
    found = discrimination.search_threshold(labels, scores, grid=grid)
    assert found.errors == min(errors)
    assert found.value == grid[errors.index(min(errors))]
    assert found.ties == errors.count(min(errors))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=25))
@settings(max_examples=60, deadline=None)
def test_auc_counts_pairs(rows):
    good, bad = ([score for label, score in rows if label == wanted] for wanted in (1, 0))
    found = discrimination.auc([label for label, _ in rows], [score for _, score in rows]).value
    if good and bad:
        wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
        assert found == pytest.approx(wins / (len(good) * len(bad)))
    else:
        assert math.isnan(found)


def test_corrections():
    assert paired_tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # R: p.adjust(c(.01, .02, .03, .04, .05, .5), "holm")
    assert paired_tests.holm([0.01, 0.02, 0.03, 0.04, 0.05, 0.5]) == pytest.approx([0.06, 0.10, 0.12, 0.12, 0.12, 0.5])
    assert len(paired_tests.holm([])) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_never_make_a_p_value_smaller_and_keep_the_order(p):
    adjusted = paired_tests.holm(p)
    assert np.all(adjusted >= np.asarray(p) - 1e-12)
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-12)


@pytest.mark.parametrize(
    ("ratings", "mean"), [((3, 3, 3, 5), 3.0), ((1, 1, 5, 5), 3.0), ((1, 2, 4, 5), 3.0), ((2, 2, 3, 5), 7 / 3)]
)
def test_outlier_rule(ratings, mean):
    assert raters.mean_rating(ratings, drop_outliers=True) == pytest.approx(mean, abs=1e-6)


def test_human_ceiling_by_hand():
    ratings = [[1, 2, 3], [2, 2, 5], [4, 3, 4], [5, 5, 4]]
    expected = np.mean(
        [pearson([row[k] for row in ratings], [(sum(row) - row[k]) / 2 for row in ratings]).value for k in range(3)]
    )
    assert raters.human_ceiling(ratings, "pearson") == pytest.approx(expected)
    # A row with a single rating has nobody to agree with.
    assert raters.human_ceiling([*ratings, [1]], "pearson") == pytest.approx(expected)
    assert math.isnan(raters.human_ceiling([[1], [2], [3]]))
    assert math.isnan(raters.human_ceiling([]))


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


def test_system_permutation_p_is_exact():
    assert system_level.permutation_p([1, 2, 3, 4], [10, 20, 30, 40], "spearman") == (pytest.approx(1 / 12), "exact")
    x, y = [0.3, 0.1, 0.9, 0.4, 0.8], [2.0, 1.0, 2.5, 3.0, 2.7]
    observed = abs(stats.pearsonr(x, y)[0])
    reached = sum(abs(stats.pearsonr(x, order)[0]) >= observed - 1e-12 for order in itertools.permutations(y))
    assert system_level.permutation_p(x, y, "pearson") == (pytest.approx(reached / 120), "exact")


def test_sampled_permutation_p_is_near_the_t_test():
    random = np.random.default_rng(3)
    x = random.normal(size=21)
    y = 0.4 * x + random.normal(size=21)
    p, method = system_level.permutation_p(x, y, "pearson")
    assert method == "sampled"
    assert p == pytest.approx(stats.pearsonr(x, y).pvalue, abs=0.01)


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


def test_threshold_search_takes_the_smallest_of_equally_good_ones():
    found = discrimination.search_threshold(LABELS, SCORES)
    assert (found.value, found.errors, found.n, found.ties) == (0.20, 2, 8, 10 + 14 + 4)
