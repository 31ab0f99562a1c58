"""Scores as a notebook shows them: one line, a histogram, the first rows. Plain HTML, light or dark."""

from __future__ import annotations

from typing import Any

import numpy as np

from dialeval.io.harmless import for_xml
from dialeval.io.tables import Table, to_html

_ROWS, _BINS, _WIDTH, _HEIGHT = 5, 24, 240, 48


def scores_as_html(scores: Any) -> str:
    """A small table beside a histogram; `scores` are `Scores`, whose module imports this one."""
    direction = "higher is better" if scores.higher_is_better else "lower is better"
    head = (
        f"<b>{for_xml(scores.metric)} {scores.aggregate:.4g}</b> over {len(scores)} values, {direction}; "
        f"{scores.n_truncated} truncated, {scores.n_empty} blank"
    )
    cautions = "".join(f"<p>⚠ {for_xml(warning)}</p>" for warning in scores.warnings)
    return (
        f"<div><p>{head}</p>{cautions}{_histogram(scores)}{_table(scores)}"
        f"<p><small><code>{for_xml(scores.signature.short)}</code></small></p></div>"
    )


def _histogram(scores: Any) -> str:
    known = scores.values[np.isfinite(scores.values)]
    if len(known) < 2 or np.ptp(known) == 0:
        return ""
    counts, edges = np.histogram(known, bins=min(_BINS, len(known)))
    step = _WIDTH / len(counts)
    bars = "".join(
        f'<rect x="{index * step:.1f}" y="{_HEIGHT * (1 - count / counts.max()):.1f}" width="{step - 1:.1f}" '
        f'height="{_HEIGHT * count / counts.max():.1f}"/>'
        for index, count in enumerate(counts)
    )
    caption = f"histogram of the values from {edges[0]:.4g} to {edges[-1]:.4g}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT + 16}" role="img" aria-label="{caption}" fill="#1f6feb">{bars}'
        f'<g fill="currentColor" font-size="11"><text x="0" y="{_HEIGHT + 13}">{edges[0]:.3g}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 13}" text-anchor="end">{edges[-1]:.3g}</text></g></svg>'
    )


def _table(scores: Any) -> str:
    columns = {
        name: column
        for name, column in scores.columns().items()
        if column.dtype != object and (name == scores.metric or np.isfinite(column).any())
    }
    replies = ["response"] if scores.exchanges else []
    rows = []
    for index in range(min(_ROWS, len(scores))):
        name = scores.ids[index] if scores.ids is not None and scores.ids[index] is not None else index
        reply = [_short(scores.exchanges[index].response)] if scores.exchanges else []
        figures = [f"{column[index]:.3g}" if np.isfinite(column[index]) else "" for column in columns.values()]
        rows.append([str(name), *reply, *figures])
    left = len(scores) - len(rows)
    more = f"<p><small>and {left} more; <code>.to_pandas()</code> has all</small></p>" if left else ""
    return to_html([Table(["", *replies, *columns], rows)]) + more


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
