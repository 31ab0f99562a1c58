"""OpenAI's Evals: output items of a run, and the log of the library, of whose events those of sampling hold a reply."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Row, Turns
from dialeval.readers.chats.calls import NO_CALL, call


def matches(row: Row) -> bool:
    """A sample with input and output, or a line of a log."""
    sample = row.get("sample")
    of_log = "event_id" in row and "run_id" in row
    ends = any(isinstance(row.get(key), Mapping) for key in ("spec", "final_report")) and "messages" not in row
    return of_log or ends or (isinstance(sample, Mapping) and "output" in sample)


def turns(row: Row) -> Turns:
    """The sampled reply."""
    if isinstance(sample := row.get("sample"), Mapping):
        item = row.get("datasource_item") or row.get("item") or {}
        asked = sample.get("input") or item
        reference = item.get("ideal") if isinstance(item.get("ideal"), str) else None
        answered = sample.get("output") or sample.get("output_text")
        return call(asked, answered, id=row.get("id"), reference=reference)
    data = row.get("data")
    if row.get("type") != "sampling" or not isinstance(data, Mapping):
        return NO_CALL
    return call(data.get("prompt"), data.get("sampled"), id=row.get("sample_id"))
