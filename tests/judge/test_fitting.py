"""The judge's last step: ranks, contributions and intervals, by hand and by rule."""

import numpy as np
import pytest

from dialeval.judge import fitting
from dialeval.judge.network import TABLE_SIZE
from dialeval.judge.rule import combine, contributions
from dialeval.papers.learned import mid_ranks

GRID = np.linspace(0.0, 1.0, TABLE_SIZE)


def test_mid_ranks_against_an_even_table() -> None:
    values = np.array([-1.0, 0.25, 0.5, 2.0, np.nan])
    found = mid_ranks(values, GRID)
    assert found[:4] == pytest.approx([0.0, 0.25, 0.5, 1.0], abs=0.5 / TABLE_SIZE)
    assert np.isnan(found[4])
    assert mid_ranks(np.array([0.12345]), GRID) == pytest.approx([0.12345])  # between two quantiles


def test_ties_share_the_middle_of_their_places() -> None:
    # Three quarters of the reference rows have the highest value there is: it is worth 1 - 0.75 / 2.
    table = fitting.reference_table(np.array([0.0] * 250 + [1.0] * 750))
    low, high = mid_ranks(np.array([0.0, 1.0]), table)
    assert low == pytest.approx(0.125, abs=0.005)
    assert high == pytest.approx(0.625, abs=0.005)
    constant = fitting.reference_table(np.full(10, 3.0))
    assert mid_ranks(np.array([2.0, 3.0, 4.0]), constant) == pytest.approx([0.0, 0.5, 1.0], abs=0.005)


def test_ranks_never_fall_as_values_rise() -> None:
    rng = np.random.default_rng(0)
    table = fitting.reference_table(rng.choice([0.0, 0.2, 0.7, 1.0], 500) + rng.choice([0.0, 0.01], 500))
    ranks = mid_ranks(np.sort(rng.uniform(-0.5, 1.5, 300)), table)
    assert (np.diff(ranks) >= 0).all()
    assert ranks.min() >= 0
    assert ranks.max() <= 1


def test_contributions_add_up_to_the_outcome() -> None:
    ranks = np.array([[1.0, 0.0, 0.75], [1.0, np.nan, 0.25], [np.nan, np.nan, np.nan]])
    weights = np.array([2.0, 1.0, 1.0])
    moved = contributions(ranks, weights)
    assert moved[0] == pytest.approx([0.25, -0.125, 0.0625])
    assert moved[1] == pytest.approx([1 / 3, 0.0, -0.25 / 3])  # the missing one's weight goes to the others
    assert moved[2] == pytest.approx([0.0, 0.0, 0.0])
    assert combine(ranks, weights) == pytest.approx([0.6875, 0.75, 0.5])
    assert contributions(ranks, np.zeros(3)) == pytest.approx(np.zeros((3, 3)))


def test_ratings_are_ranked_within_their_source() -> None:
    ratings = np.array([1.0, 5.0, 3.0, 100.0, 300.0, 100.0])
    found = fitting.within_source_ranks(ratings, ["a", "a", "a", "b", "b", "b"])
    assert found == pytest.approx([1 / 6, 5 / 6, 3 / 6, 2 / 6, 5 / 6, 2 / 6])


def test_an_interval_holds_what_it_promises_on_rows_like_those_it_was_fitted_on() -> None:
    rng = np.random.default_rng(3)
    outcomes = rng.uniform(0.3, 0.7, 8000)
    targets = np.clip(outcomes + rng.normal(0, 0.2, 8000), 0, 1)
    fitted = fitting.fit_interval(outcomes[:4000], targets[:4000])
    assert fitting.covered(fitted, outcomes[4000:], targets[4000:]) == pytest.approx(0.9, abs=0.02)
    low, high = fitted.around(np.array([0.35, 0.65]))
    assert low[0] < low[1]
    assert high[0] < high[1]
    assert (low < high).all()


def test_equal_ratings_are_held_as_a_whole() -> None:
    """On a scale of three points the middles of equals move from set to set; an end in the middle would miss them."""
    rng = np.random.default_rng(4)
    ranks = [fitting.within_source_ranks(rng.choice(3, 2000, p=[0.04, 0.26, 0.7]), ["x"] * 2000) for _ in range(2)]
    assert not set(ranks[0]) & set(ranks[1])
    outcomes = rng.random(2000)
    fitted = fitting.fit_interval(outcomes, ranks[0], ties=fitting.edges_of_ties(ranks[0]))
    assert fitting.covered(fitted, outcomes, ranks[1]) >= 0.9
    assert fitting.covered(fitting.fit_interval(outcomes, ranks[0]), outcomes, ranks[1]) < 0.7
    begins, stops = fitting.edges_of_ties(np.array([0.25, 0.25, 0.75, 0.75]))
    assert (begins.tolist(), stops.tolist()) == ([0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1])


def test_few_ratings_give_the_whole_scale() -> None:
    outcomes = np.linspace(0, 1, 19)
    fitted = fitting.fit_interval(outcomes, outcomes)  # below the 20 that an interval needs
    assert fitted.low.tolist() == [0.0] * 5
    assert fitted.high.tolist() == [1.0] * 5
    # Of 95, 57 stand behind the ends of three bins and 38 behind those of two: the second and the first of each side.
    outcomes = np.arange(95) / 94
    shared = fitting.fit_interval(outcomes, outcomes)
    assert shared.low * 94 == pytest.approx([1, 1, 1, 57, 57])
    assert shared.high * 94 == pytest.approx([55, 55, 55, 94, 94])
