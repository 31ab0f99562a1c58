"""Pictures of one's own scores, from the files that `dialeval score` writes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dialeval.exchange import Exchange
from dialeval.plots.scores import metric_of, read_table, scores
from refusals import refused

TABLE = pd.DataFrame(
    {
        "row": [0, 1, 2, 3],
        "system": ["a", "b", "a", "b"],
        "mine": [0.1, 0.4, 0.2, None],
        "mine.fluent": [0.5, 0.6, 0.7, 0.8],
        "mine.reason": ["", "", "", ""],
    }
)
ROWS = [Exchange(("hi",) * at, "word " * (at + 1)) for at in range(4)]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_files_of_scores_are_read_alike(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"scores.{ending}"
    writers = {"jsonl": "to_json", "csv": "to_csv", "parquet": "to_parquet"}
    options = {"jsonl": {"orient": "records", "lines": True}, "csv": {"index": False}, "parquet": {}}[ending]
    getattr(TABLE, writers[ending])(path, **options)
    table = read_table(path)
    assert metric_of(table, None) == "mine"
    assert table["mine"].isna().tolist() == [False, False, False, True]


def test_every_panel_shows_its_numbers() -> None:
    histogram, aspects, length, turn = scores(TABLE, "mine", ROWS).axes
    assert [text.get_text() for text in histogram.get_legend().get_texts()] == ["a: 0.15 (n 2)", "b: 0.4 (n 1)"]
    assert [bar.get_width() for bar in aspects.patches] == pytest.approx([0.6, 0.7])
    assert length.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert turn.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert len(scores(TABLE.drop(columns=["system", "mine.fluent"]), "mine").axes) == 1


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    refused(ValueError, "other", metric_of, TABLE, "other")
    refused(ValueError, "3", scores, TABLE, "mine", ROWS[:2])
    (tmp_path / "notes.txt").write_text("x")
    refused(ValueError, "notes.txt", read_table, tmp_path / "notes.txt")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    refused(ValueError, "row", read_table, tmp_path / "other.csv")
