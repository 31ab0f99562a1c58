"""Of Parquet, a few bytes may stand for any number, in each of its encodings; and the footer may lie about it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.readers import Source
from dialeval.readers.parquet import parquet_rows
from dialeval.readers.rows import Bounds
from refusals import refused

SMALL = Bounds(data=2**30, rows=1000, whole=2**18, workbook=2**20)
TEXT = "a" * 20_000


def _same(times: int, value: Any = TEXT) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([value]))


def _in_lists(values: Any, rows: int = 1) -> Any:
    step = len(values) // rows
    return pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, step), pa.int32()), values)


def _write(folder: Path, context: Any, **options: Any) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"context": context, "response": ["Fine."] * len(context)}), path, **options)
    return path


def _messages(values: Any) -> Any:
    roles = pa.array(["user"] * len(values))
    return _in_lists(pa.StructArray.from_arrays([roles, values], ["role", "content"]))


def _footer_of(small: Path, large: Path) -> Path:
    """The pages of one file with the footer of another, which knows of few bytes."""
    pages, donor = large.read_bytes(), small.read_bytes()
    (length,), (behind,) = (struct.unpack("<I", content[-8:-4]) for content in (donor, pages))
    room = len(donor) - 8 - length
    assert len(pages) - 8 - behind <= room
    large.write_bytes(pages[: len(pages) - 8 - behind].ljust(room, b"\0") + donor[room:])
    return large


def _lying(folder: Path) -> Path:
    """One column, so that the pages of both begin at the same place."""
    noise = np.random.default_rng(0).bytes(20_000).hex()
    for name, turns in (("rows", ["a" * 2**22, "b" * 2**22]), ("small", [noise, noise[::-1]])):
        table = pa.table({"dialogue": [turns]})
        pq.write_table(table, folder / f"{name}.parquet", use_dictionary=False, compression="zstd")
    return _footer_of(folder / "small.parquet", folder / "rows.parquet")


@contextmanager
def counted_memory() -> Iterator[Any]:
    """What Arrow takes meanwhile."""
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    try:
        yield counted
    finally:
        pa.set_memory_pool(before)


PREFIXES: dict[str, Any] = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
#: Few bytes for more than `SMALL` lets a row be.
FILES: dict[str, Callable[[Path], Path]] = {
    "list of one text": lambda folder: _write(folder, _in_lists(_same(2000))),
    "lists of one text": lambda folder: _write(folder, _in_lists(_same(2000), 20)),
    "lists of lists": lambda folder: _write(folder, _in_lists(_in_lists(_same(2000), 20))),
    "messages": lambda folder: _write(folder, _messages(_same(2000))),
    "bytes of a fixed length": lambda folder: _write(
        folder, _in_lists(pa.array([b"a" * 5000] * 2000, pa.binary(5000)))
    ),
    "prefixes": lambda folder: _write(folder, _in_lists(pa.array([TEXT] * 2000)), **PREFIXES),
    "a long prefix": lambda folder: _write(folder, pa.array(["a" * 2**21] * 100), **PREFIXES, data_page_size=2**10),
    "no values": lambda folder: _write(folder, _in_lists(pa.nulls(1_000_000, pa.string()))),
    "empty texts": lambda folder: _write(folder, _in_lists(pa.array([""] * 1_000_000))),
    "one number": lambda folder: _write(folder, _in_lists(pa.array([7] * 1_000_000))),
    "pages without end": lambda folder: _write(
        folder, _in_lists(pa.array([TEXT + str(n) for n in range(1000)])), compression="zstd", use_dictionary=False
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_stands_for_too_much_is_refused_before_it_is_made(kind: str, tmp_path: Path) -> None:
    path = FILES[kind](tmp_path)
    assert path.stat().st_size < 2**18
    with counted_memory() as held:
        message = refused(ValueError, "row takes more than", lambda: list(Source(path, bounds=SMALL).exchanges()))
    assert "rows.parquet" in message
    assert (held.max_memory() or 0) < 2**24


def test_a_footer_that_lies_is_not_believed(tmp_path: Path) -> None:
    path = _lying(tmp_path)
    with counted_memory() as held:
        rows = parquet_rows(path, "rows.parquet", lambda names: names, SMALL)
        refused(ValueError, "row takes more than", lambda: list(rows))
    assert (held.max_memory() or 0) < 2**22


def test_a_footer_that_ends_the_process_of_arrow_is_told() -> None:
    """Its `column` does not survive a histogram of another size than the column's levels ask for."""
    path = Path(__file__).parents[1] / "data" / "histograms.parquet"
    refused(ValueError, "histograms.parquet is damaged", lambda: list(Source(path).exchanges()))


def test_what_many_rows_share_is_made_for_each_alone(tmp_path: Path) -> None:
    path = _write(tmp_path, _same(200, "a" * 2**17))
    assert [len(row.context[0]) for _, row in Source(path, bounds=SMALL).exchanges()] == [2**17] * 200


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_every_encoding_is_read_as_arrow_reads_it(
    encoding: str | None, compression: str, version: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    turns = [[f"turn {n} {rng.integers(9)}" for n in range(rng.integers(1, 6))] for _ in range(3000)]
    table = pa.table({"context": turns, "response": [f"reply {n % 7}" for n in range(3000)], "id": range(3000)})
    options: dict[str, Any] = {"use_dictionary": encoding is None, "data_page_size": 2**11, "row_group_size": 1100}
    if encoding:
        options["column_encoding"] = {"context.list.element": encoding, "response": encoding, "id": "PLAIN"}
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, compression=compression, data_page_version=version, **options)
    read = [(list(row.context), row.response, row.id) for _, row in Source(path).exchanges()]
    assert read == [(turns[n], f"reply {n % 7}", str(n)) for n in range(3000)]
