"""OpenTelemetry's spans of generative models: messages as attributes, as events, or as numbered attributes before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import NO_CALL, call
from dialeval.readers.chats.spans import attributes, is_span, numbered, trace_of


def matches(row: Row) -> bool:
    """A span, or the attributes of one."""
    return is_span(row) or any(str(key).startswith(("gen_ai.", "attributes.gen_ai.")) for key in row)


def turns(row: Row) -> Turns:
    """The conversation of a call; other spans hold no reply."""
    values = attributes(row)
    events = [event for event in as_json(row.get("events")) or [] if isinstance(event, Mapping)]
    for event in events:
        values |= {key: value for key, value in attributes(event).items() if key.startswith("gen_ai.")}
    asked, answered = values.get("gen_ai.input.messages"), values.get("gen_ai.output.messages")
    asked = asked or numbered(values, "gen_ai.prompt") or _of_events(events, asked=True)
    answered = answered or numbered(values, "gen_ai.completion") or _of_events(events, asked=False)
    if not asked or not answered:
        return NO_CALL
    system = as_json(values.get("gen_ai.system_instructions"))
    return call(asked, answered, system=system, trace=trace_of(row), id=values.get("gen_ai.response.id"))


def _of_events(events: list[Any], *, asked: bool) -> list[Any]:
    """The messages that events hold, one each: `gen_ai.user.message`, `gen_ai.choice`."""
    messages = []
    for event in events:
        name = str(event.get("name") or event.get("event_name") or "")
        if not name.startswith("gen_ai.") or not (name.endswith(".message") or name == "gen_ai.choice"):
            continue
        holds = as_json(event.get("body")) or attributes(event)
        holds = holds.get("message", holds) if isinstance(holds, Mapping) else {"content": holds}
        holds = as_json(holds)
        role = "assistant" if name == "gen_ai.choice" else name.split(".")[1]
        if asked is not (name == "gen_ai.choice"):
            messages.append({"role": role, **(holds if isinstance(holds, Mapping) else {"content": holds})})
    return messages
