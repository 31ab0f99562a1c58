"""The evaluation files of FBD and PRD: one JSON object per line, a system is a position in its lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, Row
from dialeval.benchmarks.rows import complete
from dialeval.io import parse_json


def read_released(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """Every position of every line, in file order; the texts stay exactly as the authors' script reads them.

    The context is one joined string. The files carry mean scores only, so there are no single ratings.
    """
    (path,) = files.values()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            item = parse_json(line)
            for system, reply, scores in zip(info.systems, item["hyps"], item["human_scores"], strict=True):
                yield {
                    "context": [item["src"]],
                    "response": reply,
                    "references": item["refs"],
                    "system": system,
                    "scores": dict(zip(info.aspects, scores, strict=True)),
                }


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
        bibtex=f"{base.info.bibtex}\n{released.bibtex}",
        oddities=(*oddities, *base.info.oddities),
    )

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        for row in complete(base.info, base.read(base.info, files)):
            if row["system"] in info.systems:
                yield {**row, "dataset": info.name}

    return Definition(info, read)
