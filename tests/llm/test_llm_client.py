"""A server's answer has a bound, in time and in bytes, however it comes; and addresses are looked at first."""

import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("openai")

from dialeval.llm.asking import Price
from dialeval.llm.client import MAX_ANSWER_BYTES, Client, QuestionFailed
from dialeval.llm.protocol import Question
from loopback_llm import AT_ONCE, Behaviour, Raw, serving
from refusals import refused

QUESTION = Question(({"role": "user", "content": "Hm?"},), ("quality",), None)


def _ask(raw: Raw, timeout: float) -> str:
    with serving(lambda request, before: raw) as server:
        client = Client("any", server.url, "NO_KEY_IS_SET", timeout, 0)
        return refused(QuestionFailed, "the server", client.ask, QUESTION, {})


@pytest.mark.parametrize("status", [200, 429])
def test_a_server_that_drips_is_left(status: int) -> None:
    """Each byte comes within the time of a read; the whole answer would take hours."""
    assert "in time" in _ask(Raw(status, b" " * 100_000, pause=0.1), 1.0)


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-A: "])
@pytest.mark.parametrize("piece", [b"H", b"X: y\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_a_server_that_drips_what_comes_before_an_answer_is_left(beginning: bytes, piece: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                connection.sendall(beginning)
                while True:
                    connection.sendall(piece)
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        client = Client("any", f"http://127.0.0.1:{server.getsockname()[1]}/v1", "NO_KEY_IS_SET", 1.0, 0)
        begun = time.monotonic()
        with pytest.raises(QuestionFailed):
            client.ask(QUESTION, {})
        assert time.monotonic() - begun < 10


def _tries(behave: Behaviour, timeout: float) -> int:
    """How often a server is asked that may be asked six times."""
    with serving(behave) as server:
        client = Client("any", server.url, "NO_KEY_IS_SET", timeout, 5)
        refused(QuestionFailed, "the server did not answer in time", client.ask, QUESTION, {})
        return len(server.requests)


def test_the_time_is_that_of_all_tries_together() -> None:
    drips = Raw(body=b" " * 100_000, pause=0.1)
    assert _tries(lambda request, before: drips, 1.0) == 1

    def hangs(request: Any, before: int) -> Raw:
        time.sleep(8)
        return drips

    assert _tries(hangs, 1.0) == 1

    def fails_late(request: Any, before: int) -> Raw:
        time.sleep(1)
        return Raw(500, b"{}", AT_ONCE)

    assert _tries(fails_late, 2.5) <= 3


def test_waiting_for_a_rate_limit_takes_no_time_of_an_answer() -> None:
    def busy(request: Any, before: int) -> Any:
        return {"text": "4"} if before else Raw(429, b"{}", {"retry_after_ms": "3000"})

    with serving(busy) as server:
        assert Client("any", server.url, "NO_KEY_IS_SET", 2.0, 5).ask(QUESTION, {}).texts == ("4",)


def test_an_answer_without_end_is_not_read_to_it() -> None:
    assert "longer than 32 MB" in _ask(Raw(body=b" " * (2 * MAX_ANSWER_BYTES)), 600.0)


@pytest.mark.parametrize(
    "host", ["exa mple", "a..b", "[::1", "host:99999", "host:-1", "host:abc", "x" * 300, "a\nb", "\u200b", "[v1.x]"]
)
def test_an_address_that_no_server_has_is_told(host: str) -> None:
    message = refused(ValueError, "base_url", Client, "any", f"http://{host}/v1", "NO_KEY_IS_SET", 1.0, 0)
    assert "\n" not in message


@pytest.mark.parametrize("count", [int("9" * 400), -1, 10**9, 1.5, "many", [5], {"a": 5}])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_tokens_that_nobody_can_have_counted_are_estimated(name: str, count: Any) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, name: count}
    with serving(lambda request, before: {"text": "4", "usage": usage}) as server:
        answer = Client("any", server.url, "NO_KEY_IS_SET", 60.0, 0).ask(QUESTION, {})
    assert (answer.texts, answer.counted) == (("4",), False)
    assert 0 < answer.tokens_in + answer.tokens_out < 1000
    assert Price(1.0, 1.0).of(answer.tokens_in, answer.tokens_out) < 1
