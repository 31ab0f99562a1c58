"""promptfoo's results: a prompt, which may be a chat as JSON, and the output of each provider."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.readers.chats.base import Row, Turns
from dialeval.readers.chats.calls import NO_CALL, call


def matches(row: Row) -> bool:
    """A prompt for a provider, with its variables."""
    return {"prompt", "provider"} <= row.keys() and bool({"vars", "testCase", "testIdx"} & row.keys())


def turns(row: Row) -> Turns:
    """Prompt and output; a result without one is an error of the provider."""
    prompt, provider, response = row["prompt"], row["provider"], row.get("response")
    output = response.get("output") if isinstance(response, Mapping) else response
    if not output:
        return NO_CALL
    system = provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider
    name = f"{row['testIdx']}/{row.get('promptIdx', 0)}" if "testIdx" in row else None
    told = call(prompt.get("raw") if isinstance(prompt, Mapping) else prompt, output, id=name)
    return Turns(told.messages, {**told.fields, "system": system}, last_only=True)
