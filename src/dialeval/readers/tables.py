"""Rows of Parquet files, of Hugging Face data sets, and of any iterable of mappings."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialeval.readers.rows import Columns, RawRow, check_width, required_fields

#: Rows in memory at once. A small file can unpack to large texts, and what is unpacked is as many of them.
_BATCH = 64
#: Bytes of one row; a longer one is a broken file rather than a dialogue.
_MAX_ROW_BYTES = 16 * 2**20
#: Of the file's own description of itself.
_MAX_DESCRIPTION_BYTES = 2**26


def parquet_rows(path: Path, name: str, columns: Columns, *, level: str) -> Iterator[RawRow]:
    """Rows of one Parquet file, a batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(
            path,
            thrift_string_size_limit=_MAX_DESCRIPTION_BYTES,
            thrift_container_size_limit=_MAX_DESCRIPTION_BYTES // 64,
        )
    except (pa.ArrowException, OSError):
        raise ValueError(f"{name} is not a Parquet file, or is damaged; write it again") from None
    with file:
        present = file.schema_arrow.names
        check_width(name, len(present))
        if twice := sorted({column for column in columns.wanted() if present.count(column) > 1}):
            raise ValueError(f"{name} has two columns {twice[0]!r}; rename one of them")
        _require(present, name, columns, level)
        wanted = [column for column in columns.wanted() if column in present]
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                for at in range(batch.num_rows):
                    yield _arrow_row(batch, at, number, name)
                    number += 1
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{name} is damaged after row {number - 1} ({_first_line(error)})") from None


def dataset_rows(
    source: str, name: str, columns: Columns, *, level: str, split: str | None, subset: str | None
) -> Iterator[RawRow]:
    """Rows of a data set: a folder that `datasets` wrote, a folder of data files, or one on the Hub."""
    with _silent():
        data = _choose(_load(source, name, subset), name, split)
        try:
            present = data.column_names or list(next(iter(data), {}))
        except Exception as error:  # whatever the parser of the files raises
            raise _unreadable(name, error) from None
        _require(present, name, columns, level)
        wanted = [column for column in columns.wanted() if column in present]
        try:
            yield from mapping_rows(data.select_columns(wanted), name)
        except Exception as error:
            raise _unreadable(name, error) from None


def mapping_rows(rows: Iterable[Any], name: str) -> Iterator[RawRow]:
    """Rows that are mappings already."""
    for number, values in enumerate(rows):
        if isinstance(values, Mapping):
            yield RawRow(number, name, values)
        else:
            problem = f"the row is a {type(values).__name__}; pass a mapping of column names to values"
            yield RawRow(number, name, problem=problem, raw=repr(values)[:1000])


def _arrow_row(batch: Any, at: int, number: int, name: str) -> RawRow:
    values: dict[str, Any] = {}
    for column in batch.schema.names:
        cell = batch[column][at : at + 1]
        if cell.nbytes > _MAX_ROW_BYTES:
            problem = f"{column} is longer than {_MAX_ROW_BYTES // 2**20} MiB; a row holds a dialogue"
            return RawRow(number, name, problem=problem)
        try:
            values[column] = cell[0].as_py()
        except UnicodeDecodeError as error:
            return RawRow(number, name, problem=f"a text is not UTF-8 ({error.reason})")
        except Exception as error:  # a time before the first year, a zone that nobody has, a duration too long: any
            return RawRow(number, name, problem=f"{column} is a {cell.type} that Python has no value for ({error})")
    return RawRow(number, name, values)


def _require(present: list[str], name: str, columns: Columns, level: str) -> None:
    if absent := columns.missing(present, required_fields(columns, present, level)):
        raise ValueError(f"{name}: {absent}")


def _load(source: str, name: str, subset: str | None) -> Any:
    import datasets

    folder = Path(source)
    if any((folder / marker).is_file() for marker in ("dataset_dict.json", "state.json")):
        try:
            return datasets.load_from_disk(source)
        except Exception as error:  # its JSON may lack anything, and its tables may be no tables
            raise _unreadable(name, error) from None
    if not folder.is_dir():
        _expect_on_hub(source)
    try:
        # A folder of files is streamed; what comes from the Hub is kept in its cache and memory-mapped.
        # It takes its name from the path, and "." has none.
        found = str(folder.resolve()) if folder.is_dir() else source
        return datasets.load_dataset(found, subset, streaming=folder.is_dir())
    except ConnectionError as error:
        raise ValueError(f"{name} is not on this machine and the Hub does not answer ({_first_line(error)})") from None
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
    reason = _first_line(error.__cause__ or error)
    return ValueError(f"{name} cannot be read as a data set ({reason}); check its files, or write it again")


def _expect_on_hub(source: str) -> None:
    """Fail at once where `datasets` would retry for half a minute: not in its cache, and no network."""
    import datasets
    from huggingface_hub import constants

    from dialeval.io import is_reachable

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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
