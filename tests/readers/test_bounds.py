"""A small file that holds a very large one is refused, in every format, before it fills the memory."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.benchmarks.rowfile import read_file
from dialeval.readers import Source
from dialeval.readers.bundles import _files
from dialeval.readers.rows import Bounds
from dialeval.readers.score_files import read_scores
from dialeval.readers.transcripts import conversations
from dialeval.reports.plots.own_scores import read_table
from refusals import refused

SMALL = Bounds(data=2**20, rows=1000, whole=2**18, workbook=2**20)
ROW = {"context": ["How are you?"], "response": "Fine, thanks. " * 400}


def _packed(path: Path, line: str, times: int) -> Path:
    with gzip.open(path, "wt") as stream:
        stream.writelines(line for _ in range(times))
    return path


def _zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "rows.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", (json.dumps(ROW) + "\n") * 300)
    return folder / "rows.zip"


def _workbook(folder: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(["context", "response"])
    for _ in range(2000):
        sheet.append(["How are you?", "Fine, thanks."])
    book.save(folder / "rows.xlsx")
    return folder / "rows.xlsx"


def _parquet(folder: Path) -> Path:
    table = pa.table({"context": ["How are you?"] * 2000, "response": ["Fine."] * 2000})
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


FILES: dict[str, Callable[[Path], Path]] = {
    "jsonl": lambda folder: _packed(folder / "rows.jsonl.gz", json.dumps(ROW) + "\n", 300),
    "array": lambda folder: _packed(folder / "rows.json.gz", "[\n" + (json.dumps(ROW) + ",\n") * 100, 1),
    "csv": lambda folder: _packed(folder / "rows.csv.gz", "context,response\n" * 100_000, 1),
    "text": lambda folder: _packed(folder / "rows.txt.gz", "User: How are you?\nBot: Fine, thanks.\n---\n", 20_000),
    "line": lambda folder: _packed(folder / "rows.jsonl.gz", "x" * 2**20, 4),
    "zip": _zip,
    "xlsx": _workbook,
    "parquet": _parquet,
}


@pytest.mark.parametrize("kind", FILES)
def test_what_unpacks_to_too_much_is_refused(kind: str, tmp_path: Path) -> None:
    source = Source(FILES[kind](tmp_path), bounds=SMALL)
    message = refused(ValueError, "more than", lambda: list(source.exchanges()))
    assert "rows." in message


TURNS = "User: How are you?\nBot: Fine, thanks.\n"
#: A row of each kind of text.
ROWS = {
    "rows.jsonl": json.dumps(ROW | {"response": "Fine."}) + "\n",
    "rows.csv": '"How are you?","Fine,\nthanks."\n',
    "rules.txt": TURNS + "---\n",
    "blanks.md": TURNS + "\n",
    "episodes.txt": "text:How are you?\tlabels:Fine, thanks.\tepisode_done:True\n",
    "numbers.txt": "1 How are you?\tFine, thanks.\n",
}
#: What one row would consist of.
ENDLESS = {
    "talk.txt": TURNS,
    "letters.txt": "a\n",
    "marks.txt": "<|im_end|>\n",
    "cues.vtt": "00:01.000 --> 00:02.000\n<v Ann>Hi\n",
    "cells.csv": 'thanks","\n',
}
BEGINNINGS = {"cells.csv": 'context,response\n"', "rows.csv": "context,response\n"}


def _peak(folder: Path, name: str, text: str, times: int) -> tuple[int, int]:
    """Bytes that are held at most while a file is read, and how many rows it has before it is refused."""
    path = folder / f"{name}.gz"
    with gzip.open(path, "wt") as stream:
        stream.write(BEGINNINGS.get(name, "") + text * times)
    source, rows = Source(path, bounds=Bounds(whole=2**15)), 0
    tracemalloc.start()
    try:
        with suppress(ValueError), path.open("rb") as packed:
            for _ in source._of_stream(source._format(), packed, name):
                rows += 1
        return tracemalloc.get_traced_memory()[1], rows
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ROWS)
def test_memory_follows_the_row_and_not_the_file(name: str, tmp_path: Path) -> None:
    _peak(tmp_path, name, ROWS[name], 1)  # what is imported
    (some, _), (more, rows) = (_peak(tmp_path, name, ROWS[name], times) for times in (50, 200))
    assert rows == 200
    assert more < some + 2**14


@pytest.mark.parametrize("name", ENDLESS)
def test_a_row_without_end_is_read_no_further_than_its_bound(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialeval.readers.text.MAX_LINE_BYTES", 2**15)
    monkeypatch.setattr("dialeval.readers.transcripts._LONGEST_TURN", 2**15)
    peak, rows = _peak(tmp_path, name, ENDLESS[name], 20_000)
    assert peak < 2**20
    assert rows == 0


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "talk.txt"])
@pytest.mark.parametrize("blank", ["\n", " " * 1000 + "\n"])
def test_blank_lines_are_read_no_further_than_a_line(name: str, blank: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("dialeval.readers.text.MAX_BLANK_BYTES", 2**15)
    path = _packed(tmp_path / f"{name}.gz", blank, 2**18 // len(blank))
    assert name in refused(ValueError, "blank lines", lambda: list(Source(path).exchanges()))


@pytest.mark.parametrize("many", [1, 3])
def test_a_row_of_a_table_has_the_bound_of_a_conversation(many: int, tmp_path: Path) -> None:
    texts = ["Fine."] * (many - 1) + ["x" * 2**19]
    pq.write_table(pa.table({"context": ["How are you?"] * many, "response": texts}), tmp_path / "rows.parquet")
    source = Source(tmp_path / "rows.parquet", bounds=SMALL)
    assert "rows.parquet" in refused(ValueError, "more than 0 MB", lambda: list(source.exchanges()))
    held = [{"context": ["How are you?"], "response": text} for text in texts]
    refused(ValueError, "more than 0 MB", lambda: list(Source(held, bounds=SMALL).exchanges()))


@pytest.mark.parametrize("bad", ["{}{\n", "x" * 2**12 + "\n"])
def test_rows_of_which_none_can_be_read_are_kept_no_further_than_a_row(bad: str, tmp_path: Path) -> None:
    path = _packed(tmp_path / "rows.jsonl.gz", bad, 20_000)
    source = Source(path, bounds=Bounds(whole=2**18))
    assert "rows.jsonl.gz" in refused(ValueError, "none of the first", lambda: next(source.exchanges()))


def test_blank_lines_take_no_memory(tmp_path: Path) -> None:
    assert _peak(tmp_path, "blanks.txt", "\n", 20_000)[0] < 2**18


@pytest.mark.parametrize("between", ["\n", "---\n"])
def test_where_a_text_is_cut_no_conversation_is(between: str) -> None:
    talk = "Ann: How are you?\n\nand the dog?\nBob: Fine, thanks.\nhe says\n".replace("\n\n", between[:-4])
    lines = (talk + between).replace("you", "you " * 20).splitlines() * 50
    talks = list(conversations(lines, most=2**15))
    assert talks == list(conversations(lines[: len(lines) // 50])) * 50


def test_parquet_with_more_rows_than_bytes_is_refused_by_its_own_word(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    alike = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000_000, pa.int32()), pa.array(["Fine."]))
    pq.write_table(pa.table({"context": alike, "response": alike}), path)
    refused(ValueError, "3,000,000 rows in", lambda: next(Source(path).exchanges()))


SHEET, TEXTS, TYPES = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "[Content_Types].xml"
XMLNS = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OF_TEXTS = (
    b'<Override PartName="/xl/sharedStrings.xml" '
    b'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>'
)


def _sheet(folder: Path, part: str, changes: Mapping[str, str]) -> Path:
    """A sheet of one row, in a part of whose XML some texts are changed."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["context", "response"])
    book.active.append(["How are you?", "Fine._x000D_\nThanks."])
    book.create_sheet()
    book.save(folder / "plain.xlsx")
    with (
        zipfile.ZipFile(folder / "plain.xlsx") as old,
        zipfile.ZipFile(folder / "rows.xlsx", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        parts = {name: old.read(name) for name in old.namelist()} | {TEXTS: b"<sst %b></sst>" % XMLNS}
        parts[TYPES] = parts[TYPES].replace(b"</Types>", OF_TEXTS + b"</Types>")
        for name, content in parts.items():
            for before, after in changes.items() if name == part else ():
                assert before.encode() in content
                content = content.replace(before.encode(), after.encode(), 1)
            new.writestr(name, content)
    return folder / "rows.xlsx"


def test_a_sheet_that_says_it_is_huge_is_as_large_as_what_it_holds(tmp_path: Path) -> None:
    path = _sheet(tmp_path, SHEET, {'ref="A1:B2"': 'ref="A1:XFD1048576"', 'r="2"': 'r="99999"'})
    assert [row.response for _, row in Source(path).exchanges()] == ["Fine.\r\nThanks."]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('r="2"', 'r="1000000000"', "empty cells"),
        ('r="2"', 'r="x"', "damaged"),
        ('r="B2"', 'r="ZZZZZZ9"', "damaged"),
        ("</row>", "</ro>", "damaged"),
    ],
)
def test_a_sheet_whose_cells_are_nowhere_is_refused(before: str, after: str, problem: str, tmp_path: Path) -> None:
    path = _sheet(tmp_path, SHEET, {before: after})
    assert "rows.xlsx" in refused(ValueError, problem, lambda: list(Source(path).exchanges()))


def test_a_zip_archive_whose_entries_share_their_data_is_refused(tmp_path: Path) -> None:
    """A few kilobytes stand for gigabytes where each of many entries is the same large one."""
    path = tmp_path / "rows.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", (json.dumps(ROW) + "\n") * 2)
        archive.filelist *= 50
    assert "rows.zip" in refused(ValueError, "share their data", lambda: list(Source(path).exchanges()))


def test_a_pipe_in_a_folder_of_days_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "2024-01-01.json")
    (tmp_path / "2024-01-02.json").write_text("[]")
    assert [name for name, _ in _files(tmp_path, "days", SMALL)] == ["2024-01-02.json"]


#: What stands in a workbook, before what, again and again, each a part that openpyxl reads in another way.
MANY_TAGS = {
    "formats": ("xl/styles.xml", "</cellXfs>", "<xf/>"),
    "names": ("xl/workbook.xml", "</workbook>", "<a/>"),
    "theme": ("xl/theme/theme1.xml", "<a:theme", " " * 100),
    "texts": (TEXTS, "</sst>", "<si/>"),
    "one text": (TEXTS, "</sst>", "<a>" + "x" * 1000 + "</a>"),
    "rows": (SHEET, "</sheetData>", "<row/>"),
    "sheets": ("xl/workbook.xml", "</sheets>", '<sheet name="a" sheetId="9" r:id="rId1"/>'),
}


@pytest.mark.parametrize("kind", MANY_TAGS)
def test_what_openpyxl_makes_of_a_workbook_has_a_bound(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kilobyte of deflate stands for a megabyte of tags, and each becomes an object."""
    monkeypatch.setattr("dialeval.readers.excel.MANY", 50_000)
    monkeypatch.setattr("dialeval.readers.excel._MOST_WHOLE", 5_000)
    part, before, tag = MANY_TAGS[kind]
    path = _sheet(tmp_path, part, {before: tag * 60_000 + before})
    tracemalloc.start()
    try:
        assert "rows.xlsx" in refused(ValueError, "unpacks to more", lambda: list(Source(path).exchanges()))
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_a_benchmark_is_held_no_further_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval.benchmarks.rowfile.HELD", Bounds(rows=1000))
    path = _packed(tmp_path / "b.jsonl.gz", json.dumps(ROW | {"rating": 3}) + "\n", 2000)
    refused(ValueError, "b.jsonl.gz has more than 1,000 rows", read_file, path)


@pytest.mark.parametrize(("name", "head", "row"), [("s.jsonl", "", '{"id": "1"}\n'), ("s.csv", "id,m\n", "1,0.5\n")])
def test_a_score_file_is_held_no_further_than_its_bound(
    name: str, head: str, row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialeval.readers.score_files.HELD", Bounds(rows=1000))
    path = _packed(tmp_path / f"{name}.gz", head + row * 50_000, 1)
    tracemalloc.start()
    try:
        for read in (read_scores, read_table):
            assert name in refused(ValueError, "more than 1,000 rows", read, path)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
