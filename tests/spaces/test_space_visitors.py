"""What one visitor may ask of the page, what is kept of whom, and that it goes again."""

from __future__ import annotations

import asyncio
import datetime
import os
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("gradio")

import space_server  # puts the page's modules within reach

# isort: split
import limits
import sessions
import store
import visitors
from sessions import Sessions
from visitors import Visitors


class Gradio:
    """As much of gradio's application as the page's own parts look at."""

    def __init__(self) -> None:
        self.state_holder = SimpleNamespace(session_data=OrderedDict[str, Any](), time_last_used={})
        self.queue = SimpleNamespace(
            event_ids_to_events={}, pending_messages_per_session={}, pending_event_ids_session={}
        )

    def get_blocks(self) -> Any:
        return SimpleNamespace(_queue=self.queue)

    def used(self, session: str, seconds_ago: float) -> None:
        self.state_holder.session_data[session] = object()
        then = datetime.datetime.now() - datetime.timedelta(seconds=seconds_ago)
        self.state_holder.time_last_used[session] = then

    def under_way(self, session: str, host: str = "192.0.2.1") -> None:
        request = SimpleNamespace(client=SimpleNamespace(host=host))
        self.queue.event_ids_to_events[session] = SimpleNamespace(session_hash=session, request=request)


Handler = Callable[[Any, Any, Any], Awaitable[None]]


def asked(
    wrapped: Handler, path: str = "/gradio_api/call/score", method: str = "POST", host: str = "192.0.2.1", **more: Any
) -> int:
    """The status of one request; 200 is what the page behind answers."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    scope = {"type": "http", "method": method, "path": path, "client": (host, 1), "headers": [], "app": Gradio()}
    asyncio.run(wrapped({**scope, **more}, None, send))  # type: ignore[arg-type]
    return statuses[0]


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200})


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch, stored: Path) -> Visitors:
    # So slow that nothing is given back while a test runs.
    monkeypatch.setenv("DIALEVAL_PAGE_RATE", "5")
    monkeypatch.setattr(visitors, "monotonic", lambda: 1000.0)
    return Visitors(answers)


def test_who_asks_too_much_is_told_to_wait_and_others_are_not(limited: Visitors) -> None:
    assert [asked(limited) for _ in range(7)] == [200] * 5 + [429] * 2
    assert asked(limited, host="192.0.2.2") == 200
    assert asked(limited, "/health", "GET") == asked(limited, "/assets/index.js", "GET") == 200
    # Only looking is free there.
    assert asked(limited, "/assets/index.js") == 429


def test_a_long_request_counts_as_several(limited: Visitors) -> None:
    """Reading it is work, too, and is done by the process that everybody shares."""
    long = [(b"content-length", str(3 * visitors._BYTES).encode())]
    assert [asked(limited, headers=long) for _ in range(2)] == [200, 429]
    unsaid = [(b"transfer-encoding", b"chunked")]
    assert asked(limited, host="192.0.2.2", headers=unsaid) == 429


def test_time_gives_back(limited: Visitors, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        asked(limited)
    monkeypatch.setattr(visitors, "monotonic", lambda: 1000.0 + 24)
    assert [asked(limited) for _ in range(3)] == [200, 200, 429]


def test_looking_costs_a_tenth(limited: Visitors) -> None:
    answers_of = [asked(limited, "/config", "GET") for _ in range(60)]
    assert 45 <= answers_of.count(200) <= 51
    assert answers_of[-1] == 429


def test_a_network_of_version_six_is_one_visitor() -> None:
    assert visitors.visitor_of("2001:db8:1:2::1") == visitors.visitor_of("2001:db8:1:2:ffff::9")
    assert visitors.visitor_of("2001:db8:1:3::1") != visitors.visitor_of("2001:db8:1:2::1")
    assert visitors.visitor_of("::ffff:192.0.2.1") == visitors.visitor_of("192.0.2.1") == "192.0.2.1"
    assert visitors.visitor_of("testclient") == "testclient"


def test_the_limit_can_be_set_and_switched_off(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACE_ID", raising=False)
    monkeypatch.delenv("DIALEVAL_PAGE_RATE", raising=False)
    assert visitors.rate() == limits.RATE
    # On a Space everybody comes from one proxy; unless that is named, a limit would be one for all.
    monkeypatch.setenv("SPACE_ID", "ann/page")
    assert visitors.rate() == 0
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "10.0.0.0/8")
    assert visitors.rate() == limits.RATE
    monkeypatch.setenv("DIALEVAL_PAGE_RATE", "0")
    unlimited = Visitors(answers)
    assert {asked(unlimited) for _ in range(1000)} == {200}
    for odd in ("many", "-1", "nan", "inf"):
        monkeypatch.setenv("DIALEVAL_PAGE_RATE", odd)
        with pytest.raises(SystemExit, match="DIALEVAL_PAGE_RATE"):
            visitors.rate()


def test_requests_under_way_are_counted_by_visitor(limited: Visitors) -> None:
    app = Gradio()
    for number in range(limits.MAX_VISITOR_REQUESTS):
        app.under_way(str(number))
    assert asked(limited, app=app) == 429
    assert asked(limited, host="192.0.2.2", app=app) == 200


def test_uploads_of_one_visitor_and_of_all(limited: Visitors, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_VISITOR_BYTES", 100)

    def upload(size: int, host: str) -> int:
        headers = [(b"content-length", str(size).encode())]
        return asked(limited, "/gradio_api/upload", host=host, headers=headers)

    assert [upload(60, "192.0.2.1"), upload(60, "192.0.2.1"), upload(40, "192.0.2.1")] == [200, 429, 200]
    # Who does not say how large an upload is may mean the largest.
    unsaid = [(b"transfer-encoding", b"chunked")]
    assert asked(limited, "/gradio_api/upload", host="192.0.2.3", headers=unsaid) == 429
    (stored / "full").write_bytes(b"a" * 1000)
    monkeypatch.setattr(store, "MAX_STORED_BYTES", 1010)
    monkeypatch.setattr(store, "_LOOK", -1.0)
    assert upload(20, "192.0.2.2") == 503
    assert upload(10, "192.0.2.2") == 200
    # What nobody can still be using makes room.
    os.utime(stored / "full", (0, 0))
    assert upload(20, "192.0.2.2") == 200
    assert not (stored / "full").exists()
    for number in range(3):
        (stored / str(number)).touch()
    monkeypatch.setattr(store, "MAX_STORED_FILES", 3)
    assert upload(1, "192.0.2.4") == 503


def test_many_small_files_in_one_upload_count_each(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_PAGE_RATE", "1000")

    async def takes(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b'["/tmp/a"' + b',"/tmp/b"' * 999 + b"]"})

    monkeypatch.setattr(visitors, "monotonic", lambda: 1000.0)
    limited, headers = Visitors(takes), [(b"content-length", b"100")]
    found = [asked(limited, "/gradio_api/upload", headers=headers) for _ in range(3)]
    assert found == [200, 429, 429]


def test_between_two_looks_room_is_counted(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_STORED_BYTES", 100)
    monkeypatch.setattr(store, "_LOOK", float("inf"))
    room = store.Room()
    room._look()
    assert [room.for_bytes(60), room.for_bytes(30)] == [True, True]


def test_a_folder_that_others_use_keeps_what_is_theirs(tmp_path: Path) -> None:
    """Whoever names a folder for temporary files may name one that holds more than the page's."""
    theirs = tmp_path / "theirs"
    theirs.write_text("a")
    os.utime(theirs, (0, 0))
    line = (
        f"import sys; sys.path.insert(0, {str(space_server.SPACE)!r}); import store; store.use(); "
        "(store.FOLDER / 'ours').touch(); import os; os.utime(store.FOLDER / 'ours', (0, 0)); store.sweep(); "
        "print(os.environ['GRADIO_TEMP_DIR'], os.listdir(store.FOLDER))"
    )
    environment = {**os.environ, "GRADIO_TEMP_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "page"), "[]"]
    assert theirs.exists()


def test_open_pages_of_one_visitor(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_PAGE_RATE", "1000")
    monkeypatch.setattr(visitors, "MAX_VISITOR_PAGES", 3)

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await closed.wait()

    async def run() -> None:
        nonlocal closed
        closed = asyncio.Event()
        limited = Visitors(waits)
        got: list[int] = []

        async def send(message: Any) -> None:
            if "status" in message:
                got.append(message["status"])

        def scope(number: int, host: str) -> dict[str, Any]:
            path = f"/gradio_api/heartbeat/{number}"
            return {"type": "http", "method": "GET", "path": path, "client": (host, 1), "headers": [], "app": Gradio()}

        tasks = [asyncio.create_task(limited(scope(at, "192.0.2.1"), None, send)) for at in range(5)]  # type: ignore[arg-type]
        tasks.append(asyncio.create_task(limited(scope(9, "192.0.2.2"), None, send)))  # type: ignore[arg-type]
        while len(got) < 6:
            await asyncio.sleep(0)
        closed.set()
        await asyncio.gather(*tasks)
        assert sorted(got) == [200] * 4 + [429] * 2
        got.clear()
        await limited(scope(10, "192.0.2.1"), None, send)  # type: ignore[arg-type]
        assert got == [200]

    closed = asyncio.Event()
    asyncio.run(run())


def test_few_visitors_are_remembered(limited: Visitors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_VISITORS", 10)
    for number in range(100):
        asked(limited, host=f"192.0.2.{number}")
    assert len(limited._known) == 10


def test_sessions_of_calls_go_and_those_of_pages_stay() -> None:
    """A page keeps a line open; a call does not, and is done when nothing of it is in the queue."""
    app = Gradio()
    held: list[set[str]] = []

    async def looks(scope: Any, receive: Any, send: Any) -> None:
        await kept({"type": "http", "method": "POST", "path": "/gradio_api/queue/join", "app": app}, None, send)  # type: ignore[arg-type]
        held.append(set(app.state_holder.session_data))

    async def quiet(scope: Any, receive: Any, send: Any) -> None:
        if "/heartbeat/" in scope["path"]:
            await looks(scope, receive, send)

    kept = Sessions(quiet)
    app.used("a page", 10_000)
    app.used("a call", 60)
    app.used("a call just now", 1)
    app.used("a call that takes long", 500)
    app.under_way("a call that takes long")
    heartbeat = {"type": "http", "method": "GET", "path": "/gradio_api/heartbeat/a page", "app": app}
    asyncio.run(kept(heartbeat, None, None))  # type: ignore[arg-type]
    assert held == [{"a page", "a call just now", "a call that takes long"}]
    # The page is closed now, and may be opened again within the hour.
    kept.drop_idle(app)
    assert "a page" in app.state_holder.session_data
    kept._closed["a page"] -= sessions._CLOSED
    kept.drop_idle(app)
    assert "a page" not in app.state_holder.session_data
    assert set(app.state_holder.time_last_used) == set(app.state_holder.session_data)


def test_answers_that_nobody_fetches_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    app, kept = Gradio(), Sessions(answers)
    app.used("a call", 60)
    app.queue.pending_messages_per_session["a call"] = app.queue.pending_event_ids_session["a call"] = {"an event"}
    kept.drop_idle(app)
    assert "a call" in app.queue.pending_messages_per_session  # there is time to fetch it
    now = time.monotonic()
    monkeypatch.setattr(sessions, "monotonic", lambda: now + 2 * sessions._UNREAD)
    kept.drop_idle(app)
    assert not app.queue.pending_messages_per_session
    assert not app.queue.pending_event_ids_session
    assert not kept._dropped


def test_uploads_and_results_go_after_their_time(stored: Path) -> None:
    folder = store.new_folder()
    assert folder.is_relative_to(stored)
    old, young = folder / "old", stored / "young"
    old.write_text("a")
    young.write_text("b")
    os.utime(old, (0, 0))
    store.sweep()
    assert not old.exists()
    assert young.exists()
    # A folder that was just made may be about to be filled; one that has stood empty goes.
    assert folder.exists()
    for empty in (folder, folder.parent):
        os.utime(empty, (0, 0))
    store.sweep()
    os.utime(folder.parent, (0, 0)) if folder.parent.exists() else None
    assert not folder.exists()
    assert stored.exists()


def test_the_oldest_go_when_there_are_too_many(stored: Path) -> None:
    now = time.time()
    for age in (600, 500, 400, 10):
        path = stored / str(age)
        path.write_bytes(b"a" * 10)
        os.utime(path, (now - age, now - age))
    store.sweep(most=25)
    assert {path.name for path in stored.iterdir()} == {"400", "10"}
    store.sweep(most=0)
    assert {path.name for path in stored.iterdir()} == {"10"}  # may be in use
