"""The page of a metric's Space: type a conversation, read a number and what it means, read the card.

All modules' pages are built here, so that they look alike. As with `evaluate` in `evaluate_module`,
this file never imports gradio: the module's app.py, which runs where gradio is, hands it in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dialeval.evaluate_module import loaded
from dialeval.metric import Level, Metric, MetricInfo
from dialeval.registry import metric_class
from dialeval.scores import Scores
from dialeval.weights.find import CheckpointError

#: A page is for trying; files are for `dialeval score`.
MAX_CHARACTERS, MAX_ROWS = 20_000, 500

_CONTEXT = "Did you find your keys?\nNot yet, I have looked everywhere."
_REFERENCE = "Have you looked in the car?"
EXAMPLES = [
    [_CONTEXT, "Maybe you left them in the car?", _REFERENCE],
    [_CONTEXT, "I like pancakes with syrup.", _REFERENCE],
    ["How was the concert?", "Loud, but the second half was wonderful.", "Great, we danced all night!"],
]
ROWS = [
    ["Did you find your keys? | Not yet.", "Maybe they are in the car.", "Have you looked in the car?"],
    ["How was the concert?", "Loud, but the second half was wonderful.", "Great, we danced all night!"],
    ["Shall we cook tonight? | I am rather tired.", "Then let us order a pizza.", "I can cook while you rest."],
    ["My train is late again.", "I do not know.", "Oh no, how long do you have to wait?"],
    ["Do you have any pets?", "Two cats, and they hate each other.", "Yes, an old dog called Max."],
    ["It has been raining all week.", "I do not know.", "At least the garden is happy."],
]


def build_page(gr: Any, name: str, card: Path) -> Any:
    """The page of one metric as gradio Blocks; `card` is the README.md beside app.py."""
    info = metric_class(name)[0].info
    with gr.Blocks(title=info.title, analytics_enabled=False) as page:
        gr.Markdown(f"# {info.title}\n{info.summary}\n\n{direction(info)}")
        inputs, judge = _row_inputs(gr, name, info) if info.level is Level.SYSTEM else _turn_inputs(gr, name, info)
        button = gr.Button("Score", variant="primary")
        outputs = [
            gr.Number(label=info.title, interactive=False),
            gr.Textbox(label="What it means", interactive=False, lines=2),
            gr.Textbox(label="Signature: what somebody needs to get the same number", interactive=False, lines=2),
        ]
        button.click(judge, inputs=inputs, outputs=outputs, api_name="judge")
        with gr.Accordion("About this metric", open=True):
            gr.Markdown(card_text(card))
    page.queue(max_size=32)
    return page


def direction(info: MetricInfo) -> str:
    """In words, which way is better and how far it goes."""
    low, high = info.range
    bounds = {
        (False, False): "without bounds",
        (True, False): f"{low:g} or more",
        (False, True): f"{high:g} or less",
        (True, True): f"{low:g} to {high:g}",
    }[math.isfinite(low), math.isfinite(high)]
    return f"**{'Higher' if info.higher_is_better else 'Lower'} is better** ({bounds})."


def card_text(card: Path) -> str:
    """A card without its header and its title."""
    text = card.read_text(encoding="utf-8")
    body = text.split("---\n", 2)[2] if text.startswith("---\n") else text
    return "\n".join(line for line in body.splitlines() if not line.startswith("# ")).strip()


def _turn_inputs(gr: Any, name: str, info: MetricInfo) -> tuple[list[Any], Callable[..., Any]]:
    needs_reference = "references" in info.needs
    fields = [
        gr.Textbox(label="Context, one turn per line", lines=4, value=_CONTEXT),
        gr.Textbox(label="Reply", value=EXAMPLES[0][1]),
        *([gr.Textbox(label="Reference: what a person said", value=_REFERENCE)] if needs_reference else []),
    ]
    gr.Examples([row[: len(fields)] for row in EXAMPLES], inputs=fields)

    def judge(context: str, reply: str, reference: str = "") -> tuple[float, str, str]:
        """Score one reply."""
        turns = [turn.strip() for turn in context.splitlines() if turn.strip()]
        return _score(gr, name, [[turns, reply, reference]])

    if needs_reference:
        return fields, judge

    def judge_without_reference(context: str, reply: str) -> tuple[float, str, str]:
        """Score one reply."""
        return judge(context, reply)

    return fields, judge_without_reference


def _row_inputs(gr: Any, name: str, info: MetricInfo) -> tuple[list[Any], Callable[..., Any]]:
    table = gr.Dataframe(
        ROWS,
        headers=["context, turns separated by |", "reply of the system", "reference: what a person said"],
        type="array",
        label=f"Replies of one system, {MAX_ROWS} rows at most; with so few the number only shows how it works",
        wrap=True,
        interactive=True,
    )

    def judge(rows: Sequence[Sequence[Any]]) -> tuple[float, str, str]:
        """Score the replies of one system."""
        cells = [[str(cell or "") for cell in [*row, "", "", ""][:3]] for row in rows]
        filled = [row for row in cells if any(cell.strip() for cell in row)]
        return _score(gr, name, [[_turns(context), reply, reference] for context, reply, reference in filled])

    return [table], judge


def _turns(context: str) -> list[str]:
    return [turn.strip() for turn in context.split("|") if turn.strip()]


def _score(gr: Any, name: str, rows: Sequence[Any]) -> tuple[float, str, str]:
    """Score rows of context, reply and reference; what is wrong with them is said on the page."""
    if len(rows) > MAX_ROWS or sum(len(text) for row in rows for text in (*row[0], *row[1:])) > MAX_CHARACTERS:
        raise gr.Error(
            f"this is more than {MAX_ROWS} rows or {MAX_CHARACTERS:,} characters; `dialeval score` reads files",
            print_exception=False,
        )
    contexts, replies = [row[0] for row in rows], [row[1] for row in rows]
    references = [[row[2]] if row[2].strip() else [] for row in rows]
    try:
        metric = loaded(name)
        scores = metric.score(replies, contexts, references)
    except (ValueError, CheckpointError) as error:
        raise gr.Error(str(error), print_exception=False) from None
    return scores.aggregate, " ".join(_reading(metric, scores)), str(scores.signature)


def _reading(metric: Metric, scores: Scores) -> list[str]:
    """What the number means, sentence by sentence."""
    parts = [direction(metric.info).replace("*", "")]
    if "human_percentile" in metric.scales:
        try:
            share = metric.rescale(scores.values, "human_percentile")[0]
        except ValueError:
            pass  # a checkpoint of somebody's own may bring no human scores
        else:
            parts.append(f"{share:.0%} of human replies score lower.")
    low, high = (scores.details.get(end, [math.nan])[0] for end in ("low", "high"))
    if math.isfinite(low) and math.isfinite(high):
        parts.append(f"{scores.details['confidence']:.0%} interval: {low:.3f} to {high:.3f}.")
    if scores.n_truncated:
        parts.append("The text was longer than the model reads, so the beginning of the context was left out.")
    return parts
