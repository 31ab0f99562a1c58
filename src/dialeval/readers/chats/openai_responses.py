"""OpenAI's Responses: what went in and the items that came out, and the items of a stored conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import both, call, messages_from


def matches(row: Row) -> bool:
    """Items that say what they are."""
    _, response = both(row)
    return _are_items(row.get("data")) or (isinstance(response, Mapping) and _are_items(response.get("output")))


def turns(row: Row) -> Turns:
    """The input and the messages among the items; calls of tools and thoughts are no replies."""
    if _are_items(row.get("data")):
        items = messages_from(row["data"], "assistant")
        newest_first = items[0].role == "assistant" and items[-1].role == "user"
        return Turns(items[::-1] if newest_first else items)
    request, response = both(row)
    asked = request.get("input", response.get("input"))
    if asked is None:
        raise ValueError("the response stands without its input; write the input of the request beside it")
    prompt = request.get("instructions") or response.get("instructions")
    return call(asked, response["output"], system=prompt, id=row.get("id") or response.get("id"))


def _are_items(value: Any) -> bool:
    value = as_json(value)
    kinds = ("message", "reasoning", "function_call")
    return isinstance(value, list) and any(isinstance(item, Mapping) and item.get("type") in kinds for item in value)
