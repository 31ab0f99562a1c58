"""One question to a server that speaks OpenAI's chat completions, through the `openai` client.

The client waits and sends again after rate limits (`Retry-After`), server errors and lost connections. Servers differ
in what they understand: a part of a request that one refuses by name is left out from then on, and the answer says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
import openai

from dialeval.io.files import address_parts, parse_json
from dialeval.io.harmless import parts_of, shortened, without_keys, without_secrets
from dialeval.llm.protocol import Question
from dialeval.registry.interface import CannotGoOn

#: What can be left out of a request, and the words by which a refusal is known to be about it.
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "response_format": ("response_format", "json_schema", "structured"),
    "logprobs": ("logprobs",),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "n": ("'n'", '"n"', "`n`", "n > 1", "n must"),
    # Not the bare name: complaints about the length of the context hold that as well.
    "max_tokens": ("max_completion_tokens",),
    "system": ("system role", "role 'system'", "role: system", '"system"', "'system'"),
}
#: What is read of a complaint, and what is shown of it.
_LONGEST_COMPLAINT, _LONGEST_MESSAGE = 20_000, 200
_LATE = "the server did not answer in time"
#: Of an answer; many samples with the likeliest tokens at every place take a few.
MAX_ANSWER_BYTES = 32 * 2**20
#: Of its texts together, in characters.
_LONGEST_TEXT = 1_000_000
#: The client does not check types, so an answer of another shape may fail anywhere.
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


Clean = Callable[[str], str]

#: What servers say where an account has no credit left.
_NO_CREDIT = "insufficient_quota"


class QuestionFailed(Exception):
    """This question has no answer; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What a server answered: one text or several samples, and what is known about them."""

    texts: tuple[str, ...]
    #: Of the first text, if the server gives them: each token with the likeliest ones at its place.
    logprobs: tuple[Mapping[str, Any], ...] = ()
    refusal: str | None = None
    #: Why the model stopped; `length` is an answer cut off.
    finish: str = ""
    served: str = ""
    fingerprint: str = ""
    #: Parts of the request that the server did not accept.
    without: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    #: False where the server did not count the tokens and they are estimated.
    counted: bool = True
    calls: int = 1
    seconds: float = 0.0
    cost: float = 0.0

    def to_json(self) -> str:
        """The answer as text for the cache."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The answer that `to_json` made a text of."""
        read = parse_json(text)
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in read.items()
        }
        return cls(**fields)


class Client:
    """A model behind an address. The key is read from the environment and leaves this object in requests only."""

    def __init__(self, model: str, base_url: str | None, key_variable: str, timeout: float, retries: int) -> None:
        self.model = model
        key = (os.environ.get(key_variable) or "").strip()
        address = base_url or os.environ.get("OPENAI_BASE_URL")
        if not key and not address:
            raise ValueError(f"{key_variable} is not set; set it, or name your own server with base_url")
        address = address or "https://api.openai.com/v1"
        try:
            parts = address_parts(address)
            httpx.URL(address)
        except (ValueError, httpx.InvalidURL):
            raise ValueError("base_url has a host or port that no server can have; write http://host:port/v1") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url is not an address; write it as http://host:port/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError(f"base_url must hold no key and no query; put the key into {key_variable}")
        self.host = "local" if parts.hostname in ("localhost", "127.0.0.1", "::1") else parts.hostname
        if not key.isprintable() or not key.isascii():
            raise ValueError(f"{key_variable} holds a line break or another character that no key has; set it again")
        self._secrets = (key,)
        # A server of one's own needs no key, but the client does.
        # Rows go to the server that was named, and to no other that it names.
        self._clock = _Clock(timeout)
        hooks: dict[str, Any] = {"request": [self._clock.begin], "response": [self._clock.read, _no_use_in_waiting]}
        http = openai.DefaultHttpxClient(event_hooks=hooks, timeout=timeout, follow_redirects=False)
        for transport in filter(None, (http._transport, *http._mounts.values())):  # those of proxies, too
            pool: Any = transport._pool  # type: ignore[attr-defined]  # the client offers no other way to its reads
            pool._network_backend = _Timed(pool._network_backend, self._clock)
        self._openai = openai.OpenAI(
            api_key=key or "none", base_url=address, timeout=timeout, max_retries=retries, http_client=http
        )
        self._left_out: frozenset[str] = frozenset()

    def ask(self, question: Question, options: Mapping[str, Any]) -> Answer:
        """The answer, with as many samples as `n` says however few the server gives at once.

        Raises `QuestionFailed` where this question has no answer, `CannotGoOn` where no question will have one.
        """
        answer = self._ask(question, options)
        while (missing := int(options.get("n", 1)) - len(answer.texts)) > 0:
            # With the same seed the same sample would come again.
            further = {"n": missing, "seed": int(options.get("seed", 0)) + len(answer.texts)}
            answer = _joined(answer, self._ask(question, {**options, **further}))
        return answer

    def _ask(self, question: Question, options: Mapping[str, Any]) -> Answer:
        begun, clean = time.monotonic(), self._cleaner(question)
        self._clock.wind()
        while True:
            left_out = self._left_out
            request = _request(question, options, left_out)
            try:
                completion = self._openai.chat.completions.create(model=self.model, **request)
                answer = self._answer(completion, question, clean)
            except openai.APIStatusError as error:
                if error.status_code in (400, 422) and self._leave_out(error, request, left_out):
                    continue
                raise self._failure(error, clean) from None
            except _TooMuch as error:
                raise QuestionFailed(str(error)) from None
            except openai.APITimeoutError:
                raise QuestionFailed(_LATE) from None
            except openai.APIConnectionError as error:
                raise QuestionFailed(f"the connection failed ({type(error.__cause__ or error).__name__})") from None
            except (*_MALFORMED, openai.OpenAIError):
                raise QuestionFailed("the server's answer is not a chat completion") from None
            return replace(answer, without=tuple(sorted(left_out)), seconds=time.monotonic() - begun)

    def _answer(self, completion: Any, question: Question, clean: Clean) -> Answer:
        choices = sorted(completion.choices, key=lambda choice: choice.index)
        first, usage = choices[0], completion.usage
        said = [choice.message.content or "" for choice in choices]
        if (length := sum(map(len, said))) > _LONGEST_TEXT:
            raise QuestionFailed(f"the answer is a text of {length:,} characters")
        texts = tuple(map(clean, said))
        counts: tuple[int, ...] = (usage.prompt_tokens, usage.completion_tokens or 0) if usage is not None else ()
        # A few numbers of hundreds of digits would fit into no sum of costs.
        counted = bool(counts) and all(type(n) is int and 0 <= n < 10**9 for n in counts) and counts[0] > 0
        refusal = getattr(first.message, "refusal", None)
        if refusal is None and first.finish_reason == "content_filter":
            refusal = "a content filter stopped it"
        tokens = first.logprobs.content if first.logprobs is not None else None
        return Answer(
            texts,
            logprobs=tuple(
                {**_token(token, clean), "top_logprobs": [_token(top, clean) for top in token.top_logprobs]}
                for token in tokens or ()
            ),
            refusal=None if refusal is None else clean(str(refusal)),
            finish=clean(str(first.finish_reason or "")),
            served=_name(str(completion.model or ""), clean),
            fingerprint=_name(str(completion.system_fingerprint or ""), clean),
            tokens_in=counts[0] if counted else likely_tokens(question),
            tokens_out=counts[1] if counted else sum(map(_likely, texts)),
            counted=counted,
        )

    def _leave_out(self, error: openai.APIStatusError, request: Mapping[str, Any], left_out: frozenset[str]) -> bool:
        """Whether a refusal names something that can be left out; then it is left out of all further requests."""
        complaint, still = _complaint(error).lower(), ({*request, "system"} & set(_OPTIONAL)) - left_out
        named = {part for part in still if any(word in complaint for word in _OPTIONAL[part])}
        if (parameter := str(getattr(error, "param", None))) in still:
            named = {parameter}
        self._left_out |= named
        return bool(named)

    def _failure(self, error: openai.APIStatusError, clean: Clean) -> Exception:
        def shown(text: str) -> str:
            return shortened(clean(text[:_LONGEST_COMPLAINT]), _LONGEST_MESSAGE)

        status, message = error.status_code, shown(_complaint(error))
        if 300 <= status < 400:
            to = shown(error.response.headers.get("location") or "nowhere")
            return CannotGoOn(f"the server sends the rows on to {to}; if that is right, name it with base_url")
        if status in (401, 404):
            return CannotGoOn(f"the server refuses ({status}: {message}); check model, base_url and the key")
        if status == 402 or (status == 429 and _NO_CREDIT in error.response.text):
            return CannotGoOn(f"the server refuses ({status}: {message}); the account has no credit left")
        return QuestionFailed(f"the server answered {status}: {message}")

    def _cleaner(self, question: Question) -> Clean:
        """Makes what a server says one that may be shown: without the key that some quote, or what looks like one.

        What it was sent may be shown; lone surrogates can be held by no file.
        """
        known = parts_of(" ".join([self.model, *(message["content"] for message in question.messages)]))

        def clean(text: str) -> str:
            if len(text) > _LONGEST_TEXT:
                raise QuestionFailed(f"the answer holds a text of {len(text):,} characters")
            return without_secrets(without_keys(text, known), self._secrets).encode("utf-8", errors="replace").decode()

        return clean


def _name(text: str, clean: Clean) -> str:
    """What a server calls a model. One that looks like a key is told from others by a few digits."""
    shown = clean(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return shown if shown == text else f"{shown}{digest[:4]}"


def _token(token: Any, clean: Clean) -> dict[str, Any]:
    logprob = float(token.logprob)
    if math.isnan(logprob):
        raise ValueError("a logarithm that is not a number")
    return {"token": clean(token.token), "logprob": min(logprob, 0.0)}


class _TooMuch(BaseException):
    """An answer that comes to no end. No `Exception`, which the client takes for a lost connection and asks again."""


class _Clock(threading.local):
    """The time for an answer, of each thread: for all tries together, but without the waiting between them.

    The client's own limit is on every piece of every try alone.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left = seconds
        self.begun: float | None = None

    def wind(self) -> None:
        """Another question."""
        self.left, self.begun = self.seconds, None

    def begin(self, request: httpx.Request) -> None:
        """A try begins, with what the ones before it left."""
        self._stop()
        if self.left <= 0:
            raise _TooMuch(_LATE)
        self.begun = time.monotonic()
        request.extensions = {**request.extensions, "timeout": httpx.Timeout(self.left).as_dict()}

    def read(self, response: httpx.Response) -> None:
        """Read an answer to its end, which must come in time."""
        pieces, size = [], 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise _TooMuch(f"the server's answer is longer than {MAX_ANSWER_BYTES // 2**20} MB")
        self._stop()
        response._content = b"".join(pieces)  # as `Response.read` keeps it, so that everybody finds it read

    def remaining(self) -> float:
        """Seconds that are left of the try; one without any ends here."""
        seconds = math.inf if self.begun is None else self.begun + self.left - time.monotonic()
        if seconds <= 0:
            raise _TooMuch(_LATE)
        return seconds

    def _stop(self) -> None:
        self.left -= 0.0 if self.begun is None else time.monotonic() - self.begun
        self.begun = None


class _Timed:
    """The client's network, or a connection of it: no read goes past the time, be it of a status line or a header."""

    def __init__(self, inner: Any, clock: _Clock) -> None:
        self._inner, self._clock = inner, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def connect_tcp(self, *where: Any, **options: Any) -> Any:
        """A connection."""
        return _Timed(self._inner.connect_tcp(*where, **options), self._clock)

    def start_tls(self, *how: Any, **options: Any) -> Any:
        """The same connection, from now on with TLS."""
        return _Timed(self._inner.start_tls(*how, **options), self._clock)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come."""
        left = self._clock.remaining()
        data: bytes = self._inner.read(max_bytes, timeout=left if timeout is None else min(timeout, left))
        return data


def _no_use_in_waiting(response: Any) -> None:
    """Tell the client not to ask again where no credit is left: the status is that of too many requests at once."""
    if response.status_code == 429:
        response.read()
        if _NO_CREDIT in response.text:
            response.headers["x-should-retry"] = "false"


def likely_tokens(question: Question) -> int:
    """About how many tokens a question has: four bytes each, and eight around every message."""
    return sum(_likely(message["content"]) + 8 for message in question.messages)


def _likely(text: str) -> int:
    return math.ceil(len(text.encode()) / 4)


def _joined(first: Answer, other: Answer) -> Answer:
    """The samples of two requests as one answer."""
    sums = {name: getattr(first, name) + getattr(other, name) for name in ("texts", "tokens_in", "tokens_out", "calls")}
    seconds, counted = first.seconds + other.seconds, first.counted and other.counted
    return replace(other, **sums, seconds=seconds, counted=counted, refusal=first.refusal or other.refusal)


def _request(question: Question, options: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    request: dict[str, Any] = {name: value for name, value in options.items() if name not in left_out}
    if "logprobs" in request:
        request |= {"logprobs": True, "top_logprobs": options["logprobs"]}
    if "max_tokens" in left_out:
        # Reasoning models know the limit by this name alone.
        request["max_completion_tokens"] = options["max_tokens"]
    if question.schema is not None and "response_format" not in left_out:
        shape = {"name": "scores", "strict": True, "schema": question.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": shape}
    messages = list(question.messages)
    if "system" in left_out:
        messages = [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}]
    return {**request, "messages": messages}


def _complaint(error: openai.APIStatusError) -> str:
    """What a server says is wrong, without the request that some of them send back with it."""
    body = error.body
    if not isinstance(body, dict):
        return str(body or error.message)
    detail = body.get("detail")
    if isinstance(detail, list):
        detail = "; ".join(f"{fault.get('loc')}: {fault.get('msg')}" for fault in detail if isinstance(fault, dict))
    return str(body.get("message") or detail or f"no message, code {body.get('code')}")
