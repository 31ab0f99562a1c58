"""What a robustness run leaves behind: tidy rows, a page, and pictures."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.agreement.leaderboard import number
from dialeval.agreement.results import marked, versions
from dialeval.io import plain, write_atomically
from dialeval.robustness.run import RATIOS, Robustness
from dialeval.robustness.verdicts import AttackOutcome, Share
from dialeval.tables import markdown_table

_HOW_TO_READ = (
    "A pair is a true reply and what an attack made of it. For a harmful attack the number is the share of pairs in "
    "which the true reply has the better value, ties counting half: 1 is perfect, 0.5 is what a coin does. For a "
    "control (marked ○), which only changes the surface, it is the share in which the value falls by no more than the "
    "tolerance, {tolerance:g} standard deviations of the metric on the true replies: 1 is perfect. Intervals are 95 %, "
    "Wilson's, for as many independent pairs as the pairs are worth given that some share a context. Steered is the "
    "share of replies that a demand for a high score raises by more than the tolerance, above the value without it and "
    "above that with a neutral sentence of the same length; by chance is the share that the neutral sentence raises "
    "so: steered should be no more. †: the metric was trained on these replies or on the dialogues that they come from."
)


def write_report(found: Robustness, folder: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write robustness.jsonl, decays.jsonl, robustness.md, run.json and the plots; returns what was written."""
    from dialeval.robustness.plots import write_plots

    paths = [_write(folder / "robustness.jsonl", (json.dumps(row) for row in rows_of(found.verdicts)))]
    if found.decays:
        decays = (json.dumps(plain(dataclasses.asdict(decay))) for decay in found.decays)
        paths.append(_write(folder / "decays.jsonl", decays))
    paths.append(_write(folder / "robustness.md", render(found).splitlines()))
    about = {
        "command": found.command,
        "input": found.material.name,
        "seed": found.seed,
        "rules": plain(dataclasses.asdict(found.rules)),
        "notes": list(found.material.notes),
        "skipped": [{"metric": metric, "reason": reason} for metric, reason in found.skipped],
        "versions": versions(),
    }
    paths.append(_write(folder / "run.json", [json.dumps(about, ensure_ascii=False, indent=1)]))
    return [*paths, *write_plots(found, folder, formats)]


def rows_of(verdicts: Iterable[AttackOutcome]) -> list[dict[str, Any]]:
    """One flat row of plain values for each verdict."""
    rows = []
    for verdict in verdicts:
        flat: dict[str, Any] = {}
        for name, value in dataclasses.asdict(verdict).items():
            flat |= _flattened(name, value) if isinstance(value, dict) else {name: value}
        rows.append(plain(flat))
    return rows


def render(found: Robustness) -> str:
    """The page in Markdown."""
    lines = [f"# Robustness on {found.material.name}", "", _HOW_TO_READ.format(tolerance=found.rules.tolerance), ""]
    if found.command:
        lines += ["Made by:", "", "```", found.command, "```", ""]
    if found.verdicts:
        lines += ["## Which reply is preferred", "", *_overview(found.verdicts), ""]
        for metric in dict.fromkeys(verdict.metric for verdict in found.verdicts):
            own = [verdict for verdict in found.verdicts if verdict.metric == metric]
            lines += [f"## {marked(metric, own[0].contaminated)}", "", f"`{own[0].signature}`", "", *_details(own), ""]
    if found.decays:
        lines += ["## Values as more replies are perturbed", "", *_decays(found), ""]
    notes = [f"- {note}" for note in found.material.notes]
    notes += [f"- {metric} was left out: {reason}" for metric, reason in found.skipped]
    return "\n".join([*lines, *(["## Notes", "", *notes, ""] if notes else [])])


def _overview(verdicts: Sequence[AttackOutcome]) -> Iterable[str]:
    metrics = list(dict.fromkeys(verdict.metric for verdict in verdicts))
    over_all = {(one.attack, one.metric): one for one in verdicts if one.domain == "all"}
    rows = []
    for attack in dict.fromkeys(one.attack for one in verdicts):
        of_attack = [over_all.get((attack, metric)) for metric in metrics]
        is_control = any(one is not None and not one.harmful for one in of_attack)
        cells = ["" if one is None else _interval(one.share) for one in of_attack]
        rows.append([f"{attack} ○" if is_control else attack, *cells])
    trained = {one.metric for one in verdicts if one.contaminated}
    return _table(["attack", *(marked(metric, metric in trained) for metric in metrics)], rows)


def _details(verdicts: Sequence[AttackOutcome]) -> Iterable[str]:
    header = [
        "attack",
        "domain",
        "true preferred",
        "ties",
        "not punished",
        "pairs",
        "contexts",
        "no value",
        "mean true",
    ]
    header.append("mean attacked")
    steers = any(math.isfinite(one.steered.value) for one in verdicts)
    header += ["steered", "by chance"] if steers else []
    threshold = verdicts[0].threshold
    if threshold is not None:
        header += [f"true at {threshold:g}", f"attacked at {threshold:g}"]
    rows = []
    for one in verdicts:
        name = one.attack if one.harmful else f"{one.attack} ○"
        row = [name, one.domain, _interval(one.preferred), number(one.ties), _interval(one.kept)]
        row += [str(one.n), str(one.n_contexts), str(one.n_unscored), number(one.mean_true), number(one.mean_attacked)]
        row += [_interval(one.steered), _interval(one.by_chance)] if steers else []
        rows.append(row + ([] if threshold is None else [number(one.passed_true), number(one.passed_attacked)]))
    return _table(header, rows)


def _decays(found: Robustness) -> Iterable[str]:
    table: dict[tuple[str, str], list[str]] = {}
    for decay in found.decays:
        better = "" if decay.higher_is_better else " (lower is better)"
        table.setdefault((f"{decay.metric}{better}", decay.perturbation), []).append(number(decay.value))
    header = ["metric", "perturbation", *(f"{ratio:.0%}" for ratio in RATIOS)]
    return _table(header, [[*key, *values] for key, values in table.items()])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    return markdown_table(header, rows, left=range(len(header)))


def _interval(share: Share) -> str:
    return f"{number(share.value)} [{number(share.low)}, {number(share.high)}]" if share.value >= 0 else "–"


def _flattened(name: str, share: Mapping[str, float]) -> dict[str, float]:
    return {name: share["value"], f"{name}_low": share["low"], f"{name}_high": share["high"]}


def _write(path: Path, lines: Iterable[str]) -> Path:
    write_atomically(path, lines)
    return path
