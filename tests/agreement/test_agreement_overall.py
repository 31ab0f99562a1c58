"""Over benchmarks and within systems: the mean of several, and what a pooled correlation hides."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dialeval import benchmarks
from dialeval.agreement.breakdowns import overall
from dialeval.agreement.judgements import View
from dialeval.agreement.measure import of_system_means, within_systems, without_people
from dialeval.agreement.results import Overall, Report, read_records, read_results
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.reports.leaderboard import render_markdown, render_page
from dialeval.reports.output import write_outputs
from dialeval.statistics.correlation import CORRELATIONS
from shell import write_rows
from toy_benchmark import count_words, few_words, noise, rated_rows

QUICK = Settings(resamples=400, slow_resamples=100)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    loaded = []
    for seed in range(3):
        rows = [{**row, "dataset": f"toy{seed}", "id": f"{seed}-{row['id']}"} for row in rated_rows(seed=seed)]
        loaded.append(benchmarks.load(write_rows(folder / f"toy{seed}.jsonl", rows)))
    return loaded


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
        flat = dataclasses.replace(words, name="flat", values=np.ones_like(words.values))
        panels.append(dataclasses.replace(panel, questions=[(cut, [words, nearly, flat])]))
    leader, twin = overall(panels, QUICK)  # what is the same everywhere has no correlation, so no row
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


#: System, metric, people. Within A Spearman is .8, within B -1; C has too few rows, all values of D are the same.
ROWS = [
    *[("A", 1, 1), ("A", 2, 3), ("A", 3, 2), ("A", 4, 4)],
    *[("B", 1, 30), ("B", 2, 20), ("B", 3, 10)],
    *[("C", 1, 5), ("C", 2, 6)],
    *[("D", 7, 1), ("D", 7, 2), ("D", 7, 3)],
    (None, 9, 9),
]


def view(rows: list[tuple[str | None, float, float]], groups: list[int] | None = None) -> View:
    systems, values, human = zip(*rows, strict=True)
    numbers = np.array(range(len(rows)) if groups is None else groups, dtype=np.intp)
    columns = (np.array(column, dtype=np.float64) for column in (values, human))
    return View(*columns, numbers, int(numbers.max()) + 1, np.array(systems, dtype=object), 0)


def test_within_systems() -> None:
    result = within_systems("spearman", view(ROWS))
    assert result.value == pytest.approx((4 * 0.8 + 3 * -1) / 7)
    assert result.n == 7
    # Telling A from B earns nothing: all of B lies above all of A, and a metric that says so is worth the same.
    above = [(system, value + 100 * (system == "B"), human) for system, value, human in ROWS]
    assert within_systems("spearman", view(above)).value == result.value
    assert math.isnan(within_systems("spearman", view(ROWS[7:])).value)
    assert within_systems("spearman", view(ROWS[7:])).statistic is None


def test_without_people() -> None:
    result = without_people("spearman", view(ROWS), {"B", "C", "D"})
    assert (result.value, result.n) == (pytest.approx(0.8), 4)
    # A row that names no system may be anybody's.
    assert without_people("spearman", view(ROWS), ()).n == 12
    assert math.isnan(without_people("spearman", view(ROWS), {"A", "B", "C", "D"}).value)


def test_every_systems_own_mean() -> None:
    # Means 2, 2, 5, 5 beside 1, 3, 4, 6: 4 of the square root of 4 times 5.
    rows = [("A", 0, 1), ("A", 0, 3), ("B", 0, 4), ("B", 0, 6), (None, 0, 100)]
    assert of_system_means("spearman", view(rows)) == pytest.approx(4 / math.sqrt(20))
    # Deviations -1.5, -1.5, 1.5, 1.5 and -2.5, -.5, .5, 2.5.
    assert of_system_means("pearson", view(rows)) == pytest.approx(9 / math.sqrt(9 * 13))
    assert math.isnan(of_system_means("pearson", view(rows[:2])))
    assert math.isnan(of_system_means("pearson", view(rows[4:])))


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_resamples_are_the_statistic_of_the_rows_drawn(name: str) -> None:
    draw = np.random.default_rng(0)
    systems = np.repeat(["A", "B", "C"], [12, 9, 6])
    rows = [(str(system), float(draw.integers(9)), float(draw.integers(5))) for system in systems]
    groups = [number % 5 for number in range(len(rows))]
    result, machines = within_systems(name, view(rows, groups)), without_people(name, view(rows, groups), {"B"})
    assert result.statistic is not None
    assert machines.statistic is not None
    ones = np.ones((1, 5))
    assert result.statistic(ones) == pytest.approx([result.value])
    assert machines.statistic(ones) == pytest.approx([machines.value])
    drawn = [row for row, group in zip(rows, groups, strict=True) for _ in range((2, 0, 1, 1, 1)[group])]
    parts = {who: [(x, y) for system, x, y in drawn if system == who] for who in "ABC"}
    values = [CORRELATIONS[name](*zip(*part, strict=True)).value for part in parts.values()]
    counts = np.array([[2.0, 0, 1, 1, 1]])
    assert result.statistic(counts) == pytest.approx([np.average(values, weights=[len(p) for p in parts.values()])])
    both = [*parts["A"], *parts["C"]]
    assert machines.statistic(counts) == pytest.approx([CORRELATIONS[name](*zip(*both, strict=True)).value])


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    rows = [{**row, "system": str(row["system"]).replace("bot5", "human")} for row in rated_rows()]
    return write_rows(tmp_path / "toy.jsonl", rows)


def report_on(path: Path, **settings: object) -> Report:
    return run([count_words], [path], settings=Settings(resamples=200, **settings))  # type: ignore[arg-type]


def test_every_result_has_them_and_so_has_every_output(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dialeval.reports.output import show

    report = report_on(toy, exclusion="none")
    turn, system = (next(r for r in report.results if r.level == level) for level in ("turn", "system"))
    assert turn.n == 180
    assert turn.n_without_humans == 150
    assert turn.within_systems_low < turn.within_systems < turn.within_systems_high
    assert turn.without_humans_low < turn.without_humans < turn.without_humans_high
    # The systems of the toy differ in how they are liked, which the metric partly sees.
    assert 0 < turn.within_systems < turn.value
    assert turn.system_means > 0.5
    assert math.isnan(system.within_systems)
    assert system.n_without_humans is None
    write_outputs(report, tmp_path / "out", ())
    row = json.loads((tmp_path / "out" / "agreement.jsonl").read_text().splitlines()[0])
    assert row["within_systems"] == turn.within_systems
    assert read_results(tmp_path / "out")[0].system_means == turn.system_means
    assert row["without_humans"] == turn.without_humans
    assert row["n_without_humans"] == 150
    ranked = next(r for r in report.results if r.statistic == "spearman" and r.level == "turn")
    show(report)
    said = " ".join(capsys.readouterr().out.split())
    for text in (render_markdown(report), (tmp_path / "out" / "leaderboard.html").read_text(), said):
        assert f"Spearman {ranked.system_means:.3f}" in text
        assert f"{ranked.within_systems:.3f}" in text
        assert f"{ranked.without_humans:.3f}" in text
    assert "without human-written rows (Spearman)" in render_markdown(report)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", benchmarks.available())
def test_who_is_a_person_is_declared_as_the_data_have_it(name: str) -> None:
    """A system that always says the reference is the person who said it; one that hardly ever does is none."""
    for protocol in benchmarks.protocols(name):
        benchmark = benchmarks.load(name, protocol=protocol)
        systems = benchmark.dataset["system"][:]
        assert {system for system in systems if system is not None} == set(benchmark.info.systems)
        assert benchmark.info.written_by_people <= set(benchmark.info.systems)
        if benchmark.info.level == "dialogue":
            continue
        rows = zip(systems, benchmark.dataset["response"][:], benchmark.dataset["references"][:], strict=True)
        quotes: dict[str, list[bool]] = {}
        for system, response, references in rows:
            if system is not None:
                quotes.setdefault(system, []).append(response in references)
        for system, quoted in quotes.items():
            if np.mean(quoted) > 0.05:
                assert system in benchmark.info.human_systems, (name, system)
                assert all(quoted)
