"""Amazon Bedrock: Converse's requests with their responses, and the log of invocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns
from dialeval.readers.chats.calls import both, call


def _sides(row: Row) -> tuple[Row, Any]:
    request, response = row.get("input"), row.get("output")
    if isinstance(request, Mapping) and "inputBodyJson" in request and isinstance(response, Mapping):
        return request["inputBodyJson"], response.get("outputBodyJson")
    return both(row)


def matches(row: Row) -> bool:
    """Messages, and an output that holds one."""
    request, response = _sides(row)
    output = response.get("output") if isinstance(response, Mapping) else None
    of_log = request is not row and "inputBodyJson" in (row.get("input") or {})
    return "messages" in request and (of_log or (isinstance(output, Mapping) and "message" in output))


def turns(row: Row) -> Turns:
    """The messages of the request and the one that came back."""
    request, response = _sides(row)
    name = row.get("requestId") or row.get("id")
    answer = response.get("output", response) if isinstance(response, Mapping) else response
    return call(request["messages"], answer, system=request.get("system"), id=name)
