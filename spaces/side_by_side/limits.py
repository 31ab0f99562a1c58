"""What the page takes and what it refuses; every limit that it states is kept here."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

#: The conversation and the candidate replies that one can type.
MAX_TURNS, MAX_REPLIES = 12, 6
#: Characters of one turn, reply or reference, wherever it comes from.
MAX_CHARACTERS = 5_000
#: An upload, and the rows in it.
MAX_FILE_BYTES, MAX_FILE_ROWS = 5_000_000, 2_000
#: One call of an endpoint.
MAX_CALL_ROWS, MAX_CALL_TURNS, MAX_CALL_REPLIES = 200, 50, 20
#: What a link can hold; browsers and servers cut longer ones.
MAX_LINK = 6_000
#: Requests that wait; who comes later is told to come back.
MAX_WAITING = 100
#: The body of an upload, and of any other request. Texts that are too long are refused by name below this, and by
#: size above it.
MAX_BODY_BYTES, MAX_CALL_BYTES = 32_000_000, 16_000_000
#: Lists, objects and what they hold, in the body of a request that is no upload: five million empty lists in 15 MB
#: take a gigabyte. Commas of texts count, too.
MAX_CALL_VALUES = 500_000
#: Seconds of the processor that one request may take; loading what it needs counts, too.
SECONDS = {"texts": 120.0, "file": 1800.0, "preview": 30.0}
#: Uploads and results of all visitors together, and how long they stay.
MAX_STORED_BYTES, MAX_STORED_FILES, STORED_SECONDS = 500_000_000, 20_000, 3600
#: Of one visitor: uploads in an hour, requests under way at once, and open pages.
MAX_VISITOR_BYTES, MAX_VISITOR_REQUESTS, MAX_VISITOR_PAGES = 100_000_000, 8, 20
#: Connections of all and of one visitor, and the seconds in which the head of a request, then all of it must have come,
#: and in which somebody reads on what is sent.
MAX_CONNECTIONS, MAX_VISITOR_CONNECTIONS = 2_000, 100
REQUEST_SECONDS = {"headers": 20.0, "body": 180.0, "reading": 60.0}
#: Requests of one visitor in a minute, unless DIALEVAL_PAGE_RATE says otherwise.
RATE = 240
#: Visitors who are remembered between two requests: of open pages, of pages that were closed, of visitors.
MAX_SESSIONS, MAX_VISITORS = 400, 10_000

LIMITS_TEXT = (
    f"At most {MAX_CHARACTERS:,} characters a text. Typed: {MAX_TURNS} turns and {MAX_REPLIES} replies. "
    f"Files: {MAX_FILE_ROWS:,} rows and {MAX_FILE_BYTES // 1_000_000} MB. "
    f"Calls: {MAX_CALL_ROWS} rows, or {MAX_CALL_TURNS} turns and {MAX_CALL_REPLIES} replies. "
    f"{MAX_WAITING} requests wait at most, {MAX_VISITOR_REQUESTS} of one visitor; "
    "control characters are taken out, and counted."
)

_KEPT = "\t\n\r"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Refused(ValueError):
    """The page does not take this; the message says why and what to do instead."""


def cleaned(text: str) -> tuple[str, int]:
    """A text without control characters, and how many there were."""
    kept = "".join(one for one in text if one in _KEPT or unicodedata.category(one) != "Cc")
    return kept, len(text) - len(kept)


def taken(name: str, text: Any, texts: int = 1) -> tuple[str, int]:
    """A text as the page takes it: a string, no longer than so many texts, without control characters."""
    if not isinstance(text, str):
        raise Refused(f"{name} is a {type(text).__name__}; pass a string")
    if len(text) > texts * MAX_CHARACTERS:
        raise Refused(f"{name} has {len(text):,} characters; this page takes {texts * MAX_CHARACTERS:,}, so shorten it")
    return cleaned(text)


def taken_all(one: str, several: str, texts: Any, most: int) -> tuple[list[str], int]:
    """Several texts as the page takes them; messages number them by `one` and count them by `several`."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise Refused(f"{several} are a {type(texts).__name__}; pass a list of strings")
    if len(texts) > most:
        raise Refused(f"there are {len(texts):,} {several}; this page takes {most}")
    pairs = [taken(f"{one} {number}", text) for number, text in enumerate(texts, start=1)]
    return [text for text, _ in pairs], sum(count for _, count in pairs)


class BodyLimit:
    """Refuses bodies above the limits before they fill the memory; uploads have a limit of their own as well."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on if it says that it is small enough, and only as much of it as that."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        is_upload = scope.get("path", "").endswith("/upload")
        most = MAX_BODY_BYTES if is_upload else MAX_CALL_BYTES
        if not stated.isdigit() or int(stated) > most:
            await refuse(send, 413, "the request is larger than this page takes")
            return
        seen = values = 0
        is_over = is_answered = False

        async def counted() -> Message:
            nonlocal seen, values, is_over
            message = await receive()
            body = message.get("body", b"")
            seen += len(body)
            values += 0 if is_upload else sum(map(body.count, (b",", b"[", b"{")))
            is_over = is_over or seen > most or values > MAX_CALL_VALUES
            # For the application the client has gone away.
            return {"type": "http.disconnect"} if is_over else message

        async def answered(message: Message) -> None:
            nonlocal is_answered
            if is_answered or not is_over:
                is_answered = True
                await send(message)

        try:
            await self.app(scope, counted, answered)
        except Exception:
            if is_answered or not is_over:
                raise
        if is_over and not is_answered:
            await refuse(send, 413, "the request holds more than this page takes")


async def refuse(send: Send, status: int, problem: str, *, after: int | None = None) -> None:
    """Answer with a sentence, and with the seconds after which it is worth asking again."""
    body = json.dumps({"detail": problem}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if after is not None:
        headers.append((b"retry-after", str(after).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
