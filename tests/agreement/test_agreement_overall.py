"""Every metric against the best one on the mean over benchmarks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dialeval import benchmarks
from dialeval.agreement.breakdowns import overall
from dialeval.agreement.results import Overall, read_records
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.reports.leaderboard import render_markdown, render_page
from toy_benchmark import count_words, few_words, noise, rated_rows, write_rows

QUICK = Settings(resamples=400, slow_resamples=100)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    found = []
    for seed in range(3):
        rows = [{**row, "dataset": f"toy{seed}", "id": f"{seed}-{row['id']}"} for row in rated_rows(seed=seed)]
        found.append(benchmarks.load(write_rows(folder / f"toy{seed}.jsonl", rows)))
    return found


@pytest.fixture(scope="module")
def report(three):
    return run([noise, count_words, few_words], three, settings=QUICK)


def test_the_leader_is_compared_with_every_metric_on_the_mean_over_benchmarks(three, report):
    def value(benchmark):
        words = [len(row["response"].split()) for row in benchmark.dataset]
        return stats.spearmanr(words, [row["scores"]["overall"] for row in benchmark.dataset]).statistic

    first, *others = report.overall
    assert (first.metric, first.leader, first.over) == ("count_words", "count_words", ("toy0", "toy1", "toy2"))
    assert first.mean == pytest.approx(np.mean([value(one) for one in three]))
    assert (first.difference, first.p, first.p_adjusted) == (None, None, None)
    assert [row.metric for row in others] == ["noise", "few_words"]  # by their means
    opposite = others[1]
    assert opposite.mean == pytest.approx(-first.mean)
    assert opposite.difference == pytest.approx(2 * first.mean)
    for row in others:
        assert row.low < row.difference < row.high
        assert row.low > 0
        assert row.p <= row.p_adjusted < 0.05
        assert row.better_on == 3


def test_equals_are_not_told_apart(report):
    first, second = report.panels[0].questions[0][1][1:]
    assert (first.name, second.name) == ("count_words", "few_words")
    panels = []
    for panel in report.panels:
        cut, entrants = panel.questions[0]
        words = next(one for one in entrants if one.name == "count_words")
        nearly = dataclasses.replace(words, name="words_again", values=words.values * 2)
        panels.append(dataclasses.replace(panel, questions=[(cut, [words, nearly])]))
    leader, twin = overall(panels, QUICK)
    assert leader.metric == "count_words"
    assert (twin.difference, twin.better_on) == (0, 0)
    assert twin.p == pytest.approx(1)


def test_it_is_kept_and_shown(report, tmp_path):
    report.write(tmp_path)
    assert read_records(tmp_path / "overall.jsonl", Overall) == report.overall
    for page in (render_markdown(report), render_page(report)):
        assert "count_words minus it" in page
        assert f"{report.overall[1].difference:+.3f} [" in page
        assert "3 of 3" in page
