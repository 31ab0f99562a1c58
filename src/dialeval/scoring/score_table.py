"""What a run writes: the table of scores, and the summary with everything needed to read and repeat its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dialeval.core.cautions import cut_note
from dialeval.core.exchange import counted
from dialeval.core.scores import Scores, aspect_column
from dialeval.core.specs import Condition
from dialeval.io.harmless import csv_line, json_text
from dialeval.registry.interface import Level, MetricInfo

OutputFormat = Literal["jsonl", "csv", "parquet"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("jsonl", "csv", "parquet")

#: What tells the rows of a table apart; the metrics' columns follow.
ROW_KEYS = ("row", "id", "system", "language")

#: What a metric's column holds where that is no number: words, or a list of numbers.
Kind = Literal["text", "list"]

#: A part of a table: lists of equal length under its keys, and under each metric's name in "values".
Record = Mapping[str, Any]


def output_format(path: str) -> OutputFormat:
    """The format of an output: JSON lines for a pipe, else from the file extension."""
    extension = "jsonl" if path == "-" else Path(path).suffix.lower().lstrip(".")
    if extension not in OUTPUT_FORMATS:
        raise ValueError(f"cannot infer the format of {path}; its extension is one of: {', '.join(OUTPUT_FORMATS)}")
    return extension


@contextmanager
def table(
    stream: BinaryIO,
    file_format: OutputFormat,
    metrics: Sequence[str],
    keys: Sequence[str] = ROW_KEYS,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> Iterator[Callable[[Record], None]]:
    """A function that writes one part of the table to the stream; `kinds` names the columns that hold no numbers."""
    if file_format == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(column_kinds(metrics, keys, kinds or {}).items())
        with pq.ParquetWriter(stream, schema) as writer:
            yield lambda record: writer.write_table(pa.table(_columns(metrics, keys, record), schema=schema))
        return
    if file_format == "csv":
        stream.write(csv_line([*keys, *metrics]).encode())

    def write(record: Record) -> None:
        columns = _columns(metrics, keys, record)
        for cells in zip(*columns.values(), strict=True):
            row = dict(zip(columns, cells, strict=True))
            stream.write((csv_line(cells) if file_format == "csv" else json_text(row) + "\n").encode())

    yield write


def _columns(metrics: Sequence[str], keys: Sequence[str], record: Record) -> dict[str, Sequence[Any]]:
    return {key: record[key] for key in keys} | {name: record["values"][name] for name in metrics}


def column_kinds(metrics: Iterable[str], keys: Iterable[str], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """The Arrow type of every column, in order."""
    import pyarrow as pa

    turns = pa.list_(pa.string())
    of_keys = {"row": pa.int64(), "context": turns, "dialogue": turns}
    types = {"text": pa.string(), "list": pa.list_(pa.float64())}
    of_metrics = {name: types[kinds[name]] if name in kinds else pa.float64() for name in metrics}
    return {key: of_keys.get(key, pa.string()) for key in keys} | of_metrics


#: So many rows without a value are told on the screen; the summary file has all of them.
_SHOWN = 10
#: Likewise for systems.
_SYSTEMS_SHOWN = 50


#: What metrics make of a conversation that do not look at it as a whole.
_EVERY_TURN = "every turn of both sides, scored in its own context"


@dataclass
class Mean:
    """A running mean of those rows that have a value."""

    n: int = 0
    total: float = 0.0

    def add(self, values: Iterable[float | None]) -> None:
        """Count some more rows."""
        known = [value for value in values if value is not None]
        self.n += len(known)
        self.total += math.fsum(known)

    @property
    def value(self) -> float | None:
        """The mean; None without values."""
        return self.total / self.n if self.n else None


@dataclass
class Tally:
    """Running totals of one metric over the chunks of a run."""

    higher_is_better: bool
    signature: str = ""
    n: int = 0
    n_truncated: int = 0
    mean: Mean = field(default_factory=Mean)
    systems: dict[str, float | None] | None = None
    of_set: float | None = None
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    confidence: float | None = None
    #: Which turns of a dialogue were judged, where not all of them were.
    judges: str = ""
    aspects: dict[str, Mean] = field(default_factory=dict)
    #: By system, where rows name one, in the order of first occurrence.
    by_system: dict[str, Mean] = field(default_factory=dict)
    #: Rows without a value and why, where the metric tells.
    problems: list[tuple[int, str]] = field(default_factory=list)
    #: What judging took, where it costs more than time.
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def aggregate(self) -> float | None:
        """The metric's own number for a set of systems, else the mean of the finite values."""
        return self.mean.value if self.systems is None else self.of_set


@dataclass
class Summary:
    """How many rows were scored, what became of the others, and the tallies."""

    level: str
    tallies: dict[str, Tally]
    n: int = 0
    n_empty: int = 0
    n_resumed: int = 0
    n_rejected: int = 0
    #: Where the numbers mislead; see `dialeval.core.cautions`. What was cut is added from the tallies.
    cautions: list[str] = field(default_factory=list)
    #: How many rows each flag marks.
    flags: dict[str, int] = field(default_factory=dict)
    #: The worst rows in words, where they were asked for.
    worst: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, level: str, infos: Mapping[str, MetricInfo]) -> Summary:
        """A summary of nothing yet."""
        tallies = {
            name: Tally(
                info.higher_is_better,
                judges=(info.of_dialogues or _EVERY_TURN) if level == Level.DIALOGUE else "",
                aspects={aspect: Mean() for aspect in info.aspects_at(Level(level))},
            )
            for name, info in infos.items()
        }
        return cls(level, tallies)

    def add(self, record: Record) -> None:
        """Count one finished chunk."""
        self.n += len(record["row"])
        self.n_empty += record["n_empty"]
        for marks in record["values"].get(FLAGS, ()):
            for flag in marks.split():
                self.flags[flag] = self.flags.get(flag, 0) + 1
        for name, signature in record.get("signature", {}).items():
            tally, values = self.tallies[name], record["values"][name]
            tally.mean.add(values)
            for aspect, mean in tally.aspects.items():
                mean.add(record["values"][aspect_column(name, aspect)])
            systems = record.get("system", [None] * len(values))
            for system in dict.fromkeys(system for system in systems if system is not None):
                values_of_system = [value for value, whose in zip(values, systems, strict=True) if whose == system]
                tally.by_system.setdefault(system, Mean()).add(values_of_system)
            tally.n += len(values)
            tally.n_truncated += record["n_truncated"][name]
            tally.signature = signature
            tally.problems += map(tuple, record.get("problems", {}).get(name, []))
            usage = record.get("usage", {}).get(name, {})
            tally.usage |= {kind: tally.usage.get(kind, 0) + amount for kind, amount in usage.items()}

    def add_systems(self, name: str, scores: Scores) -> None:
        """Note the values of a metric that judges systems."""
        labels = scores.ids or ("all",) * len(scores)
        plain = scores.to_dict()
        tally = self.tallies[name]
        tally.systems = {label or "all": value for label, value in zip(labels, plain["values"], strict=True)}
        tally.of_set, tally.signature, tally.n = plain["aggregate"], plain["signature"], len(scores)
        tally.n_truncated = scores.n_truncated
        bounds = plain.get("details", {})
        if "low" in bounds and "high" in bounds:
            bounds_of_systems = zip(tally.systems, bounds["low"], bounds["high"], strict=True)
            tally.intervals = {
                label: (low, high) for label, low, high in bounds_of_systems if low is not None and high is not None
            }
            tally.confidence = bounds.get("confidence")

    @property
    def warnings(self) -> list[str]:
        """What a reader of these numbers should know first, a sentence each."""
        cut = (
            [cut_note(tally.n, tally.n_truncated) for tally in self.tallies.values()]
            if self.level == Level.TURN
            else []
        )
        return list(dict.fromkeys(caution for caution in (*self.cautions, *cut) if caution))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "level": self.level,
            "n": self.n,
            "n_empty": self.n_empty,
            "n_rejected": self.n_rejected,
            **({"flags": self.flags} if self.flags else {}),
            **({"warnings": self.warnings} if self.warnings else {}),
            "metrics": {name: _plain(tally) for name, tally in self.tallies.items()},
        }

    def _scored(self) -> str:
        """What became of the rows: a row that no metric has a value for is not scored."""
        of_rows = [tally for tally in self.tallies.values() if tally.systems is None]
        if not of_rows or (most := max(tally.mean.n for tally in of_rows)) == self.n:
            return "scored"
        return f"read, {most or 'none'} of them scored"

    def lines(self) -> list[str]:
        """The summary for people."""
        lines = []
        cut = "truncated" if self.level == Level.TURN else "turns truncated"
        for name, tally in self.tallies.items():
            better = "higher is better" if tally.higher_is_better else "lower is better"
            value = _rounded(tally.aggregate)
            n = tally.n if tally.systems is not None else tally.mean.n
            undefined = f", {counted(tally.n - n, 'row')} without one" if tally.n > n else ""
            lines.append(f"{name} {value} ({better}; {counted(n, 'value')}{undefined}, {tally.n_truncated} {cut})")
            if tally.judges:
                lines.append(f"  judges {tally.judges}")
            lines += [
                f"  {aspect} " + ("without a value" if mean.value is None else f"{mean.value:.6g} ({mean.n} values)")
                for aspect, mean in tally.aspects.items()
            ]
            lines += [
                f"  {system} {_rounded(number)}{_between(tally, system)}"
                for system, number in (tally.systems or {}).items()
            ]
            lines += [
                f"  {system} {_rounded(mean.value)} ({counted(mean.n, 'value')})"
                for system, mean in list(tally.by_system.items())[:_SYSTEMS_SHOWN]
            ]
            if (more := len(tally.by_system) - _SYSTEMS_SHOWN) > 0:
                lines.append(f"  {more} more systems")
            lines += _usage_lines(tally.usage) if tally.usage else []
            lines += [f"  row {row} has no value: {why}" for row, why in tally.problems[:_SHOWN]]
            if (more := len(tally.problems) - _SHOWN) > 0:
                lines.append(f"  {more} more rows have none")
            lines.append(f"  {tally.signature}")
        counts = f"{counted(self.n, 'row')} {self._scored()}, {self.n_empty} of them empty"
        if self.n_resumed:
            counts += f", {self.n_resumed} from the interrupted run"
        lines += [counts, *(f"{count} of them flagged {flag}" for flag, count in self.flags.items()), *self.worst]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return lines


def _rounded(value: float | None) -> str:
    return "has no value" if value is None else f"{value:.6g}"


def _usage_lines(usage: Mapping[str, float]) -> list[str]:
    """What asking took, for people."""
    asked = f"{usage['calls']:.0f} calls, {usage['tokens_in']:.0f} input and {usage['tokens_out']:.0f} output tokens"
    if usage["estimated"]:
        asked += f" ({usage['estimated']:.0f} answers with estimated tokens)"
    spent = f", ${usage['cost']:.6f}" if usage["cost"] or usage["kept_cost"] else ""
    lines = [f"  {asked}{spent}"]
    if usage["kept"]:
        before = f" (${usage['kept_cost']:.6f} then)" if usage["kept_cost"] else ""
        lines.append(f"  {usage['kept']:.0f} cached answers{before}")
    if usage["refusals"] or usage["unanswered"]:
        lines.append(f"  {usage['refusals']:.0f} refusals, {usage['unanswered']:.0f} unanswered questions")
    return lines


def _between(tally: Tally, system: str) -> str:
    """The interval of a system's value, where the metric gave one."""
    if system not in tally.intervals:
        return ""
    low, high = tally.intervals[system]
    sure = "" if tally.confidence is None else f" at {tally.confidence:.0%}"
    return f" ({low:.6g} to {high:.6g}{sure})"


def _plain(tally: Tally) -> dict[str, Any]:
    means = {name: mean.value for name, mean in tally.by_system.items()} if tally.systems is None else tally.systems
    systems: dict[str, Any] = {"systems": means} if means else {}
    if tally.intervals:
        systems |= {"intervals": {name: list(interval) for name, interval in tally.intervals.items()}}
        systems |= {"confidence": tally.confidence}
    aspects = {"aspects": {name: mean.value for name, mean in tally.aspects.items()}} if tally.aspects else {}
    judges = {"judges": tally.judges} if tally.judges else {}
    problems = {"problems": [{"row": row, "problem": why} for row, why in tally.problems]} if tally.problems else {}
    usage = {"usage": tally.usage} if tally.usage else {}
    return {
        "aggregate": tally.aggregate,
        "higher_is_better": tally.higher_is_better,
        "n": tally.n,
        "n_truncated": tally.n_truncated,
        "signature": tally.signature,
        **judges,
        **aspects,
        **problems,
        **usage,
        **systems,
    }


#: The column in which a row's flags stand.
FLAGS = "flags"


def flagged(flags: Sequence[Condition], values: Mapping[str, Any], count: int) -> list[str]:
    """What is to be said of each row: the flags that it has, or nothing."""
    return [" ".join(flag.text for flag in flags if flag.holds(values[flag.column][row])) for row in range(count)]
