"""How long a visitor may take to say something or to listen, and how many connections there are.

The server waits without end for a first byte, for the rest of a request and for somebody to read an answer, and takes
as many connections as the system has files. Whoever opens many and says nothing would use those up.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any, ClassVar

import h11
import uvicorn.config
from limits import MAX_CONNECTIONS, MAX_VISITOR_CONNECTIONS, REQUEST_SECONDS
from uvicorn.protocols.http.h11_impl import H11Protocol
from visitors import rate, visitor_of

#: Seconds between two looks at a connection.
LOOK = 5.0
#: Files that the page needs beside connections: workers, uploads, logs, results.
_OTHER_FILES = 200
_TOO_MANY = b"HTTP/1.1 %s\r\nRetry-After: 60\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def most() -> int:
    """Connections in all: fewer than the system gives files to a process, or no new one could be told so."""
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else max(50, min(MAX_CONNECTIONS, files - _OTHER_FILES))


def use() -> None:
    """Have the server that gradio starts make its connections of this kind; it offers no setting for that."""
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:Connection"


class Connection(H11Protocol):
    """One connection; it ends when a request does not come to its end, or an answer is not read, in time."""

    #: Of each visitor. Behind a proxy all come from its address, so that it has to count.
    open: ClassVar[Counter[str]] = Counter()
    seconds: ClassVar[dict[str, float]] = REQUEST_SECONDS
    _visitor = ""
    _look: asyncio.TimerHandle | None = None
    #: Since when the other side should have said, or read, more.
    _waiting = 0.0
    _unread: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, or say that there are too many."""
        super().connection_made(transport)
        self._visitor = visitor_of(self.client[0] if self.client else "")
        self.open[self._visitor] += 1
        is_counted = rate() > 0 and "FORWARDED_ALLOW_IPS" not in os.environ
        if len(self.connections) > most():
            self._refuse(b"503 Service Unavailable")
        elif is_counted and self.open[self._visitor] > MAX_VISITOR_CONNECTIONS:
            self._refuse(b"429 Too Many Requests")
        else:
            self._waiting = self.loop.time()
            self._look = self.loop.call_later(LOOK, self._look_again)

    def connection_lost(self, exc: Exception | None) -> None:
        """It counts no more."""
        self.open[self._visitor] -= 1
        if not self.open[self._visitor]:
            del self.open[self._visitor]
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Nothing more is read of what was refused."""
        if not self.transport.is_closing():
            super().data_received(data)

    def on_response_complete(self) -> None:
        """The next request may take as long again."""
        self._waiting = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """What was sent is not read any more."""
        self._unread = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It is."""
        self._unread = None
        super().resume_writing()

    def _should_upgrade(self) -> bool:
        return False  # the page has no web sockets, and those would be counted by nobody

    def _refuse(self, status: bytes) -> None:
        self.transport.write(_TOO_MANY % status)
        self.transport.close()

    def _look_again(self) -> None:
        """End it if the other side has taken too long; else look again later."""
        now = self.loop.time()
        kind: Any = self.conn.their_state
        stage = {h11.IDLE: "headers", h11.SEND_BODY: "body"}.get(kind)
        is_slow = stage is not None and now - self._waiting > self.seconds[stage]
        is_deaf = self._unread is not None and now - self._unread > self.seconds["reading"]
        if is_slow or is_deaf:
            self.transport.abort()
        else:
            self._look = self.loop.call_later(LOOK, self._look_again)
