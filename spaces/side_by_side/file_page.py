"""The tab that scores a file: upload, preview, progress, summary, distribution, downloads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import store
from limits import MAX_FILE_BYTES, MAX_FILE_ROWS, Refused
from markup import problem, to_view
from models import ready, titled
from pools import FILES, PREVIEWS

_INTRO = (
    "A row holds **context** (a list of turns) and **response**, and if you have them **reference**, **system** and "
    "**id**; in CSV the turns of a context stand between `__eou__`. Chat logs (`messages`, `conversations`) are read "
    f"as they are. FBD and PRD judge whole systems and need references. Up to {MAX_FILE_ROWS:,} rows and "
    f"{MAX_FILE_BYTES // 1_000_000} MB; nobody else sees your file, and it is deleted after about an hour."
)
#: Two systems on the same contexts, to see what a file looks like and what comes out.
SAMPLE = Path(__file__).with_name("sample.jsonl").resolve()
#: What can be called otherwise in a file.
_MAPPED = ("context", "response", "reference", "system", "id")
_CHATS = ("messages", "conversations", "dialogue")
_OWN_NAME = "the same name"
_BUSY, _IDLE = "Scoring …", "Score the file"
_TO_RESULT = to_view("#file-result")


def build(files_limit: dict[str, Any]) -> None:
    """Put the tab's parts into the page; `files_limit` says how many may be scored at once."""
    gr.Markdown(_INTRO)
    file = gr.File(
        label="Rows as JSON lines or CSV", file_types=[".jsonl", ".ndjson", ".json", ".csv", ".tsv"], elem_id="file"
    )
    gr.DownloadButton("A sample file to begin with", str(SAMPLE), size="sm", elem_id="sample")
    with gr.Accordion("My columns have other names, or it is a chat log", open=False, elem_id="mapping") as mapping:
        with gr.Row():
            columns = [
                gr.Dropdown(
                    [_OWN_NAME], value=_OWN_NAME, label=f"{name} stands in", elem_id=f"column-{name}", min_width=140
                )
                for name in _MAPPED
            ]
        role = gr.Radio(
            [("the assistant's turns", "assistant"), ("the user's turns", "user")],
            value="assistant",
            label="In a chat log, judge",
            elem_id="role",
        )
    preview = gr.HTML(elem_id="file-preview")
    metrics = gr.CheckboxGroup(
        [(titled(name), name) for name in ready()], value=ready()[:1], label="Metrics", elem_id="file-metrics"
    )
    button = gr.Button(_IDLE, variant="primary", elem_id="score-file")
    result = gr.HTML(elem_id="file-result")
    figures = gr.HTML(elem_id="file-plots")
    with gr.Row(elem_id="downloads"):
        downloads = [
            gr.DownloadButton(label, interactive=False, elem_id=f"download-{label.split()[-1].lower()}")
            for label in ("Scores as JSONL", "Scores as CSV", "Summary as JSON")
        ]
    signature = gr.Textbox(
        label="Signature: what somebody needs to get the same numbers",
        lines=2,
        interactive=False,
        placeholder=" ",
        buttons=["copy"],
        elem_id="file-signature",
    )
    quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
    looking = {**quiet, "concurrency_id": "previews", "concurrency_limit": PREVIEWS.size}
    file.change(_columns, file, [mapping, *columns], **looking).then(
        _preview, [file, role, *columns], preview, **looking
    )
    chosen: list[Any] = [role, *columns]
    for one in chosen:
        one.input(_preview, [file, role, *columns], preview, **looking)
    asked = button.click(
        lambda: gr.update(value=_BUSY, interactive=False), None, button, js=_TO_RESULT, queue=False, **quiet
    )
    asked.then(
        _score,
        [file, metrics, role, *columns],
        [result, figures, signature, *downloads],
        api_visibility="private",
        show_progress_on=result,
        **files_limit,
    ).then(lambda: gr.update(value=_IDLE, interactive=True), None, button, queue=False, **quiet)


def _columns(path: str | None) -> list[Any]:
    """The columns of a file to choose from; the choice opens by itself where a name is missing."""
    try:
        found = PREVIEWS.ask("columns", path) if path else []
    except Refused:  # the preview says why
        found = []
    missing = bool(found) and "response" not in found and not set(_CHATS) & set(found)
    # A column that is called as the field is stands for itself.
    others = [name for name in found if name not in _MAPPED]
    boxes = [gr.Dropdown(choices=[_OWN_NAME, *others], value=_OWN_NAME) for _ in _MAPPED]
    return [gr.Accordion(open=missing), *boxes]


def _mapping(columns: Sequence[str | None]) -> dict[str, str]:
    return {field: name for field, name in zip(_MAPPED, columns, strict=True) if name and name != _OWN_NAME}


def _preview(path: str | None, role: str, *columns: str | None) -> str:
    if path is None:
        return ""
    try:
        shown: str = PREVIEWS.ask("preview", path, role, _mapping(columns))
    except Refused as error:
        return problem(error)
    return shown


def _score(
    path: str | None,
    metrics: list[str],
    role: str,
    # gradio finds it by its place, and looks no further than the last single argument.
    progress: Any = gr.Progress(),  # noqa: B008
    *columns: str | None,
) -> list[Any]:
    nothing = [gr.DownloadButton(interactive=False)] * 3
    if path is None:
        return [problem("there is no file yet; upload one first"), "", "", *nothing]

    def show(what: str, done: int, of: int) -> None:
        progress((done, of), desc=what, unit="rows")

    try:
        given = [path, metrics, str(store.new_folder()), role, _mapping(columns)]
        found, figures, signatures, downloads = FILES.ask("file", *given, progress=show)
    except Refused as error:
        return [problem(error), "", "", *nothing]
    return [found, figures, signatures, *(gr.DownloadButton(value=one, interactive=True) for one in downloads)]
