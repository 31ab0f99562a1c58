"""One request to a server that speaks OpenAI's chat completions, through the `openai` client, and what came of it.

Servers differ in what they understand. What one refuses by name is left out from then on, and said in the signature.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import openai

from dialeval.exchange import one_line
from dialeval.llm.answers import Answer
from dialeval.llm.questions import Question
from dialeval.llm.spending import likely_input, likely_tokens
from dialeval.metric import CannotGoOn

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
_LONGEST_MESSAGE = 200
#: The client checks no types, so an answer of another shape may fail anywhere.
_NO_COMPLETION = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
#: More tokens than any request has.
_MOST_TOKENS = 10**9
#: Longer than this nobody waits because a server says so.
_LONGEST_WAIT = 3600.0

#: What may follow the name of a model without making it another one: dates, versions of a date, formats.
_SUFFIX = re.compile(r"([-_.](\d{4,8}|\d{4}(-\d\d){1,2}|latest|preview|q\d\w*|gguf|awq|gptq|fp8|bf16|fp16))*")


class ServerRefuses(CannotGoOn):
    """The server will answer nothing at all: no such model, no such key, no such address."""


class Unusable(Exception):
    """The server will not answer this question, however often it is asked; the message says why."""


class Fault(Exception):
    """Something failed that may work the next time."""

    def __init__(self, why: str, *, after: float | None = None, maybe_billed: bool = False) -> None:
        super().__init__(why)
        #: How long the server asks to be left alone.
        self.after = after
        #: The request arrived, as far as anybody knows, and may have been worked on.
        self.maybe_billed = maybe_billed


class Server:
    """A model behind an address. The key is read from the environment and leaves this object in requests only."""

    def __init__(self, model: str, base_url: str | None, key_variable: str, timeout: float) -> None:
        self.model = model
        key = os.environ.get(key_variable) or ""
        if not key and base_url is None and not os.environ.get("OPENAI_BASE_URL"):
            raise ValueError(
                f"{key_variable} is not set; put the key into the environment, or name your own server with base_url"
            )
        address = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url is no address; write it as http://host:port/v1")
        if parts.username or parts.password or parts.query:
            # An address is shown and kept; what opens doors has no place in it.
            raise ValueError(f"base_url must hold no key and no query; put the key into {key_variable}")
        self.host = "local" if parts.hostname in ("localhost", "127.0.0.1", "::1") else parts.hostname
        self._secrets = [text for text in (key, key.strip()) if len(text) >= 4]
        # Retries are ours: each has to fit the pace and the budget.
        self._connection: dict[str, Any] = {"base_url": address, "timeout": timeout, "max_retries": 0}
        self._key_variable = key_variable
        self._client = self._connected()
        self._without: set[str] = set()
        self._lock = threading.Lock()

    def hang_up(self) -> None:
        """Break off what is under way; who asks again later is connected anew."""
        self._client.close()
        self._client = self._connected()

    def _connected(self) -> openai.OpenAI:
        # A server of one's own asks for no key, but the client does.
        return openai.OpenAI(api_key=os.environ.get(self._key_variable) or "none", **self._connection)

    def ask(self, question: Question, options: Mapping[str, Any]) -> Answer:
        """Ask once. `Fault` may go away, `Unusable` is about this question, `ServerRefuses` about all."""
        calls = 0
        begun = time.monotonic()
        while True:
            without = frozenset(self._without)
            calls += 1
            try:
                answer = self._once(question, options, without)
            except openai.APIStatusError as error:
                if error.status_code in (400, 422) and self._leave_out(error, question, options, without):
                    continue
                raise self._fault(error) from None
            except openai.APITimeoutError:
                raise Fault("the server did not answer in time", maybe_billed=True) from None
            except openai.APIConnectionError as error:
                raise self._no_connection(error) from None
            except (*_NO_COMPLETION, openai.OpenAIError):
                raise Fault("the server's answer is no chat completion", maybe_billed=True) from None
            return Answer(**{**answer, "calls": calls, "seconds": time.monotonic() - begun})

    def _once(self, question: Question, options: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
        completion = self._client.chat.completions.create(model=self.model, **_request(question, options, without))
        choices = sorted(completion.choices, key=lambda choice: choice.index)
        first = choices[0]
        clean, usage = self._clean, completion.usage
        texts = tuple(clean(choice.message.content or "") for choice in choices)
        counted = usage is not None and bool(usage.prompt_tokens)
        read, said = (_count(usage.prompt_tokens), _count(usage.completion_tokens)) if counted else (0, 0)
        tokens = first.logprobs.content if first.logprobs is not None else None
        refusal = getattr(first.message, "refusal", None)
        if refusal is None and first.finish_reason == "content_filter":
            refusal = "a content filter stopped it"
        return {
            "texts": texts,
            "logprobs": None
            if tokens is None
            else [
                {
                    "token": clean(one.token),
                    "logprob": _logprob(one),
                    "top_logprobs": [{"token": clean(top.token), "logprob": _logprob(top)} for top in one.top_logprobs],
                }
                for one in tokens
            ],
            "refusal": None if refusal is None else clean(str(refusal)),
            "finish": str(first.finish_reason or ""),
            "served": clean(str(completion.model or "")),
            "fingerprint": clean(str(completion.system_fingerprint or "")),
            "without": tuple(sorted(without & _asked_for(question, options))),
            "tokens_in": read if counted else likely_input(question),
            "tokens_out": said if counted else sum(map(likely_tokens, texts)),
            "counted": counted,
        }

    def _leave_out(
        self, error: openai.APIStatusError, question: Question, options: Mapping[str, Any], without: frozenset[str]
    ) -> bool:
        """Whether a refusal names something that can be left out; it is left out of all further requests."""
        complaint = _complaint(error).lower()
        still = _asked_for(question, options) - without
        named = {part for part in still if any(word in complaint for word in _OPTIONAL[part])}
        if (parameter := str(getattr(error, "param", None))) in still:
            named = {parameter}
        with self._lock:
            # Another thread may have heard the same in the meantime.
            known = bool(self._without - without)
            self._without |= named
        return bool(named) or known

    def _fault(self, error: openai.APIStatusError) -> Exception:
        status, message = error.status_code, self.message_of(error)
        if status in (401, 404):
            return ServerRefuses(
                f"the server refuses ({status}: {message}); check model, base_url and the key's variable"
            )
        if status in (408, 409, 429) or status >= 500:
            if "insufficient_quota" in message:
                return ServerRefuses(f"the server refuses ({status}: {message}); the account has no credit left")
            return Fault(f"the server answered {status}: {message}", after=_retry_after(error.response.headers))
        return Unusable(f"the server refuses the question ({status}: {message})")

    def _no_connection(self, error: openai.APIConnectionError) -> Exception:
        cause = error.__cause__
        why = type(cause).__name__ if cause is not None else "no connection"
        return Fault(f"the connection failed ({why})", maybe_billed="Connect" not in why)

    def message_of(self, error: openai.APIStatusError) -> str:
        """A server's message, short, on one line, and without the key that some servers quote."""
        return one_line(self._clean(_complaint(error)))[:_LONGEST_MESSAGE]

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        # JSON can say half a character, and no file can hold it.
        return text.encode("utf-8", errors="replace").decode()


def same_model(asked: str, served: str) -> bool:
    """Whether a server's name for its model may stand for the one that was asked for.

    Folders, revisions, providers, dates and formats are added or left out as servers please; sizes are not.
    """
    (name, tag), (other, other_tag) = _parts(asked), _parts(served)
    short, long = sorted((name, other), key=len)
    rest = long.removeprefix(short)
    return not served.strip() or (
        long.startswith(short) and _SUFFIX.fullmatch(rest) is not None and (tag == other_tag or not (tag and other_tag))
    )


def _parts(model: str) -> tuple[str, str]:
    """The bare name, and the tag behind a colon."""
    name, _, tag = model.strip().lower().partition("@")[0].rstrip("/").rpartition("/")[2].partition(":")
    return name.removesuffix(".gguf"), tag


def _request(question: Question, options: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    request: dict[str, Any] = {name: value for name, value in options.items() if name not in without}
    if "logprobs" in request:
        request |= {"logprobs": True, "top_logprobs": options["logprobs"]}
    if "max_tokens" in without:
        # Models that think before they answer know the limit by this name alone.
        request["max_completion_tokens"] = options["max_tokens"]
    if question.schema is not None and "response_format" not in without:
        shape = {"name": "scores", "strict": True, "schema": question.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": shape}
    messages = list(question.messages)
    if "system" in without:
        messages = [{"role": "user", "content": "\n\n".join(one["content"] for one in messages)}]
    return {**request, "messages": messages}


def _logprob(one: Any) -> float:
    """The logarithm of a probability: a number that is not above nothing."""
    found = float(one.logprob)
    if math.isnan(found):
        raise ValueError("no logarithm of a probability")
    return min(found, 0.0)


def _count(tokens: Any) -> int:
    """A number of tokens that can be one."""
    found = int(tokens or 0)
    if not 0 <= found <= _MOST_TOKENS:
        raise ValueError("no number of tokens")
    return found


def _asked_for(question: Question, options: Mapping[str, Any]) -> set[str]:
    """The parts of a request that could be left out and were wanted."""
    schema = {"response_format"} if question.schema is not None else set()
    return {name for name in options if name in _OPTIONAL} | schema | {"system"}


def _complaint(error: openai.APIStatusError) -> str:
    """What a server says is wrong, without the request that some of them send back with it."""
    body = error.body
    if not isinstance(body, dict):
        return str(body or error.message)
    detail = body.get("detail")
    if isinstance(detail, list):
        detail = "; ".join(f"{one.get('loc')}: {one.get('msg')}" for one in detail if isinstance(one, dict))
    return str(body.get("message") or detail or f"no message, code {body.get('code')}")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers[name]) * unit), _LONGEST_WAIT)
        except (KeyError, ValueError):
            continue
    return None
