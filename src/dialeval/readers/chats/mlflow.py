"""MLflow's traces: of a file, or of the table that `search_traces` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import NO_CALL, call
from dialeval.readers.chats.spans import attributes


def matches(row: Row) -> bool:
    """Information and data, or a request and a response with the trace's id."""
    data = row.get("data")
    return (isinstance(data, Mapping) and "spans" in data and "info" in row) or (
        {"request", "response"} <= row.keys() and bool({"trace_id", "request_id"} & row.keys())
    )


def turns(row: Row) -> Turns:
    """What went into the first span and came out of it."""
    if "info" not in row:
        name = row.get("trace_id") or row.get("request_id")
        return call(row["request"], row["response"], id=name) if row["response"] is not None else NO_CALL
    info, data = row["info"], row["data"]
    root: Row = next((span for span in data["spans"] if not (span.get("parent_id") or span.get("parent_span_id"))), {})
    values: dict[str, Any] = attributes(root)
    asked = as_json(data.get("request") or values.get("mlflow.spanInputs") or root.get("inputs"))
    answered = as_json(data.get("response") or values.get("mlflow.spanOutputs") or root.get("outputs"))
    if answered is None:
        return NO_CALL
    return call(asked, answered, id=info.get("trace_id") or info.get("request_id"))
