"""Readers: files, streams and data sets become checked exchanges, one at a time.

    >>> from dialeval.readers import Rejects, read_exchanges
    >>> with Rejects("bad.jsonl") as rejects:                                    # doctest: +SKIP
    ...     for exchange in read_exchanges("rows.csv", columns={"response": "reply"}, skip_bad=rejects):
    ...         ...
    >>> rejects.count                                                            # doctest: +SKIP

A row holds `context` (a list of turns), `response`, and optionally `reference` or `references`, `facts`,
`system`, `id`, `following` (the other side's next turn) and `speakers` (of each turn of the context); for
dialogues, `dialogue` (a list of turns) and `speakers` of all its turns. In CSV the turns of a cell stand between
separators, `__eou__` unless another is chosen. Chat logs (`messages`, `conversations`) are unfolded, see `chats`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from dialeval.exchange import BadRow, Dialogue, EmptyPolicy, Exchange
from dialeval.readers.chats import Chats
from dialeval.readers.rejects import Rejects
from dialeval.readers.rows import FIELDS, RATED_FIELDS, Columns, RawRow, to_dialogue, to_exchange
from dialeval.readers.text import CONTEXT_SEPARATOR, csv_rows, json_rows

__all__ = [
    "CONTEXT_SEPARATOR",
    "FORMATS",
    "Chats",
    "Dialogue",
    "Rejects",
    "Source",
    "is_file_of_rows",
    "read_dialogues",
    "read_exchanges",
]

Format = Literal["jsonl", "csv", "tsv", "parquet", "dataset"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "tsv", "parquet", "dataset")
Input = str | Path | Iterable[Mapping[str, Any]]

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}

Item = TypeVar("Item", Exchange, Dialogue)


@dataclass(frozen=True)
class Source:
    """Where rows come from, and how they are laid out.

    `input` is a path, `-` for standard input, a folder or Hub id of a data set, or any iterable of
    mappings. The format is told by the file's ending unless it is given; standard input is JSON lines.
    """

    input: Input
    format: Format | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = CONTEXT_SEPARATOR
    split: str | None = None
    subset: str | None = None
    chats: Chats = field(default_factory=Chats)

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
        columns = Columns(self.columns)
        return _checked(
            self._rows(columns, "turn"), lambda row: to_exchange(row, columns, empty=empty, needs=needs), skip_bad
        )

    def dialogues(
        self, *, empty: EmptyPolicy = "error", skip_bad: Rejects | None = None
    ) -> Iterator[tuple[RawRow, Dialogue]]:
        """Checked dialogues, each with the row it came from."""
        columns = Columns(self.columns)
        return _checked(self._rows(columns, "dialogue"), lambda row: to_dialogue(row, columns, empty=empty), skip_bad)

    def rated(self, *, by_people: bool = True) -> tuple[Columns, Iterator[RawRow]]:
        """Rows beside which stands what people said of them, as they are found, and which columns hold it.

        Where somebody else rates, what people said may be missing.
        """
        columns = Columns(self.columns, (*FIELDS, *RATED_FIELDS))
        return columns, self._rows(columns, "rated" if by_people else "turn")

    def _rows(self, columns: Columns, level: str) -> Iterator[RawRow]:
        count = 0
        for row in self.chats.unfold(self._open(columns, level), level=level):
            count += 1
            yield row
        if not count:
            raise ValueError(f"{self.name} holds no rows; there is nothing to score")

    def _open(self, columns: Columns, level: str) -> Iterator[RawRow]:
        from dialeval.readers import tables

        if not isinstance(self.input, str | Path):
            yield from tables.mapping_rows(self.input, self.name)
            return
        file_format = self._format()
        if file_format == "dataset":
            yield from tables.dataset_rows(
                str(self.input), self.name, columns, level=level, split=self.split, subset=self.subset
            )
            return
        if self.split is not None or self.subset is not None:
            raise ValueError(f"{self.name} is a file and has no splits or subsets; leave those options out")
        if file_format == "parquet":
            if str(self.input) == "-":
                raise ValueError("Parquet cannot be read from standard input; pass a file")
            with self._binary():  # says in our words why a file cannot be opened
                pass
            yield from tables.parquet_rows(Path(self.input), self.name, columns, level=level)
            return
        with self._binary() as stream:
            if file_format == "jsonl":
                yield from json_rows(stream, self.name)
            else:
                delimiter = "\t" if file_format == "tsv" else ","
                yield from csv_rows(
                    stream, self.name, columns, level=level, delimiter=delimiter, separator=self.separator
                )

    def _format(self) -> Format:
        assert isinstance(self.input, str | Path)
        path = Path(self.input)
        if not str(self.input):
            raise ValueError("the input has no name; pass a file, a data set, or - for standard input")
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
            return "dataset"
        if (file_format := _told_by_ending(path)) is not None:
            return file_format
        if path.exists():
            raise ValueError(f"the ending of {path} tells no format; choose one of: {', '.join(FORMATS)}")
        # What is no file may be a data set of the Hub: `owner/name`.
        if str(self.input).count("/") == 1 and not str(self.input).startswith((".", "/", "~")):
            return "dataset"
        raise FileNotFoundError(f"there is no file {path}")

    def _binary(self) -> AbstractContextManager[BinaryIO]:
        if str(self.input) == "-":
            if sys.stdin is None:  # the shell's <&-
                raise ValueError("standard input is closed; name a file, or open it")
            return nullcontext(sys.stdin.buffer)
        path = Path(str(self.input))
        try:
            return path.open("rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {path}") from None
        except OSError as error:
            raise type(error)(f"{path} cannot be read: {error.strerror}") from None


def is_file_of_rows(path: Path) -> bool:
    """Whether the ending says that a file holds rows, whether or not there is such a file."""
    return _told_by_ending(path) is not None


def _told_by_ending(path: Path) -> Format | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def read_exchanges(
    input: Input,
    *,
    format: Format | None = None,
    columns: Mapping[str, str] | None = None,
    separator: str = CONTEXT_SEPARATOR,
    split: str | None = None,
    subset: str | None = None,
    empty: EmptyPolicy = "error",
    skip_bad: Rejects | None = None,
) -> Iterator[Exchange]:
    """Stream checked exchanges from a file, `-`, a data set or an iterable of mappings.

    Args:
        input: A path (JSON lines, CSV or TSV, each also as .gz; Parquet), `-`, a folder or Hub id of a
            data set, or an iterable of mappings.
        format: What the input is, if its name does not tell.
        columns: Field to column, for instance `{"response": "reply"}`.
        separator: What stands between the turns of a CSV cell.
        split: The split of a data set with several.
        subset: The configuration of a data set with several.
        empty: Whether a blank response or context is refused or passed on and counted.
        skip_bad: Where bad rows are set aside; without it the first one raises `BadRow`.
    """
    source = Source(input, format, columns or {}, separator, split, subset)
    return (exchange for _, exchange in source.exchanges(empty=empty, skip_bad=skip_bad))


def read_dialogues(
    input: Input,
    *,
    format: Format | None = None,
    columns: Mapping[str, str] | None = None,
    separator: str = CONTEXT_SEPARATOR,
    split: str | None = None,
    subset: str | None = None,
    empty: EmptyPolicy = "error",
    skip_bad: Rejects | None = None,
) -> Iterator[Dialogue]:
    """Stream checked dialogues; the arguments are those of `read_exchanges`."""
    source = Source(input, format, columns or {}, separator, split, subset)
    return (dialogue for _, dialogue in source.dialogues(empty=empty, skip_bad=skip_bad))


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
