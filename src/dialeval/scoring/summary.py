"""What a run adds up to: one entry per metric, with everything needed to read and repeat its number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialeval.cautions import cut_note
from dialeval.metric import Level, MetricInfo
from dialeval.scores import Scores, aspect_column
from dialeval.scoring.files import Record
from dialeval.scoring.flags import FLAGS

#: So many rows without a value are told on the screen; the summary file has all of them.
_SHOWN = 10
#: Likewise for systems.
_SYSTEMS_SHOWN = 50


#: What metrics make of a conversation that do not look at it as a whole.
_EVERY_TURN = "every turn of both sides, each by what was said before it"


@dataclass
class Tally:
    """Running totals of one metric over the chunks of a run."""

    higher_is_better: bool
    signature: str = ""
    n: int = 0
    n_finite: int = 0
    n_truncated: int = 0
    total: float = 0.0
    systems: dict[str, float | None] | None = None
    of_set: float | None = None
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    confidence: float | None = None
    #: Which turns of a dialogue were judged, where not all of them were.
    judges: str = ""
    #: By aspect: how many rows have a value, and what these add up to.
    aspects: dict[str, tuple[int, float]] = field(default_factory=dict)
    #: By system, where rows name one: how many rows have a value, and what these add up to.
    by_system: dict[str, tuple[int, float]] = field(default_factory=dict)
    #: Rows without a value and why, where the metric tells.
    problems: list[tuple[int, str]] = field(default_factory=list)
    #: What judging took, where it costs more than time.
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def aspect_means(self) -> dict[str, float | None]:
        """The mean of each aspect over the rows that have it."""
        return {aspect: total / n if n else None for aspect, (n, total) in self.aspects.items()}

    def add_aspect(self, aspect: str, n: int, total: float) -> None:
        """Count some more rows of an aspect."""
        known, so_far = self.aspects[aspect]
        self.aspects[aspect] = (known + n, so_far + total)

    @property
    def means_by_system(self) -> dict[str, float | None]:
        """The mean over each system's rows that have a value, the systems in the order of first occurrence."""
        return {system: total / n if n else None for system, (n, total) in self.by_system.items()}

    def add_system(self, system: str, n: int, total: float) -> None:
        """Count some more rows of a system."""
        known, so_far = self.by_system.get(system, (0, 0.0))
        self.by_system[system] = (known + n, so_far + total)

    def add_usage(self, usage: Mapping[str, float]) -> None:
        """Add what judging some more rows took."""
        self.usage |= {name: self.usage.get(name, 0) + amount for name, amount in usage.items()}

    @property
    def aggregate(self) -> float | None:
        """The metric's own number for a set of systems, else the mean of the finite values."""
        if self.systems is not None:
            return self.of_set
        return self.total / self.n_finite if self.n_finite else None


@dataclass
class Summary:
    """How many rows were scored, what became of the others, and the tallies."""

    level: str
    tallies: dict[str, Tally]
    n: int = 0
    n_empty: int = 0
    n_resumed: int = 0
    n_rejected: int = 0
    #: Where the numbers mislead; see `dialeval.cautions`. What was cut is added from the tallies.
    cautions: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    #: How many rows each flag marks.
    flags: dict[str, int] = field(default_factory=dict)
    #: The worst rows in words, where they were asked for.
    worst: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, level: str, infos: Mapping[str, MetricInfo]) -> Summary:
        """A summary of nothing yet."""
        nothing = (0, 0.0)
        tallies = {
            name: Tally(
                info.higher_is_better,
                judges=(info.of_dialogues or _EVERY_TURN) if level == Level.DIALOGUE else "",
                aspects=dict.fromkeys(info.aspects_at(Level(level)), nothing),
            )
            for name, info in infos.items()
        }
        return cls(level, tallies)

    def add(self, record: Record) -> None:
        """Count one finished chunk."""
        self.n += len(record["row"])
        self.n_empty += record["n_empty"]
        for said in record["values"].get(FLAGS, ()):
            for flag in said.split():
                self.flags[flag] = self.flags.get(flag, 0) + 1
        for name, signature in record.get("signature", {}).items():
            tally, values = self.tallies[name], record["values"][name]
            finite = [value for value in values if value is not None]
            for aspect in tally.aspects:
                known = [value for value in record["values"][aspect_column(name, aspect)] if value is not None]
                tally.add_aspect(aspect, len(known), math.fsum(known))
            tally.n += len(values)
            tally.n_finite += len(finite)
            tally.n_truncated += record["n_truncated"][name]
            tally.total += math.fsum(finite)
            for system, own in _by_system(values, record.get("system", [None] * len(values))).items():
                tally.add_system(system, len(own), math.fsum(own))
            tally.signature = signature
            tally.problems += [(row, why) for row, why in record.get("problems", {}).get(name, [])]
            tally.add_usage(record.get("usage", {}).get(name, {}))

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
            found = zip(tally.systems, bounds["low"], bounds["high"], strict=True)
            tally.intervals = {label: (low, high) for label, low, high in found if low is not None and high is not None}
            tally.confidence = bounds.get("confidence")

    @property
    def warnings(self) -> list[str]:
        """What a reader of these numbers should know first, a sentence each."""
        cut = (
            [cut_note(tally.n, tally.n_truncated) for tally in self.tallies.values()]
            if self.level == Level.TURN
            else []
        )
        return list(dict.fromkeys(one for one in (*self.cautions, *cut) if one))

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

    def lines(self) -> list[str]:
        """The summary for people."""
        lines = []
        cut = "truncated" if self.level == Level.TURN else "turns truncated"
        for name, tally in self.tallies.items():
            better = "higher is better" if tally.higher_is_better else "lower is better"
            value = _rounded(tally.aggregate)
            undefined = (
                f", {tally.n - tally.n_finite} without a value"
                if tally.systems is None and tally.n > tally.n_finite
                else ""
            )
            lines.append(f"{name} {value} ({better}; {tally.n} values{undefined}, {tally.n_truncated} {cut})")
            if tally.judges:
                lines.append(f"  judges {tally.judges}")
            lines += [
                f"  {aspect} "
                + ("without a value" if mean is None else f"{mean:.6g} ({tally.aspects[aspect][0]} values)")
                for aspect, mean in tally.aspect_means.items()
            ]
            lines += [
                f"  {system} {_rounded(number)}{_between(tally, system)}"
                for system, number in (tally.systems or {}).items()
            ]
            lines += [
                f"  {system} {_rounded(mean)} ({_values(tally.by_system[system][0])})"
                for system, mean in list(tally.means_by_system.items())[:_SYSTEMS_SHOWN]
            ]
            if (more := len(tally.by_system) - _SYSTEMS_SHOWN) > 0:
                lines.append(f"  {more} more systems")
            lines += _usage_lines(tally.usage) if tally.usage else []
            lines += [f"  row {row} has no value: {why}" for row, why in tally.problems[:_SHOWN]]
            if (more := len(tally.problems) - _SHOWN) > 0:
                lines.append(f"  {more} more rows have none")
            lines.append(f"  {tally.signature}")
        counts = f"{self.n} {'row' if self.n == 1 else 'rows'} scored, {self.n_empty} of them empty"
        if self.n_resumed:
            counts += f", {self.n_resumed} taken over from the interrupted run"
        lines += [counts, *(f"{count} of them flagged {flag}" for flag, count in self.flags.items()), *self.worst]
        lines += [f"warning: {one}" for one in self.warnings]
        lines += [f"{what}: {where}" for what, where in self.files.items()]
        return lines


def _by_system(values: Sequence[float | None], systems: Sequence[str | None]) -> dict[str, list[float]]:
    """The values that there are, by the system that a row names."""
    found: dict[str, list[float]] = {}
    for value, system in zip(values, systems, strict=True):
        if system is not None:
            own = found.setdefault(system, [])
            own += [] if value is None else [value]
    return found


def _values(count: int) -> str:
    return f"{count} value" if count == 1 else f"{count} values"


def _rounded(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.6g}"


def _usage_lines(usage: Mapping[str, float]) -> list[str]:
    """What asking took, for people."""
    asked = f"{usage['calls']:.0f} calls, {usage['tokens_in']:.0f} tokens read and {usage['tokens_out']:.0f} written"
    if usage["estimated"]:
        asked += f" ({usage['estimated']:.0f} answers with estimated tokens)"
    spent = f", ${usage['cost']:.6f}" if usage["cost"] or usage["kept_cost"] else ""
    lines = [f"  {asked}{spent}"]
    if usage["kept"]:
        before = f" (${usage['kept_cost']:.6f} then)" if usage["kept_cost"] else ""
        lines.append(f"  {usage['kept']:.0f} answers kept from earlier{before}")
    if usage["refusals"] or usage["unanswered"]:
        lines.append(f"  {usage['refusals']:.0f} refusals, {usage['unanswered']:.0f} questions without an answer")
    return lines


def _between(tally: Tally, system: str) -> str:
    """The interval of a system's value, where the metric gave one."""
    if system not in tally.intervals:
        return ""
    low, high = tally.intervals[system]
    sure = "" if tally.confidence is None else f" at {tally.confidence:.0%}"
    return f" ({low:.6g} to {high:.6g}{sure})"


def _plain(tally: Tally) -> dict[str, Any]:
    means = tally.means_by_system if tally.systems is None else tally.systems
    systems: dict[str, Any] = {"systems": means} if means else {}
    if tally.intervals:
        systems |= {"intervals": {name: list(found) for name, found in tally.intervals.items()}}
        systems |= {"confidence": tally.confidence}
    aspects = {"aspects": tally.aspect_means} if tally.aspects else {}
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
