"""The second tab: a whole conversation, its value, and the turns that pull it down."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
from gradio.events import api as endpoint
from limits import TEXT, TURNS, Problem, checked, in_page_words
from parts import FOCUS, for_programs, grade, html, judge, note, one_at_a_time, ready_to_copy

from dialeval.core.exchange import BadRow, Dialogue
from dialeval.judge.verdicts import ConversationVerdict, judge_conversation
from dialeval.readers import read_transcript

EXAMPLE = """User: Hi, did you have a good weekend?
Bot: Yes, I went hiking in the hills with my sister.
User: Oh, I love hiking! Where did you go?
Bot: Pizza is round.
User: What do you mean?
Bot: Sorry! We went up to the old tower above the lake.
User: That sounds great, I have to try it soon."""
SIDES = {"The bot, or who speaks second": False, "The other side": True}


def judged(text: str, other_side: bool) -> ConversationVerdict:
    """Read what was pasted and judge one side of it."""
    if not text.strip():
        raise Problem("transcript", "Paste a conversation first: a turn a line, with or without names.")
    if len(text) > TEXT * TURNS:
        raise Problem("transcript", "The text is too long for one conversation; the tab A file takes many.")
    try:
        dialogue = read_transcript(text)
    except ValueError as error:
        raise Problem("transcript", in_page_words(error, {})) from None
    if len(dialogue.turns) > TURNS:
        raise Problem("transcript", f"The conversation has {len(dialogue.turns)} turns; at most {TURNS} are judged.")
    turns = tuple(checked(dialogue.turns, "transcript", "Turn"))
    speakers = dialogue.speakers
    if other_side:
        swapped = {"assistant": "user", "user": "assistant"}
        speakers = tuple(swapped.get(name, name) for name in speakers)
    try:
        return one_at_a_time("texts", lambda: judge_conversation(judge("texts"), Dialogue(turns, speakers=speakers)))
    except (BadRow, ValueError) as error:
        raise Problem("transcript", in_page_words(error, {})) from None


def shown(verdict: ConversationVerdict, speakers: tuple[str, ...]) -> str:
    """The sentence, then the chat: judged turns coloured, weak ones with the reason beside them."""
    index_of = {position: index for index, position in enumerate(verdict.positions)}
    bubbles = []
    for position, text in enumerate(verdict.dialogue.turns):
        bubble: dict[str, Any] = {"who": speakers[position], "text": text, "grade": "", "value": "", "reason": ""}
        if (index := index_of.get(position)) is not None:
            value = float(verdict.turns.values[index])
            bubble |= {"grade": grade(value), "value": f"{value:.2f}"}
            if grade(value) == "weak" or position == verdict.weakest:
                bubble["reason"] = verdict.turns.explain(index)
        bubbles.append(bubble)
    value = float(verdict.whole.values[0])
    return html("conversation", sentence=verdict.sentence, value=f"{value:.2f}", grade=grade(value), bubbles=bubbles)


def code(text: str, other_side: bool) -> tuple[str, str]:
    """The command, for the text in a file, and the Python lines that give the same answer."""
    command = "dialeval score -m judge -i conversation.txt -o - --level dialogue --per-turn --explain short"
    lines = [
        "import dialeval",
        "from dialeval.readers import read_transcript",
        f"dialogue = read_transcript({json.dumps(text, ensure_ascii=False)})",
    ]
    if other_side:
        command += " --judge-role user"
        lines += [
            "from dataclasses import replace",
            'other = {"user": "assistant", "assistant": "user"}',
            "dialogue = replace(dialogue, speakers=[other[who] for who in dialogue.speakers])",
        ]
    lines += [
        'found = dialeval.judge_conversation(dialeval.load("judge"), dialogue)',
        "print(found.sentence, found.whole.values[0], found.turns.values)",
    ]
    return command, "\n".join(lines)


def _answer(text: str, side: str) -> tuple[str, str, str]:
    try:
        verdict = judged(text, SIDES[side])
    except Problem as problem:
        return note(problem), "", ""
    return shown(verdict, read_transcript(text).speakers), *code(text, SIDES[side])


@for_programs
def api(transcript: str, other_side: bool = False) -> dict[str, Any]:
    """Judge a conversation: value, aspects and reason, and the same for each judged turn."""
    verdict = judged(transcript, other_side)
    return {
        "sentence": verdict.sentence,
        "positions": list(verdict.positions),
        "whole": verdict.whole.to_dict(),
        "turns": verdict.turns.to_dict(),
    }


def build() -> None:
    """Lay the tab out."""
    first = judged(EXAMPLE, False)
    with gr.Row(equal_height=False):
        with gr.Column(min_width=300):
            text = gr.Textbox(
                EXAMPLE, label="Conversation", lines=9, max_lines=20, elem_id="transcript",
                info="User: … / Bot: …, other names, one turn a line, or the JSON of a chat log",
            )  # fmt: skip
            side = gr.Radio(list(SIDES), value=next(iter(SIDES)), label="Who is judged", elem_id="side")
            go = gr.Button("Judge the conversation", variant="primary", elem_id="judge-conversation")
        with gr.Column(min_width=300):
            speakers = read_transcript(EXAMPLE).speakers
            answer = gr.HTML(shown(first, speakers), elem_id="conversation-answer")
            with gr.Accordion("The same on the command line and in Python", open=False):
                gr.Markdown("The command reads the conversation from a file, here `conversation.txt`.")
                shell, python = ready_to_copy(*code(EXAMPLE, False))
    work: dict[str, Any] = {"concurrency_id": "texts", "concurrency_limit": 1}
    go.click(_answer, [text, side], [answer, shell, python], api_visibility="private", **work).then(
        None, js=FOCUS, api_visibility="private", queue=False
    )
    endpoint(api, api_name="conversation", **work)
