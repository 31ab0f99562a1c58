"""Conversations as people paste them: `User: …` and `Bot: …`, one turn a line, or the JSON of a chat log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dialeval.readers.messages import MORE_ROLES, ROLES, known_roles

Messages = list[dict[str, Any]]

#: A date or a time, as messengers write before a turn: `[01.02.24, 10:02:11] `, `2/1/24, 10:02 PM - `.
_TIME = r"\d{1,4}[:./-]\d{1,2}(?:[\d:./, \u202f-]|[AaPp][Mm])*"
_STAMP = rf"[\s\u200e\u200f]*(?:\[{_TIME}\]|(?=\d+[./-]\d+[./-]\d){_TIME}\s-\s)[\s~\u200e\u200f\u202a]*"
#: A few words, and who that is; many with capitals; a picture.
_NAME = (
    r"(?:[^\W\d_][\w .'-]{0,30}?|[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){3,9})"
    r"(?: \((?i:[\w ]*(?:bot|ai|agent|assistant|support|user|customer|client|human|you|me))\))?"
    r"|[\u2600-\u27bf\U0001f300-\U0001faff\ufe0f\u200d]{1,6}"
)
#: `User:`, also with a time before it or in bold; `http:` is no turn. All after a messenger's time is name.
_SPEAKER = re.compile(
    rf"{_STAMP}([^\s:][^:\"“”<>*\n]{{0,80}}):(?:\s+|$)"
    rf"|[\s\u200e\u200f]*(?:\[?{_TIME}\]?[\s\u200e\u200f-]*)?[*_#<\[]{{0,3}}({_NAME})[\]>*_]{{0,3}}\s*:[*_]{{0,2}}(?:\s+|$)"
)
_OMITTED = (
    r"<?(?:media|image|video|audio|gif|sticker|document|contact card) omitted>?|messages and calls are end-to-end .*"
    r"|(?:this message was deleted|you deleted this message)\.?"
)
#: A line of a messenger that nobody said.
_NOTICE = re.compile(rf"{_STAMP}[^\s:][^:]*(?::[\s\u200e]*(?i:{_OMITTED}))?$")
_RULE = re.compile(r"\s*([-=*_#])\1{2,}\s*")


def conversations(lines: list[str]) -> Iterator[Messages]:
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
                yield _messages(one)


def is_transcript(text: str) -> bool:
    """Whether a text of several lines is a conversation with roles that everybody knows."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [(found[1] or found[2]).strip().lower() for line in lines if (found := _SPEAKER.match(line))]
    return 1 < len(lines) == len(names) and set(names) <= {*ROLES, *MORE_ROLES, "user", "assistant", "system"}


def names_speakers(lines: list[str]) -> bool:
    """Whether any line begins with a name; without, turns are taken to alternate."""
    return any(_SPEAKER.match(line) for line in lines)


def turns_of(text: str) -> list[tuple[str, str]]:
    """The turns of one conversation."""
    found = _messages([line for line in text.splitlines() if line.strip()])
    return [(message["role"], message["content"]) for message in found]


def _messages(lines: list[str]) -> Messages:
    if not names_speakers(lines):
        return [{"role": ("user", "assistant")[at % 2], "content": line.strip()} for at, line in enumerate(lines)]
    turns: list[tuple[str, str]] = []
    for line in lines:
        if _NOTICE.match(line):
            continue
        if found := _SPEAKER.match(line):
            turns.append(((found[1] or found[2]).strip(" \xa0\u200e\u202c"), line[found.end() :].strip()))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line.strip()}".strip())
        else:
            turns.append(("system", line.strip()))  # what stands above the first name is a title
    roles = known_roles(who for who, _ in turns)
    return [{"role": roles[who], "speaker": who, "content": said} for who, said in turns]
