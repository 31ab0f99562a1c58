"""A folder of data is what its files are: divided as `datasets` divides it, read within the bounds of single files."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dialeval.core.exchange import Exchange
from dialeval.readers import Source
from refusals import refused
from test_bounds import FILES as PACKED
from test_bounds import SMALL
from test_bounds_parquet import SMALL as SMALL_ROWS
from test_bounds_parquet import counted_memory

HELLO, THANKS = Exchange(("hello",), "hi"), Exchange(("thanks", "really"), "you are welcome")


def _write(path: Path, *rows: Exchange) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"context": row.context, "response": row.response} for row in rows]
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, ["context", "response", "facts"])
            writer.writeheader()
            writer.writerows({**line, "context": "__eou__".join(line["context"])} for line in lines)
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _card(folder: Path, configs: object, body: str = "\n# Rows\n") -> Path:
    header = json.dumps({"license": "mit", "configs": configs})
    (folder / "README.md").write_text(f"---\n{header}\n---\n{body}", encoding="utf-8")
    return folder


def _read(folder: Path, **options: Any) -> list[Exchange]:
    return [row for _, row in Source(folder, **options).exchanges()]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_files_of_a_split_are_read_one_after_another(kind: str, tmp_path: Path) -> None:
    _write(tmp_path / "data" / f"test-00000-of-00002.{kind}", HELLO)
    _write(tmp_path / "data" / f"test-00001-of-00002.{kind}", THANKS, HELLO)
    _write(tmp_path / "data" / f"train-00000-of-00001.{kind}", THANKS)
    (tmp_path / "LICENSE.md").write_text("User: may I?\nBot: you may\n")
    rows = list(Source(tmp_path, split="test").exchanges())
    assert [row for _, row in rows] == [HELLO, THANKS, HELLO]
    assert [raw.number for raw, _ in rows] == [0, 1, 2]
    assert rows[1][0].where.startswith(str(tmp_path / "data" / f"test-00001-of-00002.{kind}"))


def test_a_card_divides_a_folder_into_subsets_and_splits(tmp_path: Path) -> None:
    for first, second in (("one/a", "one/b"), ("two/test", "two/train")):
        _write(tmp_path / f"{first}.jsonl", HELLO)
        _write(tmp_path / f"{second}.jsonl", THANKS)
    splits = [{"split": "test", "path": "one/a*"}, {"split": "train", "path": ["one/b.jsonl"]}]
    _card(tmp_path, [{"config_name": "one", "data_files": splits}, {"config_name": "two", "data_dir": "two"}])
    for subset in ("one", "two"):
        assert _read(tmp_path, subset=subset, split="test") == [HELLO]
        assert _read(tmp_path, subset=subset, split="train") == [THANKS]
    refused(ValueError, "one, two", lambda: _read(tmp_path, split="test"))
    refused(ValueError, "three", lambda: _read(tmp_path, subset="three"))
    _card(tmp_path, [{"config_name": "all", "data_files": "*/*.jsonl"}])
    assert len(_read(tmp_path)) == 4


@pytest.mark.parametrize("way", ["data_files", "split", "data_dir"])
@pytest.mark.parametrize(
    "place",
    ["absolute", "../rows.jsonl", "data/../../rows.jsonl", "zip://rows.jsonl::a.zip", "http://127.0.0.1/a.jsonl"],
)
def test_a_card_cannot_lead_out_of_its_folder(
    way: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("a server was asked")

    monkeypatch.setattr("socket.socket.connect", asked)
    _write(tmp_path / "rows.jsonl", HELLO)
    _write(tmp_path / "folder" / "data" / "rows.jsonl", THANKS)
    path = str(tmp_path / "rows.jsonl") if place == "absolute" else place
    files: Any = [{"split": "train", "path": path}] if way == "split" else path
    entry = {"config_name": "default", "data_dir" if way == "data_dir" else "data_files": files}
    card = _card(tmp_path / "folder", [entry])
    assert "out of the folder" in refused(ValueError, "README.md", lambda: _read(card))


@pytest.mark.parametrize(
    "configs",
    ["a", [1], [{"config_name": "a", "data_files": [{"path": "b"}]}], [{"config_name": "a", "data_files": [["b"]]}]],
)
def test_a_card_that_says_nothing_usable_is_named(configs: object, tmp_path: Path) -> None:
    _write(tmp_path / "rows.jsonl", HELLO)
    refused(ValueError, "README.md", lambda: _read(_card(tmp_path, configs)))


@pytest.mark.parametrize("body", ["", "---\nno header", "---\nlicense: mit\n---\n", "# Rows\n---\nconfigs: 1\n---\n"])
def test_a_card_without_a_division_leaves_it_to_the_names(body: str, tmp_path: Path) -> None:
    _write(tmp_path / "rows.jsonl", HELLO)
    (tmp_path / "README.md").write_text(body)
    assert _read(tmp_path) == [HELLO]


@pytest.mark.parametrize("kind", PACKED)
def test_files_in_a_folder_have_the_bounds_of_single_ones(kind: str, tmp_path: Path) -> None:
    PACKED[kind](tmp_path)
    message = refused(ValueError, "more than", lambda: _read(tmp_path, bounds=SMALL))
    assert str(tmp_path) in message


# --- Arrow -----------------------------------------------------------------------------------------


def _arrow(folder: Path, context: Any, *, file: bool = False, compression: str | None = None, **columns: Any) -> Path:
    table = pa.table({"context": context, "response": ["Fine."] * len(context), **columns})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    write = pa.ipc.new_file if file else pa.ipc.new_stream
    with write(str(folder / "rows.arrow"), table.schema, options=options) as sink:
        sink.write_table(table, max_chunksize=2)
    return folder / "rows.arrow"


@pytest.mark.parametrize("file", [False, True])
def test_an_arrow_file_is_read_row_by_row(file: bool, tmp_path: Path) -> None:
    path = _arrow(tmp_path, [["a", "b"], ["c"], ["d"]], file=file, id=[7, 8, 9])
    assert [(row.context, row.id) for row in _read(path)] == [(("a", "b"), "7"), (("c",), "8"), (("d",), "9")]


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_packed_columns_are_refused_before_they_are_unpacked(compression: str, file: bool, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    path = _arrow(tmp_path, [["a" * 2**24]], file=file, compression=compression)
    words = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["a" * 2**24]))
    of_dictionary = _arrow(tmp_path / "other", words, file=file, compression=compression)
    for packed in (path, of_dictionary):
        assert packed.stat().st_size < 2**20
        with counted_memory() as held:
            refused(ValueError, "rows.arrow", lambda packed=packed: _read(packed))
        assert (held.max_memory() or 0) < 2**20


def _few_bytes_for_much() -> dict[str, Any]:
    text = pa.array(["a" * 20_000])
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), text)
    step = pa.array([0, 2000], pa.int32())
    return {
        "list of one text": pa.ListArray.from_arrays(step, same),
        "no values": pa.ListArray.from_arrays(pa.array([0, 10**9], pa.int32()), pa.nulls(10**9)),
        "lists of no values": pa.FixedSizeListArray.from_arrays(pa.nulls(10**9), 10**9),
    }


@pytest.mark.parametrize("kind", _few_bytes_for_much())
def test_a_row_that_stands_for_too_much_is_told_before_it_is_made(kind: str, tmp_path: Path) -> None:
    path = _arrow(tmp_path, _few_bytes_for_much()[kind])
    assert path.stat().st_size < 2**16
    with counted_memory() as held:
        refused(ValueError, "row takes more than", lambda: _read(path, bounds=SMALL_ROWS))
    assert (held.max_memory() or 0) < 2**20


@pytest.mark.parametrize(
    "cells",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array(["a"])).slice(0, 1),
        pa.array(["a"], pa.string_view()),
        pa.ListViewArray.from_arrays(pa.array([0], pa.int32()), pa.array([1], pa.int32()), pa.array(["a"])),
    ],
    ids=["runs", "views", "views of lists"],
)
def test_kinds_that_share_what_they_hold_are_refused(cells: Any, tmp_path: Path) -> None:
    refused(ValueError, "column context", lambda: _read(_arrow(tmp_path, cells)))


def test_rows_of_nothing_have_a_bound(tmp_path: Path) -> None:
    schema = pa.schema([("context", pa.null()), ("response", pa.null())])
    batch = pa.record_batch([pa.nulls(10**8), pa.nulls(10**8)], schema=schema)
    with pa.ipc.new_stream(str(tmp_path / "rows.arrow"), schema) as sink:
        sink.write_batch(batch)
    refused(ValueError, "rows in", lambda: _read(tmp_path / "rows.arrow"))


def test_a_damaged_arrow_file_is_told(tmp_path: Path) -> None:
    whole = _arrow(tmp_path, [["a", "b"], ["c"], ["d"]]).read_bytes()
    damaged, told = tmp_path / "damaged.arrow", list[str]()
    for place in range(0, len(whole), 3):  # also the places of texts, which would be read from anywhere in memory
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x7F]) + whole[place + 1 :])
        try:
            list(Source(damaged).exchanges(empty="score"))
        except ValueError as error:
            told.append(str(error))
    assert len(told) > 50
    assert all("damaged.arrow" in message for message in told)


# --- what `save_to_disk` wrote ---------------------------------------------------------------------


def _saved(folder: Path, splits: bool = False) -> Path:
    import datasets

    rows = datasets.Dataset.from_list([{"context": ["hello"], "response": "hi"}] * 3)
    (datasets.DatasetDict(test=rows, train=rows) if splits else rows).save_to_disk(str(folder))
    return folder


def test_saved_splits_are_chosen_and_several_files_are_read(tmp_path: Path) -> None:
    import datasets

    folder = _saved(tmp_path / "saved", splits=True)
    assert _read(folder, split="test") == [HELLO] * 3
    refused(ValueError, "test, train", lambda: _read(folder))
    refused(ValueError, "tset", lambda: _read(folder, split="tset"))
    refused(ValueError, "subset 'x'", lambda: _read(folder, subset="x"))
    rows = datasets.Dataset.from_list([{"context": ["hello"], "response": "hi"}] * 5)
    rows.save_to_disk(tmp_path / "more", num_shards=2)
    assert [raw.number for raw, _ in Source(tmp_path / "more").exchanges()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("place", ["../../elsewhere/rows.arrow", "/absolute"])
def test_names_in_what_was_saved_are_names_in_its_folder(place: str, tmp_path: Path) -> None:
    elsewhere = _saved(tmp_path / "elsewhere")
    secret = elsewhere / "rows.arrow"
    shutil.move(next(elsewhere.glob("*.arrow")), secret)
    folder = _saved(tmp_path / "in" / "saved")
    state = json.loads((folder / "state.json").read_text())
    named = str(secret) if place == "/absolute" else place
    (folder / "state.json").write_text(json.dumps({**state, "_data_files": [{"filename": named}]}))
    refused(FileNotFoundError, "rows.arrow", lambda: _read(folder))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["../../elsewhere"]}))
    refused(ValueError, "saved", lambda: _read(folder))


def test_what_is_read_of_a_folder_named_from_here_is_not_told_as_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.jsonl").write_text(json.dumps({"context": ["Hi"], "response": "Hm"}))
    (tmp_path / "here" / "b.csv").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert len(list(Source("here").exchanges())) == 1
    assert "b.csv" in caplog.text
    assert "a.jsonl" not in caplog.text
