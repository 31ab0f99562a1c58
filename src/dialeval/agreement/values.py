"""Values on disk: what was computed once is never computed again, and a killed run loses one chunk.

While a metric runs, every finished chunk becomes a file of its own; when all are there they become
one file of the same form, JSON lines, and the chunks go. Every file appears by a rename, so a reader never sees
half of one. The name holds a digest of all that may change a value: the metric's signature, the
benchmark's revision, and the ids.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialeval.io.files import parse_json, plain, safe_name, write_atomically
from dialeval.statistics.correlation import Floats


@dataclass(frozen=True)
class Values:
    """What a metric said of rows, and why it said nothing of some; `aspects` by name, then by row."""

    by_id: Mapping[str, float]
    problems: Mapping[str, str] = field(default_factory=dict)
    n_truncated: int = 0
    n_empty: int = 0
    aspects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Whether some rows may have a value another time, so that these must not be taken for good.
    passing: bool = False
    #: What judging took, `cost` and `seconds`, where the metric tells; and its signature with what only judging told.
    took: Mapping[str, float] = field(default_factory=dict)
    signature: str = ""

    def column(self, ids: Sequence[str], aspect: str | None = None) -> Floats:
        """The values (or those of an aspect) of these rows in this order, NaN where there is none."""
        import numpy as np

        known = self.by_id if aspect is None else self.aspects.get(aspect, {})
        return np.array([known.get(key, math.nan) for key in ids], dtype=np.float64)


@dataclass(frozen=True)
class StoredValues:
    """The place of one metric's values on one benchmark."""

    folder: Path
    header: Mapping[str, str]

    @property
    def path(self) -> Path:
        """The finished file."""
        digest = hashlib.sha256(json.dumps(dict(self.header), sort_keys=True).encode()).hexdigest()[:12]
        return self.folder / safe_name(self.header["benchmark"]) / f"{safe_name(self.header['metric'])}-{digest}.jsonl"

    @property
    def _chunks(self) -> Path:
        return self.path.with_suffix(".chunks")

    def _chunk(self, number: int) -> Path:
        return self._chunks / f"{number:06d}.jsonl"

    def read(self) -> Values | None:
        """The finished values, or None if there are none yet (or the file was damaged)."""
        if (values := _read(self.path)) is not None:
            # A run that ended between the finished file and its chunks left them.
            shutil.rmtree(self._chunks, ignore_errors=True)
        return values

    def read_chunk(self, number: int, ids: Sequence[str]) -> Values | None:
        """A chunk that an earlier run finished, if it is about the same rows."""
        values = _read(self._chunk(number))
        return values if values is not None and values.by_id.keys() | values.problems.keys() == set(ids) else None

    def write_chunk(self, number: int, values: Values) -> None:
        """Keep a finished chunk, unless another run has finished meanwhile: it needs none, and removes all."""
        try:
            _write(self._chunk(number), {}, [*values.by_id, *values.problems], values)
        except OSError:
            if not self.path.is_file():
                raise

    def finish(self, ids: Sequence[str], values: Values) -> None:
        """Write the finished file and drop the chunks."""
        _write(self.path, self.header, ids, values)
        shutil.rmtree(self._chunks, ignore_errors=True)


def _read(path: Path) -> Values | None:
    """What `_write` wrote; None if it did not, or the file was damaged."""
    try:
        # Not splitlines: texts may hold other characters that Unicode calls line ends.
        first, _, lines = path.read_text(encoding="utf-8").rstrip("\n").partition("\n")
        header, *rows = map(parse_json, [first, *(lines.split("\n") if lines else ())])
        if header.get("sum", _sum(lines)) != _sum(lines):  # older ones have none
            return None
        problems = {row["id"]: str(row["problem"]) for row in rows if "problem" in row}
        values = {
            row["id"]: math.nan if row["value"] is None else float(row["value"]) for row in rows if "problem" not in row
        }
        if len(values) + len(problems) != header["rows"]:
            return None
        aspects: dict[str, dict[str, float]] = {}
        for row in rows:
            for aspect, value in row.get("aspects", {}).items():
                aspects.setdefault(aspect, {})[row["id"]] = float(value)
        counts = int(header["n_truncated"]), int(header["n_empty"])
        took = {str(name): float(amount) for name, amount in header.get("took", {}).items()}
        return Values(values, problems, *counts, aspects, took=took, signature=str(header.get("told", "")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None


def _write(path: Path, header: Mapping[str, str], ids: Sequence[str], values: Values) -> None:
    """A line about all of them, then one of each."""
    counts = {"rows": len(ids), "n_truncated": values.n_truncated, "n_empty": values.n_empty}
    # What only metrics that cost something tell.
    costs = {"took": dict(values.took), "told": values.signature} if values.took else {}
    rows: list[dict[str, object]] = []
    for key in ids:
        if key in values.problems:
            rows.append({"id": key, "problem": values.problems[key]})
            continue
        aspects = {aspect: column[key] for aspect, column in values.aspects.items() if key in column}
        rows.append({"id": key, "value": plain(values.by_id[key]), **({"aspects": aspects} if aspects else {})})
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    first = json.dumps({**header, **counts, **costs, "sum": _sum(lines)}, ensure_ascii=False)
    write_atomically(path, [first, lines] if lines else [first])


def _sum(lines: str) -> int:
    """A flipped bit may leave a number that is one, too."""
    return zlib.crc32(lines.encode("utf-8", "surrogatepass"))


def merged(parts: Iterable[Values]) -> Values:
    """Chunks put together."""
    by_id: dict[str, float] = {}
    problems: dict[str, str] = {}
    aspects: dict[str, dict[str, float]] = {}
    n_truncated = n_empty = 0
    passing = False
    took: dict[str, float] = {}
    signatures: dict[str, None] = {}
    for part in parts:
        by_id.update(part.by_id)
        problems.update(part.problems)
        n_truncated += part.n_truncated
        n_empty += part.n_empty
        for aspect, known in part.aspects.items():
            aspects.setdefault(aspect, {}).update(known)
        passing = passing or part.passing
        took |= {name: took.get(name, 0.0) + amount for name, amount in part.took.items()}
        signatures |= {part.signature: None} if part.signature else {}
    return Values(by_id, problems, n_truncated, n_empty, aspects, passing, took, " and ".join(signatures))


def rows_digest(ids: Iterable[str]) -> str:
    """A short digest of row ids in order."""
    digest = hashlib.sha256()
    for key in ids:
        digest.update(key.encode() + b"\0")
    return digest.hexdigest()[:12]
