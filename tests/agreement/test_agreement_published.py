"""Published figures, from the released scores and ratings, to the digits that were printed."""

from __future__ import annotations

import pytest

from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from resources import MIRROR
from resources import PUBLISHED_SCORES as SCORES

pytestmark = [pytest.mark.data, pytest.mark.published]

POINTS = {"resamples": 0}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIALEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def measured(file: str, benchmarks: list[str], **choices) -> dict[tuple[str, ...], float]:
    report = run([f"scores:{SCORES / file}"], benchmarks, settings=Settings(**POINTS | choices), mirror=MIRROR)
    assert not report.skipped, report.skipped
    return {
        (result.metric, result.benchmark, result.level, result.aspect, result.statistic): result
        for result in report.results
    }


def test_quantidce_and_grade_on_the_grade_sets():
    sets = ["convai2_grade", "empathetic_grade", "dailydialog_grade"]
    results = measured("quantidce_grade.jsonl", sets, levels="own")
    published = {
        ("quantidce", "convai2_grade"): (0.554, 0.554, 0.395),
        ("quantidce", "empathetic_grade"): (0.412, 0.393, 0.274),
        ("quantidce", "dailydialog_grade"): (0.804, 0.832, 0.678),
        ("grade", "convai2_grade"): (0.496, 0.503, 0.356),
        ("grade", "empathetic_grade"): (0.350, 0.344, 0.243),
        ("grade", "dailydialog_grade"): (0.374, 0.394, 0.274),
    }
    for (metric, benchmark), values in published.items():
        for statistic, value in zip(("pearson", "spearman", "kendall"), values, strict=True):
            result = results[metric, benchmark, "turn", "coherence", statistic]
            assert round(result.value, 3) == value, (metric, benchmark, statistic)
            assert result.contaminated == (metric == "quantidce" and benchmark == "dailydialog_grade")
            assert result.p < 1e-8
    assert results["grade", "convai2_grade", "turn", "coherence", "pearson"].n == 600


@pytest.mark.slow
def test_language_model_judges_on_zhao():
    file, sets, aspects = "dailydialog_zhao_llm_judges.jsonl", ["dailydialog_zhao"], ("relevance",)
    generated = measured(file, sets, aspects=aspects, exclusion="generated", levels="own")
    whole = measured(file, sets, aspects=aspects, exclusion="none", statistics=("pearson", "spearman"))
    published = {
        ("vote", 900): (0.733, 0.744),
        ("vote", 700): (0.680, 0.691),
        ("gpt-4o", 900): (0.693, 0.713),
        ("gpt-4o", 700): (0.646, 0.663),
        ("claude", 900): (0.684, 0.694),
        ("claude", 700): (0.622, 0.631),
        ("gemini", 900): (0.670, 0.678),
        ("gemini", 700): (0.603, 0.613),
    }
    for (metric, n), values in published.items():
        for statistic, value in zip(("pearson", "spearman"), values, strict=True):
            results = whole if n == 900 else generated
            result = results[metric, "dailydialog_zhao", "turn", "relevance", statistic]
            assert (round(result.value, 3), result.n) == (value, n), metric
    system = [whole["vote", "dailydialog_zhao", "system", "relevance", result] for result in ("pearson", "spearman")]
    assert [round(result.value, 3) for result in system] == [0.968, 0.942]
    assert {result.n for result in system} == {21}


@pytest.mark.slow
def test_leaderboard_of_dailydialogpp():
    results = measured("dailydialogpp_test_deb_ruber.jsonl.gz", ["dailydialogpp_test"], threshold=0.5)
    published = {
        "deb_random": (0.8638, 0.6679, 0.7581, 0.3899),
        "deb_random_adversarial": (0.8534, 0.9266, 0.7259, 0.8690),
        "ruber_random": (0.7829, 0.6500, 0.6449, 0.3498),
        "ruber_random_adversarial": (0.7643, 0.8381, 0.5965, 0.7421),
        "ruber_large_random": (0.8258, 0.6892, 0.7021, 0.4218),
        "ruber_large_random_adversarial": (0.8114, 0.8652, 0.6761, 0.7822),
    }
    for metric, values in published.items():
        shown = [
            results[metric, "dailydialogpp_test", "turn", f"positive/{kind}", statistic]
            for statistic in ("accuracy", "point_biserial")
            for kind in ("random", "adversarial")
        ]
        assert [round(result.value, 4) for result in shown] == list(values), metric
        assert {result.n for result in shown} == {11420}
