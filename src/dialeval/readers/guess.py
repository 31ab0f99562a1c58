"""Which column holds what, told from common names where the fields' own names are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.readers.chats.base import as_json
from dialeval.readers.rows import MESSAGE, reply_in

#: Names of a field in the files of common tools, the likeliest first; compared without case, blanks and marks.
_NAMES: Mapping[str, str] = {
    "response": "response reply botreply botresponse botmsg botmessage modelresponse modeloutput assistant "
    "modelanswer predictedanswer generatedanswer assistantresponse assistantmessage bot fulfillmenttext completion "
    "prediction predicted generation generated output hypothesis answer",
    MESSAGE: "usermsg usermessage userinput userquery user message prompt question query querytext input instruction "
    "utterance",
    "context": "context contexts history chathistory dialoghistory dialoguehistory conversationhistory messages prompt",
    "reference": "reference groundtruth gold expected expectedoutput target referenceanswer goldanswer answer",
    "references": "references",
    "system": "system model modelname botname",
    "id": "id rowid conversationid messageid uid",
    "facts": "facts persona knowledge",
    "following": "following nextturn nextusermessage",
    "speakers": "speakers",
}


_TEXTS = ("content", "text", "output", "answer", "message", "messages", "choices", "response", "value")


def guess_columns(names: Sequence[str], first_rows: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Field to column, for the fields that the names tell; empty where no context or no response can be told.

    `message` is the last turn of the context where the history has a column of its own, or where there is no history.
    Cells of `first_rows` that cannot be what the name says (a number as a reply) keep a column from being taken.

    >>> guess_columns(["history", "user_msg", "bot_reply"])
    {'response': 'bot_reply', 'message': 'user_msg', 'context': 'history'}
    """
    plain = ((name, "".join(filter(str.isalnum, name.casefold()))) for name in reversed(names) if name.isprintable())
    known = {letters: name for name, letters in plain}
    guessed: dict[str, str] = {}
    for field, aliases in _NAMES.items():
        for alias in aliases.split():
            column = known.get(alias)
            if column is not None and column not in guessed.values() and _fits(field, alias, column, first_rows):
                guessed[field] = column
                break
    if "response" not in guessed or not {"context", MESSAGE} & guessed.keys():
        return {}
    if guessed.get("context") in ("context", "contexts") and MESSAGE in guessed:
        del guessed[MESSAGE]  # a context is whole; only a history lacks the message that was answered
    if "reference" in guessed and "references" in guessed:
        del guessed["reference"]
    return guessed


def _fits(field: str, alias: str, column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    cells = [cell for row in rows if (cell := row.get(column)) is not None]
    if field == "response":
        return all(isinstance(cell, str) or reply_in(cell) for cell in cells)
    if field in (MESSAGE, "following"):
        return all(isinstance(cell, str) for cell in cells) and (not cells or any(map(str.strip, cells)))
    if field in ("system", "id"):
        return all(isinstance(cell, str | int) for cell in cells)
    if alias in ("messages", "prompt"):  # a history only where it holds messages
        return bool(cells) and all(isinstance(cell, list | tuple) for cell in cells)
    return all(isinstance(cell, str | list | tuple) for cell in cells)


_LABEL = re.compile(r"\A\s*(\w{2,20}):(?!//)\s?\S")


def not_a_text(texts: Sequence[str], field: str, column: str) -> str:
    """What to say where all of these are JSON, or begin with one label; empty where they are what somebody said."""
    texts = [text for text in texts if text.strip()]
    inside = [as_json(text) for text in texts]
    if texts and all(_holds_objects(value) for value in inside):
        path = _path_of_text(inside[0])
        way = f"name the text in it: --columns {field}={column}{path}" if path else "write its text into a column"
        return f"{field} is JSON, not a text; {way}"
    labels = {label[1] if (label := _LABEL.match(text)) else "" for text in texts}
    if len(labels) == 1 and "" not in labels:
        (name,) = labels
        if len(texts) > 2 or name.casefold() in {"text", *_NAMES["response"].split()}:
            return (
                f"every {field} begins with {name + ':'!r}, which nobody said; take the label away, or write each "
                "conversation as lines of `User: ...` and `Bot: ...` in a file .txt"
            )
    return ""


def _holds_objects(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(item, Mapping) for item in value))


def _path_of_text(value: Any) -> str:
    """Where the text stands in what JSON holds, if there is one; the last entry of a list answers."""
    if isinstance(value, list):
        return f"[-1]{_path_of_text(value[-1])}" if value and isinstance(value[-1], Mapping) else ""
    for name in _TEXTS:
        if isinstance(value.get(name), str):
            return f".{name}"
        if isinstance(value.get(name), Mapping | list) and (path := _path_of_text(value[name])):
            return f".{name}{path}"
    return ""
