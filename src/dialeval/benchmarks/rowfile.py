"""Anybody's benchmark: a file of JSON lines (plain or gzip), one item per line.

`context` and `response`, or a whole `dialogue`; then what people said about it: `scores` or `ratings`
per aspect, or a `label` of 0 or 1, or `responses` (lists of positive, adversarial and random replies),
or an `adversarial_response`. Everything else is optional: id, dataset, level, reference(s), facts,
system, speakers, following (the user's next turn), attack, domain, harmful.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from dialeval.benchmarks.base import BenchmarkInfo, BenchmarkLevel, FileSource, Kind, Row, Scale, SourceFile
from dialeval.benchmarks.item import BadItem, kind_of, level_of, rows_of
from dialeval.benchmarks.rows import complete
from dialeval.io import parse_json

SUFFIXES = (".jsonl", ".jsonl.gz")
#: Aspects that stand for the whole impression, best first; without one of them the first aspect does.
_MAIN = ("overall", "overall quality", "appropriateness", "coherence", "relevance", "relevant")
#: Names under which the known benchmarks list replies that no system wrote.
_HUMAN = {"human", "ground-truth", "original ground truth", "new human generated"}
_NEGATIVE = {"negative-sample"}


#: Of a file, packed or not; it is read as a whole, and the largest benchmark that is known has 20 MB.
MAX_BYTES = 2**28


class BadFile(ValueError):
    """A benchmark file cannot be read; the message names the file and, where one is to blame, the line."""


def read_file(path: Path) -> tuple[BenchmarkInfo, list[Row]]:
    """The rows of a file, and the declaration inferred from them."""
    content = _content(path)
    name = _stem(path)
    level: BenchmarkLevel | None = None
    kind: Kind | None = None
    lines_of: dict[str, int] = {}
    raw: list[Row] = []
    for number, (line, item) in enumerate(_items(path, content)):
        try:
            level, kind = _same(level, level_of(item)), _same(kind, kind_of(item))
            rows = rows_of(item, f"{name}-{number:05d}", level, kind)
        except BadItem as problem:
            raise BadFile(f"{path.name} line {line}: {problem}") from None
        for row in rows:
            if row["id"] in lines_of:
                raise BadFile(f"{path.name} line {line}: id {row['id']!r} was used in line {lines_of[row['id']]}")
            lines_of[row["id"]] = line
        raw.extend(rows)
    if level is None or kind is None:
        raise BadFile(f"{path.name} has no rows; write one JSON object per line")
    if kind == "ratings" and (empty := _unrated(raw)):
        row = next(row for row in raw if empty[0] in row["scores"] or empty[0] in row["ratings"])
        raise BadFile(f"{path.name} line {lines_of[row['id']]}: no row rates {empty[0]!r}; leave that aspect out")
    info = _infer(name, raw, level, kind, SourceFile(path.name, hashlib.sha256(content).hexdigest(), len(content)))
    return info, complete(info, raw)


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise BadFile(f"{path} is a folder; name a .jsonl file")
    try:
        with path.open("rb") as stream:  # a pipe has no size, and a device no end
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror}); pass a file that exists") from None
    return _bounded(path, content)


def _bounded(path: Path, content: bytes) -> bytes:
    if len(content) > MAX_BYTES:
        raise BadFile(f"{path.name} holds more than {MAX_BYTES // 2**20} MiB, more than any benchmark; split it")
    return content


def _items(path: Path, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
                content = _bounded(path, packed.read(MAX_BYTES + 1))
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(f"{path.name} is no complete gzip file ({error}); compress it again") from None
    except UnicodeDecodeError as error:
        raise BadFile(f"{path.name} is not UTF-8 (byte {error.start}); JSON lines in UTF-8 are read") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = parse_json(line)
        except json.JSONDecodeError as error:
            raise BadFile(f"{path.name} line {number}: not JSON ({error.msg} at column {error.colno})") from None
        if not isinstance(item, dict):
            raise BadFile(f"{path.name} line {number}: a {type(item).__name__}; write a JSON object")
        yield number, item


def _same(before: Any, now: Any) -> Any:
    if before is not None and before != now:
        raise BadItem(f"a {now} item after {before} items; put them into files of their own")
    return now


def _infer(name: str, rows: list[Row], level: BenchmarkLevel, kind: Kind, file: SourceFile) -> BenchmarkInfo:
    named = list(dict.fromkeys(row["dataset"] for row in rows if "dataset" in row))
    for row in rows:
        row.setdefault("dataset", name)
    systems = tuple(dict.fromkeys(row["system"] for row in rows if row.get("system") is not None))
    humans = tuple(system for system in systems if system.lower() in _HUMAN)
    negatives = tuple(system for system in systems if system.lower() in _NEGATIVE)
    written = {"generated": (*humans, *negatives)} if humans or negatives else {}
    aspects = {aspect: _scale(rows, aspect) for aspect in _aspects(rows)} if kind == "ratings" else {}
    main = {"labels": "label", "pairs": "harmful"}.get(kind) or min(aspects, key=_rank)
    return BenchmarkInfo(
        name=named[0] if len(named) == 1 else name,
        title=file.path,
        level=level,
        rows=len(rows),
        sources=(FileSource("local file", "", (file,)),),
        licence="not known",
        citation="not known",
        kind=kind,
        aspects=aspects,
        main_aspect=main,
        systems=systems,
        human_systems=humans,
        negative_systems=negatives,
        following=any("following" in row for row in rows),
        exclusions={"none": (), **written},
        oddities=("Aspects, their scales and the systems are inferred from the rows.",),
    )


def _aspects(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable((*row["scores"], *row["ratings"]) for row in rows)))


def _unrated(rows: list[Row]) -> list[str]:
    rated = {
        aspect
        for row in rows
        for aspect, value in (*row["scores"].items(), *row["ratings"].items())
        if value is not None and value != []
    }
    return [aspect for aspect in _aspects(rows) if aspect not in rated]


def _scale(rows: list[Row], aspect: str) -> Scale:
    given = [value for row in rows for value in row["ratings"].get(aspect, ())]
    values = given or [row["scores"][aspect] for row in rows if row["scores"].get(aspect) is not None]
    return Scale(min(values), max(values)) if values else Scale(0, 0)


def _rank(aspect: str) -> int:
    return _MAIN.index(aspect.lower()) if aspect.lower() in _MAIN else len(_MAIN)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")
