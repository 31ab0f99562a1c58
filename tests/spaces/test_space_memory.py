"""What the page keeps after a few hundred calls: no session, no file, and next to no memory."""

from __future__ import annotations

import gc
import json
import socket
import time
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio")

import space_server  # noqa: F401  puts the page's modules within reach
from resources import PATIENCE

# isort: split
import pools
import sessions
import store

pytestmark = pytest.mark.slow

#: Bytes a call that are let pass: tables grow in steps, and the caller's own caches fill. A session has 250,000, its
#: messages 4,000 when all are read, the line about an event 500.
ALLOWED = 1_000


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """The page in this process, with a worker that only repeats what it was asked."""
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    monkeypatch.setenv("DIALEVAL_PAGE_RATE", "0")
    monkeypatch.setattr(pools.TEXTS, "ask", lambda name, *arguments: {"asked": [name, *arguments]})
    monkeypatch.setattr(sessions, "_IDLE", 0.0)
    import app

    page = app.build_page()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gradio_app, url, _ = page.launch(
        prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", server_port=port, **app.launch_options()
    )
    yield url.rstrip("/"), gradio_app
    page.close()


def call(url: str, number: int, fetched: bool = True) -> None:
    rows = [{"context": ["a"], "response": f"b {number}"}]
    body = json.dumps({"data": [rows, ["density"]]}).encode()
    place = f"{url}/gradio_api/call/score"
    asked = urllib.request.Request(place, body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        event = json.load(answer)["event_id"]
    if fetched:
        with urllib.request.urlopen(f"{place}/{event}") as answer:
            shown = answer.read().decode()
        assert f"b {number}" in shown


def test_calls_leave_next_to_nothing(served: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    url, gradio_app = served
    for number in range(40):
        call(url, number)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(200):
            call(url, number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # What is there is of the last call or two, not of one before: each call drops what is done.
    assert len(gradio_app.state_holder.session_data) <= 3
    kept = len(gradio_app.state_holder.session_data) * 400_000
    assert (grown - kept) / 200 < ALLOWED
    queue = gradio_app.get_blocks()._queue
    # A call has its answer a moment before its event is gone.
    assert len(queue.event_ids_to_events) <= 1
    # An answer that was read leaves no messages, whoever asked.
    assert len(queue.pending_messages_per_session) <= 1
    assert len(queue.pending_event_ids_session) <= 1
    assert len(queue.event_analytics) == 1
    # Nor is anything left of callers who never fetch their answer, when its time has passed.
    for number in range(20):
        call(url, number, fetched=False)
    monkeypatch.setattr(sessions, "_UNREAD", 0.0)
    for number in range(3):
        call(url, number)
    assert len(queue.pending_event_ids_session) <= 4
    assert len(gradio_app.state_holder.session_data) <= 4


def test_unread_answers_are_few(served: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks and never listens leaves at most so many answers behind, however short the time."""
    url, gradio_app = served
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 5)
    for number in range(30):
        call(url, number, fetched=False)
    queue = gradio_app.get_blocks()._queue
    deadline = time.monotonic() + PATIENCE
    while queue.event_ids_to_events and time.monotonic() < deadline:
        time.sleep(0.02)
    call(url, 30)
    assert 3 <= len(queue.pending_event_ids_session) <= 7
    assert len(queue.pending_messages_per_session) <= 7


def test_whether_the_page_is_well_can_be_asked(served: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    url, _ = served
    with urllib.request.urlopen(f"{url}/health") as answer:
        assert (answer.status, json.load(answer)) == (200, {"status": "ok"})

    def refuses(*_: Any) -> None:
        raise limits.Refused("no worker can be started")

    import limits

    monkeypatch.setattr(pools.PREVIEWS, "ask", refuses)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/health")
    assert refused.value.code == 503
    pools.PREVIEWS.close()
