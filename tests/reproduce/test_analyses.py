"""Analyses of features and cases, against the vectors of the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reproduce.feature_statistics import conicity, normality

SHAPIRO = [2.1, 3.4, 1.9, 5.6, 4.4, 3.8, 2.7, 6.1, 3.3, 4.9, 3.0, 4.1]


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        ([(1, 0), (0, 1)], 0.707106781),
        ([(1, 0), (3, 4), (0, 2)], 0.795070281),
        ([(1, 0), (0, 1), (-1, 0.5)], 0.482404532),
        ([(2, 3), (2, 3), (2, 3)], 1.0),
    ],
)
def test_conicity_vectors(vectors: list[tuple[float, float]], expected: float) -> None:
    assert conicity(vectors) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("vectors", [[(1, 0), (-1, 0)], [(0, 0), (1, 1)], [(0.1, 0.2), (0.2, 0.1), (-0.3, -0.3)]])
def test_conicity_without_a_direction_is_nan_with_a_warning(vectors: list[tuple[float, float]]) -> None:
    with pytest.warns(UserWarning, match="mean"):
        assert math.isnan(conicity(vectors))


@given(arrays(np.float64, (5, 3), elements=st.floats(0.1, 9)), st.floats(0.1, 100))
def test_conicity_does_not_see_scale_and_stays_in_bounds(vectors: np.ndarray, scale: float) -> None:
    value = conicity(vectors)
    assert 0 < value <= 1
    assert conicity(vectors * scale) == pytest.approx(value)


def test_shapiro_wilk_vector() -> None:
    found = normality(np.array([SHAPIRO, np.square(SHAPIRO), [5] * 12]).T)
    assert found.w[0] == pytest.approx(0.970542758, abs=1e-9)
    assert found.p[0] == pytest.approx(0.916406614, abs=1e-9)
    assert (found.n, found.constant, len(found.w)) == (12, 1, 2)


def test_unused_dimensions_are_constant() -> None:
    draw = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1, 1e-32]
    assert normality(draw).constant == 1
