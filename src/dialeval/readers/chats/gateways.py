"""Requests to a model with their responses, as its provider, a gateway or somebody's own log keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.calls import both, call, messages_from
from dialeval.readers.chats.messages import Product, Row, Turns, as_json, holds_objects

# Chat completions: OpenAI, Azure OpenAI, Anthropic, LiteLLM and other gateways.


def _of_chat_completions(row: Row) -> bool:
    request, response = both(row)
    if not isinstance(as_json(request.get("messages")), list):
        return False
    if isinstance(response, str):
        return True
    answers = isinstance(response, Mapping) and (response.get("choices") or response.get("type") == "message")
    return bool(answers or (response is not row and isinstance(response, Mapping) and "content" in response))


def _first_choice(row: Row) -> Turns:
    request, response = both(row)
    answer = {"choices": response["choices"]} if "choices" in response else response
    system = request.get("system") if request is not row or not isinstance(request.get("system"), str) else None
    fields = {"id": row.get("id") or row.get("custom_id"), "facts": row.get("facts")}
    if isinstance(row.get("reference"), str):
        fields["reference"] = row["reference"]
    return call(request["messages"], answer, system=system, **fields)


CHAT_COMPLETIONS = Product(_of_chat_completions, _first_choice)


# OpenAI's Responses: what went in and the items that came out, and the items of a stored conversation.


def _of_responses(row: Row) -> bool:
    _, response = both(row)
    return _are_items(row.get("data")) or (isinstance(response, Mapping) and _are_items(response.get("output")))


def _messages_among_items(row: Row) -> Turns:
    """Calls of tools and thoughts are no replies."""
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


OPENAI_RESPONSES = Product(_of_responses, _messages_among_items)


# Amazon Bedrock: Converse's requests with their responses, and the log of invocations.


def _sides_of_bedrock(row: Row) -> tuple[Row, Any]:
    request, response = row.get("input"), row.get("output")
    if isinstance(request, Mapping) and "inputBodyJson" in request and isinstance(response, Mapping):
        return request["inputBodyJson"], response.get("outputBodyJson")
    return both(row)


def _of_bedrock(row: Row) -> bool:
    request, response = _sides_of_bedrock(row)
    output = response.get("output") if isinstance(response, Mapping) else None
    of_log = request is not row and isinstance(row.get("input"), Mapping) and "inputBodyJson" in row["input"]
    of_answer = isinstance(output, Mapping) and "message" in output
    return isinstance(request, Mapping) and "messages" in request and (of_log or of_answer)


def _bedrock_turns(row: Row) -> Turns:
    request, response = _sides_of_bedrock(row)
    name = row.get("requestId") or row.get("id")
    answer = response.get("output", response) if isinstance(response, Mapping) else response
    return call(request["messages"], answer, system=request.get("system"), id=name)


BEDROCK = Product(_of_bedrock, _bedrock_turns)


# Logs by hand: inputs and outputs in columns of their own, one of them an object or a list of objects.

_COLUMNS = (("input", "output"), ("inputs", "outputs"), ("prompt", "completion"), ("prompt", "response"))


def _sides_of_columns(row: Row) -> tuple[Any, Any] | None:
    asked, answered = next((pair for pair in _COLUMNS if set(pair) <= row.keys()), ("", ""))
    sides = as_json(row.get(asked)), as_json(row.get(answered))
    return sides if any(map(holds_objects, sides)) and all(sides) else None


INPUTS_AND_OUTPUTS = Product(
    lambda row: _sides_of_columns(row) is not None,
    lambda row: call(*(_sides_of_columns(row) or ("", "")), id=row.get("id")),
)
