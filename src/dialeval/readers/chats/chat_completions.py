"""Requests of chat completions with their responses: OpenAI, Azure OpenAI, Anthropic, LiteLLM and other gateways."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import both, call


def matches(row: Row) -> bool:
    """Messages, and beside them what was answered."""
    request, response = both(row)
    if not isinstance(as_json(request.get("messages")), list):
        return False
    if isinstance(response, str):
        return True
    answers = isinstance(response, Mapping) and (response.get("choices") or response.get("type") == "message")
    return bool(answers or (response is not row and isinstance(response, Mapping) and "content" in response))


def turns(row: Row) -> Turns:
    """The messages of the request and the first choice."""
    request, response = both(row)
    answer = {"choices": response["choices"]} if "choices" in response else response
    system = request.get("system") if request is not row or not isinstance(request.get("system"), str) else None
    fields = {"id": row.get("id") or row.get("custom_id"), "facts": row.get("facts")}
    if isinstance(row.get("reference"), str):
        fields["reference"] = row["reference"]
    return call(request["messages"], answer, system=system, **fields)
