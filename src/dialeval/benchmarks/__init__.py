"""Human-judgement benchmarks: what there is, what one must know about each, and its rows.

>>> from dialeval import benchmarks
>>> data = benchmarks.load("convai2_grade")          # doctest: +SKIP
>>> data.dataset[0]["scores"]["coherence"]           # doctest: +SKIP
3.0
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from dialeval.benchmarks import readers
from dialeval.benchmarks.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Definition,
    Files,
    FileSource,
    Row,
    Scale,
    SourceFile,
    Subset,
    complete,
    to_dataset,
)
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
    known = {definition.info.protocol: definition for definition in _definitions(name)}
    wanted = next(iter(known)) if protocol is None else protocol
    if wanted not in known:
        raise ValueError(f"{name} has no protocol {protocol!r}; it has: {', '.join(known)}")
    return known[wanted]


#: Fields of an entry that are no plain values of `BenchmarkInfo`.
_NOT_PLAIN = frozenset(
    "paper repository commit files companion aspects subsets exclusions reader arguments all_positives clean "
    "benchmarks".split()
)


@functools.cache
def definitions() -> dict[str, tuple[Definition, ...]]:
    """Every benchmark with its protocols, the default first, in the order of the file."""
    by_name: dict[str, tuple[Definition, ...]] = {}
    for release in yaml.safe_load((resources.files(__package__) / "catalogue.yaml").read_bytes()):
        for name, entries in release["benchmarks"].items():
            files = {**release.get("files", {}), **entries.get("files", {})}
            entry = {**release, **entries, "name": name, "files": files}
            reader = functools.partial(getattr(readers, entry["reader"]), **entry.get("arguments", {}))
            definition = Definition(_declared(entry), reader)
            if "clean" in entries:
                clean = entries["clean"]
                base = by_name[clean.get("of", entries["repeats"])][0]
                real = cleaned(definition.info, base, rows=clean["rows"], oddities=tuple(clean["oddities"]))
                by_name[name] = real, definition
            elif "all_positives" in entries:
                # Negatives with as many references as positives have, or with all.
                again = replace(definition.info, protocol="all_positives")
                by_name[name] = definition, Definition(again, functools.partial(reader, all_positives=True))
            else:
                by_name[name] = (definition,)
    return by_name


def _declared(entry: Mapping[str, Any]) -> BenchmarkInfo:
    plain = {key: _frozen(value) for key, value in entry.items() if key not in _NOT_PLAIN}
    files = tuple(SourceFile(path, *pinned) for path, pinned in entry["files"].items())
    companions = [SourceFile(path, *pinned) for path, pinned in entry.get("companion", {}).items()]
    return BenchmarkInfo(
        **plain,
        citation=_cited(**entry["paper"]),
        sources=(FileSource(entry["repository"], entry["commit"], files),),
        companion=companions[0] if companions else None,
        aspects={aspect: Scale(*scale) for aspect, scale in entry.get("aspects", {}).items()},
        exclusions={name: tuple(systems) for name, systems in entry.get("exclusions", {"none": ()}).items()},
        subsets={
            name: Subset(**{key: _frozen(value) for key, value in subset.items()})
            for name, subset in entry.get("subsets", {}).items()
        },
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _cited(authors: str, title: str, venue: str, year: int) -> str:
    surnames = [author.split(",")[0] for author in authors.split(" and ")]
    short = " and ".join(surnames) if len(surnames) <= 2 else f"{surnames[0]} et al."
    return f"{short} ({year}): {title}. {venue}."


def cleaned(released: BenchmarkInfo, base: Definition, *, rows: int, oddities: tuple[str, ...]) -> Definition:
    """The same comparison on real systems: another benchmark's generators, each with the contexts it answered.

    Human replies and planted negatives are left out. Rows keep the ids and groups of the other
    benchmark, so that scores computed for it are valid here.
    """
    dropped = (*base.info.human_systems, *base.info.negative_systems)
    info = replace(
        base.info,
        name=released.name,
        title=released.title,
        protocol="clean",
        repeats=base.info.name,
        rows=rows,
        systems=tuple(system for system in base.info.systems if system not in dropped),
        human_systems=(),
        negative_systems=(),
        exclusions={"none": ()},
        default_exclusion="none",
        subsets={},
        citation=f"{base.info.citation} As grouped in {released.citation}",
        oddities=(*oddities, *base.info.oddities),
    )

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        for row in complete(base.info, base.read(base.info, files)):
            if row["system"] in info.systems:
                yield {**row, "dataset": info.name}

    return Definition(info, read)
