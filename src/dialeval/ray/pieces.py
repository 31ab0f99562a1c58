"""Which pieces Parquet files are cut into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dialeval.ray.recipe import ScoringRecipe
from dialeval.readers.rows import Columns, required_fields


@dataclass(frozen=True)
class PieceOfFile:
    """Some rows of a row group, and the number of the first of them in the whole input."""

    path: str
    #: Bytes of the file, by which a changed one is noticed.
    size: int
    group: int
    start: int
    rows: int
    first: int
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """What its part of the output is called; names sort as the rows do."""
        return f"part-{self.first:015d}"


def pieces_of(inputs: Sequence[str], recipe: ScoringRecipe, piece_rows: int) -> list[PieceOfFile]:
    """All pieces of all files, in the order of the files' names."""
    if piece_rows < 1:
        raise ValueError(f"piece_rows is {piece_rows}; pass at least 1")
    columns = Columns(recipe.columns)
    paths = [path for input in inputs for path in _paths(input)]
    with ThreadPoolExecutor(16) as several:
        layouts = list(several.map(_layout, paths))
    pieces: list[PieceOfFile] = []
    first = 0
    for path, (size, names, groups) in zip(paths, layouts, strict=True):
        if absent := columns.missing(names, required_fields(columns, names, str(recipe.level))):
            raise ValueError(f"{path}: {absent}")
        wanted = tuple(column for column in columns.wanted() if column in names)
        for group, rows in enumerate(groups):
            for start in range(0, rows, piece_rows):
                count = min(piece_rows, rows - start)
                pieces.append(PieceOfFile(path, size, group, start, count, first, wanted))
                first += count
    if not pieces:
        raise ValueError(f"{', '.join(inputs)} holds no rows; there is nothing to score")
    return pieces


@contextmanager
def open_file(path: str) -> Iterator[Any]:
    """A Parquet file wherever it lies."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    system, name = file_system(path)
    try:
        with system.open(name, "rb") as stream, pq.ParquetFile(stream) as file:
            yield file
    except pa.ArrowInvalid:
        raise ValueError(f"{path} is not a Parquet file, or is damaged; write it again") from None


def file_system(url: str) -> tuple[Any, str]:
    """Where an address leads: a file system of fsspec's, and the path in it."""
    import fsspec  # type: ignore[import-untyped]

    system, path = fsspec.url_to_fs(url)
    return system, str(path)


def _paths(input: str) -> list[str]:
    system, path = file_system(input)
    pattern = f"{path.rstrip('/')}/**/*.parquet" if system.isdir(path) else path
    found = sorted(system.glob(pattern)) if "*" in pattern else [path] if system.exists(path) else []
    if not found:
        raise FileNotFoundError(f"there is no file {input}")
    return [str(system.unstrip_protocol(name)) for name in found]


def _layout(path: str) -> tuple[int, list[str], list[int]]:
    """A file's bytes, its columns, and how many rows its groups have; only the footer is read."""
    system, name = file_system(path)
    with open_file(path) as file:
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        return int(system.size(name)), list(file.schema_arrow.names), groups
