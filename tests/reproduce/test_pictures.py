"""Pictures of one's own scores."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dialeval.core.exchange import Dialogue, Exchange
from dialeval.reports.plots.own_scores import metric_of, read_table, scores
from dialeval.scoring.score_table import OutputFormat, table
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
ROWS = {at: Exchange(("hi",) * at, "word " * (at + 1)) for at in range(4)}


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_files_of_scores_are_read_alike(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"scores.{ending}"
    writers = {"jsonl": "to_json", "csv": "to_csv", "parquet": "to_parquet"}
    options = {"jsonl": {"orient": "records", "lines": True}, "csv": {"index": False}, "parquet": {}}[ending]
    getattr(TABLE, writers[ending])(path, **options)
    table = read_table(path)
    assert metric_of(table, None) == "mine"
    assert table["mine"].isna().tolist() == [False, False, False, True]


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    refused(ValueError, "other", metric_of, TABLE, "other")
    refused(ValueError, "3", scores, TABLE, "mine", {at: ROWS[at] for at in range(3)})
    (tmp_path / "notes.txt").write_text("x")
    refused(ValueError, "notes.txt", read_table, tmp_path / "notes.txt")
    for half in ('"\\ud800": 1', '"system": "a\\udfff", "mine": 1'):
        (tmp_path / "half.jsonl").write_text(f'{{"row": 0, {half}}}\n')
        refused(ValueError, "line 1", read_table, tmp_path / "half.jsonl")
    many = pd.DataFrame({"row": range(2000), "mine": 0.5, "system": map(str, range(2000))})
    refused(ValueError, "2,000 systems", scores, many, "mine")
    for row in ("9" * 4000, "1e300", "0.5", '"x"', "true", "null"):
        (tmp_path / "odd.jsonl").write_text(f'{{"row": {row}, "mine": 1}}\n')
        refused(ValueError, "line 1", read_table, tmp_path / "odd.jsonl")
    (tmp_path / "endless.csv").write_text("row,mine\n1,inf\n")
    refused(ValueError, "endless.csv", read_table, tmp_path / "endless.csv")
    refused(ValueError, "mine.turns", scores, TABLE.assign(**{"mine.turns": ["[1", "{}", "[[1]]", "x"]}), "mine")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    refused(ValueError, "row", read_table, tmp_path / "other.csv")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_rows_of_another_file_are_refused(tmp_path: Path, ending: OutputFormat) -> None:
    ids = ["001", "=1"]
    rows = [Exchange(("Hi",), "Hello", id=one) for one in ids]
    with (tmp_path / f"scores.{ending}").open("wb") as stream, table(stream, ending, ["mine"]) as write:
        write({"row": [0, 1], "id": ids, "system": [None] * 2, "language": ["en"] * 2, "values": {"mine": [0, 1]}})
    kept = read_table(tmp_path / f"scores.{ending}")
    scores(kept, "mine", dict(enumerate(rows)))
    refused(ValueError, ids[0], scores, kept, "mine", dict(enumerate(rows[::-1])))


def test_ends_of_the_interval_are_no_aspects() -> None:
    table = TABLE.assign(**{"mine.low": 0.0, "mine.high": 1.0})
    (_, aspects) = scores(table, "mine").axes
    assert [one.get_text() for one in aspects.get_yticklabels()] == ["fluent"]


@pytest.mark.parametrize("turns", [[[None, 0.2], [None, 0.4, None, 0.8]], ["[null, 0.2]", "[null, 0.4, null, 0.8]"]])
def test_conversations_are_drawn_against_their_length_and_their_turns(turns: list[Any]) -> None:
    table = pd.DataFrame({"row": [0, 1], "mine": [0.2, 0.6], "mine.turns": turns})
    talks = [Dialogue(("hi", "a b")), Dialogue(("hi", "a", "b", "c"))]
    panels = {
        axes.get_xlabel(): axes.lines[0].get_data() for axes in scores(table, "mine", dict(enumerate(talks))).axes[1:]
    }
    drawn = {name: [list(map(float, one)) for one in data] for name, data in panels.items()}
    assert list(drawn.values()) == [[[3, 4], [0.2, 0.6]], [[2, 4], [0.2, 0.6]], [[2, 2, 4], [0.2, 0.4, 0.8]]]
