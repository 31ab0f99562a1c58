"""Texts of others made harmless for where they are shown: one function for each medium, and one that masks secrets.

On the page that function is the templates' own.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import unicodedata
from base64 import b32encode, b64encode
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from html import unescape
from itertools import accumulate
from typing import Any
from xml.sax.saxutils import escape

#: Anything but white space, controls, and what Unicode calls default ignorable: zero-width spaces and joiners,
#: directional marks, variation selectors, fillers, tags. The braille blank is a symbol, but an invisible one.
VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
)
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def one_line(text: str) -> str:
    """A message without line breaks, escape sequences and directional marks that a user's own text brought in."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def for_terminal(text: str) -> str:
    """The same, for texts whose line breaks and tabs are ours."""
    return "".join(part if part in "\n\t" else one_line(part) for part in re.split(r"([\n\t])", text))


def for_xml(text: str) -> str:
    """A text as it may stand in an element of XML or HTML and, in double quotes, in an attribute."""
    return escape(for_terminal(text), {'"': "&quot;"})


#: What Markdown would make a tag, a link, a picture, an address, a mention or a number of an issue of.
_LIVE = re.compile(
    r"<(?=[a-zA-Z/!?])|\](?=[(\[:])|(?<=\w):(?=//)|(?<=www)\.|`|@(?=\w)|#(?=\d)|(?<=gh)-(?=\d)|\\(?=[!-/:-@\[-`{-~])",
    re.IGNORECASE,
)
_CODE = re.compile(r"((?<![`\\])`[^`\n]+`(?!`))")
_DEAD = {"<": "&lt;", "@": "@\u2060", "#": "#\u2060"}


def for_markdown(text: str, *, code: bool = False) -> str:
    """A text in which nothing is live; with `code`, what stands between single backticks is kept as it is."""
    parts = _CODE.split(for_terminal(text)) if code else [for_terminal(text)]
    return "".join(
        part if place % 2 else _LIVE.sub(lambda match: _DEAD.get(match[0], f"\\{match[0]}"), part)
        for place, part in enumerate(parts)
    )


#: Commands that terminals take as one character, marks that turn the order of letters around, and the line ends of
#: Unicode, at which some programs would cut a line in two. JSON itself asks only for some others to be escaped.
_COMMANDS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_text(values: Mapping[str, Any], indent: int | None = None) -> str:
    """A line of JSON, or several, that says the same, and that a terminal may show."""
    text = json.dumps(values, ensure_ascii=False, indent=indent)
    return _COMMANDS.sub(lambda command: json.dumps(command[0])[1:-1], text)


def csv_line(cells: Iterable[Any]) -> str:
    """A line of CSV in which a spreadsheet computes nothing, and whose rows end where they end."""
    text = io.StringIO()
    # Before Python 3.13 only those line breaks are quoted that the writer itself ends lines with.
    csv.writer(text, lineterminator="\r\n").writerow(map(_for_spreadsheet, cells))
    return text.getvalue().removesuffix("\r\n") + "\n"


def _for_spreadsheet(cell: Any) -> Any:
    """The user's text with a quote before what a spreadsheet would take for a formula."""
    if isinstance(cell, list):
        return json.dumps(cell)
    if isinstance(cell, str) and not _NUMBER.fullmatch(cell) and _is_formula(cell):
        return f"'{cell}"
    return cell


def _is_formula(cell: str) -> bool:
    """A NUL, a byte-order mark or a zero-width space before the sign hides it from people, not from every program."""
    seen = VISIBLE.search(cell)
    return bool(_FORMULA.match(cell)) or (seen is not None and bool(_FORMULA.match(seen[0])))


#: Environment variables with what nobody else may see.
_SECRET_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")
#: Servers of one's own take any key; `none` and `EMPTY` would be found in words.
_SHORTEST = 6
#: Letters and digits in a row by which a longer secret is known.
_PIECE = 12


def excerpt(text: str, secrets: Iterable[str] = (), most: int = 200) -> str:
    """What a server or a library says, for a message: masked, in one line, and shortened."""
    masked = one_line(without_secrets(text[: 100 * most], secrets).strip())
    return masked if len(masked) <= most else f"{masked[: most - 1]}…"


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """A text in which keys and tokens, those of the environment and `secrets`, are masked however they are written.

    Letters and digits count, whatever stands between them, in capitals or not: as they are, escaped as JSON, Python, C,
    HTML, mails or addresses do it, as the codes of the characters, backwards, and in base64 (of a longer text, too) and
    base32. Twelve in a row are enough: servers quote keys by half, and cut what they say.
    """
    for secret in {*secrets, *(os.environ.get(name, "") for name in _SECRET_NAMES)}:
        if len(text) >= _SHORTEST <= len(plain := secret.strip()):
            text = _masked(text.replace(plain, "***"), _spellings(plain))
    return text


#: Letters and digits; and before them what stands for a character, or for nothing: a line break, a tag, a colour.
_AS_IT_IS = re.compile(r"[^\W_]+")
_UNESCAPED = re.compile(
    r"%(?:25){0,8}([0-9a-f]{2})|\\{1,8}(?:x|u00|u0{6}|u\{0{0,4})([0-9a-f]{2})\}?|0x([0-9a-f]{2})|=([0-9a-f]{2})"
    r"|&#x0{0,6}([0-9a-f]{2});?|\\{1,8}([0-7]{3})|&#0{0,6}(\d{2,3});?|&([a-z]{2,12});|\\{1,8}[nrt]|<[^<>\s]{0,20}>"
    r"|\x1b\[[0-9;]{0,20}[a-z]|[^\W_]+",
    re.IGNORECASE,
)
#: Its groups that are no hexadecimal digits.
_OCTAL, _DECIMAL, _NAMED = 6, 7, 8


def _masked(text: str, secret: Mapping[str, Collection[str]]) -> str:
    """The text without the places whose letters and digits come to one of these pieces, listed by how they begin."""
    for pattern in (_AS_IT_IS, _UNESCAPED):
        pieces = [(part, *match.span()) for match in pattern.finditer(text) if (part := _read(match))]
        ends = list(accumulate(len(part) for part, *_ in pieces))
        whole, kept, reached = "".join(part for part, *_ in pieces), [], 0

        def place(offset: int, pieces: Any = pieces, ends: list[int] = ends) -> tuple[int, int]:
            """Where a character that was read stands in the text."""
            part, start, end = pieces[number := bisect_right(ends, offset)]
            start += offset - ends[number] + len(part) if (as_read := len(part) == end - start) else 0
            return start, start + 1 if as_read else end

        for first, last in sorted(
            (start, start + len(piece) - 1)
            for start in range(len(whole))
            for piece in secret.get(whole[start : start + _SHORTEST], ())
            if whole.startswith(piece, start)
        ):
            if (start := place(first)[0]) >= reached:
                kept.append(text[reached:start])
            reached = max(reached, place(last)[1])
        text = "***".join([*kept, text[reached:]])
    return text


def _read(match: re.Match[str]) -> str:
    """The letters and digits that a piece of a text stands for."""
    which = match.lastindex or 0
    if which == _NAMED:
        plain = unescape(f"&{match[which]};")
    elif which:
        plain = chr(int(match[which], {_OCTAL: 8, _DECIMAL: 10}.get(which, 16)))
    else:
        plain = match[0] if match[0][0].isalnum() else ""
    if plain.isascii():
        return plain.lower() if plain.isalnum() else ""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", plain).casefold()))


@cache
def _spellings(secret: str) -> dict[str, set[str]]:
    """What a secret is to `_read`: pieces of its characters, their codes, and encodings of its bytes."""
    codes = ("".join(format(ord(letter), form) for letter in secret) for form in ("d", "o", "08b"))
    texts = [secret, secret[::-1], *codes]
    for content in (secret.encode(encoding, "surrogatepass") for encoding in ("utf-8", "utf-16-le", "utf-16-be")):
        texts += [content.hex(), b32encode(content).decode()]
        for before in range(3):
            # The first and the last digit hold bits of what stands around it.
            digits = b64encode(bytes(before) + content).decode().rstrip("=")
            texts.append(digits[(0, 2, 3)[before] : None if (before + len(content)) % 3 == 0 else -1])
    read = ["".join(filter(None, map(_read, _AS_IT_IS.finditer(text)))) for text in texts]
    pieces: dict[str, set[str]] = {}
    for text in read:
        length = math.ceil(len(text) * min(1.0, _PIECE / max(1, len(read[0]))))
        for piece in (text[start : start + length] for start in range(len(text) - length + 1) if length >= _SHORTEST):
            pieces.setdefault(piece[:_SHORTEST], set()).add(piece)
    return pieces
