"""LangSmith's runs: those of models and chains hold a reply, which a trace that logs it twice has once."""

from __future__ import annotations

from dialeval.readers.chats.base import Row, Turns
from dialeval.readers.chats.calls import NO_CALL, call


def matches(row: Row) -> bool:
    """A run with its type."""
    return "run_type" in row and "inputs" in row


def turns(row: Row) -> Turns:
    """What went into the run and came out of it."""
    if row["run_type"] not in ("llm", "chain", "chat_model", "agent") or not row.get("outputs"):
        return NO_CALL
    try:
        return call(row["inputs"], row["outputs"], id=row.get("id"), trace=row.get("trace_id"))
    except ValueError:
        if row.get("parent_run_id") and row["run_type"] == "chain":  # a step between prompt and model
            return NO_CALL
        raise
