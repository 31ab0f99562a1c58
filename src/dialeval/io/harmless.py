"""Texts of others made harmless for where they are shown: one function for each medium, and one that masks secrets.

On the page that function is the templates' own.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
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
_LIVE = re.compile(r"<(?=[a-zA-Z/!?])|\](?=[(\[:])|(?<=\w):(?=//)|(?<=\bwww)\.|`|@(?=\w)|#(?=\d)|\\(?=[!-/:-@\[-`{-~])")
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


def json_line(values: Mapping[str, Any]) -> str:
    """A line of JSON that says the same, and that a terminal may show."""
    text = json.dumps(values, ensure_ascii=False)
    return _COMMANDS.sub(lambda command: json.dumps(command[0])[1:-1], text) + "\n"


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
#: Between two characters of a secret that is broken over lines or quoted.
_BREAKS = r"(?:\s|\\[nrt]|[\"'+]){0,40}"
#: Servers of one's own take any key; `none` and `EMPTY` would be found in words.
_SHORTEST = 6


def told(text: str, secrets: Iterable[str] = (), most: int = 200) -> str:
    """What a server or a library says, for a message: masked, in one line, and shortened."""
    masked = one_line(without_secrets(text[: 100 * most], secrets).strip())
    return masked if len(masked) <= most else f"{masked[: most - 1]}…"


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """A text in which keys and tokens, those of the environment and `secrets`, are masked however they are written.

    That is as they are, in base64 (of a longer text, too), in hexadecimal digits, and with any of their characters
    percent-encoded or written as in JSON, Python or HTML; also broken over lines.
    """
    for secret in {*secrets, *(os.environ.get(name, "") for name in _SECRET_NAMES)}:
        if len(plain := secret.strip()) >= _SHORTEST:
            text = _spellings(plain).sub("***", text)
    return text


@cache
def _spellings(secret: str) -> re.Pattern[str]:
    """What a secret looks like; every run in it is bounded, so that no text takes longer than its length asks for."""
    content = secret.encode("utf-8", "surrogatepass")
    texts = {content.hex(), content.hex().upper()}
    for before in range(3):
        # The first and the last digit hold bits of what stands around it.
        digits = b64encode(bytes(before) + content).decode().rstrip("=")
        digits = digits[(0, 2, 3)[before] : None if (before + len(content)) % 3 == 0 else -1]
        texts |= {digits, digits.replace("+", "-").replace("/", "_")}
    known = [secret, *sorted(text for text in texts if len(text) >= _SHORTEST)]
    return re.compile("|".join(_BREAKS.join(map(_written, text)) for text in known))


def _written(character: str) -> str:
    """The ways to write a character."""
    code = ord(character)
    percent = "".join(f"%(?:25){{0,3}}{byte:02X}" for byte in character.encode("utf-8", "replace"))
    digits = rf"(?:\\{{1,4}}(?:u00|x)|&#x0{{0,6}}){code:02x};?|\\{{1,4}}u{code:04x}"
    return rf"(?:\\{{0,4}}{re.escape(character)}|(?i:{percent}|{digits})|&#0{{0,6}}{code};?)"
