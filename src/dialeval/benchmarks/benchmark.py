"""What a benchmark is: where it comes from, what was rated, and what one must know to use it fairly."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from datasets import Dataset, Features

#: ratings: people rated each reply or dialogue; labels: each reply is valid or not;
#: pairs: a true reply beside an attacked one, without human scores.
Kind = Literal["ratings", "labels", "pairs"]
BenchmarkLevel = Literal["turn", "dialogue"]
Row = dict[str, Any]
T = TypeVar("T")
#: Local copies of a benchmark's source files, by their path in the repository.
Files = Mapping[str, Path]

#: Raised whenever `rows.complete` starts to fill the columns differently, so that cached values are not reused.
TABLE_VERSION = 1


@dataclass(frozen=True)
class Scale:
    """The lowest and highest rating that an annotator could give."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Below it a rating is a bad one."""
        return (self.low + self.high) / 2


#: Where the rows of a user's own file come from.
OWN_FILE = "local file"


@dataclass(frozen=True)
class SourceFile:
    """One file, pinned by its content."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class FileSource:
    """Files of one repository at one commit."""

    repository: str
    commit: str
    files: tuple[SourceFile, ...]


@dataclass(frozen=True)
class Subset:
    """Rows that a paper kept: some systems left out first, then the last share of what remains, in file order."""

    without: tuple[str, ...] = ()
    last_share: float = 1.0
    why: str = ""

    def keep(self, systems: Sequence[str | None]) -> list[int]:
        """Positions of the rows that stay, given the system of every row."""
        remaining = [position for position, system in enumerate(systems) if system not in self.without]
        return remaining[len(remaining) - round(len(remaining) * self.last_share) :]


@dataclass(frozen=True)
class BenchmarkInfo:
    """The declaration of one benchmark; everything a result must say about its data is here."""

    name: str
    title: str
    level: BenchmarkLevel
    rows: int
    sources: tuple[FileSource, ...]
    licence: str
    citation: str
    kind: Kind = "ratings"
    aspects: Mapping[str, Scale] = field(default_factory=dict)
    main_aspect: str = ""
    systems: tuple[str, ...] = ()
    #: Those of the systems that are people, and those whose replies were planted: people's, to another context.
    human_systems: tuple[str, ...] = ()
    negative_systems: tuple[str, ...] = ()
    exclusions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"none": ()})
    default_exclusion: str = "none"
    subsets: Mapping[str, Subset] = field(default_factory=dict)
    oddities: tuple[str, ...] = ()
    contaminates: tuple[str, ...] = ()
    #: Whether rows have a column `following`: what the user said after the response.
    following: bool = False
    protocol: str = "standard"
    #: The benchmark whose rows these are, grouped anew. `all` leaves it out, so that nothing counts twice.
    repeats: str = ""
    #: False where every row has the same label: material to train or to attack, left out of `all`.
    tells_apart: bool = True
    #: A converted file that stands in for sources too many to fetch one by one; it is looked for beside the mirror.
    companion: SourceFile | None = None
    #: To be raised when the reader of this benchmark starts to give other rows for the same files.
    reader_version: int = 1

    @property
    def files(self) -> tuple[tuple[FileSource, SourceFile], ...]:
        """Every file that the reader needs, with the source it belongs to."""
        return tuple((source, file) for source in self.sources for file in source.files)

    @property
    def written_by_people(self) -> frozenset[str]:
        """The systems whose replies no machine wrote."""
        return frozenset({*self.human_systems, *self.negative_systems})

    @property
    def revision(self) -> str:
        """A short digest that changes whenever the rows could."""
        pinned = [file.sha256 for _, file in self.files]
        if self.companion is not None:
            pinned.append(self.companion.sha256)
        parts = [self.name, self.protocol, str(self.reader_version), str(TABLE_VERSION), *pinned]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


#: Turns source files into raw rows; `rows.complete` adds ids, groups and mean scores. A raw row has `context` and
#: `response`, or `dialogue` and `speakers`; it may have `references`, `facts`, `system`, `following`, `group` and `id`;
#: and what people said: `ratings` (aspect -> list) or `scores` (aspect -> number), a `label` with its `kind_of_reply`,
#: or an `adversarial_response` with its `attack`.
Reader = Callable[[BenchmarkInfo, Files], Iterable[Row]]


@dataclass(frozen=True)
class Definition:
    """A declaration with the reader that its files need."""

    info: BenchmarkInfo
    read: Reader


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that was read: its declaration and its rows."""

    info: BenchmarkInfo
    dataset: Dataset

    @property
    def protocol(self) -> str:
        """Which of the benchmark's readings this is."""
        return self.info.protocol

    def select(self, *, exclusion: str | None = None, subset: str | None = None) -> Dataset:
        """The rows left by a named exclusion (the benchmark's default if None) or by a paper's named subset.

        A subset states its own exclusions, so only one of the two can be given.
        """
        if subset is not None:
            if exclusion is not None:
                raise ValueError(f"subset {subset!r} already says which systems are left out; drop the exclusion")
            rule = _named("subset", subset, self.info.subsets, self.info.name)
        else:
            name = self.info.default_exclusion if exclusion is None else exclusion
            rule = Subset(without=_named("exclusion", name, self.info.exclusions, self.info.name))
        return self.dataset.select(rule.keep(self.dataset["system"][:]))


def _named(what: str, name: str, table: Mapping[str, T], benchmark: str) -> T:
    if name not in table:
        known = ", ".join(table) or "none"
        raise ValueError(f"{benchmark} has no {what} {name!r}; it has: {known}")
    return table[name]


#: The order in which a labelled context's replies stand, and the word for each kind in row ids.
REPLY_KINDS = {"positive": "positive", "adversarial": "adversarial_negative", "random": "random_negative"}


def complete(info: BenchmarkInfo, raw: Iterable[Row]) -> list[Row]:
    """Give every raw row the columns of its kind; what the reader already set (an id, a group) stays."""
    groups: dict[tuple[str, ...], str] = {}
    rows = [_complete(info, row, number, groups) for number, row in enumerate(raw)]
    if len(rows) != info.rows:
        raise ValueError(
            f"{info.name} should have {info.rows} rows but its files gave {len(rows)}; declaration or reader is wrong"
        )
    if info.kind == "ratings":
        rated = {aspect for row in rows for aspect, score in row["scores"].items() if score is not None}
        if missing := [aspect for aspect in info.aspects if aspect not in rated]:
            raise ValueError(f"{info.name}: no row has a rating of {missing[0]!r}; name the aspects as its reader does")
    return rows


def to_dataset(info: BenchmarkInfo, rows: Sequence[Row]) -> Dataset:
    """Typed columns, so that an aspect without ratings or an empty list does not change the schema."""
    from datasets import Dataset

    typed = features(info)
    return Dataset.from_dict({name: [row[name] for row in rows] for name in typed}, features=typed)


def features(info: BenchmarkInfo) -> Features:
    """The columns of a benchmark, by level and kind."""
    from datasets import Features, List, Value

    text, texts, number = Value("string"), List(Value("string")), Value("float64")
    columns: dict[str, Any] = {"id": text, "dataset": text, "level": text}
    if info.level == "dialogue":
        columns |= {"dialogue": texts, "speakers": texts}
    else:
        columns |= {"context": texts, "response": text, "references": texts}
    columns |= {"following": text} if info.following else {}
    columns |= {"facts": texts, "system": text, "group": text}
    if info.kind == "ratings":
        columns["scores"] = dict.fromkeys(info.aspects, number)
        columns["ratings"] = {aspect: List(number) for aspect in info.aspects}
    elif info.kind == "labels":
        columns |= {"label": Value("int8"), "kind_of_reply": text}
    else:
        columns |= {"adversarial_context": texts, "adversarial_response": text}
        columns |= {"attack": text, "domain": text, "harmful": Value("bool")}
    return Features(columns)


def labelled_replies(
    row_id: str, context: Sequence[str], replies: Mapping[str, Sequence[str]], *, all_positives: bool = False
) -> list[Row]:
    """One row per reply of a context with positive, adversarial and random replies.

    A positive is compared with the other positives. A negative could be compared with all of them,
    but then it would have one reference more than a positive has; so the k-th negative leaves out the
    k-th positive unless `all_positives` is set.
    """
    positives = replies["positive"]
    rows = []
    for kind, word in REPLY_KINDS.items():
        for position, reply in enumerate(replies.get(kind, ())):
            left_out = None if all_positives and kind != "positive" else position % max(len(positives), 1)
            references = [text for number, text in enumerate(positives) if number != left_out]
            row = {"id": f"{row_id}#{word}#{position}", "context": list(context), "response": reply}
            rows.append({**row, "references": references, "label": int(kind == "positive"), "kind_of_reply": kind})
    return rows


def mean(ratings: Sequence[float]) -> float | None:
    """The plain mean, or None where nobody gave a number."""
    return math.fsum(ratings) / len(ratings) if ratings else None


def _complete(info: BenchmarkInfo, raw: Row, number: int, groups: dict[tuple[str, ...], str]) -> Row:
    turns = raw["dialogue"] if info.level == "dialogue" else raw["context"]
    group = groups.setdefault(tuple(turns), f"{info.name}-context-{len(groups):05d}")
    row: Row = {
        "id": f"{info.name}-{number:05d}",
        "references": [],
        "facts": [],
        "system": None,
        "group": group,
        **({"following": None} if info.following else {}),
        **raw,
        "dataset": raw.get("dataset", info.name),
        "level": info.level,
    }
    if info.level == "dialogue":
        del row["references"]
    if info.kind == "ratings":
        ratings = raw.get("ratings", {})
        given = raw.get("scores", {})
        row["ratings"] = {aspect: [float(value) for value in ratings.get(aspect, ())] for aspect in info.aspects}
        row["scores"] = {
            aspect: given[aspect] if given.get(aspect) is not None else mean(row["ratings"][aspect])
            for aspect in info.aspects
        }
    return row
