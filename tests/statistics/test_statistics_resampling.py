"""Intervals and paired tests against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval.statistics import bootstrap, paired_tests
from dialeval.statistics.correlation import ROWWISE, kendall, pearson, spearman
from dialeval.statistics.discrimination import auc

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
    found = bootstrap.bootstrap(statistics, 5, resamples=20, seed=seed, rows=len(x))
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
            assert found[name][number] == pytest.approx(value, abs=1e-9, nan_ok=True), name


def test_interval_of_independent_rows_is_near_the_textbook_one():
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    y = 0.5 * x + random.normal(size=400)
    groups = np.arange(400)
    drawn = bootstrap.bootstrap({"r": bootstrap.pearson_of(x, y, groups, 400)}, 400, resamples=4000, seed=1)["r"]
    found = bootstrap.interval(drawn)
    z = np.arctanh(pearson(x, y).value)
    assert found.low == pytest.approx(np.tanh(z - 1.96 / math.sqrt(397)), abs=0.02)
    assert found.high == pytest.approx(np.tanh(z + 1.96 / math.sqrt(397)), abs=0.02)
    assert found.resamples == 4000


def test_clusters_widen_the_interval():
    """Ten copies of each of forty rows are worth forty rows."""
    random = np.random.default_rng(0)
    x = np.repeat(random.normal(size=40), 10)
    y = np.repeat(random.normal(size=40), 10)
    of_context, of_row = np.repeat(np.arange(40), 10), np.arange(400)
    widths = []
    for groups, count in ((of_context, 40), (of_row, 400)):
        drawn = bootstrap.bootstrap({"r": bootstrap.spearman_of(x, y, groups, count)}, count, resamples=2000, seed=0)[
            "r"
        ]
        found = bootstrap.interval(drawn)
        widths.append(found.high - found.low)
    assert widths[0] > 2.5 * widths[1]


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 8), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_rowwise_correlations_match_scipy(table):
    x, y = np.array(table, float)[:, :4], np.array(table, float)[:, 4:]
    for name, one in (("pearson", pearson), ("spearman", spearman), ("kendall", kendall)):
        with np.errstate(all="ignore"):
            found = ROWWISE[name](x, y)
        assert found == pytest.approx([one(a, b).value for a, b in zip(x, y, strict=True)], nan_ok=True, abs=1e-9)


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
    found = paired_tests.permutation_test(x, y, human, groups, statistic=name)
    assert found.method == "permutation, exact"
    assert found.statistic == pytest.approx(gaps[0])
    assert found.p == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-12))


def test_permutation_test_of_a_metric_with_itself_and_with_noise():
    random = np.random.default_rng(6)
    human = random.normal(size=300)
    groups = np.arange(300) // 3
    good = human + 0.5 * random.normal(size=300)
    assert paired_tests.permutation_test(good, good, human, groups).p == 1.0
    assert paired_tests.permutation_test(good, 3 * good + 7, human, groups, statistic="pearson").p == 1.0
    against_noise = paired_tests.permutation_test(good, random.normal(size=300), human, groups)
    assert against_noise.p < 0.001
    assert against_noise.statistic > 0.5
    assert paired_tests.permutation_test(np.ones(300), good, human, groups).method == "undefined"


def test_permutation_test_keeps_its_level():
    """Of two equally good metrics, about one pair in ten differs at p < .1."""
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        human = random.normal(size=40)
        x, y = human + random.normal(size=(2, 40))
        hits += paired_tests.permutation_test(x, y, human, np.arange(40), resamples=199).p <= 0.1
    assert 8 <= hits <= 36
