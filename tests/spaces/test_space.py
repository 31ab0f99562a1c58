"""The page without a browser: programs that call it, many at once, its proxy, and what stands in its files."""

import csv
import gzip
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refusals import refused
from resources import PATIENCE
from shell import invoke

pytest.importorskip("gradio")

import httpx
from gradio_client import Client

import dialeval
from dialeval.core.exchange import Dialogue
from dialeval.hub.publish import default_results, make_uploads
from dialeval.judge.verdicts import compare_replies, judge_conversation
from dialeval.readers import Source
from space_server import SPACE, address, free_port

file, limits = map(import_module, ("file", "limits"))

pytestmark = [pytest.mark.slow, pytest.mark.encoder]
CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]
REPLIES = ["Oh no! Did the airline find it?", "The library closes at six."]


@pytest.fixture(scope="module")
def judge() -> Any:
    return dialeval.load("judge", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(address(), verbose=False, httpx_kwargs={"timeout": PATIENCE})


def test_programs_get_what_the_library_says(client: Client, judge: Any) -> None:
    found = client.predict(CONTEXT, REPLIES, api_name="/compare")
    wanted = compare_replies(judge, CONTEXT, REPLIES)
    assert found["sentence"] == wanted.sentence
    assert found["values"] == pytest.approx(wanted.scores.values, abs=1e-4)
    turns = ["Hi, did you have fun?", "Yes, I went hiking.", "Where?", "Pizza is round."]
    text = "\n".join(f"{'User' if at % 2 == 0 else 'Bot'}: {turn}" for at, turn in enumerate(turns))
    talk = client.predict(text, False, api_name="/conversation")
    whole = judge_conversation(judge, Dialogue(tuple(turns), speakers=("user", "assistant") * 2))
    assert (talk["positions"], talk["sentence"]) == ([1, 3], whole.sentence)
    rows = [{"context": CONTEXT, "response": reply} for reply in REPLIES]
    assert client.predict(rows, api_name="/file")["values"] == pytest.approx(wanted.scores.values, abs=1e-4)
    names = set(client.view_api(return_format="dict", print_info=False)["named_endpoints"])
    assert names == {"/compare", "/conversation", "/file"}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([], REPLIES), "/compare"),
        ((CONTEXT, REPLIES[:1]), "/compare"),
        ((CONTEXT, [REPLIES[0], "x" * 5000]), "/compare"),
        ((CONTEXT, REPLIES * 3), "/compare"),
        ((["x" * 4001], REPLIES), "/compare"),
        (("alone", False), "/conversation"),
        (("a: b\n" * 500, False), "/conversation"),
        (([],), "/file"),
        (([{"context": ["Hi"]}],), "/file"),
        (([{"context": ["Hi"], "response": "Hm"}] * 101,), "/file"),
        (([{"context": ["Hi"], "response": "x" * 4001}],), "/file"),
        (([{"context": ["x" * 4001], "response": "Hm"}],), "/file"),
        (([{"context": ["Hi"] * 101, "response": "Hm"}],), "/file"),
        (([{"context": ["Hi"], "response": "Hm", "facts": ["x" * 4001]}],), "/file"),
        (([{"messages": [{"role": who, "content": "Hi"} for who in ("user", "assistant") * 99]}] * 2,), "/file"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(client: Client, arguments: Any, name: str) -> None:
    message = refused(Exception, " ", client.predict, *arguments, api_name=name)
    assert not re.search("Traceback|--", message)


def test_two_files_of_one_name_are_not_one_system(tmp_path: Path) -> None:
    paths = [tmp_path / "mine.jsonl", tmp_path / "mine.json"]
    for path in paths:
        path.write_text(json.dumps({"context": ["Hi"], "response": "Hm"}), "utf-8")
    columns = {"response": "response", "context": "context"}
    refused(limits.Problem, "the same name", file.read, list(map(str, paths)), columns)


def test_an_upload_knows_the_limits_that_the_page_promises(tmp_path: Path) -> None:
    columns = {"response": "response", "context": "context"}
    for number, row in enumerate([
        {"context": ["Hi"], "response": "x" * (limits.TEXT + 1)},
        {"context": ["Hi"] * (limits.TURNS + 1), "response": "Hm"},
    ]):  # fmt: skip
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps(row), "utf-8")
        refused(limits.Problem, "at most", file.read, [str(path)], columns)
    packed = tmp_path / "large.jsonl.gz"
    line = json.dumps({"context": ["Hi"], "response": "Hm", "more": "x" * 2**20}).encode()
    packed.write_bytes(gzip.compress((line + b"\n") * 65))
    assert packed.stat().st_size < 2**20
    refused(limits.Problem, "unpacks to more than 64 MB", file.read, [str(packed)], columns)


def test_the_limits_on_the_page_are_those_of_its_documentation() -> None:
    page = (SPACE.parents[1] / "docs" / "space.md").read_text("utf-8")
    assert f"{limits.TEXT:,} characters" in page
    assert f"| {limits.REPLIES}, {limits.TURNS} |" in page
    unpacked = limits.UNPACKED.data // 2**20
    assert f"{limits.ROWS:,} rows and {limits.BYTES // 2**20} MB together, {unpacked} MB unpacked" in page
    assert f"| {limits.SENT} |" in page
    assert f"| waiting requests | {limits.WAITING} |" in page
    for texts in (["Hi"] * (limits.TURNS + 1), ["x" * (limits.TEXT + 1)]):
        refused(limits.Problem, "at most", limits.checked, texts, "facts", "Fact")


def test_many_at_once_each_get_their_own_answer(judge: Any) -> None:
    contexts = [[f"Do you know the number {at}?"] for at in range(24)]
    replies = [[f"Yes, {at} is my favourite number.", "It will rain."] for at in range(24)]
    wanted = [compare_replies(judge, one, own).scores.values for one, own in zip(contexts, replies, strict=True)]

    def ask(at: int) -> list[float]:
        client = Client(address(), verbose=False, httpx_kwargs={"timeout": PATIENCE})
        found: list[float] = client.predict(contexts[at], replies[at], api_name="/compare")["values"]
        return found

    with ThreadPoolExecutor(8) as pool:
        assert np.allclose(list(pool.map(ask, range(24))), wanted, atol=1e-4)


def test_what_is_not_for_programs_cannot_be_called(client: Client) -> None:
    refused(ValueError, "api_name", client.predict, api_name="/_answer")


def test_a_published_page_shows_what_the_checkouts_does(tmp_path: Path) -> None:
    (upload,) = make_uploads([SPACE], "lab", tmp_path, results=default_results())
    script = "import json, trust; print(json.dumps([len(trust.benchmarks()), str(trust.folder())]))"
    shown = [
        json.loads(subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, check=True).stdout)
        for place in (SPACE, upload.folder)
    ]
    assert shown[0][0] == shown[1][0] >= 7
    assert shown[1][1] == str(upload.folder / "results")


def holds(text: str, value: float) -> bool:
    """Whether a number stands in a text, with two digits or more."""
    return any(abs(float(number) - value) < 0.006 for number in re.findall(r"\d\.\d\d+", text))


def test_what_is_ready_to_copy_gives_the_pages_values(judge: Any, tmp_path: Path, monkeypatch: Any) -> None:
    talk = "User: Hi, did you have fun?\nBot: Yes, I went hiking.\nUser: Pizza is round.\nBot: Is it?"
    rows = [{"bot": name, "before": one, "said": reply} for name in "AB" for one in CONTEXT for reply in REPLIES]
    (tmp_path / "conversation.txt").write_text(talk)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = {"response": "said", "context": "before", "system": "bot"}
    script = (
        "import json, compare, conversation, file; print(json.dumps(["
        f"compare.code({CONTEXT}, {REPLIES}, ['It rains.'], 'No, it is lost.'), "
        f"conversation.code({talk!r}, True), file.code(['rows.jsonl'], {columns}, 2)]))"
    )
    printed = subprocess.run([sys.executable, "-c", script], cwd=SPACE, capture_output=True, check=True).stdout
    commands, lines = zip(*json.loads(printed), strict=True)
    monkeypatch.chdir(tmp_path)

    def printed_by(code: str) -> str:
        with redirect_stdout(io.StringIO()) as shown:
            exec(code, {})
        return shown.getvalue()

    asked = [invoke(*shlex.split(line)[1:]).stdout for one in commands for line in one.splitlines()]
    replied = [printed_by(one) for one in lines]
    compared = compare_replies(judge, CONTEXT, REPLIES, facts=["It rains."], following="No, it is lost.")
    assert compared.sentence in asked[0]
    assert compared.sentence in replied[0]
    turns = [line.partition(": ")[2] for line in talk.splitlines()]
    found = judge_conversation(judge, Dialogue(tuple(turns), speakers=("assistant", "user") * 2))
    assert found.sentence in replied[1]
    for value in (found.whole.values[0], found.turns.values[0]):
        assert holds(asked[1], value)
        assert holds(replied[1], value)
    plain = [{"context": [row["before"]], "response": row["said"]} for row in rows]
    values = judge.score_exchanges([row for _, row in Source(plain).exchanges()]).values
    with (tmp_path / "rows-scores.csv").open(newline="") as file:
        assert [float(row["judge"]) for row in csv.DictReader(file)] == pytest.approx(values, abs=1e-4)
    assert holds(replied[2], values[0])
    assert holds(asked[3], float(np.mean(values)))  # both systems have the same replies


def test_its_code_asks_gradio_for_nothing_private() -> None:
    files = sorted(SPACE.glob("*.py"))
    assert len(files) <= 8
    assert sum(len(path.read_text().splitlines()) for path in files) <= 950
    for path in files:
        text = path.read_text()
        assert not re.search(r"\bgr\.(?:\w+\.)*_[a-z]|uvicorn|starlette|fastapi", text), path.name
        assert not re.search(r"from dialeval\S* import _|dialeval\.\w+\._", text), path.name


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[str]:
    """Debian's own nginx with the configuration of the compose file, before the page that runs here."""
    port = free_port()
    text = (SPACE / "proxy" / "page.conf").read_text()
    text = text.replace("http://page:7860", address()).replace("listen 80;", f"listen 127.0.0.1:{port};")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    own = tmp_path / "nginx.conf"
    own.write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; daemon off; events {{}}\n"
        f"http {{ access_log off; {folders}\n{text}\n}}\n"
    )
    process = subprocess.Popen(["nginx", "-c", str(own)])
    for _ in range(200):
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx here")
def test_the_proxy_passes_the_page_on_and_bounds_what_one_visitor_asks(proxy: str, judge: Any) -> None:
    visitor = Client(proxy, verbose=False, httpx_kwargs={"timeout": PATIENCE})
    found = visitor.predict(CONTEXT, REPLIES, api_name="/compare")
    assert found["sentence"] == compare_replies(judge, CONTEXT, REPLIES).sentence

    def status(path: str, data: bytes | None = None) -> int:
        try:
            asked = httpx.request("POST" if data else "GET", f"{proxy}{path}", content=data, timeout=PATIENCE)
            return asked.status_code
        except httpx.TransportError:  # it closed the connection before all of a body was sent
            return 413

    assert status("/gradio_api/upload", bytes(30 * 2**20)) == 413
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: status("/config"), range(300))) == {200, 429}


def test_a_program_cannot_name_a_file_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"context": ["hi"], "response": "hello"}\n', encoding="utf-8")
    given: Any
    for given in (str(path), path, {"path": str(path)}):
        refused(file.gr.Error, "rows: Input should be a valid list", file.api, given)


def test_what_the_pages_own_buttons_call_names_no_file_of_the_server_either(client: Client, tmp_path: Path) -> None:
    """They have no names for programs, but a program can ask as a browser does; what it has uploaded itself is read."""
    page, path = f"{address()}/gradio_api", tmp_path / "rows.jsonl"
    path.write_text('{"context": ["hi"], "response": "hello", "a_column_of_its_own": 1}\n', encoding="utf-8")
    files = [part["id"] for part in client.config["components"] if part["type"] == "file"]
    (uploaded,) = httpx.post(f"{page}/upload", files={"files": path.open("rb")}).json()

    def answers(name: str) -> str:
        given = [{"path": name, "meta": {"_type": "gradio.FileData"}, "orig_name": path.name}]
        said = []
        for part in (call for call in client.config["dependencies"] if call["inputs"] and call["inputs"][0] in files):
            session = f"{part['id']} of {name}"
            data = [given, *[None] * (len(part["inputs"]) - 1)]
            httpx.post(f"{page}/queue/join", json={"fn_index": part["id"], "session_hash": session, "data": data})
            said.append(httpx.get(f"{page}/queue/data", params={"session_hash": session}, timeout=PATIENCE).text)
        return "".join(said)

    assert "a_column_of_its_own" in answers(uploaded)
    assert "a_column_of_its_own" not in answers(str(path))


#: Of no type that an endpoint takes, or of the right one and empty.
WRONG: list[Any] = [
    None, 7, 1.5, 10**400, "text", "/etc/hostname", {}, {"path": "/etc/hostname"}, [None], [7], [True], [[]], [{}],
    [["a"]], ["\u200b"], ["\ud800"],
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place"), [("compare", 0), ("compare", 1), ("conversation", 0), ("conversation", 1), ("file", 0)]
)
def test_wrong_types_are_refused_in_a_sentence(client: Client, name: str, place: int) -> None:
    """What JSON can hold, at every place; the client shows a bare error as one that tells nothing."""
    for wrong in WRONG:
        given: list[Any] = {"compare": [CONTEXT, REPLIES], "conversation": ["a: b\nc: d", False], "file": [[]]}[name]
        given[place] = wrong
        message = refused(Exception, " ", client.predict, *given, api_name=f"/{name}")
        assert not re.search("Traceback|--|^Error$|has raised an exception", message), (wrong, message)


@pytest.mark.parametrize(
    "field", ["context", "response", "facts", "references", "speakers", "following", "id", "messages"]
)
def test_wrong_types_in_a_row_are_refused_in_a_sentence(client: Client, field: str) -> None:
    for wrong in WRONG:
        row = {"context": ["Hi"], "response": "Hm", field: wrong} if field != "messages" else {field: wrong}
        answer = client.submit([row], api_name="/file")
        if (error := answer.exception()) is None:
            assert len(answer.result()["values"]) == 1
        else:
            assert not re.search("Traceback|--|^Error$|has raised an exception", str(error)), (wrong, str(error))


@pytest.mark.parametrize("blank", ["\u200b", "\u2060\ufe0f", "\u00ad", " "])
def test_a_reply_of_zero_width_characters_is_named(client: Client, blank: str) -> None:
    for given in ([REPLIES[0], blank], [*REPLIES, blank]):
        if blank.strip() or len(given) == 2:  # a box that holds nothing is passed over
            message = refused(Exception, " ", client.predict, CONTEXT, given, api_name="/compare")
            assert re.search("empty|two replies", message)


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_downloads_go_an_hour_after_they_were_made_by_whatever_clock(hours: int) -> None:
    from overlap_metric import Overlap

    scores = Overlap().score(["fine"], [["how are you"]])
    old = Path(file.downloads(scores)[0]).parent
    os.utime(old, (time.time() + 3600 * hours,) * 2)
    assert Path(file.downloads(scores)[0]).is_file()
    assert old.exists() == (hours == 0)
