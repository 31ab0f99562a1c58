"""Texts in which a turn is not a line `Name: text`, written so: subtitles, ParlAI's files, headings of Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection

from dialeval.readers.chats.base import without_tags

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
        lines += _asked(act.get("text", "").replace("\\n", "\n").splitlines())
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
