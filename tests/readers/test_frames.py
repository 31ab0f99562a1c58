"""Scores in the Python world: tables in, a sequence with texts and a notebook's view out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dialeval
from dialeval.core.exchange import BadRow
from dialeval.readers import read_exchanges
from dialeval.readers.frames import exchanges_of
from notebooks import Page, html_of
from number_metrics import Number
from refusals import refused

ROWS = [
    {"context": [asked], "response": reply, "reference": "the cat sat", "id": name, "system": system, "note": note}
    for asked, reply, name, system, note in (
        ("tell me", "the cat sat", "a", "x", 1),
        ("and then?", "a dog <b>", "b", "y", 2),
    )
]


@pytest.fixture(scope="module")
def rouge():
    return dialeval.load("rougeL")


def test_the_same_scores_from_every_kind_of_table(rouge) -> None:
    plain = rouge.score(*([row[name] for row in ROWS] for name in ("response", "context", "reference")))
    for table in (ROWS, pd.DataFrame(ROWS), datasets.Dataset.from_list(ROWS)):
        scores = rouge.score(table)
        assert scores.values.tolist() == plain.values.tolist() == [1.0, 0.0]
        assert scores.ids == ("a", "b")
    assert dialeval.load(["rougeL", "bleu2"]).score(pd.DataFrame(ROWS))["rougeL"].values.tolist() == [1.0, 0.0]


class Polars:
    """A frame as polars makes them, which is iterated over by its columns."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self._rows = rows
        self.columns = list(rows[0])

    def __iter__(self) -> Iterator[list[object]]:
        return iter([[row[name] for row in self._rows] for name in self.columns])

    def iter_rows(self, *, named: bool) -> Iterator[dict[str, object]]:
        assert named
        return iter(self._rows)


def of_every_kind(rows: list[dict[str, object]]) -> list[object]:
    data = datasets.Dataset.from_list(rows)
    return [pd.DataFrame(rows), Polars(rows), pa.Table.from_pylist(rows), data, data.with_format("numpy")]


def test_every_place_that_takes_rows_takes_every_kind_of_table(tmp_path: Path) -> None:
    wide = [{"context": f"c{n}", "id": n, "a": str(n), "b": str(n + n % 3), "value": float(n % 3)} for n in range(20)]
    long = [{"context": f"c{n}", "id": n, "value": k * n, "system": f"s{k}"} for n in range(20) for k in (1, 2)]
    replies = [{"context": row["context"], "response": row["a"], "id": row["id"], "rating": row["id"]} for row in wide]
    for table, scores, rated in zip(*map(of_every_kind, (wide, long, replies)), strict=True):
        assert dialeval.rank(table, Number(), reply_columns=["a", "b"], resamples=100).standings[0].system == "b"
        assert dialeval.rank(scores, values="value", resamples=100).standings[0].system == "s2"
        assert dialeval.compare(table, table, resamples=100)[0].n_rows == 20
        assert dialeval.gate(rated, rated, metric=Number(), margin=1, resamples=100).n_rows == 20
        assert [row.id for row in exchanges_of(rated)] == [str(n) for n in range(20)], "zero is an id"
        refused(ValueError, "there are 20 rated replies", dialeval.tune, rated, out=tmp_path / "mine")


def test_a_column_that_stands_twice_is_named(rouge) -> None:
    table = pd.DataFrame(ROWS)
    for name in ("response", "note"):
        twice = pd.concat([table, table[[name]]], axis=1)
        refused(ValueError, f"two columns {name!r}", rouge.score, twice)
    refused(ValueError, "two columns '1'", rouge.score, table.assign(**{"1": 1, "2": 2}).rename(columns={"2": 1}))


def test_messages_name_the_kind_of_table(rouge) -> None:
    table = pd.DataFrame(ROWS).assign(response=["fine", None])
    refused(BadRow, "(DataFrame)", rouge.score, table)
    refused(BadRow, "(list)", rouge.score, table.to_dict("records"))


def test_columns_can_be_named(rouge) -> None:
    frame = pd.DataFrame(ROWS).rename(columns={"response": "reply", "reference": "gold"})
    assert rouge.score(frame, columns={"response": "reply", "reference": "gold"}).values.tolist() == [1.0, 0.0]
    assert rouge.score(frame).values.tolist() == [1.0, 0.0]  # the names tell it
    refused(ValueError, "'response'", rouge.score, frame.rename(columns={"reply": "r"}))
    refused(ValueError, "repyl", rouge.score, frame, columns={"response": "repyl"})
    refused(ValueError, "answer", rouge.score, frame, columns={"answer": "reply"})
    refused(ValueError, "ids", lambda: rouge.score(pd.DataFrame(ROWS), ids=["1", "2"]))
    refused(ValueError, "columns", rouge.score, ["a"], [["b"]], ["a"], columns={"response": "reply"})
    refused(ValueError, "contexts", rouge.score, ["a"])
    refused(ValueError, "references", exchanges_of, [{**ROWS[0], "references": ["x"]}])


def test_a_data_frame_of_a_csv_file_scores_as_the_file_does(tmp_path: Path, rouge) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "context,response,references\n"
        "how are you __eou__ fine. and you?,well,well__eou__very well\n"
        '"[""hi"", ""tell me, do""]",the cat sat,"[""the cat sat"", ""a cat""]"\n'
        " one turn ,no,[sic]\n"
    )
    by_file = list(read_exchanges(path))
    frame = pd.read_csv(path)
    for table in (frame, datasets.Dataset.from_pandas(frame), frame.to_dict("records")):
        assert exchanges_of(table) == by_file
    assert [len(row.context) for row in by_file] == [2, 2, 1]
    assert rouge.score(frame).values.tolist() == rouge.score_exchanges(by_file).values.tolist()
    frame.loc[1, "context"] = "['hi', 'there']"
    refused(BadRow, "row 1", rouge.score, frame)


def test_what_keeps_conversations_from_being_read_is_told(rouge) -> None:
    talk = [{"role": role, "content": "hi"} for role in ("user", "assistant", "user", "assistant")]
    refused(BadRow, "row 2", rouge.score, [{"messages": talk}, {"messages": talk[:1]}])
    refused(ValueError, "'context'", lambda: rouge.score(pd.DataFrame({"messages": ["user: hi"]})))


def test_scores_are_a_sequence_of_numbers(rouge) -> None:
    scores = rouge.score(ROWS)
    assert len(scores) == 2
    assert list(scores) == [1.0, 0.0]
    assert (scores[0], scores[-1]) == (1.0, 0.0)
    assert float(scores) == scores.aggregate == 0.5
    with pytest.raises(IndexError):
        scores[2]
    assert scores[:1].tolist() == scores[[0]].tolist() == [1.0]
    assert scores[scores.values < 0.5].tolist() == [0.0]
    assert isinstance(scores[np.int64(1)], float)
    assert f"{scores:.3f}" == "0.500"
    assert f"{scores}" == str(scores)


def test_the_data_frame_has_what_was_scored(rouge) -> None:
    frame = rouge.score(ROWS).to_pandas()
    assert frame.columns.tolist() == ["id", "system", "context", "response", "rougeL"]
    assert frame.loc[0].tolist() == ["a", "x", ["tell me"], "the cat sat", 1.0]
    bare = rouge.score(["the cat"], [["hm"]], ["the cat"]).to_pandas()
    assert bare.columns.tolist() == ["context", "response", "rougeL"]


def test_a_notebook_shows_a_table_and_a_histogram(rouge) -> None:
    page = Page(html_of(rouge.score(ROWS)))
    assert page.tags.count("rect") == 2
    assert page.tags.count("tr") == 3
    assert "a dog <b>" in page.text  # shown as text
    many = rouge.score([{**row, "id": f"{index}"} for index, row in enumerate(ROWS * 10)])
    assert "15 more" in html_of(many)
    empty = replace(rouge.score(ROWS), aspects={"known": np.array([0.5, np.nan]), "unknown": np.full(2, np.nan)})
    assert "rougeL.known" in html_of(empty)
    assert "rougeL.unknown" not in html_of(empty)
    assert "<svg" not in html_of(rouge.score([ROWS[0]]))  # nothing to see


def test_what_compares_with_references_has_no_value_for_dialogues(rouge) -> None:
    refused(ValueError, "references", rouge.score_dialogues, [["hi", "hello", "and you?"]])
    refused(ValueError, "Polars", rouge.score, Polars(ROWS), [["a"]], ["b"])
