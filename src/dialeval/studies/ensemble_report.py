"""The ensemble study on paper: JSON lines, one Markdown page, one picture, and the weights to ship."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.leaderboard import number, p_value
from dialeval.agreement.results import marked
from dialeval.agreement.settings import Settings
from dialeval.io import markdown_table, plain, write_atomically
from dialeval.plots.figures import INK, MARK, SOFT, WARN, new_grid
from dialeval.specs import OWN, split_options
from dialeval.studies.ensemble import ENSEMBLES
from dialeval.studies.ensemble_study import BEST_SINGLE, MEAN, Agreement, EnsembleTest, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HOW = """Spearman's correlation with people, with {confidence:.0%} bootstrap intervals (contexts are resampled within \
each benchmark). The mean is the plain mean over benchmarks, each counting the same. †: the metric was trained on this \
benchmark; that number is in no mean and in no fit, and the ensembles are measured there without that metric.

- `{best}`: on each benchmark the single metric that is best on the other benchmarks.
- `rank_mean`: mean of the members' ranks among the rows of the benchmark. A row's value depends on the other rows, so \
this shows what could be had but cannot be shipped: a deployed ensemble must judge each row alone, by percentiles.
- `percentile_mean`: mean of the members' human percentiles, nothing fitted.
- `weighted_percentiles`: non-negative weights fitted on all benchmarks but the one measured.

The tests swap the values of two judges context by context on all benchmarks at once ({resamples} times) and speak of \
the difference of the means over these benchmarks, not of benchmarks in general."""


def to_rows(study: Study) -> list[dict[str, Any]]:
    """Every finding as plain values, NaN as None; `kind` tells them apart."""
    found: list[tuple[str, Any]] = [
        *(("agreement", one) for one in study.agreements),
        *(("test", one) for one in study.tests),
        *(("verdict", one) for one in study.verdicts),
    ]
    rows = [{"kind": kind, **plain(dataclasses.asdict(one))} for kind, one in found]
    rows += [{"kind": "weights", "measured_on": name, "weights": weights} for name, weights in study.weights.items()]
    rows += [{"kind": "best_single", "measured_on": name, "metric": metric} for name, metric in study.chosen.items()]
    return rows


def write_weights(study: Study, path: Path, *, specs: Mapping[str, str], command: str) -> bool:
    """Write the file that `load("ensemble")` reads, if there is a form to ship; whether there is."""
    if study.winner is None:
        return False
    fitted = study.winner == "weighted_percentiles"
    weights = study.weights["all"] if fitted else dict.fromkeys(study.members, 1 / len(study.members))
    document = {
        "form": study.winner,
        "members": {name: {**_metric_of(specs[name]), "weight": weights[name]} for name in study.members},
        "fitted_on": _benchmarks(study) if fitted else [],
        "command": command,
    }
    write_atomically(path, [json.dumps(document, ensure_ascii=False, indent=1)])
    return True


def _metric_of(spec: str) -> dict[str, Any]:
    metric, options = split_options(spec)
    return {"metric": metric, "options": {key: value for key, value in options.items() if key not in OWN}}


def write_study(
    study: Study,
    folder: Path,
    *,
    settings: Settings,
    command: str,
    signatures: Mapping[str, str],
    formats: Sequence[str],
) -> list[Path]:
    """Write everything into a folder."""
    from dialeval.plots.figures import save

    benchmarks = _benchmarks(study)
    about = {
        "command": command,
        "ship": study.winner,
        "members": {name: signatures[name] for name in study.members},
        "weights": {
            "percentile_mean": {name: 1 / len(study.members) for name in study.members},
            "weighted_percentiles": study.weights["all"],
        },
        "fitted_on": benchmarks,
        "settings": {"resamples": settings.resamples, "confidence": settings.confidence, "seed": settings.seed},
    }
    texts = {
        "ensemble.jsonl": (json.dumps(row, ensure_ascii=False) for row in to_rows(study)),
        "ensemble.json": iter([json.dumps(about, ensure_ascii=False, indent=1)]),
        "ensemble.md": iter([render(study, settings, command).rstrip("\n")]),
    }
    for name, lines in texts.items():
        write_atomically(folder / name, lines)
    written = [folder / name for name in texts]
    return [*written, *save(forest(study), folder / "ensemble", formats)] if formats else written


def render(study: Study, settings: Settings, command: str) -> str:
    """The page."""
    how = _HOW.format(confidence=settings.confidence, best=BEST_SINGLE, resamples=f"{settings.resamples:,}")
    lines = ["# One combined judge", "", _verdict(study, settings), "", "Made by:", "", "```", command, "```", "", how]
    lines += ["", "## Agreement", "", *_agreement_table(study), "", "## Tests on the mean", "", *_duel_table(study)]
    lines += ["", "## Weights", "", *_weights_table(study), ""]
    return "\n".join(lines)


def _verdict(study: Study, settings: Settings) -> str:
    sentences = []
    for one in study.verdicts:
        outcome = "beats every single metric" if one.beats else "does not beat every single metric"
        sentences.append(
            f"`{one.ensemble}` {outcome} on the mean over {len(_benchmarks(study))} benchmarks "
            f"(weakest test: against {one.weakest}, Holm-corrected p {p_value(one.p)})"
        )
    ship = f"To ship: `{study.winner}`." if study.winner else "None is to be shipped."
    return f"Members: {', '.join(study.members)}. {'; '.join(sentences)}. {ship} Level {1 - settings.confidence:.2g}."


def _benchmarks(study: Study) -> list[str]:
    return list(dict.fromkeys(one.benchmark for one in study.agreements if one.benchmark != MEAN))


def _cell(one: Agreement | None) -> str:
    if one is None:
        return "–"
    text = number(one.value)
    if math.isfinite(one.spread.low):
        text += f" [{number(one.spread.low)}, {number(one.spread.high)}]"
    return marked(text, one.contaminated)


def _agreement_table(study: Study) -> Iterable[str]:
    columns = [*_benchmarks(study), MEAN]
    by_key = {(one.judge, one.benchmark): one for one in study.agreements}
    rows = []
    for judge in (*study.singles, BEST_SINGLE, *ENSEMBLES):
        mean = by_key.get((judge, MEAN))
        # A mean that leaves benchmarks out is another mean than its neighbours in the table.
        note = f" (over {len(mean.over)})" if mean and len(mean.over) < len(columns) - 1 else ""
        cells = [_cell(by_key.get((judge, name))) for name in columns]
        rows.append([f"`{judge}`", *cells[:-1], cells[-1] + note])
    return markdown_table(["judge", *columns], rows)


def _duel_table(study: Study) -> Iterable[str]:
    def row(one: EnsembleTest) -> list[str]:
        difference = f"{one.difference:+.3f} [{one.spread.low:+.3f}, {one.spread.high:+.3f}]"
        return [
            f"`{one.ensemble}`",
            f"`{one.against}`",
            difference,
            p_value(one.p),
            f"{one.better_on} of {len(one.over)}",
        ]

    return markdown_table(["ensemble", "against", "difference of the means", "p", "better on"], map(row, study.tests))


def _weights_table(study: Study) -> Iterable[str]:
    rows = [
        [f"all but {name}" if name != "all" else "all", *(f"{weights[member]:.3f}" for member in study.members)]
        for name, weights in study.weights.items()
    ]
    return markdown_table(["fitted on", *study.members], rows)


def forest(study: Study) -> Figure:
    """Every judge with its interval: the mean first, then each benchmark; ensembles in another colour."""
    judges = [*study.singles, BEST_SINGLE, *ENSEMBLES]
    panels = [MEAN, *_benchmarks(study)]
    figure, axes = new_grid(len(panels), 3.6, 0.9 + 0.3 * len(judges))
    for name, panel in zip(panels, axes, strict=True):
        rows = {one.judge: one for one in study.agreements if one.benchmark == name}
        for position, judge in enumerate(reversed(judges)):
            if (one := rows.get(judge)) is None or not math.isfinite(one.value):
                continue
            colour = WARN if one.contaminated else MARK if judge in ENSEMBLES else INK
            panel.plot([one.spread.low, one.spread.high], [position, position], color=colour, linewidth=1.6)
            face = "white" if one.contaminated else colour
            panel.plot(one.value, position, "o", color=colour, markerfacecolor=face, markersize=4.5)
        panel.set_yticks(range(len(judges)), labels=list(reversed(judges)), fontsize="x-small")
        panel.axvline(0, color=SOFT, linewidth=0.8)
        panel.set_title(name, fontsize="small", loc="left")
        panel.set_xlabel("Spearman with people", fontsize="x-small")
    return figure
