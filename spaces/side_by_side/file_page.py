"""The tab that scores a file: upload, preview, progress, summary, distribution, downloads."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import gradio as gr
from file_report import plots, report
from limits import MAX_FILE_BYTES, MAX_FILE_ROWS
from markup import problem, table, text
from models import ready, titled
from score_file import read_rows, score_rows

from dialeval.exchange import Exchange
from dialeval.weights.find import CheckpointError

_INTRO = (
    "A row holds **context** (a list of turns) and **response**, and if you have them **reference**, **system** and "
    "**id**; in CSV the turns of a context stand between `__eou__`. FBD and PRD judge whole systems and need "
    f"references. Up to {MAX_FILE_ROWS:,} rows and {MAX_FILE_BYTES // 1_000_000} MB; nobody else sees your file, and "
    "it is deleted after about an hour."
)
_PREVIEWED = 5


def build(files_limit: dict[str, Any]) -> None:
    """Put the tab's parts into the page; `files_limit` says how many may be scored at once."""
    gr.Markdown(_INTRO)
    # The folder of this visitor's results, which goes an hour after its last use.
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
    figures = gr.HTML(elem_id="file-plots")
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
        [result, figures, signature, folder, *downloads],
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
    return [report(scored), plots(scored), signatures, folder, *buttons]


def _remove(folder: str | None) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
