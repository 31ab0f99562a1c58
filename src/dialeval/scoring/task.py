"""What is to be judged, on which level and scale, by which metrics; and the chunks of rows in which it is done.

A chunk is what is scored, written and, after an interruption, not scored again.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dialeval.core.cautions import language_of
from dialeval.core.exchange import BadRow, Dialogue, EmptyPolicy, Exchange, is_blank
from dialeval.core.scores import Scores, aspect_column, explaining_columns, turns_column
from dialeval.core.specs import Condition
from dialeval.io.files import plain
from dialeval.io.places import States, check_unchanged, states
from dialeval.readers import Rejects, Source, reply_text
from dialeval.readers.rows import RawRow
from dialeval.registry.interface import Level, Metric, MetricInfo, Scale
from dialeval.scoring.score_table import FLAGS, ROW_KEYS, Kind, flagged

#: Pairs of context and response in the first chunk, and in a chunk when they have doubled so far: a run soon tells how
#: fast it is, and whoever stops it loses a few seconds. How long a chunk took does not count, so that a run that went
#: on gives the same file. And a bound on a chunk's text, which is what fills memory.
FIRST_PAIRS, CHUNK_PAIRS = 32, 512
CHUNK_CHARACTERS = 2**25


@dataclass
class Chunk:
    """Some consecutive rows, all of them exchanges or all of them dialogues."""

    rows: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    dialogues: list[Dialogue] = field(default_factory=list)

    @property
    def items(self) -> list[Exchange] | list[Dialogue]:
        """The exchanges or dialogues."""
        return self.dialogues or self.exchanges

    def fingerprint(self) -> str:
        """A digest of the rows' numbers and contents, so that a changed input is noticed."""
        digest = hashlib.sha256()
        for row, item in zip(self.rows, self.items, strict=True):
            digest.update(f"{row} {item!r}\n".encode())
        return digest.hexdigest()


def chunked(rows: Iterable[tuple[RawRow, Exchange | Dialogue]]) -> Iterator[Chunk]:
    """Cut a stream into chunks; where the cuts fall depends on the rows alone."""
    pairs = FIRST_PAIRS
    chunk, n_pairs, n_characters = Chunk(), 0, 0
    for row, item in rows:
        chunk.rows.append(row.number)
        chunk.places.append(row.place)
        n_characters += size_of(item)
        if isinstance(item, Dialogue):
            chunk.dialogues.append(item)
            n_pairs += len(item.turns) - 1
        else:
            chunk.exchanges.append(item)
            n_pairs += 1
        if n_pairs >= pairs or n_characters >= CHUNK_CHARACTERS:
            yield chunk
            pairs = min(CHUNK_PAIRS, 2 * pairs)
            chunk, n_pairs, n_characters = Chunk(), 0, 0
    if chunk.rows:
        yield chunk


def size_of(item: Exchange | Dialogue) -> int:
    """The characters of a row; of a dialogue each turn is judged with its prefix, which a metric may hold at once."""
    if isinstance(item, Dialogue):
        return sum(map(len, item.turns))
    return sum(map(len, item.context)) + len(item.response) + sum(map(len, item.references))


class Twins:
    """Rows that stand twice in a run have one value: batches of other shapes move its last digits, no more.

    What was judged is kept by a digest of the row. The values of chunks that an earlier run finished are seen, too, so
    that a run that went on gives the same file.
    """

    #: So many rows are kept, some 100 MB with all columns of the judge; later twins of earlier rows keep their digits.
    MOST = 2**17

    def __init__(self) -> None:
        self._seen: dict[bytes, list[Any]] = {}

    def settle(self, chunk: Chunk, record: dict[str, Any]) -> dict[str, Any]:
        """The record, in which rows seen before have the values that they had then."""
        columns = list(record["values"].values())
        items: Sequence[Exchange | Dialogue] = chunk.items
        for place, item in enumerate(items):
            key = hashlib.sha256(repr(replace(item, id=None, system=None)).encode()).digest()
            now = [column[place] for column in columns]
            before = self._seen.get(key)
            if before is None:
                if len(self._seen) < self.MOST:
                    self._seen[key] = now
            elif all(map(_differ_by_rounding, before, now)):
                for column, value in zip(columns, before, strict=True):
                    column[place] = value
        return record


def _differ_by_rounding(first: Any, other: Any) -> bool:
    """A function of somebody's may look at ids: rows of one text whose values differ by more are left alone."""
    if isinstance(first, float) and isinstance(other, float):
        return math.isclose(first, other, rel_tol=1e-4, abs_tol=1e-5)
    if isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        return all(map(_differ_by_rounding, first, other))
    return bool(first == other)


#: Whether intervals and reasons are wanted from those metrics that give them, and how many words.
Explain = Literal["no", "short", "full"]


@dataclass(frozen=True)
class Task:
    """What is to be judged, on which level and scale, by which metrics."""

    source: Source
    infos: Mapping[str, MetricInfo]
    level: Level = Level.TURN
    scale: Scale = "native"
    empty: EmptyPolicy = "error"
    #: Loaded metrics by name; a task without them can look its rows through but not score them.
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    explain: Explain = "no"
    #: Another system's replies, by id or context, that take the place of the rows' references.
    rivals: Mapping[Any, str] | None = None
    #: Of dialogues, also a list of values, one for each turn.
    per_turn: bool = False
    #: Conditions such as `respectful<0.5`; rows that meet one are marked.
    flag: Sequence[str] = ()
    #: Texts that stand beside the values: `response`, `context`; of dialogues `dialogue`.
    texts: Sequence[str] = ()
    #: The rows, where they were few enough to keep when they were looked through.
    kept: Sequence[tuple[RawRow, Exchange | Dialogue]] | None = None
    #: How many rows were good, and how the files of the run were, when the rows were looked through.
    n_checked: int | None = None
    files: States = field(default_factory=dict)

    def __post_init__(self) -> None:
        for info in self.infos.values():
            if self.level is Level.DIALOGUE:
                info.check_dialogues()
        if self.explain != "no" and not any(info.explains for info in self.infos.values()):
            named = ", ".join(self.infos)
            raise ValueError(f"{named}: these metrics give no explanations; leave out --explain, or add the judge")
        if self.per_turn and self.level is not Level.DIALOGUE:
            raise ValueError("values per turn need whole conversations (--level dialogue)")
        len(self.flags)  # refuses what is no condition
        columns = Counter([*ROW_KEYS, "context", "response", "dialogue", *self.columns, *self.of_systems])
        if twice := next((column for column, count in columns.items() if count > 1), None):
            raise ValueError(f"the table would have two columns {twice!r}; give the metric another name (?name=…)")

    @cached_property
    def of_systems(self) -> list[str]:
        """The metrics that compare sets and so need all rows at once."""
        return [name for name, info in self.infos.items() if info.level is Level.SYSTEM]

    @cached_property
    def of_rows(self) -> list[str]:
        """The metrics that give every row a value."""
        return [name for name in self.infos if name not in self.of_systems]

    @property
    def keys(self) -> tuple[str, ...]:
        """What stands before the values of a row."""
        return (*ROW_KEYS, *self.texts)

    @cached_property
    def columns(self) -> list[str]:
        """What the table has for every row: each metric's value, and what belongs to it behind it."""
        columns = columns_of(
            {name: self.infos[name] for name in self.of_rows}, self.level, explain=self.explain != "no"
        )
        turns = [turns_column(name) for name in self.of_rows if self.per_turn]
        return [*columns, *turns, *([FLAGS] if self.flag else [])]

    @cached_property
    def flags(self) -> tuple[Condition, ...]:
        """The conditions, checked."""
        values = columns_of({name: replace(self.infos[name], texts=()) for name in self.of_rows}, self.level)
        return tuple(Condition.read(text, values) for text in self.flag)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Those columns that hold words or lists."""
        explaining = [name for name in self.of_rows if self.explain != "no" and self.infos[name].explains]
        texts = [aspect_column(name, text) for name in self.of_rows for text in self.infos[name].texts]
        kinds: dict[str, Kind] = dict.fromkeys([*(explaining_columns(name)[-1] for name in explaining), *texts], "text")
        kinds |= {FLAGS: "text"} if self.flag else {}
        return kinds | dict.fromkeys((turns_column(name) for name in self.of_rows), "list")

    def rows(self, rejects: Rejects | None) -> Iterator[tuple[RawRow, Exchange | Dialogue]]:
        """The checked rows, in order."""
        if self.kept is not None:
            yield from self.kept
            return
        if self.level is Level.DIALOGUE:
            yield from self.source.dialogues(empty=self.empty, skip_bad=rejects)
            return
        needs = frozenset().union(*(info.needs for info in self.infos.values()))
        if self.rivals is None:
            yield from self.source.exchanges(empty=self.empty, needs=needs, skip_bad=rejects)
            return
        needs -= {"references"}
        for row, exchange in self.source.exchanges(empty=self.empty, needs=needs, skip_bad=rejects):
            if (rival := self.rivals.get(_answers(exchange))) is None:
                raise BadRow(row.place, "no matching row in the --against file; the same rows belong in both")
            yield row, replace(exchange, references=(rival,))

    def against(self, other: Source) -> Task:
        """The same task with the replies of another file as what each reply is compared with."""
        if self.level is Level.DIALOGUE:
            raise ValueError("a rival is compared reply by reply; leave --rival out, or the level")
        if not any("references" in info.needs for info in self.infos.values()):
            raise ValueError(f"{', '.join(self.infos)} compares replies with nothing; leave --rival out")
        rivals: dict[Any, str] = {}
        for row, exchange in other.exchanges(empty=self.empty, needs=frozenset(), skip_bad=None):
            if rivals.setdefault(_answers(exchange), exchange.response) != exchange.response:
                raise BadRow(row.place, "the rival's file has another reply to this row already; keep one of each")
        return replace(self, rivals=rivals)

    def look_through(self, reads: Iterable[str | Path] = (), *, skip_bad: bool) -> Task:
        """Read every row once and count the good ones, so that a bad last row stops a long run before it starts.

        The task that is given back keeps rows that are few, so that they are read once, and knows how its files were:
        the input, and the others that the run reads. A pipe cannot be read twice.
        """
        files = states([self.source.input, *reads])
        if not self.source.can_be_read_twice:
            return replace(self, files=files)
        rejects = Rejects() if skip_bad else None
        count, held, kept = 0, 0, list[tuple[RawRow, Exchange | Dialogue]]()
        for row, item in self.rows(rejects):
            count += 1
            if held <= CHUNK_CHARACTERS:
                held += size_of(item)
                kept.append((RawRow(row.number, row.where), item))
        if not count:
            raise nothing_left(rejects)
        is_whole = held <= CHUNK_CHARACTERS and not (rejects and rejects.count)
        return replace(self, n_checked=count, files=files, kept=kept if is_whole else None)

    def check_unchanged(self, n_scored: int | None = None) -> None:
        """Refuse a run in which other rows were scored than looked through, or during which its files changed."""
        check_unchanged(self.files)
        if n_scored is not None and self.n_checked not in (None, n_scored):
            raise ValueError(
                f"{self.source.name} had {self.n_checked} rows first and {n_scored} when it was scored; run it again"
            )

    def identity(self) -> dict[str, Any]:
        """What decides the values besides the rows: two runs that agree in it may share a journal."""
        signatures = {
            name: {**metric.signature(), "scale": metric.scale_signature(self._scale_of(metric))}
            for name, metric in ((name, self.metrics[name]) for name in self.of_rows)
        }
        explained: dict[str, Any] = {"explain": self.explain} if self.explain != "no" else {}
        explained |= {"per_turn": True} if self.per_turn else {}
        explained |= {"flag": [flag.text for flag in self.flags]} if self.flag else {}
        explained |= {"texts": list(self.texts)} if self.texts else {}
        return {"level": str(self.level), "scale": self.scale, "metrics": signatures, **explained}

    def score(self, chunk: Chunk) -> dict[str, Any]:
        """The finished record of one chunk."""
        scored = {name: self.judge(self.metrics[name], chunk) for name in self.of_rows}
        columns = {column: values for name, scores in scored.items() for column, values in scores.columns(name).items()}
        if self.flag:
            columns[FLAGS] = np.array(flagged(self.flags, columns, len(chunk.rows)), dtype=object)
        values = {column: plain(columns[column]) for column in self.columns}
        beside = {  # why rows have no value, and what judging took, where a metric tells
            "problems": {
                name: [[chunk.rows[place], why] for place, why in sorted(scores.problems.items())]
                for name, scores in scored.items()
                if scores.problems
            },
            "usage": {name: dict(some.details["usage"]) for name, some in scored.items() if "usage" in some.details},
        }
        return {
            "fingerprint": chunk.fingerprint(),
            "row": chunk.rows,
            "id": [item.id for item in chunk.items],
            "system": [item.system for item in chunk.items],
            "language": [language_of(reply_text(item)) for item in chunk.items],
            **{name: [_text_of(item, name) for item in chunk.items] for name in self.texts},
            "values": values,
            "n_truncated": {name: scores.n_truncated for name, scores in scored.items()},
            "n_empty": count_empty(chunk),
            "signature": {name: str(scores.signature) for name, scores in scored.items()},
            **{name: by_metric for name, by_metric in beside.items() if by_metric},
        }

    def judge(self, metric: Metric, chunk: Chunk) -> Scores:
        """What one metric says of a chunk."""
        scale = self._scale_of(metric)
        try:
            if self.level is Level.DIALOGUE:
                return metric.score_dialogues(
                    [dialogue.turns for dialogue in chunk.dialogues],
                    facts=[dialogue.facts for dialogue in chunk.dialogues],
                    speakers=[dialogue.speakers for dialogue in chunk.dialogues],
                    scale=scale,
                )
            return metric.score_exchanges(chunk.exchanges, scale=scale)
        except BadRow as error:  # a metric counts from the chunk's first row
            raise BadRow(chunk.places[int(error.row)], error.problem) from None

    def score_systems(self, name: str, exchanges: Sequence[Exchange]) -> Scores:
        """One value per system, from all rows."""
        return self.metrics[name].score_exchanges(exchanges, scale=self._scale_of(self.metrics[name]))

    def _scale_of(self, metric: Metric) -> Scale:
        """The scale asked for; of several metrics, those without it keep their own, as their signatures tell."""
        return self.scale if self.scale in metric.scales else "native"


def columns_of(infos: Mapping[str, MetricInfo], level: Level, *, explain: bool = False) -> list[str]:
    """The columns of metrics of rows, in the order in which tables have them."""
    columns = []
    for name, info in infos.items():
        columns += [name, *(aspect_column(name, aspect) for aspect in info.aspects_at(level))]
        columns += (aspect_column(name, text) for text in info.texts)
        columns += explaining_columns(name) if explain and info.explains else ()
    return columns


def texts_beside(level: Level, texts: Literal["none", "reply", "all"]) -> tuple[str, ...]:
    """The columns of texts that stand beside the values; a conversation has no reply of its own."""
    if level is Level.DIALOGUE:
        return ("dialogue",) if texts == "all" else ()
    return {"none": (), "reply": ("response",), "all": ("context", "response")}[texts]


def _text_of(item: Exchange | Dialogue, name: str) -> str | list[str]:
    """A text, or the turns of a conversation."""
    if isinstance(item, Dialogue):
        return list(item.turns)
    return item.response if name == "response" else list(item.context)


def _answers(exchange: Exchange) -> Any:
    """What a reply is a reply to: the row of that id, or its context."""
    return exchange.id or exchange.context


def unscored(chunk: Chunk) -> dict[str, Any]:
    """The record of a chunk that only metrics of systems see."""
    return {"fingerprint": chunk.fingerprint(), "row": chunk.rows, "values": {}, "n_empty": count_empty(chunk)}


def nothing_left(rejects: Rejects | None) -> ValueError:
    """What to say where no row can be scored: all are bad, or their language leaves them out."""
    if rejects and rejects.count:
        return ValueError(f"none of the {rejects.count} rows can be scored; the first: {rejects.first}")
    return ValueError("all rows were skipped: not English; --other-languages mark scores them")


def count_empty(chunk: Chunk) -> int:
    """Rows with a blank response, context or turn."""
    blank = sum(exchange.is_empty for exchange in chunk.exchanges)
    return blank + sum(any(map(is_blank, dialogue.turns)) for dialogue in chunk.dialogues)


def without_references(info: MetricInfo) -> MetricInfo:
    """What a metric of systems needs of the rows where its human side comes from elsewhere."""
    return replace(info, needs=info.needs - {"references"}) if info.level is Level.SYSTEM else info
