"""Rows of Excel files, of Hugging Face data sets, and of any iterable of mappings."""

from __future__ import annotations

import logging
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from dialeval.core.exchange import a_kind, check_kind
from dialeval.io.files import first_line, is_reachable
from dialeval.readers.rows import MANY, Bounds, Choice, RawRow, megabytes
from dialeval.readers.text import check_header
from dialeval.version import how_to_install

#: So many empty cells may be filled in for each byte of a sheet.
_MOST_FILLED = 4
#: Files that a folder of data may hold; `datasets` takes minutes to list more.
MAX_FILES = 1000
#: Endings of files that hold rows.
_DATA = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".parquet", ".arrow", ".xlsx"})


def excel_rows(path: Path, name: str, tell: Callable[[str], None], bounds: Bounds) -> Iterator[RawRow]:
    """Rows of the first sheet, all cells as texts; its first row names the columns."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(f"{name} is an Excel file; save it as CSV, or: {how_to_install('agreement')}") from None
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
        book = None if unpacked > bounds.workbook else openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet: Any
        sheet, *others = [None] if book is None else book.worksheets
    except Exception:  # a zip archive of anything else: openpyxl raises what comes
        raise _no_workbook(name) from None
    if book is None:
        raise ValueError(f"{name} unpacks to more than {megabytes(bounds.workbook)}; save it as CSV")
    most = _MOST_FILLED * max(unpacked, MANY)
    if any(any(row) for other in others for row in _cells(other, name, most)):
        tell(f"only the first sheet is read, {sheet.title!r}; save another one as a file of its own")
    filled = ((number, row) for number, row in enumerate(_cells(sheet, name, most), start=1) if any(row))
    _, header = next(filled, (0, []))
    named = [index for index, column in enumerate(header) if column]
    check_header([header[column] for column in named], name)
    for number, (line, row) in enumerate(filled):
        yield RawRow(
            number,
            f"{name}, line {line}",
            {header[column]: row[column] if column < len(row) else "" for column in named},
        )


def _cells(sheet: Any, name: str, most: int) -> Iterator[list[str]]:
    """The rows of a sheet, and what is not in the file before them: that is filled in, and has a bound."""
    from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]

    sheet.reset_dimensions()  # what a sheet says of its size may be anything, and rows are filled up to it
    rows, count = sheet.iter_rows(values_only=True), 0
    while True:
        try:
            row = next(rows, None)
        except Exception:  # openpyxl raises what comes
            raise _no_workbook(name) from None
        if row is None:
            return
        count += 1 + len(row)
        if count > most:
            raise ValueError(
                f"{name} is nearly all empty cells; remove what stands far from the rows, or save it as CSV"
            )
        # A control character, such as the end of a line of Windows, is written as `_x000D_`.
        yield ["" if cell is None else unescape(str(cell)) for cell in row]


def _no_workbook(name: str) -> ValueError:
    return ValueError(f"{name} is not an Excel file, or is damaged; save it again")


def dataset_rows(
    source: str, name: str, choose: Choice, tell: Callable[[str], None], *, split: str | None, subset: str | None
) -> Iterator[RawRow]:
    """Rows of a data set: a folder that `datasets` wrote, a folder of data files, or one on the Hub."""
    with _silent():
        data = _choose(_load(source, name, tell, subset), name, split)
        try:
            present = data.column_names or list(next(iter(data), {}))
        except Exception as error:  # whatever the parser of the files raises
            raise _unreadable(name, error) from None
        wanted = choose(present)
        try:
            yield from mapping_rows(data.select_columns(list(wanted)), name)
        except Exception as error:  # whatever the parser of the files raises
            raise _unreadable(name, error) from None


def mapping_rows(rows: Iterable[Any], name: str) -> Iterator[RawRow]:
    """Rows that are mappings already."""
    check_rows("what holds the rows", rows)
    for number, values in enumerate(mappings(rows)):
        if isinstance(values, Mapping):
            yield RawRow(number, name, values)
        else:
            problem = f"the row is {a_kind(values)}; pass a mapping of column names to values"
            yield RawRow(number, name, problem=problem, raw=repr(values)[:1000])


def is_frame(table: Any) -> bool:
    """Whether something has columns of its own: a frame of pandas, polars or Arrow, or a data set."""
    held = any(hasattr(table, name) for name in ("iloc", "iter_rows"))
    return hasattr(table, "column_names") or (held and hasattr(table, "columns"))


def check_rows(name: str, rows: object) -> None:
    """Refuse what holds no rows; tables of Arrow do, and cannot be iterated over."""
    if not is_frame(rows):
        check_kind(name, rows, Iterable, "a file, a data frame, mappings or exchanges")


def mappings(table: Any) -> Iterator[Any]:
    """The rows of a frame, or of anything that holds mappings, whose missing cells, NaN in frames, are no values."""
    rows: Iterable[Any] = table
    if is_frame(table):
        names = table.column_names if hasattr(table, "column_names") else table.columns
        check_header([] if names is None else list(map(str, names)), type(table).__name__)
        if hasattr(table, "iloc"):  # pandas, whose own ways make all cells of a row one type
            columns = [table[name].tolist() for name in names]
            rows = (dict(zip(map(str, names), cells, strict=True)) for cells in zip(*columns, strict=True))
        elif hasattr(table, "iter_rows"):  # polars
            rows = table.iter_rows(named=True)
        elif hasattr(table, "to_pylist"):  # Arrow
            rows = table.to_pylist()
        else:  # a data set, which may give its cells as tensors
            rows = table.with_format(None)
    for row in rows:
        yield {name: _plain(cell) for name, cell in row.items()} if isinstance(row, Mapping) else row


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.tolist() if hasattr(cell, "tolist") else cell


def _load(source: str, name: str, tell: Callable[[str], None], subset: str | None) -> Any:
    import datasets

    folder = Path(source)
    if any((folder / marker).is_file() for marker in ("dataset_dict.json", "state.json")):
        if subset is not None:
            raise ValueError(f"{name} has no subsets; leave out the subset {subset!r}")
        try:
            return datasets.load_from_disk(source)
        except Exception as error:  # its JSON may lack anything, and its tables may be no tables
            raise _unreadable(name, error) from None
    if folder.is_dir():
        _check_size(folder)
    else:
        _expect_on_hub(source)
    try:
        # A folder of files is streamed; what comes from the Hub is kept in its cache and memory-mapped.
        # It takes its name from the path, and "." has none.
        if not folder.is_dir():
            return datasets.load_dataset(source, subset)
        builder = datasets.load_dataset_builder(str(folder.resolve()), subset)
        _tell_unread(folder, builder.config.data_files or {}, tell)
        return builder.as_streaming_dataset()
    except ConnectionError as error:
        raise ValueError(f"{name} is not on this machine and the Hub does not answer ({first_line(error)})") from None
    except datasets.exceptions.DatasetNotFoundError:
        raise ValueError(f"there is no file or folder {name}, and no such data set on the Hub") from None
    except FileNotFoundError:
        raise ValueError(f"{name} holds no data files; pass a file, or a folder with some") from None
    except ValueError as error:
        if folder.is_dir():
            raise _unreadable(name, error) from None
        raise
    except Exception as error:
        raise _unreadable(name, error) from None


def _tell_unread(folder: Path, read: Mapping[Any, Sequence[str]], tell: Callable[[str], None]) -> None:
    """Of files of several kinds, or outside of folders that are named like splits, `datasets` takes some only."""
    taken = {Path(file) for files in read.values() for file in files}
    data = (file for file in sorted(folder.resolve().rglob("*")) if file.suffix.lower() in _DATA and file.is_file())
    if taken and (unread := [str(file.relative_to(folder.resolve())) for file in data if file not in taken]):
        more = f" and {len(unread) - 5} more" if len(unread) > 5 else ""
        tell(f"not read as part of this data set: {', '.join(unread[:5])}{more}; score such files one by one")


def _check_size(folder: Path) -> None:
    """Refuse at once a folder of so many files that it is no data set; they are not all listed to see that."""
    if sum(1 for _ in islice(folder.rglob("*"), MAX_FILES + 1)) > MAX_FILES:
        raise ValueError(
            f"{folder} is a folder of more than {MAX_FILES} files; pass one file, or a folder that holds only the rows"
        )


@contextmanager
def _silent() -> Iterator[None]:
    """Without what `datasets` logs about a file that it cannot read: the error says it in one sentence."""
    logger = logging.getLogger("datasets")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _unreadable(name: str, error: Exception) -> ValueError:
    reason = first_line(error.__cause__ or error)
    return ValueError(f"{name} cannot be read as a data set ({reason}); check its files, or write it again")


def _expect_on_hub(source: str) -> None:
    """Fail at once where `datasets` would retry for half a minute: not in its cache, and no network."""
    import datasets
    from huggingface_hub import constants

    if (Path(datasets.config.HF_DATASETS_CACHE) / source.replace("/", "___")).is_dir():
        return
    if constants.HF_HUB_OFFLINE or not is_reachable(constants.ENDPOINT):
        raise ValueError(f"there is no file or folder {source}, and the Hub cannot be reached to look for a data set")


def _choose(data: Any, name: str, split: str | None) -> Any:
    if not isinstance(data, Mapping):
        if split is not None:
            raise ValueError(f"{name} has no splits; leave out the split {split!r}")
        return data
    if split is None and len(data) == 1:
        return next(iter(data.values()))
    if split not in data:
        problem = f"has no split {split!r}" if split else "has several splits"
        raise ValueError(f"{name} {problem}; choose one of: {', '.join(map(str, data))}")
    return data[split]
