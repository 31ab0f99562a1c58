"""The tab that compares replies."""

from __future__ import annotations

from typing import Any

import conversation
import gradio as gr
from compare import chart, compared, rendered
from limits import Refused
from markup import problem
from models import ready, titled

from dialeval.metric import Level
from dialeval.weights.find import CheckpointError

_INTRO = (
    "Type a conversation and several replies to it, and see which reply each metric prefers. "
    "FBD and PRD judge whole systems, so they are on the next tab."
)


def build(texts_limit: dict[str, Any]) -> None:
    """Put the tab's parts into the page; `texts_limit` says how many may be judged at once."""
    gr.Markdown(_INTRO)
    with gr.Row():
        with gr.Column(scale=5, min_width=300):
            editor = conversation.build()
            offered = ready(Level.TURN)
            metrics = gr.CheckboxGroup(
                [(titled(name), name) for name in offered], value=offered, label="Metrics", elem_id="metrics"
            )
            button = gr.Button("Compare the replies", variant="primary", elem_id="compare")
        with gr.Column(scale=6, min_width=300):
            result = gr.HTML('<p class="note">The scores will stand here.</p>', elem_id="result")
            bars = gr.HTML(elem_id="chart")
            signature = gr.Textbox(
                label="Signature: what somebody needs to get the same numbers",
                lines=2,
                interactive=False,
                buttons=["copy"],
                elem_id="signature",
            )
    gr.on(
        [button.click, editor.reference.submit, *(box.submit for box in editor.replies.texts)],
        _judged,
        [metrics, *editor.inputs],
        [result, bars, signature],
        api_visibility="private",
        show_progress_on=result,
        **texts_limit,
    )


def _judged(metrics: list[str], *boxes: Any) -> tuple[str, str, str]:
    try:
        found = compared(*conversation.typed(*boxes), metrics)
    except (Refused, ValueError, CheckpointError) as error:
        return problem(error), "", ""
    return rendered(found), chart(found), found.signatures
