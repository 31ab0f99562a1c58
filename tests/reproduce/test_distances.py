"""The study of features: conicity and normality against the specification, replies that get worse."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dialeval.core.exchange import Exchange
from dialeval.papers.fbd import Fbd
from reproduce.distances import SPOILT, Curve, cones, curves, replies_by_context, replies_of_people, spoil
from reproduce.feature_statistics import conicity, normality
from shell import write_rows
from toy_benchmark import labelled_rows, rated_rows

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


NOUNS = "fish chips weather walk week dog cat".split()
REPLIES = [Exchange((f"do you like the {noun}",), f"yes i like the {noun} and how are you") for noun in NOUNS]


def test_people_are_the_references_each_once_for_its_query(tiny_encoder: Path, tmp_path: Path) -> None:
    """Two systems answer every query; its reference counts once."""
    file = write_rows(tmp_path / "toy.jsonl", rated_rows(contexts=5, systems=2))
    found = replies_of_people(Fbd(tiny_encoder), str(file))
    assert len(found) == len({one.context for one in found}) == 5


def test_cones_are_of_the_replies_to_one_context_by_kind(tmp_path: Path) -> None:
    file = str(write_rows(tmp_path / "toy.jsonl", labelled_rows("toy", contexts=3)))
    replies = replies_by_context(file, contexts=2)
    draw = np.random.default_rng(0).normal(size=(len(replies), 3)).astype(np.float32)
    contexts = [one.context for one, _ in replies]
    assert len(set(contexts)) == 2
    found = cones(replies, draw)
    for kind in ("positive", "random"):
        sets = [
            [row for row, (one, said) in enumerate(replies) if one.context == context and said in ("positive", kind)]
            for context in set(contexts)
        ]
        assert found[kind] == pytest.approx(np.mean([conicity(draw[rows]) for rows in sets if len(rows) > 1]))


@pytest.mark.parametrize("change", SPOILT)
def test_every_change_leaves_another_reply(change: str) -> None:
    for before, after in zip(REPLIES, spoil(REPLIES, change), strict=True):
        assert after is not None
        assert after.context == before.context
        assert after.response != before.response


@pytest.mark.parametrize(
    ("metric", "values", "steps"), [("fbd", (0, 1, 3, 2, 4), 3), ("prd", (1, 0.9, 0.9, 0.8, 0.7), 3)]
)
def test_steps_count_where_the_value_says_worse(metric: str, values: tuple[float, ...], steps: int) -> None:
    assert Curve(metric, "plain", "toy", "noise", 7, 7, values).worse_steps == steps


@pytest.fixture
def two_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """One change, all replies or none of them: the other shares are computed alike."""
    monkeypatch.setattr("reproduce.distances.SPOILT", {"mismatch": SPOILT["mismatch"]})
    monkeypatch.setattr("reproduce.distances.SHARES", (0.0, 1.0))


@pytest.mark.usefixtures("two_shares")
@pytest.mark.filterwarnings("ignore:fewer")
def test_curves_begin_where_nothing_differs_and_are_the_metrics_values(tiny_encoder: Path) -> None:
    found = list(curves(str(tiny_encoder), "tiny", "toy", REPLIES))
    assert len(found) == 2
    for one in found:
        assert one.values[0] == pytest.approx(1.0 if one.metric == "prd" else 0.0, abs=1e-5)
        assert (one.n, one.spoilt, len(one.values)) == (7, 7, 2)
    metric = Fbd(str(tiny_encoder), resamples=0)
    worse = [one for one in spoil(REPLIES, "mismatch") if one is not None]
    wanted = metric.compare(metric.features.of(REPLIES), metric.features.of(worse)).value
    (shown,) = [one for one in found if (one.metric, one.change) == ("fbd", "mismatch")]
    assert shown.values[-1] == pytest.approx(wanted, rel=1e-4)
