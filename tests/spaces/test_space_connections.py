"""Visitors who open connections and say nothing, send a byte a second or never read: they go, others are served."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

pytest.importorskip("gradio")

import space_server  # puts the page's modules within reach

# isort: split
import connections
import uvicorn
from connections import Connection

pytestmark = pytest.mark.slow

#: Instead of the page's own, so that a test is over soon.
_SECONDS = {"headers": 0.6, "body": 1.0, "reading": 1.0}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Reads a body, then answers with twenty megabytes at /much, after three seconds at /late, else with a word."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/late":
        await asyncio.sleep(3)
    size = 20_000_000 if scope["path"] == "/much" else 2
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
    for _ in range(size // 2 if size == 2 else 20):
        await send({"type": "http.response.body", "body": b"x" * (2 if size == 2 else 10**6), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The application behind the page's connections."""
    monkeypatch.setattr(connections, "LOOK", 0.1)
    monkeypatch.setattr(Connection, "seconds", _SECONDS)
    monkeypatch.setattr(connections, "rate", lambda: 240.0)
    monkeypatch.setattr(connections, "MAX_VISITOR_CONNECTIONS", 40)
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(application, http=Connection, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(30)


def opened(port: int, first: bytes = b"") -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=30)
    if first:
        found.sendall(first)
    return found


def is_ended(connection: socket.socket) -> bool:
    """Whether the server ends it; what it sends before is read."""
    try:
        while connection.recv(10**6):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def is_served(port: int, path: str = "/") -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status == 200 and len(answer.read()) == (20_000_000 if path == "/much" else 2)
    except OSError:
        return False


_POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "more"),
    [(b"", b""), (b"GET / HTT", b""), (b"GET / HTTP/1.1\r\nX: ", b"a"), (_POST, b""), (_POST + b"{", b" ")],
    ids=["silence", "half a line", "a header a byte at a time", "no body", "a body a byte at a time"],
)
def test_who_says_nothing_or_little_goes(first: bytes, more: bytes, port: int) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(opened(port, first)) for _ in range(30)]
        began = time.monotonic()
        while time.monotonic() < began + 2:
            assert is_served(port)
            for one in slow if more else ():
                with suppress(ConnectionError):
                    one.sendall(more)
            time.sleep(0.1)
        assert all(map(is_ended, slow))
    assert is_served(port)


def test_who_does_not_read_goes(port: int) -> None:
    with ExitStack() as stack:
        deaf = []
        for _ in range(10):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", port))
            one.settimeout(30)
            one.sendall(b"GET /much HTTP/1.1\r\nHost: here\r\n\r\n")
            deaf.append(one)
        until = time.monotonic() + 20
        while Connection.open and time.monotonic() < until:
            time.sleep(0.1)
        assert not Connection.open
        assert is_served(port)
        assert is_served(port, "/much")


def test_who_waits_for_an_answer_stays(port: int) -> None:
    assert is_served(port, "/late")


def test_a_visitor_has_so_many(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(opened(port))
        time.sleep(0.2)
        with opened(port, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n") as late:
            assert b"429" in late.recv(1000)
    until = time.monotonic() + 20
    while not is_served(port):
        assert time.monotonic() < until
    assert len(Connection.open) <= 1


def test_all_together_have_so_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "most", lambda: 10)
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(opened(port))
        time.sleep(0.2)
        with opened(port) as late:
            assert b"503" in late.recv(1000)


def test_there_are_fewer_than_files() -> None:
    import resource

    files, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 1024), highest))
        assert connections.most() <= 824
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, highest))


def test_the_page_makes_its_connections_so() -> None:
    """Nobody says anything on thirty connections of the page itself; they end, and meanwhile it answers."""
    url = space_server.address()
    port = int(url.rsplit(":", 1)[1])
    with ExitStack() as stack:
        silent = [stack.enter_context(opened(port)) for _ in range(30)]
        with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
            assert answer.status == 200
        for one in silent:
            one.settimeout(connections.REQUEST_SECONDS["headers"] + 60)
        assert all(map(is_ended, silent))
