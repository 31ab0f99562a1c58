"""Langfuse's traces and observations, as JSON or as a table whose cells hold JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json, snake_case
from dialeval.readers.chats.calls import NO_CALL, call

_OF_LANGFUSE = {"trace_id", "observations", "session_id", "html_path", "parent_observation_id", "usage_details"}


def matches(row: Row) -> bool:
    """Input and output beside a trace or a session."""
    names = set(map(snake_case, row))
    return {"input", "output"} <= names and bool(names & _OF_LANGFUSE)


def turns(row: Row) -> Turns:
    """A trace's own input and output, or those of its last generation."""
    named: dict[str, Any] = {snake_case(key): as_json(value) for key, value in row.items()}
    inner = named.get("observations")
    if named["output"] is None and isinstance(inner, list):
        made = [
            observation
            for observation in inner
            if isinstance(observation, Mapping) and observation.get("type") == "GENERATION"
        ]
        named |= {key: made[-1].get(key) for key in ("input", "output")} if made else {}
    if named["output"] is None or named.get("type") in ("EVENT", "TOOL", "RETRIEVER", "EMBEDDING", "GUARDRAIL"):
        return NO_CALL
    trace = named.get("trace_id") or (named.get("id") if "observations" in named else "")
    try:
        return call(named["input"], named["output"], id=named.get("id"), trace=trace)
    except ValueError:
        if named.get("parent_observation_id") and named.get("type") != "GENERATION":
            return NO_CALL
        raise
