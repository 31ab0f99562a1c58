"""ragas' samples: of one reply with the passages that were found for it, or of a whole conversation."""

from __future__ import annotations

from typing import Any

from dialeval.readers.chats.base import Row, Turns, as_json
from dialeval.readers.chats.calls import call, messages_from


def matches(row: Row) -> bool:
    """Its names of today, or those before them."""
    return "user_input" in row or (
        {"question", "answer"} <= row.keys() and isinstance(as_json(row.get("contexts")), list)
    )


def turns(row: Row) -> Turns:
    """The conversation, or question and answer with the passages as facts."""
    asked: Any = as_json(row.get("user_input", row.get("question")))
    answered = row.get("response", row.get("answer"))
    if isinstance(asked, list) and answered is None:
        return Turns(messages_from(asked, "user"))
    facts = as_json(row.get("retrieved_contexts", row.get("contexts")))
    reference = row.get("reference") or row.get("ground_truth")
    return call(asked, answered, facts=facts, reference=reference, id=row.get("id"))
