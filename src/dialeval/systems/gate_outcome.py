"""What a gate found, and the forms in which people want it: a sentence, tables, Markdown, JUnit, JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dialeval.core.exchange import counted
from dialeval.core.scores import weakest_aspects
from dialeval.io.files import plain
from dialeval.io.harmless import for_markdown, for_xml, one_line
from dialeval.io.tables import Block, Heading, Items, Table, to_html, to_markdown, to_text
from dialeval.readers.pairing import MIN_COVERAGE

#: Fewer contexts than these say little about a system.
MIN_CONTEXTS = 30

#: `worse`: shown to be, or a limit is exceeded; `not shown`: it can neither be shown nor ruled out; `undecided`: too
#: little could be compared, whatever those rows say.
Verdict = Literal["passed", "worse", "not shown", "undecided"]


@dataclass(frozen=True)
class WorseRow:
    """A row on which the new system lost."""

    id: str | None
    #: Its place in the new file, from 0.
    row: int
    #: The turn before the reply.
    asked: str
    #: Of a conversation, its weakest turn.
    response: str
    value: float
    #: NaN where no row of the baseline belongs to it.
    baseline: float
    #: Of the new reply, where the metric has them.
    aspects: Mapping[str, float]
    reason: str
    #: Of a conversation, the number of its weakest turn, from 1, and the values of all turns.
    weakest_turn: int | None = None
    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class AspectChange:
    """How an aspect changed, over the rows where both replies have it; a gain is turned so that more is better."""

    aspect: str
    mean_new: float
    mean_baseline: float
    gain: float
    at_least: float
    at_most: float
    #: Of a permutation test over contexts, after Holm over all aspects.
    p: float
    n_contexts: int
    #: The accepted loss, where one was named, and what follows for it.
    margin: float | None
    verdict: Verdict | None
    #: Whether it is lower by chance alone only with less than 1 - confidence, and enough to show.
    fell: bool

    @property
    def name(self) -> str:
        """As sentences call it."""
        return self.aspect.replace("_", " ")


@dataclass(frozen=True)
class RowCount:
    """How many rows of either system meet a condition, and how many of the new one's may."""

    condition: str
    n_new: int
    n_baseline: int
    n_rows_new: int
    n_rows_baseline: int
    #: A number of rows.
    allowed: int

    @property
    def exceeded(self) -> bool:
        """Whether the new system has more of them than it may have."""
        return self.n_new > self.allowed


@dataclass(frozen=True)
class FaultCount:
    """How many rows of either system are under the veto of an aspect."""

    aspect: str
    #: What is said of them: "1 reply is rude", "4 conversations have a rude reply".
    said: str
    n_new: int
    n_baseline: int
    #: Rows that are, while the baseline's row beside them is not, and the other way round.
    n_newly: int
    n_no_longer: int
    #: Whether there are more of them than chance explains, or some where there were none.
    told: bool


@dataclass(frozen=True)
class Gate:
    """What was found; `verdict` is the answer."""

    verdict: Verdict
    #: The answer for the value alone, without limits of rows and margins of aspects.
    value_verdict: Verdict
    metric: str
    higher_is_better: bool
    margin: float
    mean_new: float
    mean_baseline: float
    #: New minus baseline, turned so that more is better.
    gain: float
    #: With this confidence the gain is at least `at_least`.
    at_least: float
    #: With this confidence the gain is at most `at_most`.
    at_most: float
    confidence: float
    #: Share of resampled contexts on which the new system is worse by the margin or more.
    p: float
    #: Of the new system.
    n_rows: int
    n_contexts: int
    #: Rows of the side that has more of them.
    n_total: int
    min_contexts: int
    #: With so many contexts that vary like these, equal systems pass four times in five; None where the margin is 0.
    contexts_needed: int | None
    #: The margin that as many contexts as there are can show in the same way.
    margin_shown: float
    #: `id` or `position`; `nothing` where conversations of their own are compared.
    paired_by: str
    #: Rows of either system that have no partner, and pairs (or conversations) without a value; both are left out.
    n_alone: int
    n_without_value: int
    #: What misleads about the replies of either system; see `dialeval.core.cautions`.
    cautions: tuple[str, ...]
    scale: str
    signature: str
    #: The largest loss first.
    aspects: tuple[AspectChange, ...] = ()
    #: Limits of rows that were named; all rows count, those without a partner, too.
    row_counts: tuple[RowCount, ...] = ()
    faults: tuple[FaultCount, ...] = ()
    #: The rows that lost most against the baseline, the worst first.
    worst: tuple[WorseRow, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the new system was shown to be no worse."""
        return self.verdict == "passed"

    def __bool__(self) -> bool:
        return self.passed

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, and in a second one what got worse beside it."""
        broken = [_over(count) for count in self.row_counts if count.exceeded]
        broken += [self._of_aspect(aspect) for aspect in self.aspects if aspect.verdict not in (None, "passed")]
        verdict = f"{self.verdict}: {'; '.join([*broken, self._of_value()])}."
        return " ".join(filter(None, (verdict, self._needed(), self.losses)))

    @property
    def losses(self) -> str:
        """The aspects that fell significantly and the faults that are new, in a sentence; empty where there are none.

        What the verdict names already is left out.
        """
        fell = [aspect for aspect in self.aspects if aspect.fell and aspect.verdict != "worse"]
        parts = [f"{aspect.name} fell by {-aspect.gain:.2g}" for aspect in fell]
        parts += [f"{fault.said} ({fault.n_baseline} before)" for fault in self.faults if fault.told]
        if not parts:
            return ""
        listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
        sentence = f"{'but ' if self.passed else ''}{listed}."
        return sentence[0].upper() + sentence[1:]

    def _of_value(self) -> str:
        means = f"{self.mean_new:.4g} against {self.mean_baseline:.4g}"
        where = f"on {counted(self.n_rows, 'paired row')} of {counted(self.n_contexts, 'context')}"
        if self.paired_by == "nothing":
            where = f"on unpaired conversations, {self.n_contexts} or more of either system"
        sure = f"at {self.confidence:.0%} confidence the gain is"
        match self.value_verdict:
            case "undecided" if self.paired_by == "nothing":
                return (
                    f"{counted(self.n_contexts, 'conversation')} could be compared; the gate needs "
                    f"{self.min_contexts}, and values for {MIN_COVERAGE:.0%} of either system's"
                )
            case "undecided":
                return (
                    f"{self.n_rows} of {self.n_total} rows could be compared, by {self.paired_by}, in "
                    f"{counted(self.n_contexts, 'context')}; the gate needs {MIN_COVERAGE:.0%} of the rows of both "
                    f"systems and {counted(self.min_contexts, 'context')}"
                )
            case "passed" if self.at_least <= -self.margin:
                return f"{self.metric} gives both systems the same values {where}"
            case "passed":
                return (
                    f"{self.metric} is {means} {where}; {sure} at least {self.at_least:+.4g}, above the margin of "
                    f"{-self.margin:+.4g}"
                )
            case "worse":
                return (
                    f"{self.metric} is worse by more than {self.margin:g}: {means} {where}; {sure} at most "
                    f"{self.at_most:+.4g}"
                )
        return (
            f"{self.metric} is {means} {where}; {sure} at least {self.at_least:+.4g} and at most {self.at_most:+.4g}, "
            f"so that a loss of more than {self.margin:g} is neither shown nor ruled out"
        )

    def _needed(self) -> str:
        """How many contexts would do, where there are fewer and they leave the value open."""
        if self.value_verdict in ("passed", "worse") or (self.contexts_needed or 0) <= self.n_contexts:
            return ""
        what = "conversations" if self.paired_by == "nothing" else "contexts"
        return (
            f"To pass with equal systems, a margin of {self.margin:g} needs about {self.contexts_needed} {what}; you "
            f"have {self.n_contexts}, which can show a margin of {self.margin_shown:.2g}."
        )

    def _of_aspect(self, change: AspectChange) -> str:
        margin = f"{change.margin or 0:g}"
        if change.verdict == "worse":
            sure = f"at {self.confidence:.0%} confidence by more than {margin}"
            return f"{change.name} fell by {-change.gain:.2g}, and {sure}"
        if not change.n_contexts:
            return f"no pair of rows has {change.name}, which was given a margin"
        few = change.n_contexts < self.min_contexts
        known = f", known in {counted(change.n_contexts, 'context')} only" if few else ""
        return (
            f"{change.name} may have fallen by more than {margin}: at {self.confidence:.0%} confidence its gain is at "
            f"least {change.at_least:+.2g}{known}"
        )

    @property
    def warnings(self) -> list[str]:
        """What a reader should know beside the verdict."""
        sentences = []
        if self.n_contexts < MIN_CONTEXTS:
            few = f"only {counted(self.n_contexts, 'context')}"
            sentences.append(f"{few}; with {MIN_CONTEXTS} or more the gate sees smaller losses")
        if self.n_alone:
            sentences.append(f"{counted(self.n_alone, 'row')} without a partner left out")
        if self.n_without_value:
            sentences.append(f"{counted(self.n_without_value, 'row')} without a value left out")
        return [*sentences, *self.cautions]

    def to_dict(self) -> dict[str, Any]:
        """All figures and the sentence, for JSON."""
        fields_of_gate = {"passed": self.passed, **asdict(self), "sentence": self.sentence, "warnings": self.warnings}
        return {name: plain(value) for name, value in fields_of_gate.items()}

    def __str__(self) -> str:
        return to_text([self.sentence, *self._tables()])

    def to_markdown(self) -> str:
        """A comment for a pull request."""
        mark = "✅" if self.passed else "❌"
        warnings = [Items(self.warnings)] if self.warnings else []
        title = Heading(f"{mark} dialeval gate: {self.metric}", 3)
        signature = f"`{self.signature}`"
        return to_markdown([title, self.sentence, *self._tables(), *self._worst_table(), *warnings, signature])

    def _repr_html_(self) -> str:
        warnings = "".join(f"<p>⚠ {for_xml(warning)}</p>" for warning in self.warnings)
        return f"<div><p>{for_xml(self.sentence)}</p>{to_html(self._tables())}{warnings}</div>"

    def _tables(self) -> list[Block]:
        header = ["", "new", "baseline", "gain", "at least", "at most", "margin", "contexts"]
        rows = [[
            self.metric, f"{self.mean_new:.4g}", f"{self.mean_baseline:.4g}", f"{self.gain:+.4g}",
            f"{self.at_least:+.4g}", f"{self.at_most:+.4g}", f"{-self.margin:+.4g}", str(self.n_contexts),
        ]]  # fmt: skip
        for aspect in self.aspects:
            margin = "" if aspect.margin is None else f"{-aspect.margin:+.4g}"
            means = [f"{value:.3f}" for value in (aspect.mean_new, aspect.mean_baseline)]
            ends = [f"{value:+.3f}" for value in (aspect.gain, aspect.at_least, aspect.at_most)]
            figures = [*means, *ends] if aspect.n_contexts else [""] * 5
            rows.append([aspect.name + (" ↓" if aspect.fell else ""), *figures, margin, str(aspect.n_contexts)])
        counts = [
            [count.condition, str(count.n_new), str(count.n_baseline), str(count.allowed)] for count in self.row_counts
        ] + [[f"veto of {fault.aspect.replace('_', ' ')}", str(fault.n_new), str(fault.n_baseline), ""]
             for fault in self.faults if fault.n_new or fault.n_baseline]  # fmt: skip
        counted_rows = [Table(["rows", "new", "baseline", "allowed"], counts)] if counts else []
        return [Table(header, rows), *counted_rows]

    def _worst_table(self) -> list[Block]:
        header = ["row", "asked", "reply", "new", "baseline", "weakest aspects", "reason"]
        rows = []
        for row in self.worst:
            turn = f", turn {row.weakest_turn}" if row.weakest_turn else ""
            texts = [(row.id or str(row.row)) + turn, *(one_line(text)[:100] for text in (row.asked, row.response))]
            baseline = "" if math.isnan(row.baseline) else f"{row.baseline:.4g}"
            weakest = weakest_aspects(row.aspects, higher_is_better=self.higher_is_better)
            rows.append([*texts, f"{row.value:.4g}", baseline, weakest, row.reason])
        return [Table(header, rows, left=(0, 1, 2, 5, 6))] if rows else []

    @property
    def report(self) -> str:
        """The sentence, and the rows that lost most, a line each."""
        tables = [block for block in self._worst_table() if isinstance(block, Table)]
        rows = [" | ".join(map(str, row)) for table in tables for row in table.rows]
        return "\n".join([self.sentence, *rows])

    def to_junit(self) -> str:
        """A JUnit report with one test, which CI services show beside others."""
        message = for_xml(self.sentence)
        failure = f'<failure type="{self.verdict}" message="{message}">{message}</failure>'
        inner = f"{'' if self.passed else failure}<system-out>{for_xml(self.report)}</system-out>"
        return _junit(f"{self.metric} is not worse by more than {self.margin:g}", inner, failures=int(not self.passed))


def _over(count: RowCount) -> str:
    before = f"{count.n_baseline} of {count.n_rows_baseline} before"
    few = "none is" if count.allowed == 0 else f"{count.allowed} {'is' if count.allowed == 1 else 'are'}"
    has = "has" if count.n_new == 1 else "have"
    return f"{count.n_new} of {count.n_rows_new} rows {has} {count.condition} ({before}), and {few} allowed"


def error_as_junit(message: str) -> str:
    """The report of a gate that could not answer: one test, which ended in an error."""
    message = for_xml(one_line(message))
    return _junit("the gate could be asked", f'<error message="{message}">{message}</error>', errors=1)


def error_as_markdown(message: str) -> str:
    """The comment for a pull request where the gate could not answer."""
    return f"### ❌ dialeval gate: error\n\n{for_markdown(one_line(message))}\n"


def _junit(name: str, inner: str, failures: int = 0, errors: int = 0) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="dialeval gate" tests="1" failures="{failures}" errors="{errors}">'
        f'<testcase classname="dialeval.gate" name="{for_xml(name)}">{inner}</testcase></testsuite>\n'
    )
