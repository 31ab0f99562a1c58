"""Pairs of a true reply and an attacked one: a converted file in the format that any benchmark may use."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Files, Row
from dialeval.benchmarks.rowfile import read_file


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The rows as they stand."""
    (path,) = files.values()
    return read_file(path)[1]
