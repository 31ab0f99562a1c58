"""Conversations as people paste them: `User: …` and `Bot: …`, one turn a line, or the JSON of a chat log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, dropwhile, groupby, islice
from typing import Any

from dialeval.readers.chats.messages import ASIDE, MORE_ROLES, ROLES, known_roles, plain_role, without_tags

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
_LINE_END = re.compile(r"\r\n|\r|\n")
_LAST_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_RULE = re.compile(r"\A\s*([-=*_#])\1{2,}\s*")


def lines_of(text: str) -> list[str]:
    """The lines of a text. A page break, or what else Unicode calls a line end, is inside of what somebody said."""
    return _LINE_END.split(_LAST_END.sub("", text))


#: What a line takes in memory beside its letters.
_BYTES_OF_A_LINE = 64
#: How many conversations of the longest size would fit into what is held to see how they stand apart.
_SHARE = 16
#: So many lines tell of which form a text is.
_LOOKED_AT = 40
#: So many names that are none are told.
_SHOWN = 5


def conversations(
    lines: Iterable[str], tell: Callable[[str], None] = lambda _: None, *, name: str = "the text", most: int = 2**26
) -> Iterator[Messages]:
    """The conversations of a text. They stand apart by lines of dashes, or by blank lines if those do not stand
    between all turns. What had to be guessed is told.

    A long text is read in pieces of some megabytes, none of which ends within a conversation; `most` bounds one.
    """
    begun = dropwhile(lambda line: not line.strip(), lines)
    runs = groupby(begun, key=lambda line: not line.strip())
    without_runs = (line for is_blank, run in runs for line in (islice(run, 1) if is_blank else run))
    lines = as_lines_of_names(without_runs, _KNOWN)
    held: list[str] = []
    joined: dict[str, None] = {}
    room, is_first, goes_on = most // _SHARE, True, True
    while goes_on:
        size = sum(map(_size, held))
        for line in lines:
            line = _CHATML.sub(lambda header: f"{header[1]}:" if header[1] else "", _EDITED.sub("", line))
            held.append(line)
            size += _size(line)
            if size > room:
                break
        else:
            goes_on = False
        whole, rest = _apart(held, goes_on)
        if goes_on and not whole:
            room *= 2
            if room > most:
                size_in_words = f"{most // 2**20 or 1:,} MB, or {most // _BYTES_OF_A_LINE:,} lines"
                raise ValueError(f"{name} has a conversation of more than {size_in_words}; is this a transcript?")
            continue
        talks = [_messages(talk, joined) for talk in whole]
        if is_first:
            _check_named(held, talks, tell)
        yield from talks
        held, room, is_first = rest, most // _SHARE, False
    if joined:
        shown = ", ".join(f"{name}:" for name in list(joined)[:_SHOWN]) + (" ..." if len(joined) > _SHOWN else "")
        tell(f"lines that begin with {shown} go on with the turn before; nobody of that name seems to speak")


def _size(line: str) -> int:
    return len(line) + _BYTES_OF_A_LINE


def _apart(lines: list[str], goes_on: bool) -> tuple[list[list[str]], list[str]]:
    """The lines of each conversation that is whole, and those of one that may go on behind them."""
    blocks: list[list[list[str]]] = [[[]]]
    for line in lines:
        if _RULE.fullmatch(line):
            blocks.append([[]])
        elif line.strip():
            blocks[-1][-1].append(line.rstrip())
        elif blocks[-1][-1]:
            blocks[-1].append([])
    whole: list[list[str]] = []
    for block in blocks:
        parts = [part for part in block if part]
        begins = _speakers([line for part in parts for line in part], of_several=True)
        named = any(begins(line) for part in parts for line in part)
        ends = parts[:-1] if goes_on and block is blocks[-1] else parts
        apart = all(sum(1 for line in part if not named or begins(line)) > 1 for part in ends)
        opens = all(not named or begins(part[0]) for part in parts)
        if not (apart and opens):
            ends = [[line for part in parts for line in part]] if ends is parts else []
        whole += ends
    rest = blocks[-1][len(ends) :] if goes_on else []
    return [lines for lines in whole if lines], [line for part in rest for line in (*part, "")][:-1]


def _check_named(lines: list[str], talks: list[Messages], tell: Callable[[str], None]) -> None:
    """Say that nobody is named, where that is so; refuse what is no transcript."""
    spoken = [line for line in lines if line.strip()]
    if not spoken or any("speaker" in message for messages in talks for message in messages):
        return
    if 2 * sum(1 for line in spoken if _HEADER.fullmatch(line)) >= len(spoken) > 1:
        raise ValueError("lines bear times, but who speaks cannot be told; write each turn as `Name: text`")
    if {"context", "response"} <= set(re.split(r"[,;\t]", spoken[0])):
        raise ValueError("the text is a table; name the file .csv or .tsv")
    tell("no line names its speaker, so lines are read as user and assistant in turn")


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
            if len(joined) <= _SHOWN and (other := _SPEAKER.match(line)):
                joined[_name(other)] = None
        else:
            turns.append(("system", [line.strip()]))  # what stands above the first name is a title
    roles = known_roles(who for who, _ in turns)
    return [{"role": roles[who], "speaker": who, "content": "\n".join(lines).strip()} for who, lines in turns]


#: Of one voice of subtitles.
_LONGEST_TURN = 2**24
_CUE = re.compile(r"\A(?:\d+:)?\d\d:\d\d[.,]\d{3}\s*-->.*")
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s([^<>]+)>")
#: `## User`, `**Assistant**`, `#### ChatGPT said:`.
_HEADING = re.compile(r"\A\s*(#{1,6}\s*|\*\*)?(?:\*\*)?(\w+)( said)?:?(?:\*\*)?:?\s*")
_NUMBERED = re.compile(r"\A\d+ \S")
_PERSONA = re.compile(r"(?:your|partner's) persona:\s*", re.IGNORECASE)


def as_lines_of_names(lines: Iterator[str], known: Collection[str]) -> Iterator[str]:
    """The same text as lines that begin with a name, if it is of one of these forms; else as it is."""
    begun = list(islice(lines, _LOOKED_AT))
    lines = chain(begun, lines)
    begun = [line for line in begun if line.strip()]
    filled = (line for line in lines if line.strip())
    first = begun[0] if begun else ""
    if first.lstrip("\ufeff").startswith("WEBVTT") or any(map(_CUE.fullmatch, begun[:3])):
        return _subtitles(filled)
    if first.startswith("text:") and "\t" in first:
        return _parlai(dict(cell.partition(":")[::2] for cell in line.split("\t")) for line in filled)
    if "\t" in "".join(begun) and all(map(_NUMBERED.match, begun)):
        return _numbered(filled)
    return (_heading(line, known) for line in lines)


def _heading(line: str, known: Collection[str]) -> str:
    match = _HEADING.fullmatch(line)
    return f"{match[2]}:" if match and (match[1] or match[3]) and match[2].lower() in known else line


def _subtitles(lines: Iterable[str]) -> Iterator[str]:
    """What each voice says, cues of the same one together."""
    speaker, texts = "", list[str]()
    size = 0
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
                name, text = speaker, line
        if not name:
            raise ValueError("no cue names its speaker; write <v Name> or `Name: ` before what is said")
        if name != speaker and texts:
            yield f"{speaker}: {' '.join(texts)}"
            texts, size = [], 0
        speaker = name
        texts.append(without_tags(text))
        size += _size(text)
        if size > _LONGEST_TURN:
            raise ValueError(f"{speaker[:40]!r} speaks for more than {_LONGEST_TURN // 2**20} MB; are these subtitles?")
    if texts:
        yield f"{speaker}: {' '.join(texts)}"


def _parlai(acts: Iterable[dict[str, str]]) -> Iterator[str]:
    """ParlAI's `text:` and `labels:`, of several the first, an episode a conversation."""
    for act in acts:
        yield from _asked(lines_of(act.get("text", "").replace("\\n", "\n")))
        if reply := act.get("labels", act.get("eval_labels", "")).partition("|")[0]:
            yield f"Assistant: {reply.replace(chr(92) + 'n', ' ')}"
        if act.get("episode_done") == "True":
            yield "---"


def _numbered(texts: Iterable[str]) -> Iterator[str]:
    """`1 text<tab>reply`, in which 1 begins a conversation."""
    for text in texts:
        if not _NUMBERED.match(text):
            raise ValueError(f"{text[:40]!r} stands behind lines that begin with a number; number each line")
        number, _, rest = text.partition(" ")
        asked, _, answered = rest.partition("\t")
        if number == "1":
            yield "---"
        yield from _asked([asked])
        if reply := answered.partition("\t")[0].partition("|")[0].strip():
            yield f"Assistant: {reply}"


def _asked(texts: list[str]) -> list[str]:
    """What a teacher says; personas are a prompt."""
    words = " ".join(text for text in texts if not _PERSONA.match(text)).strip()
    prompts = [f"System: {_PERSONA.sub('', text)}" for text in texts if _PERSONA.match(text)]
    return [*prompts, *([f"User: {words}"] if words and words != "__SILENCE__" else [])]
