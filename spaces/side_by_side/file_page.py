"""The tab that scores a file: upload, preview, progress, summary, distribution, downloads."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import charts
import gradio as gr
import numpy as np
from limits import MAX_FILE_BYTES, MAX_FILE_ROWS
from markup import listed, note, number, problem, share, table, text
from models import best_of, direction_told, human_percentile, info_of, ready, titled
from score_file import Scored, read_rows, score_rows

from dialeval.exchange import Exchange
from dialeval.sources import CheckpointError

_INTRO = (
    "A row holds **context** (a list of turns) and **response**, and if you have them **reference**, **system** and "
    "**id**; in CSV the turns of a context stand between `__eou__`. FBD and PRD judge whole systems and need "
    f"references. Up to {MAX_FILE_ROWS:,} rows and {MAX_FILE_BYTES // 1_000_000} MB; nobody else sees your file, and "
    "it is deleted when you leave."
)
_PREVIEWED, _MOST_SYSTEMS = 5, 50


def build(files_limit: dict[str, Any]) -> None:
    """Put the tab's parts into the page; `files_limit` says how many may be scored at once."""
    gr.Markdown(_INTRO)
    # The folder of this visitor's results; it goes when the visitor does, or an hour after its last use.
    folder = gr.State(None, time_to_live=3600, delete_callback=_remove)
    file = gr.File(
        label="Rows as JSON lines or CSV", file_types=[".jsonl", ".ndjson", ".json", ".csv", ".tsv"], elem_id="file"
    )
    metrics = gr.CheckboxGroup(
        [(titled(name), name) for name in ready()], value=ready()[:1], label="Metrics", elem_id="file-metrics"
    )
    button = gr.Button("Score the file", variant="primary", elem_id="score-file")
    preview = gr.HTML(elem_id="file-preview")
    result = gr.HTML(elem_id="file-result")
    plots = gr.HTML(elem_id="file-plots")
    with gr.Row():
        downloads = [
            gr.DownloadButton(label, interactive=False, elem_id=f"download-{label.split()[-1].lower()}")
            for label in ("Scores as JSONL", "Scores as CSV", "Summary as JSON")
        ]
    signature = gr.Textbox(
        label="Signature: what somebody needs to get the same numbers",
        lines=2,
        interactive=False,
        buttons=["copy"],
        elem_id="file-signature",
    )
    file.change(_preview, file, preview, api_visibility="private", show_progress="hidden")
    button.click(
        _score,
        [file, metrics, folder],
        [result, plots, signature, folder, *downloads],
        api_visibility="private",
        show_progress_on=result,
        **files_limit,
    )


def _preview(path: str | None) -> str:
    if path is None:
        return ""
    try:
        rows = [exchange for _, exchange in read_rows(path, [])]
    except ValueError as error:
        return problem(error)
    shown = [[str(at), *_cells(row)] for at, row in enumerate(rows[:_PREVIEWED])]
    told = f"{len(rows):,} row{'s' if len(rows) != 1 else ''}; the first {len(shown)}"
    return table(told, ["row", "context", "response", "reference", "system"], shown)


def _cells(row: Exchange) -> list[str]:
    context = "<br>".join(text(turn, 80) for turn in row.context[-3:])
    return [
        context,
        text(row.response),
        text(row.references[0]) if row.references else "–",
        text(row.system or "–", 40),
    ]


def _score(path: str | None, metrics: list[str], folder: str | None, progress: Any = gr.Progress()) -> list[Any]:  # noqa: B008
    nothing = [gr.DownloadButton(interactive=False)] * 3
    if path is None:
        return [problem("there is no file yet; upload one first"), "", "", folder, *nothing]
    folder = folder if folder and Path(folder).is_dir() else tempfile.mkdtemp(prefix="dialeval-page-")
    try:
        progress(0, desc="reading")
        rows = read_rows(path, metrics)
        scored = score_rows(
            rows, metrics, Path(folder), lambda what, done, of: progress((done, of), desc=what, unit="rows")
        )
    except (ValueError, CheckpointError) as error:
        return [problem(error), "", "", folder, *nothing]
    signatures = "\n".join(tally.signature for tally in scored.summary.tallies.values())
    buttons = [gr.DownloadButton(value=str(path), interactive=True) for path in scored.downloads]
    return [_report(scored), _plots(scored), signatures, folder, *buttons]


def _report(scored: Scored) -> str:
    parts = []
    for name, tally in scored.summary.tallies.items():
        parts.append(f"<h3>{titled(name)}</h3>{note(direction_told(name) + ' ' + info_of(name).summary)}")
        parts.append(_system_table(scored, name) if name in scored.of_systems else _mean_table(scored, name))
        notes = [text(warned, 400) for warned in scored.warned.get(name, [])]
        if tally.n_truncated:
            notes.append(
                f"{tally.n_truncated} rows were judged on cut text, because the model does not read that much."
            )
        parts.append(listed(notes, "notes"))
    return f"<p>{scored.summary.n:,} rows scored.</p>" + "".join(parts)


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
    return table(f"{info_of(name).title} by system; intervals draw contexts anew", header, rows) + _left_out(systems)


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
    told = f"{info_of(name).title} by system; compare only systems of equal size"
    return table(told, ["system", "value", "95% interval", "rows"], rows) + _left_out(systems)


def _plots(scored: Scored) -> str:
    columns = {info_of(name).title: _finite(values) for name, values in scored.columns.items()}
    drawn = [charts.spread(columns, scored.systems)] if columns else []
    if "prd" in scored.of_systems:
        drawn.append(charts.curves(scored.of_systems["prd"]))
    return "".join(drawn)


def _finite(values: Sequence[float | None]) -> Any:
    return np.array(values, dtype=np.float64)


def _value(value: float, is_best: bool) -> str:
    return f'<span class="best">{number(value)}</span> <span class="mark">best</span>' if is_best else number(value)


def _left_out(systems: Sequence[str | None]) -> str:
    return note(f"The first {_MOST_SYSTEMS} of {len(systems)} systems.") if len(systems) > _MOST_SYSTEMS else ""


def _remove(folder: str | None) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
