"""A server of our own that speaks OpenAI's chat completions, and misbehaves on request."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Given the request and how often this very request was seen before: fields of the completion, or `Raw`.
Behaviour = Callable[[dict[str, Any], int], "dict[str, Any] | Raw"]


@dataclass(frozen=True)
class Raw:
    """An answer below the level of completions."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    #: Cut the connection after so many bytes, or say nothing for so many seconds.
    cut: int | None = None
    silence: float = 0.0


def refusal(status: int, message: str, **headers: str) -> Raw:
    return Raw(status, json.dumps({"error": {"message": message}}).encode(), headers)


@dataclass
class Loopback:
    """What the server saw."""

    url: str
    behave: Behaviour
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)
    most_at_once: int = 0

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.requests]


def fenced(request: dict[str, Any]) -> list[str]:
    """The texts between the marks of a prompt, in order."""
    return re.findall(r"<(text-[0-9a-f]{12})>\n(.*?)\n</\1>", request["messages"][-1]["content"], re.DOTALL)


def reply_of(request: dict[str, Any]) -> str:
    """The text to be judged: what is fenced last."""
    return fenced(request)[-1][1]


def scores(*values: float, names: str = "appropriateness content grammar relevance") -> str:
    return json.dumps(dict(zip(names.split(), values, strict=True)))


#: Asks the client to repeat a request without waiting.
AT_ONCE = {"retry_after_ms": "1"}


def by_number(request: dict[str, Any], before: int) -> dict[str, Any]:
    """A rating that follows from the number in the reply."""
    return {"text": scores(number_in(request) % 6, 1, 2, 3)}


def number_in(request: dict[str, Any]) -> int:
    """The number that a test wrote into the reply."""
    return int(re.findall(r"\d+", reply_of(request))[-1])


@contextmanager
def serving(behave: Behaviour) -> Iterator[Loopback]:
    seen: Counter[str] = Counter()
    lock = threading.Lock()
    at_once = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet, or every answer waits for an acknowledgement.
        wbufsize = -1

        def do_POST(self) -> None:
            nonlocal at_once
            text = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(text)
            with lock:
                loopback.requests.append(request)
                loopback.authorizations.add(self.headers.get("Authorization"))
                before = seen[text.decode()]
                seen[text.decode()] += 1
                at_once += 1
                loopback.most_at_once = max(loopback.most_at_once, at_once)
            try:
                self.answer(loopback.behave(request, before), request)
            except OSError:
                pass  # the client has gone, as it may
            finally:
                with lock:
                    at_once -= 1

        def answer(self, found: dict[str, Any] | Raw, request: dict[str, Any]) -> None:
            raw = found if isinstance(found, Raw) else Raw(body=json.dumps(completion(request, found)).encode())
            if raw.silence:
                time.sleep(raw.silence)
            self.send_response(raw.status)
            for name, value in {"Content-Type": "application/json", **raw.headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(raw.body)))
            self.end_headers()
            self.wfile.write(raw.body if raw.cut is None else raw.body[: raw.cut])
            if raw.cut is not None:
                self.close_connection = True

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    loopback = Loopback(f"http://127.0.0.1:{server.server_address[1]}/v1", behave)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield loopback
    finally:
        server.shutdown()
        server.server_close()


def completion(request: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """A completion as the API defines it; `texts`, `refusal`, `logprobs`, `model`, `fingerprint`, `usage` by choice."""
    texts = fields.get("texts", [fields.get("text", "")])
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": fields.get("model", request["model"]),
        "system_fingerprint": fields.get("fingerprint", "fp_test"),
        "choices": [
            {
                "index": place,
                "finish_reason": fields.get("finish", "stop"),
                "message": {"role": "assistant", "content": text, "refusal": fields.get("refusal")},
                "logprobs": fields.get("logprobs"),
            }
            for place, text in enumerate(texts)
        ],
        "usage": fields.get(
            "usage",
            {"prompt_tokens": 100, "completion_tokens": 10 * len(texts), "total_tokens": 100 + 10 * len(texts)},
        ),
    }
