"""The editor of a conversation and of candidate replies: a fixed set of boxes, of which some are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from limits import MAX_REPLIES, MAX_TURNS
from markup import note

from examples import EXAMPLES

_FIRST = next(iter(EXAMPLES))


@dataclass(frozen=True)
class Boxes:
    """Text boxes that grow and shrink: the boxes, what is around each, how many are shown, the button for more."""

    texts: list[Any]
    rows: list[Any]
    count: Any
    more: Any

    @property
    def outputs(self) -> list[Any]:
        """Everything that changes when the boxes do."""
        return [self.count, self.more, *self.rows, *self.texts]

    def shown(self, values: list[str], label: Callable[[int], str]) -> list[Any]:
        """Updates of the outputs, so that just these values are shown."""
        places = range(len(self.texts))
        return [
            len(values),
            gr.update(interactive=len(values) < len(self.texts)),
            *(gr.update(visible=place < len(values)) for place in places),
            *(gr.update(value=values[place] if place < len(values) else "", label=label(place)) for place in places),
        ]


@dataclass(frozen=True)
class Editor:
    """What the tab needs of the editor: the conversation, the replies, the reference."""

    turns: Boxes
    replies: Boxes
    reference: Any
    order: Any

    @property
    def outputs(self) -> list[Any]:
        """Everything that changes when all texts do."""
        return [self.order, *self.turns.outputs, *self.replies.outputs, self.reference]

    def filled(self, turns: list[str], replies: list[str], reference: str) -> list[Any]:
        """Updates of the outputs, so that just these texts stand in the boxes."""
        shown = self.turns.shown(turns, lambda place: _speaker(place, 0))
        return [0, *shown, *self.replies.shown(replies, _numbered), reference]

    @property
    def inputs(self) -> list[Any]:
        """In the order in which `typed` takes them."""
        return [self.turns.count, self.replies.count, self.reference, *self.turns.texts, *self.replies.texts]


def typed(turns: int, replies: int, reference: str, *texts: str) -> tuple[list[str], list[str], str]:
    """What stands in the boxes that are shown; a turn left blank was not said."""
    said = [text for text in texts[:MAX_TURNS][:turns] if text.strip()]
    return said, list(texts[MAX_TURNS:][:replies]), reference


def build() -> Editor:
    """Put the editor into the page."""
    first = EXAMPLES[_FIRST]
    order = gr.State(0)
    private: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    example = gr.Dropdown(list(EXAMPLES), value=_FIRST, label="Load an example", elem_id="example")
    lesson = gr.HTML(note(first.lesson), elem_id="lesson")
    gr.Markdown("### Conversation\nThe oldest turn first.")
    turns, drop_turn = _boxes("turn", MAX_TURNS, list(first.turns), lambda place: _speaker(place, 0))
    with gr.Row(elem_classes="actions"):
        turns.more.render()
        swap = gr.Button("Swap speakers", size="sm", elem_id="swap")
    gr.Markdown("### Candidate replies")
    replies, drop_reply = _boxes("reply", MAX_REPLIES, list(first.replies), _numbered)
    with gr.Row(elem_classes="actions"):
        replies.more.render()
    reference = gr.Textbox(
        first.reference, label="Reference: what a person said (optional)", elem_id="reference", max_lines=6
    )

    def label(order: int) -> Callable[[int], str]:
        return lambda place: _speaker(place, order)

    turns.more.click(
        lambda count, order, *texts: turns.shown([*texts[:count], ""], label(order)),
        [turns.count, order, *turns.texts],
        turns.outputs,
        **private,
    )
    replies.more.click(
        lambda count, *texts: replies.shown([*texts[:count], ""], _numbered),
        [replies.count, *replies.texts],
        replies.outputs,
        **private,
    )
    for place, button in enumerate(drop_turn):
        button.click(
            lambda count, order, *texts, place=place: turns.shown(_without(place, count, texts), label(order)),
            [turns.count, order, *turns.texts],
            turns.outputs,
            **private,
        )
    for place, button in enumerate(drop_reply):
        button.click(
            lambda count, *texts, place=place: replies.shown(_without(place, count, texts), _numbered),
            [replies.count, *replies.texts],
            replies.outputs,
            **private,
        )
    swap.click(
        lambda order: [1 - order, *(gr.update(label=_speaker(place, 1 - order)) for place in range(MAX_TURNS))],
        order,
        [order, *turns.texts],
        **private,
    )
    editor = Editor(turns, replies, reference, order)

    def chosen(name: str) -> list[Any]:
        one = EXAMPLES[name]
        return [note(one.lesson), *editor.filled(list(one.turns), list(one.replies), one.reference)]

    example.input(chosen, example, [lesson, *editor.outputs], **private)
    return editor


def _boxes(kind: str, most: int, values: list[str], label: Callable[[int], str]) -> tuple[Boxes, list[Any]]:
    texts, rows, buttons = [], [], []
    for place in range(most):
        with gr.Row(visible=place < len(values), elem_classes="line", equal_height=True) as row:
            value = values[place] if place < len(values) else ""
            texts.append(
                gr.Textbox(
                    value,
                    label=label(place),
                    max_lines=6,
                    scale=8,
                    min_width=120,
                    elem_id=f"{kind}-{place + 1}",
                    placeholder="Type here",
                )
            )
            buttons.append(gr.Button("Remove", size="sm", scale=0, min_width=76, elem_id=f"remove-{kind}-{place + 1}"))
        rows.append(row)
    more = gr.Button(f"Add a {kind}", size="sm", elem_id=f"add-{kind}", render=False)
    return Boxes(texts, rows, gr.State(len(values)), more), buttons


def _speaker(place: int, order: int) -> str:
    return f"{place + 1}. {'AB'[(place + order) % 2]} says"


def _numbered(place: int) -> str:
    return f"Reply {place + 1}"


def _without(place: int, count: int, texts: tuple[str, ...]) -> list[str]:
    return [text for at, text in enumerate(texts[:count]) if at != place]
