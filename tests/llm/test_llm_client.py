"""A server's answer has a bound, in time and in bytes, however it comes."""

from __future__ import annotations

import pytest

pytest.importorskip("openai")

from dialeval.llm.client import MAX_ANSWER_BYTES, Client, QuestionFailed
from dialeval.llm.protocol import Question
from loopback_llm import Raw, serving
from refusals import refused

QUESTION = Question(({"role": "user", "content": "Hm?"},), ("quality",), None)


def _ask(raw: Raw, timeout: float) -> str:
    with serving(lambda request, before: raw) as server:
        client = Client("any", server.url, "NO_KEY_IS_SET", timeout, 0)
        return refused(QuestionFailed, "the server", client.ask, QUESTION, {})


def test_a_server_that_drips_is_left() -> None:
    # Each byte comes within the time of a read; the whole answer would take hours.
    assert _ask(Raw(body=b" " * 100_000, pause=0.1), 1.0) == "the server did not answer in time"


def test_a_server_that_drips_a_refusal_is_left_too() -> None:
    assert _ask(Raw(429, b" " * 100_000, pause=0.1), 1.0) == "the server did not answer in time"


def test_an_answer_without_end_is_not_read_to_it() -> None:
    assert "longer than 32 MB" in _ask(Raw(body=b" " * (2 * MAX_ANSWER_BYTES)), 600.0)
