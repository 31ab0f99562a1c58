"""The first tab: which of two to five replies is better, and why."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from math import isfinite
from typing import Any

import gradio as gr
from gradio.events import api as endpoint
from limits import REPLIES, TURNS, Problem, checked
from parts import FOCUS, for_programs, grade, html, judge, note, one_at_a_time, others, ready_to_copy, share

from dialeval.judge.verdicts import Comparison, compare_replies

LETTERS = "ABCDE"[:REPLIES]
CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]
EXAMPLE = ["Oh no! Did the airline find it?", "Great, but I lost my suitcase, too.", "The library closes at six."]
#: What each of the other metrics asks, in a line.
ASKS = {
    "density": "Does it lie where human replies lie?",
    "deb": "Is it a possible next turn?",
    "quantidce": "How well does it follow, by levels of quality?",
    "cmn": "How much does it share with the context, beside what the references share?",
}


def compare(context: Sequence[str], replies: Sequence[str], facts: Sequence[str], following: str) -> Comparison:
    """Check what was typed, and ask the judge."""
    context = checked(context[-TURNS:], "context", "Turn")
    if not context:
        raise Problem("next-turn", "There is no context yet; write the turn that the replies answer.")
    letters = [letter for letter, reply in zip(LETTERS, replies, strict=False) if reply.strip()]
    if len(letters) < 2:
        raise Problem(f"reply-{'A' if not letters else 'B'}", "Write two replies, so that one can be better.")
    replies = checked([reply for reply in replies if reply.strip()], "reply-A", "Reply")
    known = checked(facts, "facts", "Fact")
    then = checked([following], "following", "Turn")[0] if following.strip() else None
    return one_at_a_time(
        "texts", lambda: compare_replies(judge("texts"), context, replies, facts=known, following=then, names=letters)
    )


def shown(comparison: Comparison, replies: Sequence[str]) -> str:
    """The answer: a sentence, then a card for each reply, best first."""
    scores = comparison.scores
    cards = []
    for index in comparison.order:
        value = scores.values[index]
        amounts = {name.replace("_", " "): column[index] for name, column in scores.aspects.items()}
        aspects = {name: (f"{amount:.2f}", share(amount)) for name, amount in amounts.items() if isfinite(amount)}
        cards.append({
            "name": comparison.names[index], "text": replies[index], "reason": scores.explain(index),
            "aspects": aspects, "value": f"{value:.2f}", "width": share(value), "grade": grade(value),
        })  # fmt: skip
    return html("compare", sentence=comparison.sentence, cards=cards)


def code(
    context: Sequence[str], replies: Sequence[str], facts: Sequence[str] = (), following: str = ""
) -> tuple[str, str]:
    """The command and the Python lines that give the same answer."""
    words = ["dialeval", "judge", *context[-TURNS:]]
    words += [word for reply in replies for word in ("--reply", reply)]
    words += [word for fact in facts for word in ("--fact", fact)]
    given: dict[str, Any] = {"context": list(context[-TURNS:]), "replies": list(replies)}
    if facts:
        given["facts"] = list(facts)
    if following:
        words += ["--following", following]
        given["following"] = following
    lines = ["import dialeval", 'judge = dialeval.load("judge")', "found = dialeval.compare_replies("]
    lines += ["    judge,", *(f"    {name}={json.dumps(text, ensure_ascii=False)}," for name, text in given.items())]
    return shlex.join(words), "\n".join([*lines, ")", "print(found.sentence)"])


def lines_of(text: str | None) -> list[str]:
    """What stands in a box, a line each. A box that was never opened sends nothing."""
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def texts_of(messages: Sequence[Any]) -> list[str]:
    """The turns of a chat as plain texts, in which gradio keeps a message as a text or as parts."""
    turns = []
    for message in messages or ():
        content = message["content"]
        parts = content if isinstance(content, list) else [content]
        turns.append(" ".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts))
    return turns


def as_messages(turns: Sequence[str]) -> list[Any]:
    """Turns as a chat, in which the bot is to speak next."""
    first = len(turns) % 2
    return [{"role": "user" if n % 2 != first else "assistant", "content": turn} for n, turn in enumerate(turns)]


def _answer(messages: Any, *typed: str | None) -> tuple[str, str, str]:
    facts, following = lines_of(typed[0]), (typed[1] or "").strip()
    context, replies = texts_of(messages), [reply or "" for reply in typed[2:]]
    given = [reply.strip() for reply in replies if reply.strip()]
    try:
        comparison = compare(context, replies, facts, following)
    except Problem as problem:
        return note(problem), "", ""
    return shown(comparison, given), *code(context, given, facts, following)


@for_programs
def api(context: list[str], replies: list[str]) -> dict[str, Any]:
    """Compare replies to a context: the sentence, and of each reply value, interval, aspects and reason."""
    if len(replies) > REPLIES:
        raise Problem("replies", f"There are {len(replies)} replies; at most {REPLIES} are compared.")
    comparison = compare(context, replies, (), "")
    order = [comparison.names[index] for index in comparison.order]
    return {"sentence": comparison.sentence, "order": order, **comparison.scores.to_dict()}


def _percentiles(messages: Any, reference: str | None, *replies: str) -> str:
    """All other metrics: of each reply the share of human replies that score lower."""
    given = {letter: reply for letter, reply in zip(LETTERS, replies, strict=False) if reply.strip()}
    context = texts_of(messages)[-TURNS:]
    try:
        texts = checked(list(given.values()), "reply-A", "Reply")
        contexts = [checked(context, "context", "Turn")] * len(texts)
        references = [checked(lines_of(reference), "references", "Reference")] * len(texts)
    except Problem as problem:
        return note(problem)
    if not texts or not context:
        return ""

    def percentiles() -> list[dict[str, Any]]:
        rows = []
        for name, metric in others().items():
            if "references" in metric.info.needs and not references[0]:
                continue
            wanted = references if "references" in metric.info.needs else None
            values = metric.score(texts, contexts, wanted, scale="human_percentile").values
            cells = {letter: (f"{value:.0%}", share(value)) for letter, value in zip(given, values, strict=True)}
            rows.append({"title": metric.info.title, "asks": ASKS.get(name, metric.info.summary), "cells": cells})
        return rows

    return html("metrics", metrics=one_at_a_time("texts", percentiles))


def build() -> None:
    """Lay the tab out."""
    comparison = compare(CONTEXT, EXAMPLE, (), "")
    with gr.Row(equal_height=False):
        with gr.Column(min_width=300):
            chat = gr.Chatbot(
                as_messages(CONTEXT), label="Context", editable="all", elem_id="context", height="auto",
                max_height=360, buttons=[], feedback_options=None, render_markdown=False,
            )  # fmt: skip
            turn = gr.Textbox(label="Add a turn", placeholder="Type the next turn, then Enter", elem_id="next-turn")
            with gr.Row():
                undo = gr.Button("Remove last turn", size="sm", elem_id="undo")
                clear = gr.Button("Clear", size="sm", elem_id="clear")
            boxes = [
                gr.Textbox(
                    EXAMPLE[index] if index < len(EXAMPLE) else "", label=f"Reply {letter}", lines=1, max_lines=6,
                    elem_id=f"reply-{letter}", visible=index < len(EXAMPLE),
                )
                for index, letter in enumerate(LETTERS)
            ]  # fmt: skip
            more = gr.Button("Add a reply", size="sm", elem_id="add-reply")
            with gr.Accordion("More: facts, next turn, references", open=False):
                facts = gr.Textbox(label="Facts the reply should know, one a line", lines=2, elem_id="facts")
                following = gr.Textbox(label="What the other side said next", elem_id="following")
                references = gr.Textbox(
                    label="Good replies that people wrote, one a line", lines=2, elem_id="references",
                    info="Not for the judge, which needs none: for CMN, among all other metrics.",
                )  # fmt: skip
            go = gr.Button("Compare", variant="primary", elem_id="compare")
        with gr.Column(min_width=300):
            answer = gr.HTML(shown(comparison, EXAMPLE), elem_id="answer")
            with gr.Accordion("All other metrics", open=False, elem_id="others") as beside:
                percentiles = gr.HTML("", elem_id="percentiles")
            with gr.Accordion("The same on the command line and in Python", open=False):
                shell, python = ready_to_copy(*code(CONTEXT, EXAMPLE))
    work: dict[str, Any] = {"concurrency_id": "texts", "concurrency_limit": 1}
    hidden: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    turn.submit(
        lambda messages, text: (as_messages([*texts_of(messages), text.strip()]) if text.strip() else messages, ""),
        [chat, turn], [chat, turn], **hidden,
    )  # fmt: skip
    undo.click(lambda messages: as_messages(texts_of(messages)[:-1]), chat, chat, **hidden)
    clear.click(lambda: ([], *[""] * (3 + REPLIES)), None, [chat, facts, following, references, *boxes], **hidden)
    visible = gr.State(len(EXAMPLE))
    more.click(
        lambda count: (min(count + 1, REPLIES), *(gr.update(visible=index <= count) for index in range(REPLIES))),
        visible, [visible, *boxes], **hidden,
    )  # fmt: skip
    for event in (go.click, *(box.submit for box in boxes)):
        event(
            _answer, [chat, facts, following, *boxes], [answer, shell, python], api_visibility="private", **work
        ).then(None, js=FOCUS, **hidden).then(lambda: "", None, percentiles, **hidden)  # those were of former replies
    beside.expand(_percentiles, [chat, references, *boxes], percentiles, api_visibility="private", **work)
    endpoint(api, api_name="compare", **work)
