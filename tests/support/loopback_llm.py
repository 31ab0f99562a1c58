"""A server of our own that speaks OpenAI's chat completions, and misbehaves on request."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Given the request and how often this very request was seen before: fields of the completion, or `Raw`.
Behaviour = Callable[[dict[str, Any], int], "dict[str, Any] | Raw"]
KEY = "sk-secret-0123456789abcdef"
#: Asks the client to repeat a request without waiting.
AT_ONCE = {"retry_after_ms": "1"}


@dataclass(frozen=True)
class Raw:
    """An answer below the level of completions; with `cut`, the connection ends after so many bytes."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    #: Seconds between two bytes of the body.
    pause: float = 0.0


def refusal(status: int, message: str, **headers: str) -> Raw:
    return Raw(status, json.dumps({"error": {"message": message}}).encode(), headers)


def no_credit(**headers: str) -> Raw:
    """What servers say where an account has no credit left: the message itself has other words."""
    error = {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"}
    return Raw(429, json.dumps({"error": error}).encode(), headers)


@dataclass
class Loopback:
    url: str
    behave: Behaviour
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.requests]


def fenced(request: dict[str, Any]) -> list[str]:
    """The texts between the marks of a prompt, in order."""
    prompt = request["messages"][-1]["content"]
    return [text for _, text in re.findall(r"<(text-[0-9a-f]{12})>\n(.*?)\n</\1>", prompt, re.DOTALL)]


def scores(*values: float, names: str = "appropriateness content grammar relevance") -> str:
    return json.dumps(dict(zip(names.split(), values, strict=True)))


def longer(request: dict[str, Any], before: int) -> dict[str, Any]:
    """Of two replies the longer one is the better one."""
    first, second = fenced(request)[-2:]
    return {"text": "A" if len(first) > len(second) else "B"}


def number_in(request: dict[str, Any]) -> int:
    """The number that a test wrote into the reply, which is fenced last."""
    return int(re.findall(r"\d+", fenced(request)[-1])[-1])


def by_number(request: dict[str, Any], before: int) -> dict[str, Any]:
    """A rating that follows from the number in the reply."""
    return {"text": scores(number_in(request) % 6, 1, 2, 3)}


@contextmanager
def serving(behave: Behaviour) -> Iterator[Loopback]:
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet, or every answer waits for an acknowledgement.
        wbufsize = -1

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                request = json.loads(text)
                loopback.requests.append(request)
                loopback.authorizations.add(self.headers.get("Authorization"))
                before = seen[text]
                seen[text] += 1
            found = loopback.behave(request, before)
            with suppress(OSError):  # the client may have gone
                self.answer(found if isinstance(found, Raw) else Raw(body=completion(request, found)))

        def answer(self, raw: Raw) -> None:
            self.send_response(raw.status)
            for name, value in {"Content-Type": "application/json", **raw.headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(raw.body)))
            self.end_headers()
            if raw.pause:
                for place in range(len(raw.body)):
                    self.wfile.write(raw.body[place : place + 1])
                    self.wfile.flush()
                    time.sleep(raw.pause)
            else:
                self.wfile.write(raw.body[: raw.cut])
            self.close_connection = raw.cut is not None

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        loopback = Loopback(f"http://127.0.0.1:{server.server_address[1]}/v1", behave)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield loopback
        finally:
            server.shutdown()


def completion(request: dict[str, Any], fields: dict[str, Any]) -> bytes:
    texts = fields.get("texts", [fields.get("text", "")])
    messages = [{"role": "assistant", "content": text, "refusal": fields.get("refusal")} for text in texts]
    alike = {"finish_reason": fields.get("finish", "stop"), "logprobs": fields.get("logprobs")}
    usage = {"prompt_tokens": 100, "completion_tokens": 10 * len(texts), "total_tokens": 100 + 10 * len(texts)}
    whole = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "system_fingerprint": fields.get("fingerprint", "fp_test"), "usage": fields.get("usage", usage),
        "choices": [{"index": place, "message": message, **alike} for place, message in enumerate(messages)],
    }  # fmt: skip
    return json.dumps(whole).encode()
