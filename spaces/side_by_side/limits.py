"""What one visitor may ask for. Rates and connections are the proxy's in front of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dialeval.core.exchange import Exchange, is_blank
from dialeval.readers.rows import Bounds

#: Characters of one turn or reply, turns of a conversation, rows and bytes of uploads, rows that a program sends.
TEXT, TURNS, REPLIES, ROWS, BYTES, SENT = 4_000, 100, 5, 5_000, 20 * 2**20, 100
#: What uploads may unpack to: more than so many rows of a few turns hold.
UNPACKED = Bounds(data=64 * 2**20, rows=2 * ROWS, whole=BYTES, workbook=64 * 2**20)
#: Requests that wait; seconds that files are kept.
WAITING, KEPT = 200, 3_600

ABOUT = (
    f"At most {REPLIES} replies, {TURNS} turns of {TEXT:,} characters, and files of {ROWS:,} rows or "
    f"{BYTES // 2**20} MB together. Nothing is kept but uploads and results, for an hour."
)


class Problem(ValueError):
    """Something a visitor can mend, and the field where."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def checked(texts: Sequence[str], field: str, what: str) -> list[str]:
    """The texts, not too many, none too long and none blank."""
    if len(texts) > TURNS:
        raise Problem(field, f"There are {len(texts):,} of these; at most {TURNS} are read.")
    for number, text in enumerate(texts, start=1):
        if is_blank(text):
            raise Problem(field, f"{what} {number} is empty.")
        if len(text) > TEXT:
            raise Problem(field, f"{what} {number} has {len(text):,} characters; at most {TEXT:,} are read.")
        if not text.isascii() and text.encode("utf-8", "replace").decode() != text:
            raise Problem(field, f"{what} {number} holds half of a character (a lone surrogate); write it again.")
    return [text.strip() for text in texts]


def checked_row(row: Exchange, number: int) -> Exchange:
    """A row of a file, within what a single comparison may hold; blank texts are scored as they are."""
    if len(row.context) > TURNS:
        raise Problem("upload", f"Row {number} has {len(row.context):,} turns; at most {TURNS} are read.")
    texts = [*row.context, row.response, *row.references, *row.facts, row.following or ""]
    if len(row.references) + len(row.facts) > TURNS:
        raise Problem("upload", f"Row {number} has more than {TURNS} references and facts.")
    if (longest := max(map(len, texts))) > TEXT:
        raise Problem("upload", f"Row {number} holds a text of {longest:,} characters; at most {TEXT:,} are read.")
    return row


def in_page_words(error: Exception, paths: dict[str, str]) -> str:
    """A library's sentence for somebody without a shell: files by their names, no options."""
    text = str(error)
    for path, name in paths.items():
        text = text.replace(path, name)
    parts = [part for part in re.split(r"; ", text) if "--" not in part and "=COLUMN" not in part]
    text = re.sub(r" \(`score`[^()]*\)", "", "; ".join(parts) or "This could not be read.")
    return text[0].upper() + text[1:].rstrip(".") + "."
