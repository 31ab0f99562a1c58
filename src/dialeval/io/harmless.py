"""Texts of others made harmless for where they are shown: one function for each medium, and one that masks secrets.

On the page that function is the templates' own.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
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
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


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
    """The user's text with a quote before what a spreadsheet would take for a formula.

    A NUL, a byte-order mark or a zero-width space before the sign hides it from people, not from every program.
    """
    if isinstance(cell, list):
        return json.dumps(cell)
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    seen = VISIBLE.search(cell)
    return f"'{cell}" if _FORMULA.match(cell) or (seen and _FORMULA.match(seen[0])) else cell


#: Environment variables with what nobody else may see.
_SECRET_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")
#: Servers of one's own take any key; `none` and `EMPTY` would be found in words.
_SHORTEST = 6
#: Letters and digits in a row by which a longer secret is known.
_PIECE = 10


def excerpt(text: str, secrets: Iterable[str] = (), most: int = 200) -> str:
    """What a server or a library says, for a message: masked, in one line, and shortened."""
    return shortened(without_secrets(text[: 100 * most], secrets), most)


def shortened(text: str, most: int) -> str:
    """A text in one line of so many characters."""
    line = one_line(text.strip())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """A text in which keys and tokens, those of the environment and `secrets`, are masked.

    Letters and digits count, whatever stands between them, in capitals or not. Ten in a row are enough: servers
    quote keys by half, and cut what they say.
    """
    for secret in {*secrets, *(os.environ.get(name, "") for name in _SECRET_NAMES)}:
        if len(text) >= _SHORTEST <= len(plain := secret.strip()):
            text = _masked(text.replace(plain, "***"), plain)
    return text


class _Letters(dict[int, str]):
    """What counts of a character: a letter or a digit, in small letters; of full width, or in a circle, too."""

    def __missing__(self, code: int) -> str:
        self[code] = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", chr(code)).casefold()))
        return self[code]


_LETTERS = _Letters()


def _masked(text: str, secret: str) -> str:
    """The text without the places whose letters and digits are some of the secret's."""
    letters, key = text.translate(_LETTERS), secret.translate(_LETTERS)
    length = min(_PIECE, len(key))
    pieces = {key[start : start + length] for start in range(len(key) - length + 1) if length >= _SHORTEST}
    if not any(piece in letters for piece in pieces):
        return text
    places = [place for place, letter in enumerate(text) for _ in _LETTERS[ord(letter)]]
    kept, reached = [], 0
    for start in range(len(letters) - length + 1):
        if letters[start : start + length] in pieces:
            if (first := places[start]) >= reached:
                kept.append(text[reached:first])
            reached = places[start + length - 1] + 1
    return "***".join([*kept, text[reached:]])


#: So many letters and digits in a row, none of them in words, look like a key.
_LIKE_A_KEY = 16
#: Words as people write them, and those that make up a name: `BadRequestError`, `prod0225`.
_WORD = re.compile(r"[A-Z]?[a-z]+(?<=..)|[A-Z]{2,}")
_IN_A_NAME = re.compile(r"[A-Z]?[a-z]{3,}")
#: Digits of a number that may be one, and of those in a name.
_LONGEST_NUMBER, _LONGEST_VERSION = 8, 4
_PART = re.compile(r"[^\W_]+")


def without_keys(text: str, known: Collection[str] = ()) -> str:
    """A text in which whatever looks like a key is masked, be it enciphered, encoded or listed letter by letter.

    That is what is made of neither words nor short numbers nor `known` parts, which may be shown.
    """
    weigh = cache(lambda token: _strange(token, known))
    kept, reached, start, end, listed = [], 0, 0, 0, 0
    for token in re.finditer(r"\S+", f"{text} end"):
        if 0 <= (weight := weigh(token[0])) < _LIKE_A_KEY:
            start, end, listed = (start, token.end(), listed + weight) if listed else (*token.span(), weight)
            continue
        for place, size in (((start, end), listed), (token.span(), weight)):
            if size >= _LIKE_A_KEY:
                kept.append(text[reached : place[0]])
                reached = place[1]
        listed = 0
    return "***".join([*kept, text[reached:]])


def parts_of(text: str) -> frozenset[str]:
    """The letters and digits between everything else, as `without_keys` may know them; one alone is none."""
    return frozenset(part for part in _PART.findall(unicodedata.normalize("NFKC", text)) if len(part) > 1)


def _strange(token: str, known: Collection[str]) -> int:
    """How many letters and digits something between blanks has, or -1 if it can be read."""
    words = odd = numbers = 0
    for part in _PART.findall(unicodedata.normalize("NFKC", token)):
        digits = sum(map(str.isdigit, part))
        if part in known or not part.isascii() or _WORD.fullmatch(part):
            words += len(part)
        elif digits == len(part) <= _LONGEST_NUMBER:
            numbers += digits
        else:
            named = sum(map(len, _IN_A_NAME.findall(part))) if digits <= _LONGEST_VERSION else 0
            named = named if 5 * named >= 4 * (len(part) - digits) else 0
            words, odd = words + named, odd + len(part) - named
    if words >= max(1, odd, numbers - _LIKE_A_KEY):
        return -1
    if len(token) <= 24 and not any(map(str.isalpha, token)):
        return min(3, odd + numbers)  # one number says little, a list of them may say anything
    return words + odd + numbers
