"""The declarations of `catalogue.yaml` as objects."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

import yaml

from dialeval.benchmarks import readers
from dialeval.benchmarks.benchmark import (
    BenchmarkInfo,
    Definition,
    Files,
    FileSource,
    Row,
    Scale,
    SourceFile,
    Subset,
    complete,
)

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
            entry = {
                **release,
                **entries,
                "name": name,
                "files": {**release.get("files", {}), **entries.get("files", {})},
            }
            reader = functools.partial(getattr(readers, entry["reader"]), **entry.get("arguments", {}))
            definition = Definition(_declared(entry), reader)
            if "clean" in entries:
                clean = entries["clean"]
                base = by_name[clean.get("of", entries["repeats"])][0]
                by_name[name] = (
                    cleaned(definition.info, base, rows=clean["rows"], oddities=tuple(clean["oddities"])),
                    definition,
                )
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
