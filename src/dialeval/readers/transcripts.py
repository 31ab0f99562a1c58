"""Conversations as people paste them: `User: …` and `Bot: …`, one turn a line, or the JSON of a chat log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.exchange import Dialogue
from dialeval.readers.messages import (
    MORE_ROLES,
    ROLES,
    aside,
    form_of,
    known_roles,
    message_text,
    messages_of,
    role_of,
    said_by,
)

Turns = list[tuple[str, str]]

#: A date or a time, as messengers write before a turn: `[01.02.24, 10:02:11] `, `2/1/24, 10:02 PM - `.
_TIME = r"[\s\u200e\u200f]*\[?\d{1,4}[:./-]\d{1,2}(?:[\d:./, \u202f-]|[AaPp][Mm])*\]?[\s\u200e\u200f-]*"
_NAME = r"[*_#<\[]{0,3}([^\W\d_][\w .'-]{0,30}?)[\]>*_]{0,3}\s*:[*_]{0,2}(?:\s+|$)"
#: `User:`, also with a time before it or in bold; what follows `http:` is no turn.
_SPEAKER = re.compile(rf"\s*(?:{_TIME})?{_NAME}")
#: A line of a messenger that nobody said.
_NOTICE = re.compile(rf"{_TIME}[^\s:]+[^:]*$")
_RULE = re.compile(r"\s*([-=*_#])\1{2,}\s*")


def read_transcript(text: str) -> Dialogue:
    """One conversation from pasted text; speakers are `user`, `assistant`, or the names that stand there.

    It reads lines that begin with a name (`User: Hi`; lines without one go on with the turn), one turn a line where no
    names stand, and JSON: one conversation of a chat log, as `messages` names its kinds, or its messages alone.

    >>> read_transcript("User: Hi!\\nBot: Hello.").speakers
    ('user', 'assistant')
    """
    turns = _from_json(text) if text.lstrip().startswith(("{", "[")) else None
    if turns is None:
        found = list(conversations(text.splitlines()))
        turns = [turn for conversation in found for turn in conversation]
    turns = [(role, said) for role, said in turns if role not in aside([]) and said.strip()]
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
        named = any(map(names_speakers, parts))
        apart = all(sum(1 for line in part if not named or _SPEAKER.match(line)) > 1 for part in parts)
        opens = all(not named or _SPEAKER.match(part[0]) for part in parts)
        for one in parts if apart and opens else [[line for part in parts for line in part]]:
            if one:
                yield _turns(one)


def is_transcript(text: str) -> bool:
    """Whether a text of several lines is a conversation with roles that everybody knows."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [found[1].strip().lower() for line in lines if (found := _SPEAKER.match(line))]
    known = {*ROLES, *MORE_ROLES, "user", "assistant", "system"}
    return len(lines) > 1 and len(names) == len(lines) and set(names) <= known


def names_speakers(lines: list[str]) -> bool:
    """Whether any line begins with a name; without, turns are taken to alternate."""
    return any(_SPEAKER.match(line) for line in lines)


def turns_of(text: str) -> Turns:
    """The turns of one conversation."""
    return _turns([line for line in text.splitlines() if line.strip()])


def _turns(lines: list[str]) -> Turns:
    if not names_speakers(lines):
        return [(("user", "assistant")[at % 2], line.strip()) for at, line in enumerate(lines)]
    turns: Turns = []
    for line in lines:
        found = _SPEAKER.match(line)
        if found:
            turns.append((found[1].strip(), line[found.end() :].strip()))
        elif _NOTICE.match(line):
            continue
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line.strip()}".strip())
        else:
            turns.append(("system", line.strip()))  # what stands above the first name is a title
    roles = known_roles(name for name, _ in turns)
    return [(roles[name], said) for name, said in turns]


def _from_json(text: str) -> Turns | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping) and form_of(value[0]):
        value = value[0]  # an export of one conversation
    if isinstance(value, Mapping):
        value = messages_of(value, form_of(value) or "")
    if not isinstance(value, list):
        return None
    turns: Turns = []
    for at, message in enumerate(value):
        if isinstance(message, str):
            turns.append((("user", "assistant")[at % 2], message))
            continue
        if (found := said_by(message)) is None:
            raise ValueError(f"message {at} has no role; a message is an object with 'role' and 'content'")
        turns.append((found[0], message_text(found[1])))
    turns = [(role_of(who), said) for who, said in turns if said.strip()]
    nobody = aside([who for who, _ in turns])
    roles = known_roles(who for who, _ in turns if who not in nobody)
    return [(roles[who], said) for who, said in turns if who in roles]
