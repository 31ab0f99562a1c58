"""The judge's last step: ranks, weights, contributions and intervals, by hand and by rule."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.approaches import stack

GRID = np.linspace(0.0, 1.0, stack.TABLE_SIZE)


def test_mid_ranks_against_an_even_table() -> None:
    values = np.array([-1.0, 0.25, 0.5, 2.0, np.nan])
    found = stack.mid_ranks(values, GRID)
    assert found[:4] == pytest.approx([0.0, 0.25, 0.5, 1.0], abs=0.5 / stack.TABLE_SIZE)
    assert np.isnan(found[4])
    assert stack.mid_ranks(np.array([0.12345]), GRID) == pytest.approx([0.12345])  # between two quantiles


def test_ties_share_the_middle_of_their_places() -> None:
    # Three quarters of the reference rows have the highest value there is: it is worth 1 - 0.75 / 2.
    table = stack.reference_table(np.array([0.0] * 250 + [1.0] * 750))
    low, high = stack.mid_ranks(np.array([0.0, 1.0]), table)
    assert low == pytest.approx(0.125, abs=0.005)
    assert high == pytest.approx(0.625, abs=0.005)
    constant = stack.reference_table(np.full(10, 3.0))
    assert stack.mid_ranks(np.array([2.0, 3.0, 4.0]), constant) == pytest.approx([0.0, 0.5, 1.0], abs=0.005)


def test_ranks_never_fall_as_values_rise() -> None:
    rng = np.random.default_rng(0)
    table = stack.reference_table(rng.choice([0.0, 0.2, 0.7, 1.0], 500) + rng.choice([0.0, 0.01], 500))
    ranks = stack.mid_ranks(np.sort(rng.uniform(-0.5, 1.5, 300)), table)
    assert (np.diff(ranks) >= 0).all()
    assert ranks.min() >= 0
    assert ranks.max() <= 1


def test_contributions_add_up_to_the_outcome() -> None:
    ranks = np.array([[1.0, 0.0, 0.75], [1.0, np.nan, 0.25], [np.nan, np.nan, np.nan]])
    weights = np.array([2.0, 1.0, 1.0])
    moved = stack.contributions(ranks, weights)
    assert moved[0] == pytest.approx([0.25, -0.125, 0.0625])
    assert moved[1] == pytest.approx([1 / 3, 0.0, -0.25 / 3])  # the missing one's weight goes to the others
    assert moved[2] == pytest.approx([0.0, 0.0, 0.0])
    assert stack.combine(ranks, weights) == pytest.approx([0.6875, 0.75, 0.5])
    assert stack.contributions(ranks, np.zeros(3)) == pytest.approx(np.zeros((3, 3)))


def test_ratings_are_ranked_within_their_source() -> None:
    ratings = np.array([1.0, 5.0, 3.0, 100.0, 300.0, 100.0])
    found = stack.within_source_ranks(ratings, ["a", "a", "a", "b", "b", "b"])
    assert found == pytest.approx([1 / 6, 5 / 6, 3 / 6, 2 / 6, 5 / 6, 2 / 6])


def ratings_of(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three features; people follow the first, and the second backwards."""
    rng = np.random.default_rng(seed)
    ranks = rng.uniform(size=(rows, 3))
    return ranks, np.clip(0.5 + 0.7 * (ranks[:, 0] - 0.5) - 0.3 * (ranks[:, 1] - 0.5), 0, 1)


def test_with_few_ratings_the_prior_decides_and_with_many_the_data() -> None:
    prior = np.array([0.2, 0.3, 0.5])
    ranks, targets = ratings_of(2)
    few = stack.fit_weights(ranks, targets, ["a"] * 2, prior=prior, strength=1e6)
    assert few == pytest.approx(prior, abs=1e-4)
    ranks, targets = ratings_of(20_000)
    many = stack.fit_weights(ranks, targets, ["a"] * 20_000, prior=prior, strength=1.0)
    assert many == pytest.approx([0.7, 0.0, 0.0], abs=0.02)
    assert (many >= 0).all()  # what people turn round is left out, not turned round


def test_an_interval_holds_what_it_promises_on_rows_like_those_it_was_fitted_on() -> None:
    rng = np.random.default_rng(3)
    outcomes = rng.uniform(0.3, 0.7, 8000)
    targets = np.clip(outcomes + rng.normal(0, 0.2, 8000), 0, 1)
    fitted = stack.fit_interval(outcomes[:4000], targets[:4000])
    assert stack.covered(fitted, outcomes[4000:], targets[4000:]) == pytest.approx(0.9, abs=0.02)
    low, high = fitted.around(np.array([0.35, 0.65]))
    assert low[0] < low[1]
    assert high[0] < high[1]
    assert (low < high).all()


def test_equal_ratings_are_held_as_a_whole() -> None:
    """On a scale of three points the middles of equals move from set to set; an end in the middle would miss them."""
    rng = np.random.default_rng(4)
    ranks = [stack.within_source_ranks(rng.choice(3, 2000, p=[0.04, 0.26, 0.7]), ["x"] * 2000) for _ in range(2)]
    assert not set(ranks[0]) & set(ranks[1])
    outcomes = rng.random(2000)
    fitted = stack.fit_interval(outcomes, ranks[0], ties=stack.edges_of_ties(ranks[0]))
    assert stack.covered(fitted, outcomes, ranks[1]) >= 0.9
    assert stack.covered(stack.fit_interval(outcomes, ranks[0]), outcomes, ranks[1]) < 0.7
    begins, stops = stack.edges_of_ties(np.array([0.25, 0.25, 0.75, 0.75]))
    assert (begins.tolist(), stops.tolist()) == ([0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1])


def test_few_ratings_give_the_whole_scale() -> None:
    outcomes = np.linspace(0, 1, 19)
    fitted = stack.fit_interval(outcomes, outcomes)  # below the 20 that an interval needs
    assert fitted.low.tolist() == [0.0] * 5
    assert fitted.high.tolist() == [1.0] * 5
    # Of 95, 57 stand behind the ends of three bins and 38 behind those of two: the second and the first of each side.
    outcomes = np.arange(95) / 94
    shared = stack.fit_interval(outcomes, outcomes)
    assert shared.low * 94 == pytest.approx([1, 1, 1, 57, 57])
    assert shared.high * 94 == pytest.approx([55, 55, 55, 94, 94])


def test_a_stack_is_judged_on_families_left_out() -> None:
    ranks, targets = ratings_of(900)
    families = tuple(name for name in ("a", "b", "c") for _ in range(300))
    # In the third family people want the opposite.
    targets[600:] = 1 - targets[600:]
    rated = stack.RatedFeatures(ranks, targets, families, families)
    found = stack.fit_stack(rated, reference=ranks)
    assert set(found.left_out) == {"a", "b", "c"}
    assert found.left_out["a"]["spearman"] > 0.3 > -0.3 > found.left_out["c"]["spearman"]
    assert all(one["rows"] == 300 and 0 <= one["coverage"] <= 1 for one in found.left_out.values())
    assert (found.weights >= 0).all()
    assert found.strength in stack.STRENGTHS
    assert found.tables.shape == (3, stack.TABLE_SIZE)


def test_strength_counts_as_rows() -> None:
    # Ratings that equal the one feature, against a prior of 0: as many rows as `strength` meet in the middle.
    ranks = (np.arange(1000)[:, None] + 0.5) / 1000
    found = stack.fit_weights(ranks, ranks[:, 0], ["a"] * 1000, prior=np.zeros(1), strength=1000.0)
    assert found == pytest.approx([0.5], abs=0.001)


def test_a_source_weighs_as_the_root_of_its_size() -> None:
    # 100 rows say weight 1, 900 say weight 0; the roots are 10 and 30: 10 / 40.
    ranks = np.concatenate([(np.arange(count) + 0.5) / count for count in (100, 900)])[:, None]
    targets = np.where(np.arange(1000) < 100, ranks[:, 0], 0.5)
    found = stack.fit_weights(ranks, targets, ["a"] * 100 + ["b"] * 900, prior=np.zeros(1), strength=0.0)
    assert found == pytest.approx([0.25], abs=0.001)
