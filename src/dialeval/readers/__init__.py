"""Readers: files, streams and data sets become checked exchanges, one at a time.

    >>> from dialeval.readers import Rejects, read_exchanges
    >>> with Rejects("bad.jsonl") as rejects:                                    # doctest: +SKIP
    ...     for exchange in read_exchanges("rows.csv", columns={"response": "reply"}, skip_bad=rejects):
    ...         ...
    >>> rejects.count                                                            # doctest: +SKIP

A row holds `context` (a list of turns), `response`, and optionally `reference` or `references`, `facts`,
`system`, `id`, `following` (the other side's next turn) and `speakers` (of each turn of the context); for
dialogues, `dialogue` (a list of turns) and `speakers` of all its turns. In CSV and Excel the turns of a cell stand
between separators, `__eou__` unless another is chosen. Chat logs (`messages`, `conversations`, transcripts) are
unfolded, see `chats`. Where these names are missing, columns are guessed from common ones, see `guess`.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, get_args

from dialeval.core.cautions import ENGLISH, language_of
from dialeval.core.exchange import MAX_TEXTS, BadRow, Dialogue, EmptyPolicy, Exchange
from dialeval.io.harmless import one_line
from dialeval.io.places import unchanging
from dialeval.readers.bundles import bundle_rows, is_folder_of_days
from dialeval.readers.chats.messages import as_json
from dialeval.readers.rows import (
    FIELDS,
    MESSAGE,
    MESSAGES,
    RATED_FIELDS,
    USUAL,
    Bounds,
    Choice,
    Columns,
    RawRow,
    Rejects,
    bounded,
    ending,
    guess_columns,
    lookup,
    not_a_text,
    required_fields,
    root_of,
    size_of,
    to_dialogue,
    to_exchange,
)
from dialeval.readers.show import in_words
from dialeval.readers.text import CONTEXT_SEPARATOR, csv_rows, json_rows, table_row, text_rows
from dialeval.readers.unfold import Chats, holds_rows, matching_ids, opened, read_transcript

__all__ = [
    "CONTEXT_SEPARATOR", "FORMATS", "Chats", "Dialogue", "Rejects", "Source", "guess_columns", "is_file_of_rows",
    "matching_ids", "read_exchanges", "read_transcript", "reply_text",
]  # fmt: skip

Format = Literal["jsonl", "csv", "tsv", "xlsx", "parquet", "arrow", "text", "zip", "dataset"]
FORMATS: tuple[Format, ...] = get_args(Format)
Input = str | Path | Iterable[Mapping[str, Any]]
OtherLanguages = Literal["mark", "skip", "fail"]

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".xlsx": "xlsx",
    ".xlsm": "xlsx", ".parquet": "parquet", ".arrow": "arrow", ".txt": "text", ".md": "text", ".vtt": "text",
    ".srt": "text", ".zip": "zip", ".eval": "zip",
}  # fmt: skip
#: Formats that are read from several places of a file.
_OF_FILES = frozenset({"parquet", "arrow", "xlsx", "zip"})
#: Columns that nobody reads, and that need no word: the place of a row, and the name of its conversation or bot.
_PASSED_OVER = frozenset({"row", "model", "conversation_id"})

#: So many rows are kept until one can be read.
_MOST_BAD = 10_000
#: So many of the first rows tell whether a column holds texts.
_LOOKED_AT = 20

_log = logging.getLogger("dialeval")

Item = TypeVar("Item", Exchange, Dialogue, str)
Row = TypeVar("Row", Exchange, Dialogue)


@dataclass(frozen=True)
class Source:
    """Where rows come from, and how they are laid out.

    `input` is a path, `-` for standard input, a folder or Hub id of a data set, or any iterable of
    mappings. The format is told by the file's ending unless it is given; standard input is JSON lines.
    What was guessed or left unread is logged, once for each source.
    """

    input: Input
    format: Format | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = CONTEXT_SEPARATOR
    split: str | None = None
    subset: str | None = None
    chats: Chats = field(default_factory=Chats)
    #: What becomes of replies that are not English: scored and named, left out, or refused.
    other_languages: OtherLanguages = "mark"
    #: Whether texts are cells of a table: several may stand in one, and an empty one is no value.
    cells: bool = False
    #: How much is read; a page for the public reads less.
    bounds: Bounds = USUAL
    #: So many of the first rows are logged as they are understood.
    show: int = 0
    #: Columns that somebody else reads, so that they are not told of as unread.
    beside: frozenset[str] = frozenset()
    #: What was reported already, here or by sources of the same file.
    reported: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def name(self) -> str:
        """How messages name the source."""
        if isinstance(self.input, str | Path):
            return "standard input" if str(self.input) == "-" else str(self.input)
        return type(self.input).__name__

    @property
    def can_be_read_twice(self) -> bool:
        """Whether a first look costs nothing but time: pipes and iterators are gone once read."""
        if isinstance(self.input, str | Path):
            path = Path(self.input)
            return str(self.input) != "-" and (not path.exists() or path.is_file() or path.is_dir())
        return not isinstance(self.input, Iterator)

    def exchanges(
        self, *, empty: EmptyPolicy = "error", needs: Collection[str] = (), skip_bad: Rejects | None = None
    ) -> Iterator[tuple[RawRow, Exchange]]:
        """Checked exchanges, each with the row it came from."""
        columns, rows = self._table("turn")
        checked = _checked(rows, lambda row: to_exchange(row, columns, empty=empty, needs=needs), skip_bad)
        yield from self._english(self._shown(self._of_texts(checked, columns)), skip_bad)

    def dialogues(
        self, *, empty: EmptyPolicy = "error", skip_bad: Rejects | None = None
    ) -> Iterator[tuple[RawRow, Dialogue]]:
        """Checked dialogues, each with the row it came from."""
        columns, rows = self._table("dialogue")
        checked = _checked(rows, lambda row: to_dialogue(row, columns, empty=empty), skip_bad)
        yield from self._english(self._shown(checked), skip_bad)

    def shown(self, rows: int, *, level: str = "turn") -> Iterator[str]:
        """The first rows in words. What was guessed, such as columns, is logged."""
        if not self.can_be_read_twice:
            raise ValueError(f"{self.name} can be read only once; to see how rows are read, pass a file")
        items: Iterator[tuple[RawRow, Exchange | Dialogue]]
        items = iter(self.dialogues(empty="score") if level == "dialogue" else self.exchanges(empty="score"))
        for row, item in islice(items, rows):
            yield from in_words(row, item)

    def preview(self, rows: int = 3) -> list[Mapping[str, Any]]:
        """The first rows as they are in the source, all columns; conversations unfolded into their replies."""
        first = list(islice(self._rows("preview", FIELDS), rows))
        read: list[Mapping[str, Any]] = [dict(row.values) for row in first if row.values is not None]
        if first and not read:
            raise first[0].bad(first[0].problem)
        return read

    def rated(self, *, by_people: bool = True) -> tuple[Columns, Iterator[RawRow]]:
        """Rows beside which stand ratings, as they are found, and which columns hold them.

        Where somebody else rates, the ratings may be missing.
        """
        columns, rows = self._table("rated" if by_people else "turn", (*FIELDS, *RATED_FIELDS))
        replies = ((row, str(columns.value(row, "response") or "")) for row in rows)
        return columns, (row for row, _ in self._english(replies, None))

    def _table(self, level: str, fields: tuple[str, ...] = FIELDS) -> tuple[Columns, Iterator[RawRow]]:
        """The raw rows, and which columns of theirs hold what: told by the first row that could be read."""
        Columns(self.columns, fields)  # refuses a field that does not exist before anything is opened
        rows = self._rows(level, fields)
        first: list[RawRow] = []
        held = 0
        for row in rows:
            first.append(row)
            if row.values is not None:
                break
            held += 1 + size_of(row.raw)
            if len(first) >= _MOST_BAD or held > self.bounds.whole:
                raise ValueError(
                    f"none of the first {len(first):,} rows of {self.name} can be read; of the first one: "
                    f"{first[0].problem}"
                )
        if not first:
            raise ValueError(f"{self.name} has no rows; there is nothing to score")
        values = first[-1].values or {}
        if MESSAGES in self.columns:  # what else was mapped has its own name by now
            return Columns({}, fields), chain(first, rows)
        columns = self._columns(list(values), [values], level, fields)
        is_table = self._is_table
        if is_table and (absent := columns.missing(values, required_fields(columns, values, level))) and values:
            raise ValueError(f"{self.name}: {absent}")
        whole = self._watched(chain(first, rows), columns, known={*values, *columns.wanted})
        cells = self.cells or (is_table and self._kind() in ("csv", "tsv", "xlsx"))
        if not self.separator:
            raise ValueError("the context separator is empty; pass the text between two turns")
        return columns, (table_row(row, columns, self.separator, cells=cells) for row in whole)

    def _rows(self, level: str, fields: tuple[str, ...]) -> Iterator[RawRow]:
        """The raw rows, of conversations their replies. What a file holds is told by its first row."""
        rows = bounded(unchanging(self._open(level, fields), [self.input]), self.name, self.bounds)
        first = next(rows, None)
        if first is None:
            return iter(())
        rows = chain([first], rows)
        mapped = next((name for name in (MESSAGES, "response", "dialogue", "response_a") if name in self.columns), "")
        if mapped:
            start = root_of(self.columns[mapped])
            rows = (inner for row in rows for inner in opened(row, lambda values: start in values))
            if mapped != MESSAGES:
                return rows
            rows = map(self._with_messages, rows)
        elif first.is_reply or (level == "rated" and {*RATED_FIELDS} & set(first.values or ())):
            return rows
        return self.chats.unfold(rows, level=level, tell=self._tell)

    def _with_messages(self, row: RawRow) -> RawRow:
        """The row of a conversation whose messages stand where the caller says."""
        if row.values is None:
            return row
        by_field = {field: lookup(row.values, column) for field, column in self.columns.items()}
        if not isinstance(as_json(by_field[MESSAGES]), list):
            return row.spoilt(f"{self.columns[MESSAGES]} is no list of messages")
        beside = {key: row.values[key] for key in ("id", "system", "model", "facts") if key in row.values}
        return RawRow(row.number, row.where, beside | by_field, duplicate=row.duplicate)

    @property
    def _is_table(self) -> bool:
        return isinstance(self.input, str | Path) and self._kind() not in ("jsonl", "text")

    def _columns(
        self, names: Sequence[str], rows: Sequence[Mapping[str, Any]], level: str, fields: tuple[str, ...]
    ) -> Columns:
        """The columns as they were named by the caller, or by the file; else as common names tell."""
        columns = Columns(self.columns, fields)
        if not columns.missing(names, required_fields(columns, names, level)) or level == "rated":
            self._tell_unread(names, columns)
            return columns
        if level == "dialogue":  # what is guessed is a reply's
            return columns
        known = {column for field, column in self.columns.items() if field != "id"}  # which may be the question itself
        guesses = guess_columns(names, rows).items()
        guessed = {field: column for field, column in guesses if field not in self.columns and column not in known}
        if not guessed or not ("response" in guessed or "response" in self.columns):
            return columns
        taken = [f"{field}={column}" for field, column in guessed.items() if field != column or field == MESSAGE]
        if taken:
            self._tell(f"columns are read as --columns {shlex.quote(','.join(taken))}")
        columns = Columns({**guessed, **self.columns}, fields)
        self._tell_unread(names, columns)
        return columns

    def _tell_unread(self, names: Sequence[str], columns: Columns) -> None:
        unread = [str(name) for name in names if name not in columns.wanted | _PASSED_OVER | self.beside]
        if unread and isinstance(self.input, str | Path):
            more = f" and {len(unread) - 10} more" if len(unread) > 10 else ""
            self._tell(f"ignored columns: {', '.join(unread[:10])}{more}")

    def _tell(self, message: str, about: str = "") -> None:
        """Log a message once, though a file may be read twice; of several messages about the same, the first."""
        if (about or message) not in self.reported:
            self.reported.add(about or message)
            _log.warning("%s", one_line(f"{self.name}: {message}"))

    def _watched(self, rows: Iterable[RawRow], columns: Columns, known: set[Any]) -> Iterator[RawRow]:
        """The rows; what nobody reads of those behind the first, and where a key stood twice, is told at the end."""
        twice: list[RawRow] = []
        others: dict[str, None] = {}
        for row in rows:
            if row.duplicate:
                twice.append(row)
            if row.values is not None and len(others) < MAX_TEXTS and not row.values.keys() <= known:
                others |= dict.fromkeys(name for name in row.values if name not in known)
            yield row
        self._tell_unread(list(others), columns)
        if twice:
            shown = ", ".join(str(row.number) for row in twice[:10]) + (" ..." if len(twice) > 10 else "")
            self._tell(
                f"{len(twice)} rows have a duplicate key, such as {twice[0].duplicate!r}; "
                f"the last value counts (rows {shown})"
            )

    def _of_texts(
        self, checked: Iterator[tuple[RawRow, Exchange]], columns: Columns
    ) -> Iterator[tuple[RawRow, Exchange]]:
        """The rows, unless the first ones all hold JSON or begin with one label: scored so, they would get zeros."""
        seen: list[Exchange] = []

        def check() -> None:
            turns = [(exchange.response, exchange.context[-1]) for exchange in seen if exchange.context]
            for name, texts in zip(("response", "context"), zip(*turns, strict=True), strict=False):
                if problem := not_a_text(texts, name, columns.name(name)):
                    raise ValueError(f"{self.name}: {problem}")

        for row, exchange in checked:
            if len(seen) < _LOOKED_AT:
                seen.append(exchange)
                if len(seen) == _LOOKED_AT:
                    check()
            yield row, exchange
        if len(seen) < _LOOKED_AT:
            check()

    def _shown(self, checked: Iterator[tuple[RawRow, Row]]) -> Iterator[tuple[RawRow, Row]]:
        """The rows; the first of them are logged where that is asked for, once for each source."""
        shown = f"rows of {self.columns.get('response')}"
        left = 0 if shown in self.reported else self.show
        self.reported.add(shown)
        for row, item in checked:
            if left:
                left -= 1
                for line in in_words(row, item):
                    _log.warning("%s", line)
            yield row, item

    def _english(
        self, checked: Iterable[tuple[RawRow, Item]], skip_bad: Rejects | None
    ) -> Iterator[tuple[RawRow, Item]]:
        """The rows; those whose reply is not English may be left out and counted, or refused."""
        if self.other_languages == "mark":
            yield from checked
            return
        skipped: list[int] = []
        for row, item in checked:
            language = language_of(reply_text(item))
            if language in ("", ENGLISH):
                yield row, item
                continue
            error = row.bad(f"the reply is not English ({language}); the metrics were trained on English")
            if self.other_languages == "fail":
                raise error
            skipped.append(row.number)
            if skip_bad is not None:
                skip_bad.add(row, error)
        if skipped:
            shown = ", ".join(map(str, skipped[:10])) + (" ..." if len(skipped) > 10 else "")
            self._tell(f"{len(skipped)} rows in other languages were left out (rows {shown})")

    def _open(self, level: str, fields: tuple[str, ...]) -> Iterator[RawRow]:
        from dialeval.readers.data_sets import hub_rows
        from dialeval.readers.table_rows import mapping_rows

        if not isinstance(self.input, str | Path):
            yield from mapping_rows(self.input, self.name)
            return

        def choose(names: Sequence[str]) -> Sequence[str]:
            """The columns that are read, of those in a file that can leave the others alone."""
            if level == "preview" or not (self.columns or {"response", "dialogue"} & set(names)):
                return names  # what a conversation or a guess needs is told by the first row
            columns = self._columns(names, (), level, fields)
            if absent := columns.missing(names, required_fields(columns, names, level)):
                raise ValueError(f"{self.name}: {absent}")
            return [column for column in columns.wanted if column in names]

        file_format = self._format()
        if file_format == "dataset":
            if not Path(self.input).is_dir():
                yield from hub_rows(str(self.input), choose, split=self.split, subset=self.subset)
                return
            number = count()
            for file in self._files:
                rows = self._of_path(_told_by_ending(file), file, str(file), choose)
                yield from (replace(row, number=next(number)) for row in rows)
            return
        if self.split is not None or self.subset is not None:
            raise ValueError(f"{self.name} is a file and has no splits or subsets; leave those options out")
        if str(self.input) != "-":
            yield from self._of_path(file_format, Path(self.input), self.name, choose)
        elif file_format in _OF_FILES:
            raise ValueError(f"{file_format} cannot be read from standard input; pass a file")
        elif sys.stdin is None:  # the shell's <&-
            raise ValueError("standard input is closed; name a file, or open it")
        else:
            yield from self._of_stream(file_format, sys.stdin.buffer, self.name)

    @cached_property
    def _files(self) -> list[Path]:
        from dialeval.readers.data_sets import files_of

        return files_of(Path(str(self.input)), _told_by_ending, self._tell, split=self.split, subset=self.subset)

    def _of_path(self, file_format: Format | None, path: Path, name: str, choose: Choice) -> Iterator[RawRow]:
        from dialeval.readers.arrow import arrow_rows
        from dialeval.readers.excel import excel_rows
        from dialeval.readers.parquet import parquet_rows

        with nullcontext() if path.is_dir() else _opened(path) as stream:
            if file_format == "zip":
                yield from bundle_rows(path, name, self._of_file, holds_rows, self.bounds)
            elif file_format == "xlsx":
                yield from excel_rows(path, name, self._tell, self.bounds)
            elif file_format == "arrow":
                yield from arrow_rows(path, name, choose, self.bounds)
            elif file_format == "parquet":
                yield from parquet_rows(path, name, choose, self.bounds)
            elif stream is not None:
                yield from self._of_stream(file_format, stream, name)

    def _of_stream(self, file_format: Format | None, stream: BinaryIO, name: str) -> Iterator[RawRow]:
        if file_format in ("csv", "tsv"):
            delimiter = "\t" if file_format == "tsv" else ","
            return csv_rows(stream, name, delimiter=delimiter, tell=self._tell, bounds=self.bounds)
        if file_format == "jsonl":
            return json_rows(stream, name, self.bounds)
        return text_rows(stream, name, self._tell, self.bounds)

    def _of_file(self, name: str, stream: BinaryIO) -> Iterator[RawRow] | None:
        """The rows of a file in an archive; None where its ending says that it holds none."""
        file_format = _told_by_ending(Path(name))
        return self._of_stream(file_format, stream, name) if file_format in ("jsonl", "csv", "tsv", "text") else None

    def _kind(self) -> Format | None:
        """The format of the file, or of those in a folder of data."""
        file_format = self._format()
        is_folder = file_format == "dataset" and Path(str(self.input)).is_dir()
        return _told_by_ending(self._files[0]) if is_folder and self._files else file_format

    def _format(self) -> Format:
        assert isinstance(self.input, str | Path)
        path = Path(self.input)
        if not str(self.input):
            raise ValueError("no input was given; pass a file, a data set, or - for standard input")
        if self.format is not None:
            if self.format not in FORMATS:
                raise ValueError(f"there is no format {self.format!r}; choose one of: {', '.join(FORMATS)}")
            if self.format != "dataset" and path.is_dir():
                raise IsADirectoryError(f"{path} is a folder; pass a file, or the format dataset")
            if self.format == "dataset" and path.is_file():
                raise ValueError(f"{path} is a file, not a data set; leave out the format, or say what the file is")
            return self.format
        if str(self.input) == "-":
            return "jsonl"
        if path.is_dir():
            return "zip" if is_folder_of_days(path) else "dataset"
        if (file_format := _told_by_ending(path)) is not None:
            return file_format
        if path.exists():
            endings = ", ".join(_SUFFIXES)
            raise ValueError(f"{path} has an unsupported extension; rename it ({endings}), or pipe JSON lines to -")
        # What is no file may be a data set of the Hub: `owner/name`.
        if str(self.input).count("/") == 1 and not str(self.input).startswith((".", "/", "~")):
            return "dataset"
        raise FileNotFoundError(f"there is no file {path}")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}") from None


def reply_text(item: Exchange | Dialogue | str) -> str:
    """What tells the language of a row: its reply, or what the judged side of a dialogue says."""
    if isinstance(item, str):
        return item
    return item.response if isinstance(item, Exchange) else " ".join(item.turns[turn] for turn in item.answers)


def is_file_of_rows(path: Path) -> bool:
    """Whether the ending says that a file holds rows, whether or not there is such a file."""
    return _told_by_ending(path) is not None


def _told_by_ending(path: Path) -> Format | None:
    return _SUFFIXES.get(ending(path))


def read_exchanges(
    input: Input,
    *,
    columns: Mapping[str, str] | None = None,
    empty: EmptyPolicy = "error",
    skip_bad: Rejects | None = None,
) -> Iterator[Exchange]:
    """Stream checked exchanges; `Source` has further options of reading, and reads dialogues.

    Args:
        input: A path (JSON lines, CSV, TSV or transcript, each also as .gz; Parquet, Excel), `-`, a folder or
            Hub id of a data set, or an iterable of mappings.
        columns: Field to column, for instance `{"response": "reply"}`.
        empty: Whether a blank response or context is refused or passed on and counted.
        skip_bad: Where bad rows are set aside; without it the first one raises `BadRow`.
    """
    return (exchange for _, exchange in Source(input, columns=columns or {}).exchanges(empty=empty, skip_bad=skip_bad))


def _checked(
    rows: Iterable[RawRow], check: Callable[[RawRow], Item], skip_bad: Rejects | None
) -> Iterator[tuple[RawRow, Item]]:
    for row in rows:
        try:
            item = check(row)
        except BadRow as error:
            if skip_bad is None:
                raise
            skip_bad.add(row, error)
            continue
        yield row, item
