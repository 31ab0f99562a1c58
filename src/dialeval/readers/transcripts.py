"""Conversations as people paste them: `User: …` and `Bot: …`, one turn a line, or the JSON of a chat log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from dialeval.readers.chats.base import ASIDE, MORE_ROLES, ROLES, known_roles, plain_role, without_tags

Messages = list[dict[str, Any]]

#: Names of roles that everybody knows, and of those who have no turn.
_KNOWN = frozenset({*ROLES, *MORE_ROLES, "user", "assistant", "system"})
_ASIDE = ASIDE - {"service"}

#: A date or a time, as messengers write before a turn: `[01.02.24, 10:02:11] `, `2/1/24, 10:02 PM - `.
_TIME = r"\d{1,4}[:./-]\d{1,2}(?:[\d:./, \u202f-]|[AaPp]\.?\s?[Mm]\b\.?){0,40}"
_STAMP = rf"[\s\u200e\u200f]*(?:\[{_TIME}\]|(?=\d+[./-]\d+[./-]\d){_TIME}\s-\s)[\s~\u200e\u200f\u202a]*+"
#: A few words, and who that is; many with capitals; a picture.
_NAME = (
    r"(?:[^\W\d_][\w .'-]{0,30}?|[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){3,9})"
    r"(?: \((?i:[\w ]*(?:bot|ai|agent|assistant|support|user|customer|client|human|you|me))\))?"
    r"|[\u2600-\u27bf\U0001f300-\U0001faff\ufe0f\u200d]{1,6}"
)
#: `User:`, also with a time before it or in bold; `http:` is no turn. All after a messenger's time is name.
_SPEAKER = re.compile(
    rf"\A(?:({_STAMP})([^\s:][^:\"“”<>*\n]{{0,80}}):(?:\s+|$)"
    rf"|[\s\u200e\u200f]*(\[?{_TIME}\]?[\s\u200e\u200f-]*)?"
    rf"[*_#<\[]{{0,3}} ?({_NAME})[\]>*_]{{0,3}}\s*:[*_]{{0,2}}(?:\s+|$))"
)
_OMITTED = (
    r"<?(?:media|image|video|audio|gif|sticker|document|contact card) omitted>?|messages and calls are end-to-end .*"
    r"|(?:this message was deleted|you deleted this message)\.?|[<‹][^<>‹›]{3,40}[>›]|missed (?:voice|video) call.*"
    r"|(?:bild|video|audio|dokument|imagen|vídeo|image|immagine|imagem) (?:weggelassen|omit|absent|ocult|omess)\w*"
    r"|nachrichten und anrufe sind ende-zu-ende-.*"
)
#: A line of a messenger that nobody said.
_NOTICE = re.compile(rf"\A{_STAMP}[^\s:][^:]*(?::[\s\u200e]*(?i:{_OMITTED}))?$")
_EDITED = re.compile(r"(?<!\s)\s*[<‹]this message was edited[>›]$", re.IGNORECASE)
#: The header of a turn as models read it: `<|im_start|>user`.
_CHATML = re.compile(r"<\|im_start\|>\s*(\w+)\s*$|<\|im_end\|>\s*$")
#: The header of a turn that names nobody as `User:` does: a date before the text, or a time in brackets at its end.
_HEADER = re.compile(r"\A(?:\s*\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b.*|.*[(\[]\d{1,2}:\d\d(?::\d\d)?[)\]]\s*)")
_RULE = re.compile(r"\A\s*([-=*_#])\1{2,}\s*")


def lines_of(text: str) -> list[str]:
    """The lines of a text. A page break, or what else Unicode calls a line end, is inside of what somebody said."""
    return re.split(r"\r\n|\r|\n", text)


def conversations(text: str, tell: Callable[[str], None] = lambda _: None) -> list[Messages]:
    """The conversations of a text. They stand apart by lines of dashes, or by blank lines if those do not stand
    between all turns. What had to be guessed is told."""
    blocks: list[list[list[str]]] = [[[]]]
    lines = as_lines_of_names(lines_of(text), _KNOWN)
    lines = [_CHATML.sub(lambda header: f"{header[1]}:" if header[1] else "", _EDITED.sub("", line)) for line in lines]
    for line in lines:
        if _RULE.fullmatch(line):
            blocks.append([[]])
        elif line.strip():
            blocks[-1][-1].append(line.rstrip())
        elif blocks[-1][-1]:
            blocks[-1].append([])
    talks: list[Messages] = []
    is_named = False
    joined: dict[str, None] = {}
    for parts in blocks:
        parts = [part for part in parts if part]
        begins = _speakers([line for part in parts for line in part], of_several=True)
        named = any(begins(line) for part in parts for line in part)
        apart = all(sum(1 for line in part if not named or begins(line)) > 1 for part in parts)
        opens = all(not named or begins(part[0]) for part in parts)
        for one in parts if apart and opens else [[line for part in parts for line in part]]:
            if one:
                messages = _messages(one, joined)
                is_named |= any("speaker" in message for message in messages)
                talks.append(messages)
    spoken = [line for line in lines if line.strip()]
    if spoken and not is_named:
        if 2 * sum(1 for line in spoken if _HEADER.fullmatch(line)) >= len(spoken) > 1:
            raise ValueError("lines bear times, but who speaks cannot be told; write each turn as `Name: text`")
        if {"context", "response"} <= set(re.split(r"[,;\t]", spoken[0])):
            raise ValueError("the text is a table; name the file .csv or .tsv")
        tell("no line names its speaker, so lines are read as user and assistant in turn")
    if joined:
        shown = ", ".join(f"{name}:" for name in list(joined)[:5]) + (" ..." if len(joined) > 5 else "")
        tell(f"lines that begin with {shown} go on with the turn before; nobody of that name seems to speak")
    return talks


def is_transcript(text: str) -> bool:
    """Whether a text of several lines is a conversation with roles that everybody knows."""
    lines = [line for line in lines_of(text) if line.strip()]
    names = [_name(match).lower() for line in lines if (match := _SPEAKER.match(line))]
    return 1 < len(lines) == len(names) and set(names) <= _KNOWN


def turns_of(text: str) -> list[tuple[str, str]]:
    """The turns of one conversation."""
    messages = _messages([line for line in lines_of(text) if line.strip()], {})
    return [(message["role"], message["content"]) for message in messages]


def _name(match: re.Match[str]) -> str:
    return (match[2] or match[4]).strip(" \xa0\u200e\u202c")


def _speakers(lines: list[str], *, of_several: bool = False) -> Callable[[str], re.Match[str] | None]:
    """What tells who begins a turn in a line; `Address: 5 Main Street` goes on with one.

    Where the first name stands behind a time, all do; where a user and a bot speak, nobody else does. Otherwise names
    that come again are speakers, and of others the first so that there are two; of several conversations all names are.
    """
    matches = [match for line in lines if (match := _SPEAKER.match(line))]
    timed = sum(1 for line in matches if line[1] or line[3]) > 1 and bool(matches[0][1] or matches[0][3])
    counts = Counter(map(_name, matches))
    roles = {name: plain_role(name) for name in counts}
    names = {name for name in counts if name.lower() in _KNOWN | _ASIDE or roles[name] == "assistant"}
    spoke = {roles[name] for name in names}
    if "user" not in spoke or not spoke & {"assistant", "system"}:
        names |= {name for name in counts if counts[name] > 1}
        others = [name for name in counts if name not in names] if len(counts) > 1 else []
        names.update(others if of_several else others[: max(0, 2 - len(names))])

    def begins(line: str) -> re.Match[str] | None:
        match = _SPEAKER.match(line)
        return match if match and (match[1] or match[3] if timed else _name(match) in names) else None

    return begins


def _messages(lines: list[str], joined: dict[str, None]) -> Messages:
    """The turns of one conversation, and which names at the beginning of a line were not taken for speakers."""
    begins = _speakers(lines)
    if not any(map(begins, lines)):
        return [{"role": ("user", "assistant")[index % 2], "content": line.strip()} for index, line in enumerate(lines)]
    turns: list[tuple[str, list[str]]] = []
    for line in lines:
        if _NOTICE.match(line):
            continue
        if beginning := begins(line):
            turns.append((_name(beginning), [line[beginning.end() :].strip()]))
        elif turns:
            turns[-1][1].append(line.strip())
            if other := _SPEAKER.match(line):
                joined[_name(other)] = None
        else:
            turns.append(("system", [line.strip()]))  # what stands above the first name is a title
    roles = known_roles(who for who, _ in turns)
    return [{"role": roles[who], "speaker": who, "content": "\n".join(lines).strip()} for who, lines in turns]


_CUE = re.compile(r"\A(?:\d+:)?\d\d:\d\d[.,]\d{3}\s*-->.*")
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s([^<>]+)>")
#: `## User`, `**Assistant**`, `#### ChatGPT said:`.
_HEADING = re.compile(r"\A\s*(#{1,6}\s*|\*\*)?(?:\*\*)?(\w+)( said)?:?(?:\*\*)?:?\s*")
_NUMBERED = re.compile(r"\A\d+ \S")
_PERSONA = re.compile(r"(?:your|partner's) persona:\s*", re.IGNORECASE)


def as_lines_of_names(lines: list[str], known: Collection[str]) -> list[str]:
    """The same text as lines that begin with a name, if it is of one of these forms; else as it is."""
    filled = [line for line in lines if line.strip()]
    first = filled[0] if filled else ""
    if first.lstrip("\ufeff").startswith("WEBVTT") or any(map(_CUE.fullmatch, filled[:3])):
        return _subtitles(filled)
    if first.startswith("text:") and "\t" in first:
        return _parlai([dict(cell.partition(":")[::2] for cell in line.split("\t")) for line in filled])
    if "\t" in "".join(filled) and all(map(_NUMBERED.match, filled)):
        return _numbered(filled)
    return [_heading(line, known) for line in lines]


def _heading(line: str, known: Collection[str]) -> str:
    match = _HEADING.fullmatch(line)
    return f"{match[2]}:" if match and (match[1] or match[3]) and match[2].lower() in known else line


def _subtitles(lines: list[str]) -> list[str]:
    """What each voice says, cues of the same one together."""
    turns: list[tuple[str, list[str]]] = []
    is_said = False
    for line in lines:
        if _CUE.fullmatch(line):
            is_said = True
            continue
        if not is_said or line.strip().isdigit() or line.startswith(("NOTE", "STYLE", "WEBVTT")):
            continue
        if voice := _VOICE.search(line):
            name, text = voice[1].strip(), _VOICE.sub("", line)
        else:
            name, _, text = line.partition(": ")
            if not text or len(name) > 40:
                name, text = (turns[-1][0] if turns else ""), line
        text = without_tags(text)
        if turns and turns[-1][0] == name:
            turns[-1][1].append(text)
        else:
            turns.append((name, [text]))
    if not all(name for name, _ in turns):
        raise ValueError("no cue names its speaker; write <v Name> or `Name: ` before what is said")
    return [f"{name}: {' '.join(lines)}" for name, lines in turns]


def _parlai(acts: list[dict[str, str]]) -> list[str]:
    """ParlAI's `text:` and `labels:`, of several the first, an episode a conversation."""
    lines: list[str] = []
    for act in acts:
        lines += _asked(lines_of(act.get("text", "").replace("\\n", "\n")))
        if reply := act.get("labels", act.get("eval_labels", "")).partition("|")[0]:
            lines.append(f"Assistant: {reply.replace(chr(92) + 'n', ' ')}")
        if act.get("episode_done") == "True":
            lines.append("---")
    return lines


def _numbered(texts: list[str]) -> list[str]:
    """`1 text<tab>reply`, in which 1 begins a conversation."""
    lines: list[str] = []
    for text in texts:
        number, _, rest = text.partition(" ")
        asked, _, answered = rest.partition("\t")
        lines += ["---"] if number == "1" and lines else []
        lines += _asked([asked])
        if reply := answered.partition("\t")[0].partition("|")[0].strip():
            lines.append(f"Assistant: {reply}")
    return lines


def _asked(texts: list[str]) -> list[str]:
    """What a teacher says; personas are a prompt."""
    words = " ".join(text for text in texts if not _PERSONA.match(text)).strip()
    prompts = [f"System: {_PERSONA.sub('', text)}" for text in texts if _PERSONA.match(text)]
    return [*prompts, *([f"User: {words}"] if words and words != "__SILENCE__" else [])]
