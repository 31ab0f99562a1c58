"""Every reader has a budget, and what is ten times over it is refused in one sentence, before it costs anything."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval import exchange
from dialeval.exchange import MAX_TEXTS, BadRow, check_exchange
from dialeval.readers import Rejects, Source, chats
from dialeval.readers.rows import MAX_COLUMNS, Columns

ROW = {"context": ["Hi!"], "response": "Hello."}


def problems(path: Path) -> list[str]:
    """What is said of each row that is set aside."""
    target = path.with_suffix(".rejects")
    with Rejects(target) as rejects:
        for _ in Source(str(path)).exchanges(skip_bad=rejects):
            pass
    return [json.loads(line)["problem"] for line in target.read_text().splitlines()]


# --- conversations ----------------------------------------------------------------------------------


def chat(turns: int) -> list[dict[str, Any]]:
    said = [{"role": ("user", "assistant")[at % 2], "content": f"Is {at} more?"} for at in range(turns)]
    return [{"messages": said}]


def test_a_turn_of_a_long_conversation_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each reply behind it: a file of 5,000 short messages would take minutes."""
    asked = 0
    check = exchange.check_text

    def counted(row: int | str, field: str, value: Any) -> str:
        nonlocal asked
        asked += 1
        return check(row, field, value)

    for module in (exchange, chats):
        monkeypatch.setattr(module, "check_text", counted)
    found = [one for _, one in Source(chat(400)).exchanges()]
    assert [len(one.context) for one in found] == list(range(1, 400, 2))
    assert all(len(one.speakers) == len(one.context) and type(one.context) is tuple for one in found)
    # Each message has a role and a text, and each row a response, an id and what follows.
    assert asked <= 400 * 2 + 200 * 3


def test_as_many_messages_as_are_stated() -> None:
    assert sum(1 for _ in Source(chat(MAX_TEXTS)).dialogues()) == 1
    with pytest.raises(BadRow, match=f"messages has more than {MAX_TEXTS} entries"):
        list(Source(chat(10 * MAX_TEXTS)).exchanges())


def test_what_is_said_of_a_broken_header_is_short(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for broken in (b"\0", b"\xff"):
        path.write_bytes(b"context,response," + broken * 1_000_000 + b"\n")
        with pytest.raises(ValueError, match="the header of") as told:
            list(Source(str(path)).exchanges())
        assert len(str(told.value)) < 1000 + len(str(path))


# --- columns ----------------------------------------------------------------------------------------


def wide_csv(path: Path, count: int) -> Path:
    names = ["context", "response", *(f"c{number}" for number in range(count - 2))]
    path.write_text(",".join(names) + "\n" + ",".join(["x"] * count) + "\n")
    return path


def wide_parquet(path: Path, count: int) -> Path:
    columns = {"context": [["x"]], "response": ["x"], **{f"c{number}": [1] for number in range(count - 2)}}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(("write", "name"), [(wide_csv, "wide.csv"), (wide_parquet, "wide.parquet")])
def test_as_many_columns_as_are_stated(write: Callable[[Path, int], Path], name: str, tmp_path: Path) -> None:
    (row, _) = next(Source(str(write(tmp_path / name, MAX_COLUMNS))).exchanges())
    assert row.number == 0
    with pytest.raises(ValueError, match=f"has {10 * MAX_COLUMNS} columns, more than {MAX_COLUMNS}"):
        list(Source(str(write(tmp_path / f"more-{name}", 10 * MAX_COLUMNS))).exchanges())


def test_a_header_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a name stands there twice is asked once for each name, not once for each pair of names."""
    from dialeval.readers import text

    class Counted(str):
        asked = 0

        def __eq__(self, other: object) -> bool:
            Counted.asked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    assert text._twice([Counted(f"c{number}") for number in range(50_000)]) is None
    assert Counted.asked < 50_000
    assert text._twice([Counted("a"), Counted("b"), Counted("a")]) == "a"


def test_a_column_that_is_missing_among_many_is_told_with_a_few(tmp_path: Path) -> None:
    there = [f"context{number}" * 2000 for number in range(MAX_COLUMNS)]
    assert len(Columns({}).missing(there, ("context",))) < 2000


# --- rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["context", "references", "facts"])
def test_entries_of_one_row(field: str) -> None:
    given = {"context": ["Hi!"], "response": "Hello.", field: ["Hi!"] * MAX_TEXTS}
    assert len(getattr(check_exchange(0, **given), field)) == MAX_TEXTS
    with pytest.raises(BadRow, match=f"{field} has more than {MAX_TEXTS} entries"):
        check_exchange(0, **{**given, field: ["Hi!"] * (10 * MAX_TEXTS)})
    with pytest.raises(BadRow, match="entries"):
        check_exchange(0, **{**given, field: itertools.repeat("Hi!")})


@pytest.mark.parametrize("depth", [10_000, 100_000])
def test_depth_of_json(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text('{"context": ' + "[" * depth + "]" * depth + ', "response": "x"}\n' + json.dumps(ROW) + "\n")
    (message,) = problems(path)
    assert "nested" in message or "context" in message


def test_bytes_of_a_parquet_cell(tmp_path: Path) -> None:
    """Each text is said once in the file, and as often as there are rows when it is unpacked."""
    path = tmp_path / "bomb.parquet"
    long = "x" * (17 * 2**20)
    table = pa.table({"context": [["Hi!"]] * 3, "response": ["Hello.", long, "Hello."]})
    pq.write_table(table, path, use_dictionary=True, compression="zstd")
    assert path.stat().st_size < 2**20
    assert problems(path) == ["response is longer than 16 MiB; a row holds a dialogue"]


# --- values that Python does not have ------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**62], pa.timestamp("ms")),
        pa.array([-(2**62)], pa.timestamp("us")),
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**62], pa.duration("s")),
        pa.array([0], pa.timestamp("us", tz="Nowhere/Atall")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([datetime.date(2020, 1, 1)]),
        pa.array([b"\xff"], pa.binary()),
        pa.array([{"a": 1}]),
        pa.array([float("nan")]),
    ],
    ids=lambda array: str(array.type),
)
def test_ids_of_every_kind(ids: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"context": [["Hi!"]], "response": ["Hello."], "id": ids}), path)
    # A float that is no number is a missing id; everything else that is no text or whole number is refused.
    assert len(problems(path)) == (str(ids.type) != "double")


def test_a_column_that_stands_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.table([[["Hi!"]], ["a"], ["b"]], names=["context", "response", "response"]), path)
    with pytest.raises(ValueError, match="has two columns 'response'"):
        list(Source(str(path)).exchanges())
