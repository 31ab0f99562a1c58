"""What may be asked of the page at all: addresses, sizes, names; and a sentence for everything else."""

from __future__ import annotations

import asyncio
import http.client
import inspect
import json
import re
from typing import Any
from urllib.parse import urlparse

import pytest

pytest.importorskip("gradio")

import space_server

# isort: split
import gradio.routes
import limits
import sessions
from doors import Doors
from gradio.route_utils import FnIndexInferError
from limits import BodyLimit
from sessions import Sessions
from test_space_visitors import Gradio, answers

pytestmark = pytest.mark.slow


def asked(app: Any, path: str, method: str = "POST", body: list[bytes] | None = None) -> tuple[int, str]:
    """Status and text of an answer; the body comes in these pieces."""
    sent: list[Any] = []
    pieces = [{"type": "http.request", "body": one, "more_body": True} for one in body or []]

    async def receive() -> Any:
        return pieces.pop(0) if pieces else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [], "app": Gradio(), "root_path": ""}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent).decode()


def raising(error: Exception) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    return app


async def reads(scope: Any, receive: Any, send: Any) -> None:
    """Like the page's own code: takes all of the body, and fails where it breaks off."""
    held, message = b"", await receive()
    while message["type"] == "http.request" and message["more_body"]:
        held += message["body"]
        message = await receive()
    if message["type"] != "http.request":
        raise RuntimeError("the client has gone away")
    await limits.refuse(send, 200, str(len(held)))


def test_an_address_that_nobody_needs_is_none() -> None:
    for path, method in (("/", "GET"), ("/config/", "GET"), ("/gradio_api/file=/a/b", "GET"), ("/assets/a.js", "HEAD"),
                         ("/gradio_api/queue/join", "POST"), ("/gradio_api/call/score", "POST")):  # fmt: skip
        assert asked(Doors(answers), path, method)[0] == 200, path
    for path, method in (("/gradio_api/dev/reload", "GET"), ("/gradio_api/deep_link", "GET"), ("/monitoring/x", "GET"),
                         ("/gradio_api/run/score", "POST"), ("/gradio_api/queue/join", "GET"), ("/", "POST"),
                         ("/assets/" + "a" * 1000, "GET"), ("/gradio_api/heartbeat/" + "a" * 1000, "GET")):  # fmt: skip
        status, told = asked(Doors(answers), path, method)
        assert (status, "nothing at this address" in told) == (404, True), path


def test_what_is_raised_becomes_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (KeyError(7), IndexError(7), FnIndexInferError("nix")):
        status, told = asked(Doors(raising(error)), "/gradio_api/queue/join")
        assert (status, "no such event" in told) == (404, True)
    assert capsys.readouterr().err == ""
    status, told = asked(Doors(raising(RuntimeError("a secret"))), "/gradio_api/queue/join")
    assert (status, "something went wrong here" in told, "secret" in told) == (500, True, False)
    assert "RuntimeError: a secret" in capsys.readouterr().err


def test_a_body_of_too_many_values_is_refused_while_it_comes() -> None:
    """Five million empty lists are 15 MB on the way, and a gigabyte once they are read."""
    for piece in (b"[]," * 50_000, b"{}," * 50_000, b"1," * 50_000):
        status, told = asked(BodyLimit(reads), "/gradio_api/call/score", body=[piece] * 20)
        assert (status, "holds more than this page takes" in told) == (413, True)
        assert asked(BodyLimit(reads), "/gradio_api/call/score", body=[piece] * 2)[0] == 200
        assert asked(BodyLimit(reads), "/gradio_api/upload", body=[piece] * 20)[0] == 200
    # Ten million characters of prose are a text like any other here; how long it may be is said elsewhere.
    prose = b"Well, what did she say when you came in and sat down beside them? " * 15_000
    assert asked(BodyLimit(reads), "/gradio_api/call/score", body=[prose] * 10)[0] == 200


def test_a_session_with_a_name_of_megabytes_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app, kept = Gradio(), Sessions(answers)
    for name in ("x" * 1_000_000, "short"):
        app.used(name, 0)
        app.queue.pending_messages_per_session[name] = app.queue.pending_event_ids_session[name] = {"an event"}
    kept.drop_idle(app)
    held = (app.state_holder.session_data, app.queue.pending_messages_per_session, app.queue.pending_event_ids_session)
    assert [list(one) for one in held] == [["short"]] * 3
    # Nor are more pages remembered than there may be, however fast they come and go.
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 5)
    for number in range(20):
        scope = {"type": "http", "method": "GET", "path": f"/gradio_api/heartbeat/{number}", "app": app}
        asyncio.run(kept(scope, None, answered_to_nobody))  # type: ignore[arg-type]
    assert list(kept._closed) == [str(number) for number in range(15, 20)]


async def answered_to_nobody(message: Any) -> None:
    return None


# --- the page itself ---------------------------------------------------------------------------------


def call(method: str, path: str, body: Any = None) -> tuple[int, str]:
    place = urlparse(space_server.address())
    link = http.client.HTTPConnection(place.hostname or "", place.port)
    try:
        link.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    finally:
        link.close()


def events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(call("GET", "/config")[1])["dependencies"]
    return found


def outcome(event: int, inputs: list[Any]) -> dict[str, Any]:
    """What an event of the page comes to."""
    session = f"s{event}-{len(inputs)}"
    status, told = call("POST", "/gradio_api/queue/join", {"fn_index": event, "data": inputs, "session_hash": session})
    assert status == 200, told
    told = call("GET", f"/gradio_api/queue/data?session_hash={session}")[1]
    messages = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
    (done,) = [one for one in messages if one["msg"] == "process_completed"]
    output: dict[str, Any] = done["output"]
    assert done["success"] != ("error" in output)
    return output


@pytest.mark.parametrize("inputs", [[], [None] * 8, ["x"] * 8, [{"path": "/etc/passwd"}] * 8])
def test_whatever_an_event_is_given_it_answers_or_says_why_not(inputs: list[Any]) -> None:
    known = [one["id"] for one in events() if one["backend_fn"]]
    assert len(known) > 10
    failed = [output["error"] for event in known if "error" in (output := outcome(event, inputs))]
    assert all(isinstance(one, str) and one for one in failed)
    assert failed or inputs


def test_nothing_goes_past_the_queue() -> None:
    refused = 0
    for event in events():
        if event["backend_fn"] and event["queue"]:
            status, told = call("POST", "/gradio_api/run/predict", {"fn_index": event["id"], "data": []})
            assert (status, "join the queue" in told) == (404, True)
            refused += 1
    assert refused > 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/gradio_api/call/nix", {"data": []}),
        ("/gradio_api/queue/join", {"fn_index": -1, "data": [], "session_hash": "x"}),
        ("/gradio_api/queue/join", {"fn_index": 10**30, "data": [], "session_hash": "x"}),
    ],
)
def test_an_event_that_is_none_is_a_sentence(path: str, body: Any) -> None:
    status, told = call("POST", path, body)
    assert (status, "no such event" in told) == (404, True)


def test_what_a_new_gradio_brings_stays_shut() -> None:
    """Of everything that it takes requests at, only these lead anywhere."""
    source = inspect.getsource(gradio.routes)
    posted = set(re.findall(r'(?:router|app)\.post\(\s*f?"([^"]+)"', source))
    assert len(posted) > 20
    found = {
        path.rstrip("/") for path in posted if asked(Doors(answers), f"/gradio_api{path.rstrip('/')}", "POST")[0] == 200
    }
    assert found == {"/call/{api_name}", "/call/v2/{api_name}", "/cancel", "/queue/join", "/reset", "/upload"}
