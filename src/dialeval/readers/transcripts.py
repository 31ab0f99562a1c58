"""Conversations as people paste them: `User: …` and `Bot: …`, one turn a line, or the JSON of a chat log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.exchange import Dialogue

#: Where a conversation stands in a JSON object, and what its messages call who speaks and what is said.
FORMS: Mapping[str, tuple[str, str]] = {"messages": ("role", "content"), "conversations": ("from", "value")}
#: Names of the same role.
ROLES = {"human": "user", **dict.fromkeys(("gpt", "bot", "chatgpt", "model"), "assistant")}
#: Names in transcripts, where nothing else says who is who.
_MORE_ROLES = {
    **dict.fromkeys("you me customer client visitor student seeker caller".split(), "user"),
    **dict.fromkeys("ai chatbot agent claude gemini llama".split(), "assistant"),
}
#: Nobody's turn in the conversation.
ASIDE = frozenset({"system", "developer", "tool", "function", "observation", "function_call"})

Turns = list[tuple[str, str]]

#: `User:`, also with a time before it or in bold; what follows `http:` is no turn.
_SPEAKER = re.compile(
    r"\s*(?:\[[\d:. -]+\]\s*)?[*_#<\[]{0,3}([^\W\d_][\w .'-]{0,30}?)[\]>*_]{0,3}\s*:[*_]{0,2}(?:\s+|$)"
)
_RULE = re.compile(r"\s*([-=*_#])\1{2,}\s*")


def read_transcript(text: str) -> Dialogue:
    """One conversation from pasted text; speakers are `user`, `assistant`, or the names that stand there.

    It reads lines that begin with a name (`User: Hi`; lines without one go on with the turn), one turn a line where no
    names stand, and JSON: an object with `messages` (OpenAI) or `conversations` (ShareGPT), or the list alone.

    >>> read_transcript("User: Hi!\\nBot: Hello.").speakers
    ('user', 'assistant')
    """
    turns = _from_json(text) if text.lstrip().startswith(("{", "[")) else None
    if turns is None:
        found = list(conversations(text.splitlines()))
        turns = [turn for conversation in found for turn in conversation]
    turns = [(role, said) for role, said in turns if role not in ASIDE and said.strip()]
    if len(turns) < 2:
        raise ValueError("the text holds fewer than two turns; write one turn a line, such as User: Hi!")
    return Dialogue(tuple(said for _, said in turns), speakers=tuple(role for role, _ in turns))


def conversations(lines: list[str]) -> Iterator[Turns]:
    """The conversations of a text. They stand apart by lines of dashes, or by blank lines if those do not stand
    between all turns."""
    blocks: list[list[list[str]]] = [[[]]]
    for line in lines:
        if _RULE.fullmatch(line):
            blocks.append([[]])
        elif line.strip():
            blocks[-1][-1].append(line.rstrip())
        elif blocks[-1][-1]:
            blocks[-1].append([])
    for parts in blocks:
        parts = [part for part in parts if part]
        named = any(_SPEAKER.match(line) for part in parts for line in part)
        apart = all(sum(1 for line in part if not named or _SPEAKER.match(line)) > 1 for part in parts)
        opens = all(not named or _SPEAKER.match(part[0]) for part in parts)
        for one in parts if apart and opens else [[line for part in parts for line in part]]:
            if one:
                yield _turns(one)


def is_transcript(text: str) -> bool:
    """Whether a text of several lines is a conversation with roles that everybody knows."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [found[1].strip().lower() for line in lines if (found := _SPEAKER.match(line))]
    known = {*ROLES, *_MORE_ROLES, "user", "assistant", "system"}
    return len(lines) > 1 and len(names) == len(lines) and set(names) <= known


def turns_of(text: str) -> Turns:
    """The turns of one conversation."""
    return _turns([line for line in text.splitlines() if line.strip()])


def role_of(name: str) -> str:
    """The role behind a name: `user`, `assistant`, or the name itself."""
    name = name.strip().lower()
    return ROLES.get(name, name)


def _turns(lines: list[str]) -> Turns:
    if not any(_SPEAKER.match(line) for line in lines):
        return [(("user", "assistant")[at % 2], line.strip()) for at, line in enumerate(lines)]
    turns: Turns = []
    for line in lines:
        found = _SPEAKER.match(line)
        if found:
            turns.append((found[1].strip(), line[found.end() :].strip()))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line.strip()}".strip())
        else:
            turns.append(("system", line.strip()))  # what stands above the first name is a title
    roles = {name: _MORE_ROLES.get(name.lower(), role_of(name)) for name, _ in turns}
    speaking = list(dict.fromkeys(roles.values()))
    if "assistant" not in speaking and len(speaking) == 2:  # user and system; Anna and Bert, who answers
        judged = next((role for role in ("system", *speaking[1:]) if role in speaking and role != "user"), speaking[0])
        roles = {name: "assistant" if role == judged else "user" for name, role in roles.items()}
    return [(roles[name], said) for name, said in turns]


def _from_json(text: str) -> Turns | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, Mapping):
        value = next((value[form] for form in FORMS if isinstance(value.get(form), list)), None)
    if not isinstance(value, list):
        return None
    turns: Turns = []
    for at, message in enumerate(value):
        if isinstance(message, str):
            turns.append((("user", "assistant")[at % 2], message))
            continue
        for who, what in FORMS.values():
            if isinstance(message, Mapping) and isinstance(message.get(who), str):
                turns.append((role_of(message[who]), message_text(message.get(what))))
                break
        else:
            raise ValueError(f"message {at} has no role; a message is an object with 'role' and 'content'")
    return turns


def message_text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list | tuple) else []
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text", "output_text")]
    return "\n".join(text for text in texts if isinstance(text, str))
