"""The table of scores as JSON lines, CSV or Parquet, always with the same columns."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dialeval.exchange import from_first_visible

OutputFormat = Literal["jsonl", "csv", "parquet"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("jsonl", "csv", "parquet")

#: What tells the rows of a table apart; the metrics' columns follow.
ROW_KEYS = ("row", "id", "system", "language")

#: What a metric's column holds where that is no number: words, or a list of numbers.
Kind = Literal["text", "list"]

#: A part of a table: lists of equal length under its keys, and under each metric's name in "values".
Record = Mapping[str, Any]

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def output_format(path: str) -> OutputFormat:
    """The format of an output: JSON lines for a pipe, else from the file extension."""
    extension = "jsonl" if path == "-" else Path(path).suffix.lower().lstrip(".")
    if extension not in OUTPUT_FORMATS:
        raise ValueError(f"cannot infer the format of {path}; its extension is one of: {', '.join(OUTPUT_FORMATS)}")
    return extension


@contextmanager
def table(
    stream: BinaryIO,
    file_format: OutputFormat,
    metrics: Sequence[str],
    keys: Sequence[str] = ROW_KEYS,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> Iterator[Callable[[Record], None]]:
    """A function that writes one part of the table to the stream; `kinds` names the columns that hold no numbers."""
    if file_format == "parquet":
        with _parquet(stream, metrics, keys, kinds or {}) as write:
            yield write
    elif file_format == "csv":
        yield _csv(stream, metrics, keys)
    else:
        yield lambda record: _write_json(stream, _columns(metrics, keys, record))


def _columns(metrics: Sequence[str], keys: Sequence[str], record: Record) -> dict[str, Sequence[Any]]:
    return {key: record[key] for key in keys} | {name: record["values"][name] for name in metrics}


def _write_json(stream: BinaryIO, columns: Mapping[str, Sequence[Any]]) -> None:
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _csv(stream: BinaryIO, metrics: Sequence[str], keys: Sequence[str]) -> Callable[[Record], None]:
    def send(rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        stream.write(text.getvalue().encode())

    def write(record: Record) -> None:
        columns = _columns(metrics, keys, record)
        send(zip(*(map(_harmless, cells) for cells in columns.values()), strict=True))

    send([[*keys, *metrics]])
    return write


def _harmless(cell: Any) -> Any:
    """The user's text with a quote before what a spreadsheet would take for a formula."""
    if isinstance(cell, list):
        return json.dumps(cell)
    if isinstance(cell, str) and not _NUMBER.fullmatch(cell) and _is_formula(cell):
        return f"'{cell}"
    return cell


def _is_formula(cell: str) -> bool:
    """A NUL, a byte-order mark or a zero-width space before the sign hides it from people, not from every program."""
    return any(_FORMULA.match(text) for text in (cell, from_first_visible(cell)))


def column_kinds(metrics: Iterable[str], keys: Iterable[str], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """The Arrow type of every column, in order."""
    import pyarrow as pa

    of_keys = {"row": pa.int64(), "id": pa.string(), "system": pa.string(), "language": pa.string()}
    types = {"text": pa.string(), "list": pa.list_(pa.float64())}
    of_metrics = {name: types[kinds[name]] if name in kinds else pa.float64() for name in metrics}
    return {key: of_keys[key] for key in keys} | of_metrics


@contextmanager
def _parquet(
    stream: BinaryIO, metrics: Sequence[str], keys: Sequence[str], kinds: Mapping[str, Kind]
) -> Iterator[Callable[[Record], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(column_kinds(metrics, keys, kinds).items())
    with pq.ParquetWriter(stream, schema) as writer:

        def write(record: Record) -> None:
            writer.write_table(pa.table(_columns(metrics, keys, record), schema=schema))

        yield write
