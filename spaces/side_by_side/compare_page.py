"""The tab that compares replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import conversation
import gradio as gr
import links
from limits import Refused
from markup import problem, to_view
from models import first_choice, ready, titled
from pools import TEXTS

from dialeval.metric import Level

_INTRO = "Type a conversation and several replies to it, and see which reply each metric prefers, and why."
_BUSY, _IDLE = "Judging …", "Compare the replies"
_TO_RESULT = to_view("#result")
#: The server knows the texts, the browser where the page is.
_WHOLE_LINK = """link => { if (!link.startsWith("?")) return link;
const whole = location.origin + location.pathname + link; navigator.clipboard?.writeText(whole).catch(() => {});
return whole }"""


_ARRIVED = '<p class="note">The texts came with the link. Press the button to have them judged.</p>'


def build(texts_limit: dict[str, Any]) -> Opened:
    """Put the tab's parts into the page; `texts_limit` says how many may be judged at once."""
    gr.Markdown(_INTRO)
    with gr.Row():
        with gr.Column(scale=5, min_width=300):
            editor = conversation.build()
            offered = ready(Level.TURN)
            metrics = gr.CheckboxGroup(
                [(titled(name), name) for name in offered],
                value=first_choice(offered),
                label="Metrics",
                elem_id="metrics",
            )
        with gr.Column(scale=6, min_width=300, elem_classes="answers"):
            with gr.Row(elem_classes="doing"):
                button = gr.Button(_IDLE, variant="primary", elem_id="compare", scale=3, min_width=160)
                share = gr.Button("Share", elem_id="share", scale=1, min_width=80)
            link = gr.Textbox(
                label="Whoever opens this link finds the same texts in the boxes; it is in your clipboard",
                interactive=False,
                placeholder=" ",
                lines=1,
                max_lines=2,
                buttons=["copy"],
                elem_id="link",
            )
            result = gr.HTML('<p class="note">The scores will stand here.</p>', elem_id="result")
            bars = gr.HTML(elem_id="chart")
            signature = gr.Textbox(
                label="Signature: what somebody needs to get the same numbers",
                lines=2,
                interactive=False,
                placeholder=" ",
                buttons=["copy"],
                elem_id="signature",
            )
    private: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    asked = gr.on(
        [button.click, editor.reference.submit, *(box.submit for box in editor.replies.texts)],
        # A link shared before may hold other texts.
        lambda: (gr.update(value=_BUSY, interactive=False), ""),
        None,
        [button, link],
        js=_TO_RESULT,
        **private,
    )
    judged = asked.then(
        _judged,
        [metrics, *editor.inputs],
        [result, bars, signature],
        api_visibility="private",
        show_progress_on=result,
        **texts_limit,
    )
    judged.then(lambda: gr.update(value=_IDLE, interactive=True), None, button, **private)
    share.click(_linked, [metrics, *editor.inputs], link, **private).then(None, link, link, js=_WHOLE_LINK)
    return Opened(editor, metrics, result)


@dataclass(frozen=True)
class Opened:
    """What a link fills when the page is opened."""

    editor: conversation.Editor
    metrics: Any
    result: Any

    def from_link(self, page: Any) -> None:
        """Read the address when the page opens."""
        page.load(
            self._read,
            None,
            [self.result, self.metrics, *self.editor.outputs],
            api_visibility="private",
            queue=False,
            show_progress="hidden",
        )

    def _read(self, request: gr.Request) -> Any:
        parameter = request.query_params.get(links.PARAMETER) if request else None
        if not parameter:
            return gr.skip()
        try:
            turns, replies, reference, names = links.read(parameter)
        except Refused as error:
            return [problem(error), *[gr.skip()] * (1 + len(self.editor.outputs))]
        offered = ready(Level.TURN)
        chosen = [name for name in names if name in offered] or first_choice(offered)
        return [_ARRIVED, chosen, *self.editor.filled(turns, replies, reference)]


def _linked(metrics: list[str], *boxes: Any) -> str:
    try:
        return links.written(*conversation.typed(*boxes), metrics)
    except Refused as error:
        return f"no link: {error}"


def _judged(metrics: list[str], *boxes: Any) -> tuple[str, str, str]:
    try:
        found, bars, signature = TEXTS.ask("compare", *conversation.typed(*boxes), metrics)
    except Refused as error:
        return problem(error), "", ""
    return found, bars, signature
