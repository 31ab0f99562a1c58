"""What a checkpoint was trained on, stage by stage: what shipped, not what ran.

A run keeps the weights that did best on validation; steps after them are not in the checkpoint. Its log marks the lines
after which weights were kept, and counts what had been seen until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialeval.io.files import read_json_lines

Line = Mapping[str, Any]


@dataclass(frozen=True)
class TrainingRun:
    """One run that went into a checkpoint."""

    name: str
    #: Of the weights that were kept, and of the whole run.
    steps: int
    steps_run: int
    hours: float
    #: What was trained on until then, by what it counts: pairs, replies, contexts.
    seen: Mapping[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The steps and what they saw."""
        steps = f"{self.steps:,}" if self.steps == self.steps_run else f"{self.steps:,} of {self.steps_run:,}"
        seen = ", ".join(f"{count:,} {unit}" for unit, count in self.seen.items())
        return f"{steps} steps" + (f", {seen}" if seen else "")


def stages_of(training: Mapping[str, Any]) -> list[TrainingRun]:
    """The stages that a checkpoint's record lists, the earliest first."""
    return [TrainingRun(**stage) for stage in training.get("stages", ())]


def joined(*histories: Iterable[TrainingRun]) -> list[TrainingRun]:
    """Several histories as one: a shared stage counts once, a stage that one history has twice counts twice."""
    stages: list[TrainingRun] = []
    for history in histories:
        shared = [replace(stage, seen={}) for stage in stages]
        for stage in history:
            if (bare := replace(stage, seen={})) in shared:
                shared.remove(bare)
            else:
                stages.append(stage)
    return stages


def total(stages: Sequence[TrainingRun]) -> TrainingRun:
    """All stages together."""
    seen: dict[str, int] = {}
    for stage in stages:
        for unit, count in stage.seen.items():
            seen[unit] = seen.get(unit, 0) + count
    hours = round(sum(stage.hours for stage in stages), 2)
    steps, steps_run = sum(stage.steps for stage in stages), sum(stage.steps_run for stage in stages)
    return TrainingRun("together", steps, steps_run, hours, seen)


def kept_line(lines: Iterable[Line]) -> Line:
    """The validation after which the weights were kept that shipped."""
    judged = [line for line in lines if line["kind"] == "validation"]
    if not judged:
        raise ValueError("the log holds no validation, so nothing was kept")
    return next(line for line in reversed(judged) if line.get("kept"))


def stage_in(log: Path, name: str) -> TrainingRun:
    """A stage as its log tells it."""
    lines = read_json_lines(log)
    kept = kept_line(lines)
    seen = {unit: kept[unit] for unit in ("pairs", "replies") if unit in kept}
    return TrainingRun(
        name, kept["step"], max(line["step"] for line in lines), round(lines[-1]["seconds"] / 3600, 2), seen
    )
