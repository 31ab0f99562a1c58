"""The tab that judges a whole conversation."""

from __future__ import annotations

from typing import Any

import gradio as gr
from dialogue import read_lines
from limits import Refused
from markup import problem, to_view
from models import info_of, ready, titled
from pools import TEXTS

from dialeval.metric import Level
from examples import CONVERSATION

_INTRO = (
    "A turn a line, the oldest first. The two sides take turns, unless every line begins with a name (`Anna: Hello`). "
    "One side is judged; what the other one says shows how it takes it."
)
_BUSY, _IDLE = "Judging …", "Judge the conversation"
_TO_RESULT = to_view("#dialogue-result")
_SECOND, _FIRST = "the side that speaks second", "the side that speaks first"


def build(texts_limit: dict[str, Any]) -> None:
    """Put the tab's parts into the page; `texts_limit` says how many may be judged at once."""
    gr.Markdown(_INTRO)
    with gr.Row():
        with gr.Column(scale=5, min_width=300):
            lines = gr.Textbox(
                CONVERSATION,
                label="Conversation",
                lines=8,
                max_lines=24,
                elem_id="dialogue-lines",
                placeholder="Type here",
            )
            side = gr.Radio([_SECOND, _FIRST], value=_SECOND, label="Judge", elem_id="dialogue-side")
            offered = [name for name in ready(Level.TURN) if "references" not in info_of(name).needs]
            metrics = gr.CheckboxGroup(
                [(titled(name), name) for name in offered],
                value=["judge"] if "judge" in offered else offered[:1],
                label="Metrics",
                elem_id="dialogue-metrics",
            )
        with gr.Column(scale=6, min_width=300, elem_classes="answers"):
            with gr.Row(elem_classes="doing"):
                button = gr.Button(_IDLE, variant="primary", elem_id="judge-dialogue")
            result = gr.HTML('<p class="note">What was seen will stand here.</p>', elem_id="dialogue-result")
            signature = gr.Textbox(
                label="Signature: what somebody needs to get the same numbers",
                lines=2,
                interactive=False,
                placeholder=" ",
                buttons=["copy"],
                elem_id="dialogue-signature",
            )
    private: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    asked = button.click(lambda: gr.update(value=_BUSY, interactive=False), None, button, js=_TO_RESULT, **private)
    asked.then(
        _judged,
        [lines, side, metrics],
        [result, signature],
        api_visibility="private",
        show_progress_on=result,
        **texts_limit,
    ).then(lambda: gr.update(value=_IDLE, interactive=True), None, button, **private)


def _judged(lines: str, side: str, metrics: list[str]) -> tuple[str, str]:
    try:
        found, signature = TEXTS.ask("dialogue", *read_lines(lines, side == _FIRST), metrics)
    except Refused as error:
        return problem(error), ""
    return found, signature
