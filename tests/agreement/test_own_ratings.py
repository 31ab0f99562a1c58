"""A user's own ratings: read alike by `tune` and `agreement`, and what a metric is worth as a filter of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from dialeval import benchmarks
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.readers import Source
from dialeval.tuning.opinions import Ratings, read_opinions
from number_metrics import Distance, Number
from shell import write_rows

TURN = {"context": ["Hi"], "response": "Hello"}
#: Ratings as people write them, and what each says of the reply as a whole.
FORMS: list[tuple[dict[str, Any], list[float]]] = [
    ({"rating": 4}, [4.0]),
    ({"ratings": [4, 5, 3]}, [4.0, 5.0, 3.0]),
    ({"ratings": {"overall": [4, 5, 3], "wit": [1]}}, [4.0, 5.0, 3.0]),
    ({"ratings": {"wit": [1], "Overall": [4, 5, 3]}}, [4.0, 5.0, 3.0]),
    ({"ratings": {"wit": [1, 2]}}, [1.0, 2.0]),
    ({"ratings": {"overall": [], "wit": [1, 2]}}, [1.0, 2.0]),
    ({"ratings": {"wit": 2, "overall": 3}}, [3.0]),
    ({"rating": 2, "ratings": [1, 3]}, [1.0, 3.0]),
]


@pytest.mark.parametrize(("given", "meant"), FORMS)
def test_ratings_mean_the_same_in_tune_and_agreement(tmp_path: Path, given: dict[str, Any], meant: list[float]) -> None:
    opinions = read_opinions(Source([{**TURN, **given}, {**TURN, "response": "Ho", "ratings": [1, 2]}]))
    assert isinstance(opinions, Ratings)
    assert list(opinions.raters[0]) == meant
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({**TURN, **{k: v for k, v in given.items() if v}}) + "\n")
    if given == {"ratings": {"overall": [], "wit": [1, 2]}}:
        return  # an aspect that nobody rated is refused by its name there
    loaded = benchmarks.load(str(file))
    (row,) = loaded.dataset
    main = loaded.info.main_aspect
    assert main is not None
    assert row["scores"][main] == pytest.approx(np.mean(meant))
    assert (row["ratings"] or {}).get(main) in (meant, [] if "ratings" not in given else None, None)


def rated(count: int, noise: float, seed: int = 0) -> list[dict[str, Any]]:
    draws = np.random.default_rng(seed)
    truth = draws.normal(size=count)
    ratings = np.clip(np.round(3 + truth), 1, 5)
    values = truth + noise * draws.normal(size=count)
    return [{"context": [f"q {at}"], "response": f"{value:.6f}", "rating": float(rating), "id": f"{at}"}
            for at, (value, rating) in enumerate(zip(values, ratings, strict=True))]  # fmt: skip


def measured(tmp_path: Path, rows: list[dict[str, Any]], metric: Any) -> Any:
    file = tmp_path / "own.jsonl"
    write_rows(file, rows)
    report = run([metric], [str(file)], settings=Settings(resamples=500))
    (filtering,) = report.filters
    return filtering


@pytest.mark.parametrize("noise", [0.0, 1.0, 50.0])
def test_how_well_a_metric_filters(tmp_path: Path, noise: float) -> None:
    rows = rated(200, noise)
    filtering = measured(tmp_path, rows, Number())
    values = np.array([float(row["response"]) for row in rows])
    people = np.array([row["rating"] for row in rows])
    worst = np.argsort(values)[:20]
    assert (filtering.n, filtering.n_worst) == (200, 20)
    assert filtering.hits == int((people[worst] <= np.sort(people)[19]).sum())
    bad = people < 3
    assert filtering.base_rate == pytest.approx(bad.mean())
    assert (values < filtering.threshold).sum() == bad.sum()
    assert filtering.kappa == pytest.approx(cohen_kappa_score(bad, values < filtering.threshold))
    assert filtering.low <= filtering.kappa <= filtering.high
    text = " ".join(filtering.lines)
    assert f"{filtering.hits} {'is' if filtering.hits == 1 else 'are'} among" in text
    assert (filtering.hits == 20, filtering.kappa > 0.9, filtering.hits < 12) == (noise == 0, noise == 0, noise == 50)
    expected = 200 * ((filtering.high - filtering.low) / 2 / 0.1) ** 2
    assert filtering.rows_needed == pytest.approx(expected, abs=10)


def test_of_a_metric_whose_high_values_are_bad_the_highest_are_the_worst(tmp_path: Path) -> None:
    rows = rated(200, 0.1)
    turned = [{**row, "response": f"{-float(row['response']):.6f}"} for row in rows]
    one, other = measured(tmp_path, rows, Number()), measured(tmp_path, turned, Distance())
    assert (one.hits, one.kappa) == (other.hits, other.kappa)
    assert one.threshold == pytest.approx(-other.threshold)


def test_where_nobody_rates_a_row_as_bad_there_is_no_kappa(tmp_path: Path) -> None:
    filtering = measured(tmp_path, [{**row, "rating": 5} for row in rated(30, 1.0)], Number())
    assert np.isnan(filtering.kappa)
    assert len(filtering.lines) == 1
    assert filtering.hits_by_chance == filtering.n_worst
