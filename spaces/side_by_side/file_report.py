"""What a scored file comes to: tables by system, and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import charts
import numpy as np
from markup import bar, listed, note, number, share, table, text
from models import best_of, direction_of, human_percentile, info_of, titled
from score_file import Scored

_MOST_SYSTEMS = 50
_MOST_NAMED = 5
#: Replies whose reasons are shown, those that a reader will want to look at.
_LOWEST = 5


def report(scored: Scored) -> str:
    """A section per metric: what it means, a row per system, what to keep in mind."""
    parts = []
    for name, tally in scored.summary.tallies.items():
        parts.append(f"<h3>{titled(name)}</h3>{note(direction_of(name) + ' ' + info_of(name).summary)}")
        parts.append(_system_table(scored, name) if name in scored.of_systems else _mean_table(scored, name))
        parts.append(_aspects(scored, name) + _lowest(scored, name))
        notes = [text(warned, 400) for warned in scored.warned.get(name, [])]
        if tally.n_truncated:
            notes.append(
                f"{tally.n_truncated} rows were judged on cut text, because the model does not read that much."
            )
        parts.append(listed(notes, "notes"))
    minded = listed((text(f"Mind: {one}.", 400) for one in scored.summary.warnings), "notes")
    return f"<p>{scored.summary.n:,} rows scored.</p>" + minded + "".join(parts)


def _mean_table(scored: Scored, name: str) -> str:
    systems = list(dict.fromkeys(scored.systems))
    found = [scored.mean_of(name, system) for system in systems[:_MOST_SYSTEMS]]
    shares = human_percentile(name, _finite(scored.columns[name]))
    best = best_of([one[0] for one in found], higher_is_better=info_of(name).higher_is_better)
    rows = []
    for at, (system, (mean, low, high, count)) in enumerate(zip(systems, found, strict=False)):
        own = [] if shares is None else [shares[row] for row, owner in enumerate(scored.systems) if owner == system]
        middle = share(float(np.nanmedian(own))) if np.isfinite(own).any() else "–"
        cells = [_value(mean, at in best), f"{number(low)} to {number(high)}", middle, str(count)]
        rows.append([text(system or "all rows", 40), *cells])
    header = ["system", "mean", "95% interval", "human replies below the median row", "rows"]
    return (
        table(f"{info_of(name).title} by system; intervals draw contexts anew", header, rows)
        + _left_out(systems)
        + _pair_tests(scored, name)
    )


def _pair_tests(scored: Scored, name: str) -> str:
    """Every pair of systems by a paired test over the same contexts, as `dialeval rank` has it."""
    ranking = scored.ranking_of(name)
    if isinstance(ranking, str):
        return note(ranking) if ranking else ""
    metric = ranking.metrics[0]
    rows = [[text(cell, 60) for cell in row] for row in ranking.pair_test_table(metric)]
    answer = ranking.sentence(metric).partition(": ")[2]
    caption = f"{info_of(name).title}, pairs of systems on the same contexts; permutation test, corrected by Holm"
    return f'<p class="answer">{text(f"{info_of(name).title}: {answer}", 400)}</p>' + table(
        caption, ranking.pair_test_header(), rows
    )


def _aspects(scored: Scored, name: str) -> str:
    """The mean of each aspect over the rows that have it."""
    tally = scored.summary.tallies[name]
    rows = [
        [text(aspect.replace("_", " "), 40), bar(mean), str(tally.aspects[aspect][0])]
        for aspect, mean in tally.aspect_means.items()
        if mean is not None
    ]
    return (
        table(f"What {info_of(name).title} sees, mean over the rows", ["aspect", "mean", "rows"], rows) if rows else ""
    )


def _lowest(scored: Scored, name: str) -> str:
    """The replies with the lowest values, and why; the downloads have every row's reason."""
    reasons = scored.reasons.get(name)
    if not reasons:
        return ""
    values = _finite(scored.columns[name])
    rows = [
        [str(at), text(scored.exchanges[at].response), number(values[at]), text(reasons[at], 400)]
        for at in np.argsort(values, kind="stable")[:_LOWEST]
        if np.isfinite(values[at])
    ]
    return table("The lowest rows, and why; the downloads say it of every row", ["row", "reply", "value", "why"], rows)


def _system_table(scored: Scored, name: str) -> str:
    scores = scored.of_systems[name]
    systems = list(scores.ids or (None,) * len(scores))
    best = best_of(list(scores.values), higher_is_better=scores.higher_is_better)
    low, high, counts = (scores.details[key] for key in ("low", "high", "n"))
    rows = [
        [
            text(system or "all rows", 40),
            _value(scores.values[at], at in best),
            f"{number(low[at])} to {number(high[at])}",
            str(counts[at]),
        ]
        for at, system in enumerate(systems[:_MOST_SYSTEMS])
    ]
    caption = f"{info_of(name).title} by system; compare only systems of equal size"
    return (
        table(caption, ["system", "value", "95% interval", "rows"], rows)
        + _unsettled(best, list(zip(low, high, strict=True)), systems)
        + _left_out(systems)
    )


def plots(scored: Scored) -> str:
    """How the values spread, and PRD's curves."""
    columns = {info_of(name).title: _finite(values) for name, values in scored.columns.items()}
    drawn = [charts.spread(columns, scored.systems)] if columns else []
    if "prd" in scored.of_systems:
        drawn.append(charts.curves(scored.of_systems["prd"]))
    return "".join(drawn)


def _finite(values: Sequence[float | None]) -> Any:
    return np.array(values, dtype=np.float64)


def _value(value: float, is_best: bool) -> str:
    return f'<span class="best">{number(value)}</span> <span class="mark">best</span>' if is_best else number(value)


def _unsettled(best: set[int], intervals: Sequence[tuple[float, float]], systems: Sequence[str | None]) -> str:
    """Names the systems whose interval the best one's reaches into; sets have no rows to pair, so no test decides."""
    others = [
        (system, ends) for at, (system, ends) in enumerate(zip(systems, intervals, strict=True)) if at not in best
    ]
    near = [
        system or "all rows"
        for system, (low, high) in others
        if any(low <= intervals[at][1] and intervals[at][0] <= high for at in best)
    ]
    if not near:
        return ""
    named = ", ".join(near[:_MOST_NAMED]) + (f" and {len(near) - _MOST_NAMED} more" if len(near) > _MOST_NAMED else "")
    return note(f"The best system's interval overlaps with that of {named}: which is better stays open.")


def _left_out(systems: Sequence[str | None]) -> str:
    return note(f"The first {_MOST_SYSTEMS} of {len(systems)} systems.") if len(systems) > _MOST_SYSTEMS else ""
