"""What goes into a model and comes out, as gateways, traces and evaluations log it: the last message is the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.messages import Message, Row, Turns, as_json, read_content, read_message, role_of

#: Under which keys a log holds messages or their text, the surest first.
_HOLDS = (
    "messages message choices generations output outputs input inputs kwargs user_input question query prompt answer "
    "response completion result text content value"
).split()
#: LangChain's types of messages.
_LANGCHAIN = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_HISTORY = ("chat_history", "history")
#: Items beside messages that agents log.
_NO_MESSAGE = ("call", "output", "result", "reasoning", "approval", "list_tools")


def call(asked: Any, answered: Any, *, system: Any = None, trace: Any = "", **fields: Any) -> Turns:
    """The conversation up to one reply of a model, whatever shape its input and output have."""
    before, after = messages_from(asked, "user"), messages_from(answered, "assistant")
    if any(role_of(message.role) == "user" for message in after):  # graphs give the whole conversation back
        before = []
    prompts = [Message("system", read_content(system)[0])] if system else []
    return Turns([*prompts, *before, *after], fields, last_only=True, trace=str(trace or ""))


NO_CALL = Turns((), last_only=True)


def messages_from(value: Any, role: str) -> list[Message]:
    """The messages in a part of a log; a text alone is said by `role`. ValueError where text would be missed."""
    value = as_json(value)
    if value is None or isinstance(value, str):
        return [Message(role, value)] if value else []
    if isinstance(value, list | tuple):
        if len(value) and isinstance(value[0], list | tuple):  # a batch, or several candidates: the first counts
            return messages_from(value[0], role)
        return [message for part in value for message in messages_from(part, role)]
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r:.40} is no message and no text; name them: {_WAY}")
    if (message := _message(value)) is not None:
        return [message]
    if not value:
        return []
    for key in _HOLDS:
        if key in value and value[key] is not None:
            inner = value[key]
            inner = inner[:1] if key == "choices" and isinstance(inner, list) else inner
            history = next((value[name] for name in _HISTORY if value.get(name)), None)
            return [*messages_from(history, "user"), *messages_from(inner, role)]
    if len(value) == 1:
        return messages_from(next(iter(value.values())), role)
    raise ValueError(f"its keys {', '.join(map(str, list(value)[:10]))} tell no message; name them: {_WAY}")


_WAY = "--columns response=PATH,message=PATH, such as outputs.answer, or messages=PATH"


def _message(raw: Row) -> Message | None:
    """One message of the kinds that models' libraries have; None where an object holds messages rather than is one."""
    if (message := langchain_message(raw)) is not None:
        return message
    kind = str(raw.get("type", ""))
    if kind != "message" and any(word in kind for word in _NO_MESSAGE) and "choices" not in raw:
        return Message("tool", None)
    flat = {str(key).removeprefix("message."): cell for key, cell in raw.items()}
    who = flat.get("role")
    if not isinstance(who, str):
        return None
    what = next((flat[key] for key in ("content", "parts", "contents", "text") if flat.get(key)), None)
    return read_message(flat, who, what)


def langchain_message(raw: Row) -> Message | None:
    """A message of LangChain: as it was dumped (`lc`, `kwargs`), `type` and `data`, or flat; None for another kind."""
    holds = next((raw[key] for key in ("kwargs", "data") if isinstance(raw.get(key), Mapping)), raw)
    named = raw.get("id") if raw.get("lc") else None
    kind = str(holds.get("type") or raw.get("type") or "")
    if kind not in _LANGCHAIN:  # AIMessageChunk, or the class whose message it is
        kind = str(named[-1] if isinstance(named, list) else kind).partition("Message")[0].lower()
    role = _LANGCHAIN.get(kind)
    if role is None or "content" not in holds:
        return None
    return read_message(holds, role, holds["content"])


def both(row: Row) -> tuple[Row, Any]:
    """The request and the response in a row: beside each other, or under their names and `body`."""
    request = _inner(next((row[key] for key in ("request", "body", "kwargs", "invocation") if row.get(key)), row))
    response = next((row[key] for key in ("response", "completion", "result") if row.get(key)), row)
    request = request if isinstance(request, Mapping) else row
    return request, _inner(response)


def _inner(value: Any) -> Any:
    value = as_json(value)
    return _inner(value["body"]) if isinstance(value, Mapping) and value.get("body") else value
