"""What a robustness run leaves behind: tidy rows, a page, and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.results import marked, versions
from dialeval.agreement.sections import between, number
from dialeval.io.files import plain, write_atomically
from dialeval.io.harmless import json_text
from dialeval.io.places import drop_former
from dialeval.io.tables import Block, Code, Heading, Items, Table, to_markdown
from dialeval.reports.plots.figures import SOFT, new_figure, save
from dialeval.robustness.preference import AttackOutcome, Share
from dialeval.robustness.trial import Robustness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a run may leave; what is read must not be one of them.
FILES = ("robustness.jsonl", "robustness.md", "run.json", "robustness.png", "robustness.svg")
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


def write_report(outcome: Robustness, folder: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write run.json, robustness.jsonl, robustness.md and the plot; returns what was written."""
    about = {
        "command": outcome.command,
        "input": outcome.material.name,
        "seed": outcome.seed,
        "rules": {"tolerance": outcome.tolerance},
        "notes": list(outcome.material.notes),
        "skipped": [{"metric": metric, "reason": reason} for metric, reason in outcome.skipped],
        "versions": versions(),
    }
    pages: dict[str, Iterable[str]] = {
        "run.json": [json_text(about, indent=1)],  # first, for it tells the next run that the others are its own
        "robustness.jsonl": map(json_text, rows_of(outcome.verdicts)),
        "robustness.md": render(outcome).splitlines(),
    }
    paths = [folder / name for name in pages]
    for path, lines in zip(paths, pages.values(), strict=True):
        write_atomically(path, lines)
    if outcome.verdicts:
        drawn = [verdict for verdict in outcome.verdicts if verdict.domain == "all"]
        paths += save(shares(drawn, title=f"Robustness on {outcome.material.name}"), folder / "robustness", formats)
    drop_former(folder, FILES, paths)
    return paths


def rows_of(verdicts: Iterable[AttackOutcome]) -> list[dict[str, Any]]:
    """One flat row of plain values for each verdict."""
    rows = []
    for verdict in verdicts:
        flat: dict[str, Any] = {}
        for name, value in vars(verdict).items():
            if isinstance(value, Share):
                flat |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            else:
                flat[name] = value
        rows.append(plain(flat))
    return rows


def render(outcome: Robustness) -> str:
    """The page in Markdown."""
    return to_markdown(_document(outcome))


def _document(outcome: Robustness) -> Iterator[Block]:
    yield Heading(f"Robustness on {outcome.material.name}", 1)
    yield _HOW_TO_READ.format(tolerance=outcome.tolerance)
    if outcome.command:
        yield from ("Made by:", Code(outcome.command))
    if outcome.verdicts:
        yield from (Heading("Which reply is preferred"), _overview(outcome.verdicts))
        for metric in dict.fromkeys(verdict.metric for verdict in outcome.verdicts):
            of_metric = [verdict for verdict in outcome.verdicts if verdict.metric == metric]
            yield from (
                Heading(marked(metric, of_metric[0].contaminated)),
                f"`{of_metric[0].signature}`",
                _details(of_metric),
            )
    notes = [*outcome.material.notes, *(f"{metric} was left out: {reason}" for metric, reason in outcome.skipped)]
    if notes:
        yield from (Heading("Notes"), Items(notes))


def _overview(verdicts: Sequence[AttackOutcome]) -> Table:
    metrics = list(dict.fromkeys(verdict.metric for verdict in verdicts))
    over_all = {(verdict.attack, verdict.metric): verdict for verdict in verdicts if verdict.domain == "all"}
    rows = []
    for attack in dict.fromkeys(verdict.attack for verdict in verdicts):
        of_attack = [over_all.get((attack, metric)) for metric in metrics]
        is_control = any(verdict is not None and not verdict.harmful for verdict in of_attack)
        cells = ["" if verdict is None else _interval(verdict.share) for verdict in of_attack]
        rows.append([f"{attack} ○" if is_control else attack, *cells])
    trained = {verdict.metric for verdict in verdicts if verdict.contaminated}
    header = ["attack", *(marked(metric, metric in trained) for metric in metrics)]
    return Table(header, rows, left=range(len(header)))


def _details(verdicts: Sequence[AttackOutcome]) -> Table:
    header = "attack,domain,true preferred,ties,not punished,pairs,contexts,no value,mean true,mean attacked".split(",")
    steers = any(math.isfinite(verdict.steered.value) for verdict in verdicts)
    header += ["steered", "by chance"] if steers else []
    rows = []
    for verdict in verdicts:
        name = verdict.attack if verdict.harmful else f"{verdict.attack} ○"
        row = [name, verdict.domain, _interval(verdict.preferred), number(verdict.ties), _interval(verdict.kept)]
        row += map(str, (verdict.n, verdict.n_contexts, verdict.n_unscored))
        row += map(number, (verdict.mean_true, verdict.mean_attacked))
        rows.append(row + ([_interval(verdict.steered), _interval(verdict.by_chance)] if steers else []))
    return Table(header, rows, left=range(len(header)))


def _interval(share: Share) -> str:
    return between(share.value, share.low, share.high)


def shares(verdicts: Sequence[AttackOutcome], *, title: str = "") -> Figure:
    """For every attack the share that should be near 1, a mark per metric; hollow marks are controls."""
    import matplotlib

    attacks = list(dict.fromkeys(verdict.attack for verdict in verdicts))
    metrics = list(dict.fromkeys(verdict.metric for verdict in verdicts))
    colours = [matplotlib.colormaps["tab10"](place) for place in range(10)]
    figure = new_figure(7.5, 1.4 + len(attacks) * (0.22 + 0.13 * len(metrics)))
    axes = figure.subplots()
    for place, metric in enumerate(metrics):
        colour = colours[place % len(colours)]
        shift = 0.7 * ((place + 0.5) / len(metrics) - 0.5)
        for verdict in (verdict for verdict in verdicts if verdict.metric == metric and verdict.n):
            height = attacks.index(verdict.attack) + shift
            axes.plot([verdict.share.low, verdict.share.high], [height, height], color=colour, linewidth=1.4)
            face = colour if verdict.harmful else "white"
            axes.plot(verdict.share.value, height, "o", color=colour, markerfacecolor=face, markersize=4.5)
        trained = any(verdict.contaminated for verdict in verdicts if verdict.metric == metric)
        axes.plot([], [], "o-", color=colour, label=marked(metric, trained), markersize=4.5)
    controls = {verdict.attack for verdict in verdicts if not verdict.harmful}
    axes.set_yticks(range(len(attacks)), labels=[f"{name} ○" if name in controls else name for name in attacks])
    axes.set_ylim(len(attacks) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(0.5, color=SOFT, linestyle="--", linewidth=1)
    axes.set_xlabel("share of pairs: true reply preferred (ties half); ○ control: value not lowered")
    axes.set_title(title, fontsize="medium", loc="left")
    figure.legend(loc="outside lower center", ncols=min(len(metrics), 4), frameon=False, fontsize="small")
    return figure
