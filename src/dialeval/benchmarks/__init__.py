"""Human-judgement benchmarks: what there is, what one must know about each, and its rows.

>>> from dialeval import benchmarks
>>> data = benchmarks.load("convai2_grade")          # doctest: +SKIP
>>> data.dataset[0]["scores"]["coherence"]           # doctest: +SKIP
3.0
"""

from __future__ import annotations

import os
from pathlib import Path

from dialeval.benchmarks.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Definition,
    FileSource,
    Scale,
    SourceFile,
    Subset,
    complete,
    to_dataset,
)
from dialeval.benchmarks.declarations import definitions
from dialeval.benchmarks.fetch import FetchError, Unreachable, fetch_files
from dialeval.benchmarks.rowfile import SUFFIXES, BadFile, read_file
from dialeval.core.specs import did_you_mean

__all__ = [
    "SUFFIXES",
    "BadFile",
    "Benchmark",
    "BenchmarkInfo",
    "FetchError",
    "FileSource",
    "Scale",
    "SourceFile",
    "Subset",
    "Unreachable",
    "available",
    "fetch_files",
    "info",
    "load",
    "protocols",
]


def available() -> list[str]:
    """The names that `load` knows."""
    return list(definitions())


def protocols(name: str) -> tuple[str, ...]:
    """The readings that a benchmark allows, the default first."""
    return tuple(definition.info.protocol for definition in _definitions(name))


def info(name: str, protocol: str | None = None) -> BenchmarkInfo:
    """The declaration of a benchmark, without fetching anything."""
    return _definition(name, protocol).info


def load(
    name_or_file: str | os.PathLike[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    protocol: str | None = None,
    progress: bool = False,
) -> Benchmark:
    """Read a benchmark by name, fetching its files if they are not in the cache, or from your own JSON lines.

    Args:
        name_or_file: a name of `available()`, or the path of a .jsonl or .jsonl.gz file.
        mirror: a folder or URL to read from instead of GitHub; DIALEVAL_MIRROR if None.
        protocol: which reading, where a benchmark allows several; see `protocols()`.
        progress: show a bar on a terminal while fetching.
    """
    text = os.fspath(name_or_file)
    if text not in definitions() and (text.endswith(SUFFIXES) or not isinstance(name_or_file, str) or os.sep in text):
        if protocol is not None:
            raise ValueError(f"{text} is a file and has no protocols; leave protocol out")
        declared, rows = read_file(Path(text).expanduser())
    else:
        definition = _definition(text, protocol)
        declared = definition.info
        rows = complete(declared, definition.read(declared, fetch_files(declared, mirror=mirror, progress=progress)))
    return Benchmark(declared, to_dataset(declared, rows))


def _definitions(name: str) -> tuple[Definition, ...]:
    known = definitions()
    if name not in known:
        hint = did_you_mean(name, known, f"there are {', '.join(known)}, or pass a .jsonl file")
        raise ValueError(f"there is no benchmark {name!r}; {hint}")
    return known[name]


def _definition(name: str, protocol: str | None) -> Definition:
    definitions = _definitions(name)
    if protocol is None:
        return definitions[0]
    for definition in definitions:
        if definition.info.protocol == protocol:
            return definition
    known = ", ".join(definition.info.protocol for definition in definitions)
    raise ValueError(f"{name} has no protocol {protocol!r}; it has: {known}")
