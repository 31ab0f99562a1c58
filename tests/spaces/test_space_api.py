"""The page's endpoints, called by the clients that the documentation names, against the library's own values."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest

pytest.importorskip("gradio")

from gradio_client import Client
from gradio_client.exceptions import AppError

import dialeval
from space_server import SPACE, address

pytestmark = [pytest.mark.slow, pytest.mark.encoder]

TURNS = ["Shall we cook tonight?", "I am too tired."]
REPLIES = ["Then let us order a pizza.", "The exam will take three hours."]
ROWS = [
    {"context": TURNS, "response": reply, "reference": "I can cook for us.", "system": system, "id": f"{system}-{at}"}
    for system in ("one", "two")
    for at, reply in enumerate(REPLIES)
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = Client(address(), verbose=False)
    yield client
    client.close()


def test_only_the_documented_endpoints_are_open(client: Client) -> None:
    named = client.view_api(return_format="dict", print_info=False)
    assert set(named["named_endpoints"]) == {"/score", "/compare", "/dialogue"}
    assert not named["unnamed_endpoints"]


def test_a_conversation_is_judged_as_the_library_does(client: Client) -> None:
    turns, speakers = [*TURNS, REPLIES[0], "Great idea, thanks!"], ["bot", "user", "bot", "user"]
    found = client.predict(turns, speakers, ["judge"], api_name="/dialogue")["metrics"]["judge"]
    scores = dialeval.load("judge").score_dialogues([turns], speakers=[speakers])
    assert found["value"] == pytest.approx(scores.values[0], rel=1e-5)
    assert found["reasons"] == list(scores.reasons)
    assert found["aspects"]["reaction"] == pytest.approx(scores.aspects["reaction"])
    with pytest.raises(AppError, match="speakers has 1 entries for 4 turns"):
        client.predict(turns, ["bot"], ["judge"], api_name="/dialogue")


def test_score_gives_the_values_of_the_library(client: Client) -> None:
    found = client.predict(ROWS, ["density"], api_name="/score")["density"]
    density = dialeval.load("density")
    replies = [row["response"] for row in ROWS]
    scores = density.score(replies, [TURNS] * 4, ids=[row["id"] for row in ROWS])
    assert found["values"] == pytest.approx(scores.values, rel=1e-5)
    assert found["human_percentile"] == pytest.approx(density.rescale(scores.values, "human_percentile"), abs=1e-5)
    assert found["signature"] == str(scores.signature)
    assert found["ids"] == ["one-0", "one-1", "two-0", "two-1"]
    assert (found["n_truncated"], found["n_empty"]) == (0, 0)


def test_score_of_systems(client: Client) -> None:
    found = client.predict(ROWS, ["fbd"], api_name="/score")["fbd"]
    columns = [[row[key] for row in ROWS] for key in ("response", "context", "reference")]
    with pytest.warns(UserWarning, match="fewer rows"):
        scores = dialeval.load("fbd").score(*columns, systems=[row["system"] for row in ROWS])
    assert found["values"] == pytest.approx(scores.values, rel=1e-4)
    assert found["ids"] == ["one", "two"]
    assert "human_percentile" not in found


def test_compare_says_which_is_best(client: Client) -> None:
    found = client.predict(TURNS, REPLIES, "", ["density"], api_name="/compare")
    scores = dialeval.load("density").score(REPLIES, [TURNS] * 2)
    density = found["metrics"]["density"]
    assert density["values"] == pytest.approx(scores.values, rel=1e-5)
    assert density["best"] == [int(np.argmax(scores.values))] == [0]
    assert found["notes"] == []


def test_long_text_is_cut_with_a_notice_and_control_characters_are_counted(client: Client) -> None:
    reply = "yes " * 400 + "\x07\x1b"
    found = client.predict(TURNS, [reply, "No."], "", ["density"], api_name="/compare")
    assert found["metrics"]["density"]["n_truncated"] == 1
    assert found["notes"] == [
        "2 control characters were taken out of the text.",
        "DENSITY: 1 reply was judged on cut text, because the model does not read that much.",
    ]
    plain = client.predict(TURNS, ["yes " * 400, "No."], "", ["density"], api_name="/compare")
    assert plain["metrics"] == found["metrics"]


@pytest.mark.parametrize(
    ("rows", "metrics", "message"),
    [
        ([*ROWS, {"context": TURNS, "response": ""}], ["density"], "row 4: response is empty"),
        ([{"context": TURNS}], ["density"], "row 0: response is None"),
        ([{"context": [TURNS], "response": "a"}], ["density"], r"row 0: context\[0\] is a list"),
        ([ROWS[0], "text"], ["density"], "row 1: the row is a str"),
        ([{**ROWS[0], "reply": "a"}], ["density"], "row 0: there is no field 'reply'"),
        ([{**ROWS[0], "references": ["a"]}], ["density"], "row 0: both reference and references"),
        ([ROWS[0]] * 201, ["density"], "there are 201 rows; one call takes 200"),
        ([{**ROWS[0], "response": "a" * 5_001}], ["density"], "row 0: response has 5,001 characters"),
        ([{**ROWS[0], "context": ["a"] * 51}], ["density"], "row 0: there are 51 texts in context"),
        ([{"context": TURNS, "response": "a"}], ["prd"], "row 0: prd compares with references"),
        ([], ["density"], "rows is not a list"),
        ({"context": TURNS}, ["density"], "rows is not a list"),
        (ROWS, [], "metrics is not a list of names"),
        (ROWS, "density", "metrics is not a list of names"),
        (ROWS, ["densty"], "there is no metric 'densty' here"),
        (ROWS, [{"a": 1}], "there is no metric"),
    ],
)
def test_what_cannot_be_scored_is_named(client: Client, rows: Any, metrics: Any, message: str) -> None:
    with pytest.raises(AppError, match=message):
        client.predict(rows, metrics, api_name="/score")


@pytest.mark.parametrize(
    ("turns", "replies", "message"),
    [
        ([], ["a"], "the conversation is empty"),
        (["  "], ["a"], "the conversation is empty"),
        ("text", ["a"], "turns are a str"),
        (TURNS, [], "there is no reply to judge"),
        (TURNS, ["a", " \n"], "reply 2 is empty"),
        (TURNS, ["a"] * 21, "there are 21 replies; this page takes 20"),
        (TURNS, ["a", None], "reply 2 is a NoneType"),
        ([*TURNS, "x" * 5_001], ["a"], "turn 3 has 5,001 characters"),
    ],
)
def test_what_cannot_be_compared_is_named(client: Client, turns: Any, replies: Any, message: str) -> None:
    with pytest.raises(AppError, match=message):
        client.predict(turns, replies, "", ["density"], api_name="/compare")


@pytest.mark.parametrize(
    ("endpoint", "data", "message"),
    [
        ("score", [[{"context": TURNS, "response": "\ud800"}], ["density"]], "row 0: response holds a lone surrogate"),
        ("compare", [TURNS, ["a", "\udfff"], "", ["density"]], "reply 2: response holds a lone surrogate"),
    ],
)
def test_lone_surrogates_are_refused(endpoint: str, data: list[Any], message: str) -> None:
    # The Python client cannot send them; JSON can.
    call = f"{address()}/gradio_api/call/{endpoint}"
    asked = urllib.request.Request(
        call, json.dumps({"data": data}).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{call}/{event}") as answer:
        found = answer.read().decode()
    assert "event: error" in found
    assert message in found


def test_callers_at_once_get_their_own_answers() -> None:
    replies = [f"We have {number} cats and {number + 1} dogs." for number in range(8)]
    expected = dialeval.load("density").score(replies, [TURNS] * 8).values

    def ask(reply: str) -> list[float]:
        with closing(Client(address(), verbose=False)) as own:
            answers = [
                own.predict([{"context": TURNS, "response": reply}], ["density"], api_name="/score") for _ in range(2)
            ]
        return [answer["density"]["values"][0] for answer in answers]

    with ThreadPoolExecutor(8) as pool:
        for answers, value in zip(pool.map(ask, replies), expected, strict=True):
            assert answers == pytest.approx([value, value], rel=1e-5)
    assert len(set(np.round(expected, 3))) == 8


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_the_documented_commands_run() -> None:
    import endpoints

    (shell,) = re.findall(r"```bash\n(.*?)```", endpoints.DOCUMENTED, re.DOTALL)
    command = shell.replace("http://127.0.0.1:7860", address())
    printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    answer = json.loads(printed.split("event: complete\ndata: ")[1])
    value = dialeval.load("density").score(["Fine, thanks!"], [["How are you?"]]).values[0]
    assert answer[0]["density"]["values"] == pytest.approx([value], rel=1e-5)

    (python,) = re.findall(r"```python\n(.*?)```", endpoints.DOCUMENTED, re.DOTALL)
    exec(compile(python.replace("http://127.0.0.1:7860", address()), "documented", "exec"), {})


def test_bodies_above_the_limit_are_refused() -> None:
    import limits

    place = urlparse(address())
    for headers in ({"Content-Length": str(limits.MAX_BODY_BYTES + 1)}, {"Content-Length": "-1"}):
        link = http.client.HTTPConnection(place.hostname or "", place.port)
        link.putrequest("POST", "/gradio_api/call/score")
        for key, value in headers.items():
            link.putheader(key, value)
        link.endheaders()
        answer = link.getresponse()
        assert answer.status in (400, 413)
        link.close()


@pytest.mark.parametrize("path", ["/etc/passwd", str(SPACE / "app.py"), str(SPACE.parents[1] / "pyproject.toml")])
def test_files_of_the_machine_are_not_served(path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address()}/gradio_api/file={path}")
    assert refused.value.code in (403, 404)
