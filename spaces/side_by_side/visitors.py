"""What one visitor may ask of the page, so that there is something left for the next one.

A visitor is an address; of version 6, the network that one customer gets. Behind a proxy all visitors come from the
proxy's address unless FORWARDED_ALLOW_IPS names it, as the server's own documentation says.
"""

from __future__ import annotations

import ipaddress
import os
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import store
from limits import (
    MAX_BODY_BYTES,
    MAX_CALL_BYTES,
    MAX_VISITOR_BYTES,
    MAX_VISITOR_PAGES,
    MAX_VISITOR_REQUESTS,
    MAX_VISITORS,
    RATE,
    Application,
    Message,
    Receive,
    Send,
    refuse,
)

#: Requests a minute; 0 lifts every limit of this file but the one on stored files.
RATE_VARIABLE = "DIALEVAL_PAGE_RATE"
#: Looking costs less than asking for work, and of a long request the reading alone is work: so many bytes are one more.
_GET, _POST, _BYTES = 0.1, 1.0, 100_000
_FREE = ("/health", "/assets/", "/static/", "/svelte/", "/fonts/")
_HOUR = 3600.0
#: What a file counts beside its bytes.
_EACH_FILE = 100_000


def rate() -> float:
    """Requests a minute. On a Space whose proxy nobody named, all visitors look alike, so there is no limit."""
    setting = os.environ.get(RATE_VARIABLE, "").strip()
    if not setting:
        is_one_for_all = "SPACE_ID" in os.environ and "FORWARDED_ALLOW_IPS" not in os.environ
        return 0.0 if is_one_for_all else float(RATE)
    try:
        found = float(setting)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise SystemExit(f"{RATE_VARIABLE} is {setting!r}; it is a number of requests a minute, or 0 for no limit")
    return found


def visitor_of(host: str) -> str:
    """Who an address stands for."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


@dataclass
class _Visitor:
    """What is left of a visitor's requests and uploads, as of a moment, and how many pages are open."""

    requests: float
    uploads: float = float(MAX_VISITOR_BYTES)
    at: float = field(default_factory=lambda: monotonic())
    pages: int = 0

    def refill(self, rate: float) -> None:
        """What time gives back."""
        now = monotonic()
        passed, self.at = now - self.at, now
        self.requests = min(rate, self.requests + passed * rate / 60)
        self.uploads = min(float(MAX_VISITOR_BYTES), self.uploads + passed * MAX_VISITOR_BYTES / _HOUR)


class Visitors:
    """Refuses what is too much of one visitor, and uploads when too much is stored already."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._rate = rate()
        self._room = store.Room()
        self._known: OrderedDict[str, _Visitor] = OrderedDict()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not and when to come back."""
        if scope["type"] != "http" or (scope["method"] == "GET" and scope["path"].startswith(_FREE)):
            await self._app(scope, receive, send)
            return
        is_upload = scope["method"] == "POST" and scope["path"].endswith("/upload")
        if is_upload and not self._room.for_bytes(_length(scope)):
            await refuse(send, 503, "the page holds as many files as it may; come back in an hour", after=600)
            return
        if not self._rate:
            await self._app(scope, receive, send)
            return
        visitor = self._visitor(scope)
        if problem := self._problem(visitor, scope, is_upload):
            await refuse(send, 429, problem, after=max(1, round(60 / self._rate)))
            return
        is_page = "/heartbeat/" in scope["path"]
        visitor.pages += is_page

        async def counted(message: Message) -> None:
            if is_upload:  # the answer names every file, and one upload may bring a thousand small ones
                visitor.uploads -= _EACH_FILE * (bytes(message.get("body", b"")).count(b'"') // 2)
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            visitor.pages -= is_page

    def _visitor(self, scope: Mapping[str, Any]) -> _Visitor:
        name = visitor_of((scope.get("client") or ("", 0))[0])
        visitor = self._known.setdefault(name, _Visitor(self._rate))
        self._known.move_to_end(name)
        while len(self._known) > MAX_VISITORS:
            self._known.popitem(last=False)
        visitor.refill(self._rate)
        return visitor

    def _problem(self, visitor: _Visitor, scope: Mapping[str, Any], is_upload: bool) -> str:
        """Why this is too much; nothing where it is not, and then it is counted."""
        cost = _POST if scope["method"] == "POST" else _GET
        if scope["method"] == "POST" and not is_upload:
            cost += min(_length(scope), MAX_CALL_BYTES) / _BYTES
        if visitor.requests < cost:
            return "too many requests; wait a little"
        if "/heartbeat/" in scope["path"] and visitor.pages >= MAX_VISITOR_PAGES:
            return "too many open pages; close some"
        if is_upload:
            size = float(_length(scope))
            if visitor.uploads < size:
                return "too many uploads; wait an hour"
            visitor.uploads -= size
        elif scope["method"] == "POST" and _under_way(scope) >= MAX_VISITOR_REQUESTS:
            return "too many of your requests are still under way; wait for them"
        visitor.requests -= cost
        return ""


def _length(scope: Mapping[str, Any]) -> int:
    """What a body says of its size, the most there can be where it says nothing, and 0 where there is none."""
    headers = dict(scope["headers"])
    if b"content-length" not in headers and b"transfer-encoding" not in headers:
        return 0
    stated = headers.get(b"content-length", b"")
    return int(stated) if stated.isdigit() else MAX_BODY_BYTES


def _under_way(scope: Mapping[str, Any]) -> int:
    """How many requests of this visitor wait in gradio's queue or are being worked on."""
    queue = scope["app"].get_blocks()._queue
    own = visitor_of((scope.get("client") or ("", 0))[0])
    hosts = [getattr(event.request, "client", None) for event in list(queue.event_ids_to_events.values())]
    return sum(visitor_of(client.host) == own for client in hosts if client)
