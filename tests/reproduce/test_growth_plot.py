"""Agreement over the amount of training: how curves are written on the command line, and what is drawn of them."""

from __future__ import annotations

import pytest

from card_rows import spearman as result
from refusals import refused
from reproduce.growth import growth, read_curve


def test_a_curve_names_metrics_and_sizes():
    assert read_curve("DEB=a:60_000,b?x=1:2:120000") == ("DEB", {"a": 60000.0, "b?x=1:2": 120000.0})


@pytest.mark.parametrize("text", ["", "DEB", "DEB=", "=a:1", "DEB=a", "DEB=a:many", "DEB=a:0", "DEB=a:-5"])
def test_a_malformed_curve_is_told(text):
    refused(ValueError, text.partition("=")[2], read_curve, text)


def test_every_benchmark_has_a_panel_and_every_curve_a_line_in_order_of_size():
    results = [
        result("late", "one", 0.5, low=0.4, high=0.6),
        result("early", "one", 0.2, low=0.1, high=0.3),
        result("other", "one", 0.7, low=0.6, high=0.8),
        result("late", "two", 0.3, low=0.2, high=0.4, level="dialogue"),
        result("late", "two", 0.9, low=0.8, high=1.0, level="system"),
        result("late", "one", 0.9, low=0.8, high=1.0, statistic="pearson"),
    ]
    figure = growth(results, {"A": {"late": 2000.0, "early": 100.0}, "B": {"other": 500.0}})
    drawn = [[tuple(zip(*line.get_data(), strict=True)) for line in axes.lines] for axes in figure.axes]
    assert drawn == [[((100.0, 0.2), (2000.0, 0.5)), ((500.0, 0.7),)], [((2000.0, 0.3),), ()]]


def test_a_metric_without_results_is_named():
    refused(ValueError, "absent", lambda: growth([result("a", "one", 0.2)], {"A": {"a": 10.0, "absent": 20.0}}))
