"""A visitor's file: which columns it has, whether every row can be judged, and how the first ones look."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from limits import MAX_CHARACTERS, MAX_FILE_BYTES, MAX_FILE_ROWS, Refused
from markup import problem, table, text

from dialeval.exchange import Exchange
from dialeval.readers import Chats, Source
from dialeval.readers.rows import RawRow

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
#: Columns that are offered to choose from, and characters of a name; a list of more is no help, and fills a browser.
MOST_COLUMNS, _LONGEST_NAME = 200, 200
_PREVIEWED = 5


def columns_in(path: str) -> list[str]:
    """What the first row of a file calls its fields; nothing where that cannot be seen."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES or file.stat().st_size > MAX_FILE_BYTES:
        return []
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        try:
            if suffix in (".csv", ".tsv"):
                found = next(csv.reader(stream, delimiter="\t" if suffix == ".tsv" else ","), [])
            else:
                first = json.loads(next((line for line in stream if line.strip()), ""))
                found = [str(name) for name in first] if isinstance(first, dict) else []
        except (ValueError, RecursionError, csv.Error):
            return []
    return [name for name in found if len(name) <= _LONGEST_NAME][:MOST_COLUMNS]


def read_rows(
    path: str,
    needs: frozenset[str] = frozenset(),
    columns: Mapping[str, str] | None = None,
    judge_role: str = "assistant",
) -> list[tuple[RawRow, Exchange]]:
    """Every row, checked; the first one that is bad, too long or too many is named.

    `columns` names a field's column where names differ; of chat logs the turns of `judge_role` are judged.
    """
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise Refused(f"the page reads {', '.join(SUFFIXES)}; this is {file.name}")
    rows: list[tuple[RawRow, Exchange]] = []
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise Refused(f"the file is larger than {MAX_FILE_BYTES // 1_000_000} MB; `dialeval score` takes it")
        source = Source(path, columns=columns or {}, chats=Chats(judge_role))
        for row, exchange in source.exchanges(needs=needs):
            if len(rows) == MAX_FILE_ROWS:
                raise Refused(f"the file has more than {MAX_FILE_ROWS:,} rows; `dialeval score` takes any number")
            _check_lengths(row, exchange)
            rows.append((row, exchange))
    except FileNotFoundError:
        raise Refused("the file is no longer here: uploads are removed after a while; upload it again") from None
    except (ValueError, OSError) as error:
        # Where the file lies on this machine is nobody's business.
        raise Refused(str(error).replace(str(file), file.name)) from None
    return rows


def preview(path: str, columns: Mapping[str, str], judge_role: str) -> str:
    """The first rows as a table, or what is wrong with the file."""
    try:
        rows = [exchange for _, exchange in read_rows(path, frozenset(), columns, judge_role)]
    except Refused as error:
        return problem(error)
    shown = [[str(at), *_cells(row)] for at, row in enumerate(rows[:_PREVIEWED])]
    caption = f"{len(rows):,} row{'s' if len(rows) != 1 else ''}; the first {len(shown)}"
    return table(caption, ["row", "context", "response", "reference", "system"], shown)


def _cells(row: Exchange) -> Sequence[str]:
    context = "<br>".join(text(turn, 80) for turn in row.context[-3:])
    return [
        context,
        text(row.response),
        text(row.references[0]) if row.references else "–",
        text(row.system or "–", 40),
    ]


def _check_lengths(row: RawRow, exchange: Exchange) -> None:
    for name, texts in (
        ("context", exchange.context),
        ("response", (exchange.response,)),
        ("reference", exchange.references),
        ("following or speakers", (exchange.following or "", *exchange.speakers)),
        ("id or system", (exchange.id or "", exchange.system or "")),
    ):
        longest = max(map(len, texts), default=0)
        if longest > MAX_CHARACTERS:
            raise row.bad(f"{name} has {longest:,} characters; this page takes {MAX_CHARACTERS:,}, so shorten it")
