"""A robustness run: many metrics on the same pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.on_benchmark import MetricFailed, NotApplicable, values_of
from dialeval.agreement.runs import Reporter
from dialeval.agreement.sources import Spec, ValueSource, find_sources
from dialeval.io.files import without_machine
from dialeval.registry.interface import Level
from dialeval.robustness.inputs import Material, key_of
from dialeval.robustness.preference import TOLERANCE, AttackOutcome, verdicts

if TYPE_CHECKING:
    from datasets import Dataset

    from dialeval.benchmarks.benchmark import BenchmarkInfo


@dataclass
class Robustness:
    """Everything that a run found."""

    material: Material
    tolerance: float
    seed: int
    verdicts: list[AttackOutcome] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    command: str = ""


def run(
    metrics: Iterable[Spec | ValueSource],
    material: Material,
    *,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    values: Path | None = None,
    reporter: Reporter | None = None,
) -> Robustness:
    """Try metrics on the material. One that fails or cannot be tried is told in `skipped` and sinks nothing.

    With a folder for `values`, what was computed is kept there and found again.
    """
    outcome = Robustness(material, tolerance, seed)
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance is {tolerance}; it must be a share of the standard deviation, 0 or more")
    reporter = reporter or Reporter()
    for note in material.notes:
        reporter.say(note)
    table = _distinct(material)
    for source in find_sources(metrics):
        try:
            outcome.verdicts += _verdicts(source, outcome, table, values, reporter)
        except (NotApplicable, MetricFailed) as error:
            outcome.skipped.append((source.name, without_machine(str(error))))
            reporter.say(f"{source.name} left out: {error}")
    return outcome


def _verdicts(
    source: ValueSource,
    outcome: Robustness,
    table: tuple[Dataset, BenchmarkInfo],
    values: Path | None,
    reporter: Reporter,
) -> list[AttackOutcome]:
    material = outcome.material
    _refuse_unfit(source, material)
    dataset, info = table
    known = values_of(source, info, dataset, values, reporter.begin(source.name, material.name, len(dataset)))
    if known.problems:
        key, problem = next(iter(known.problems.items()))
        reporter.say(f"{source.name} has no value for {len(known.problems)} replies; {key}: {problem}")
    return verdicts(
        material.pairs,
        known.by_id,
        metric=source.name,
        source=material.name,
        revision=material.revision,
        signature=source.signature,
        higher_is_better=source.higher_is_better,
        contaminated=source.is_contaminated_by(material.name, material.contaminates),
        tolerance=outcome.tolerance,
    )


def _refuse_unfit(source: ValueSource, material: Material) -> None:
    if source.metric is None:
        raise NotApplicable("it is a file of scores, which has none for attacked replies")
    if source.level is not Level.TURN:
        raise NotApplicable(f"it judges a {source.level}, and an attack changes single replies")
    if "references" in source.metric.info.needs and not any(pair.true.references for pair in material.pairs):
        raise NotApplicable(
            "it compares with references, and there are none beside the true reply itself, with which it would "
            "win by construction"
        )


def _distinct(material: Material) -> tuple[Dataset, BenchmarkInfo]:
    """Every reply, true or attacked, once: the table that metrics are run on, in the harness's own form."""
    from dialeval.benchmarks.benchmark import BenchmarkInfo, complete, to_dataset

    rows: dict[str, dict[str, Any]] = {}
    for pair in material.pairs:
        for exchange in pair.exchanges:
            texts = {name: list(getattr(exchange, name)) for name in ("context", "references", "facts")}
            key = key_of(exchange)
            rows[key] = {"id": key, "response": exchange.response, **texts}
    name, licence = f"robustness-{material.name}", "that of the input"
    info = BenchmarkInfo(name, material.name, "turn", len(rows), sources=(), licence=licence, citation="")
    return to_dataset(info, complete(info, rows.values())), info
