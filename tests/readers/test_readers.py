"""Every kind of input gives the same exchanges; reading streams."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.exchange import BadRow, Exchange, is_blank
from dialeval.readers import Dialogue, Source, read_exchanges
from refusals import refused

EXCHANGES = [
    Exchange(("Did the parcel come?", "Not yet."), "Then I will wait, “of course”.", ("I'll wait.", "Call, please"),
             ("I ordered a lamp.",), "A", "p-1", "Please do.", ("me", "them")),
    Exchange(("Grüße aus Köln! 🌧",), "雨ですね。", system="B", id="007"),
    Exchange(("a",), "b", ("c",), following="d"),
]  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"context": list(row.context), "response": row.response, "references": list(row.references) or None,
     "facts": list(row.facts) or None, "system": row.system, "id": row.id, "following": row.following,
     "speakers": list(row.speakers) or None}
    for row in EXCHANGES
]  # fmt: skip


def exchanges(input: Any, **options: Any) -> list[Exchange]:
    return [exchange for _, exchange in Source(input, **options).exchanges()]


def write_jsonl(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def write_csv(path: Path, delimiter: str = ",") -> Path:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(ROWS[0])
    for row in ROWS:
        writer.writerow([" __eou__ ".join(cell) if isinstance(cell, list) else cell for cell in row.values()])
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_parquet(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=2)
    return path


def write_folder(path: Path) -> Path:
    import datasets

    datasets.Dataset.from_list(ROWS).save_to_disk(str(path))
    return path


@pytest.mark.parametrize(
    ("write", "name"),
    [
        *((write_jsonl, name) for name in ("rows.jsonl", "rows.jsonl.gz", "rows.NDJSON", "rows.v2.json")),
        *((write_csv, name) for name in ("rows.csv", "rows.csv.gz")),
        (partial(write_csv, delimiter="\t"), "rows.tsv"),
        (write_parquet, "rows.parquet"),
        (write_folder, "saved"),
    ],
)
def test_every_format_gives_the_same_rows(write: Callable[[Path], Path], name: str, tmp_path: Path) -> None:
    assert list(read_exchanges(write(tmp_path / name))) == EXCHANGES


def test_mappings_and_data_sets_in_memory() -> None:
    import datasets

    assert list(read_exchanges(ROWS)) == EXCHANGES
    assert list(read_exchanges(iter(ROWS))) == EXCHANGES
    assert list(read_exchanges(datasets.Dataset.from_list(ROWS))) == EXCHANGES


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("rows.jsonl", "rows.jsonl.gz"):
        content = write_jsonl(tmp_path / name).read_bytes()
        stream = io.BytesIO(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        assert list(read_exchanges("-")) == EXCHANGES
        assert not stream.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(write_csv(tmp_path / "rows.csv").read_bytes())))
    assert exchanges("-", format="csv") == EXCHANGES


def test_columns_are_mapped(tmp_path: Path) -> None:
    rows = [{"history": row["context"], "reply": row["response"], "response": "not this one"} for row in ROWS]
    columns = {"context": "history", "response": "reply"}
    expected = [Exchange(exchange.context, exchange.response) for exchange in EXCHANGES]
    assert list(read_exchanges(write_jsonl(tmp_path / "rows.jsonl", rows), columns=columns)) == expected
    refused(ValueError, "respons", lambda: list(read_exchanges(tmp_path / "rows.jsonl", columns={"respons": "reply"})))
    # An optional column that was asked for by name must be there, or a typing error would go unnoticed.
    refused(BadRow, "gold", lambda: exchanges(tmp_path / "rows.jsonl", columns={**columns, "reference": "gold"}))


def test_csv_cells(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "context,response,reference\n"
        '"[""Hi, you"", ""there""]",a,\n'
        '[laughs] __eou__ Why?,b,"c __eou__ d"\n'
        " a__eou__b __eou__ ,c,\n"
        '"[1, 2]",d,\n',
        encoding="utf-8",
    )
    assert list(read_exchanges(path)) == [
        Exchange(("Hi, you", "there"), "a"),
        # `reference` is one text, so a separator in it is only text.
        Exchange(("[laughs]", "Why?"), "b", ("c __eou__ d",)),
        Exchange(("a", "b"), "c"),
        Exchange(("[1, 2]",), "d"),
    ]


def test_reading_streams() -> None:
    taken = itertools.count()

    def endless() -> Iterator[dict[str, Any]]:
        for number in taken:
            yield {"context": [str(number)], "response": "a"}

    first = list(itertools.islice(read_exchanges(endless()), 3))
    assert [exchange.context for exchange in first] == [("0",), ("1",), ("2",)]
    assert next(taken) == 3


def test_places_that_hold_no_rows(tmp_path: Path) -> None:
    refused(FileNotFoundError, "rows.jsonl", lambda: list(read_exchanges(tmp_path / "rows.jsonl")))
    refused(FileNotFoundError, "rows.parquet", lambda: list(read_exchanges(tmp_path / "rows.parquet")))
    refused(ValueError, "data", lambda: list(read_exchanges(tmp_path)))
    refused(IsADirectoryError, "folder", lambda: exchanges(tmp_path, format="jsonl"))
    refused(ValueError, "split", lambda: exchanges(write_jsonl(tmp_path / "rows.jsonl"), split="test"))
    refused(ValueError, "file", lambda: exchanges(tmp_path / "rows.jsonl", format="dataset"))
    refused(ValueError, "xml", lambda: exchanges(tmp_path / "rows.jsonl", format="xml"))
    table = write_parquet(tmp_path / "table.parquet")
    refused(ValueError, "answer", lambda: exchanges(table, columns={"response": "answer"}))


def test_no_network_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused(ValueError, "nobody/nothing", lambda: list(read_exchanges("nobody/nothing")))


def test_dialogues(tmp_path: Path) -> None:
    first = {"dialogue": ["a", "b", "c"], "id": "1", "facts": ["f"]}
    second = {"dialogue": ["a", "b"], "system": "s", "context": None, "response": None}
    dialogues = [item for _, item in Source(write_jsonl(tmp_path / "rows.jsonl", [first, second])).dialogues()]
    assert dialogues == [Dialogue(("a", "b", "c"), ("f",), id="1"), Dialogue(("a", "b"), system="s")]
    (tmp_path / "rows.csv").write_text("dialogue,speakers\na __eou__ b,A __eou__ B\n", encoding="utf-8")
    ((_, dialogue),) = Source(tmp_path / "rows.csv").dialogues()
    assert dialogue == Dialogue(("a", "b"), speakers=("A", "B"))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"dialogue": ["a"]}, "1 turn;"),
        ({"dialogue": []}, "0 turns"),
        ({"dialogue": "a"}, "dialogue"),
        ({"dialogue": ["a", "", "b"]}, "turn 1"),
        ({"dialogue": ["a", None]}, "dialogue[1]"),
        ({"dialogue": ["a", "b"], "speakers": ["A"]}, "speakers"),
        ({"dialogue": [3, "a"]}, "dialogue[0]"),
        ({"dialogues": ["a", "b"]}, "'dialogues'"),
        ({"context": ["a", "b"], "response": "c"}, "'dialogue'"),
        ({"dialogue": None, "context": ["a", "b"], "response": "c"}, "dialogue"),
    ],
)
def test_bad_dialogues(row: dict[str, Any], named: str) -> None:
    assert "row 0" in refused(BadRow, named, lambda: list(Source([row]).dialogues()))


def test_blank_texts_pass_when_they_are_to_be_scored() -> None:
    rows = [{"context": ["a"], "response": ""}, {"context": [], "response": "b"}]
    assert [exchange.is_empty for exchange in read_exchanges(rows, empty="score")] == [True, True]
    ((_, dialogue),) = Source([{"dialogue": ["a", ""]}]).dialogues(empty="score")
    assert dialogue == Dialogue(("a", ""))


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda text: not is_blank(text))


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.lists(TEXT, min_size=1), TEXT), min_size=1))
def test_any_text_survives_json_lines(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[list[str], str]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "rows.jsonl"
    write_jsonl(path, [{"context": context, "response": response} for context, response in pairs])
    assert list(read_exchanges(path)) == [Exchange(tuple(context), response) for context, response in pairs]
