"""Agreement against cost: means over clean benchmarks, rates at the largest size, and both in one picture."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from card_rows import spearman as result
from refusals import refused
from reproduce.cost import cost, mean_agreement, rows_per_second


def test_the_mean_leaves_out_what_a_metric_was_trained_on_and_other_levels():
    results = [
        result("a", "one", 0.2),
        result("a", "two", 0.6),
        result("a", "three", 0.9, contaminated=True),
        result("a", "one", 0.95, level="system"),
        result("a", "one", 0.99, statistic="pearson"),
        result("b", "one", math.nan),
    ]
    assert mean_agreement(results) == {"a": (pytest.approx(0.4), 2)}


def speeds(folder: Path, measured: object) -> Path:
    file = folder / "suite.json"
    file.write_text(json.dumps({"measured": measured}))
    return file


def test_rates_are_those_of_the_largest_size_and_of_ours_only(tmp_path):
    points = [{"rows": 4000, "seconds": 20.0, "peak_mb": 1.0}, {"rows": 1000, "seconds": 10.0, "peak_mb": 1.0}]
    measured = {
        "a": {"ours": True, "points": points},
        "rival": {"ours": False, "points": points},
        "failed": {"ours": True, "points": []},
    }
    assert rows_per_second(speeds(tmp_path, measured)) == {"a": 200.0}


@pytest.mark.parametrize("measured", [None, [], {"a": {}}, {"a": {"ours": True, "points": [{"rows": 1}]}}])
def test_a_foreign_file_is_refused_in_a_sentence(tmp_path, measured):
    refused(ValueError, "performance/suite.py", lambda: rows_per_second(speeds(tmp_path, measured)))
    refused(ValueError, "none.json", rows_per_second, tmp_path / "none.json")


def test_points_stand_where_the_numbers_say():
    figure = cost({"a": (0.4, 6), "b": (0.3, 5), "slow": (0.1, 1)}, {"a": 200.0, "b": 50.0}, judge=0.5)
    (axes,) = figure.axes
    lines = [tuple(zip(*line.get_data(), strict=True)) for line in axes.lines]
    assert lines == [((0.1, 0.5), (0.4, 0.5)), ((200.0, 0.4),), ((50.0, 0.3),)]
    assert [text.get_text() for text in axes.texts] == ["a (6)", "b (5)"]


def test_nothing_in_common_is_told():
    refused(ValueError, "metric", cost, {"a": (0.4, 6)}, {"b": 50.0})
