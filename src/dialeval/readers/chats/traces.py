"""Traces of applications: spans of OpenTelemetry, and runs, traces and observations of products that keep them.

The attributes of a span are the same however an exporter nests them; messages may be numbered keys among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dialeval.readers.chats.calls import NO_CALL, call
from dialeval.readers.chats.messages import Product, Row, Turns, as_json, snake_case


def _attributes(row: Row) -> dict[str, Any]:
    """The attributes of a span by dotted names: from a mapping, flat or nested, a list of OTLP, or columns."""
    values = as_json(row.get("attributes", row.get("span_attributes")))
    if isinstance(values, list):  # OTLP
        pairs = [pair for pair in values if isinstance(pair, Mapping) and "key" in pair]
        values = {pair["key"]: _value(pair.get("value")) for pair in pairs}
    of_columns = {str(key).removeprefix("attributes."): value for key, value in row.items() if "." in str(key)}
    return of_columns | (dict(_flat(values)) if isinstance(values, Mapping) else {})


def _is_span(row: Row) -> bool:
    inner = row.get("context")
    return bool({"spanId", "span_id", "context.span_id"} & row.keys()) or (
        isinstance(inner, Mapping) and "span_id" in inner
    )


def _trace_of(row: Row) -> str:
    inner = row.get("context")
    places = [row, inner if isinstance(inner, Mapping) else {}]
    keys = ("traceId", "trace_id", "context.trace_id")
    return str(next((place[key] for place in places for key in keys if place.get(key)), ""))


def _numbered(values: Row, prefix: str) -> list[dict[str, Any]]:
    """The messages that stand as `prefix.0.role`, `prefix.0.content`."""
    messages: dict[int, dict[str, Any]] = {}
    for key, value in values.items():
        number, _, name = key.removeprefix(f"{prefix}.").partition(".")
        if key.startswith(f"{prefix}.") and number.isdigit() and name:
            messages.setdefault(int(number), {})[name] = value
    return [messages[number] for number in sorted(messages)]


def _flat(nested: Row, before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _value(value: Any) -> Any:
    """A value of OTLP, which says its type beside it."""
    if not isinstance(value, Mapping):
        return value
    inner: Any
    kind, inner = next(iter(value.items()), ("", {}))
    if kind == "arrayValue":
        return [_value(value) for value in inner.get("values", [])]
    if kind == "kvlistValue":
        return {pair["key"]: _value(pair.get("value")) for pair in inner.get("values", [])}
    return inner


# LangSmith's runs: those of models and chains hold a reply, which a trace that logs it twice has once.


def _langsmith_turns(row: Row) -> Turns:
    if row["run_type"] not in ("llm", "chain", "chat_model", "agent") or not row.get("outputs"):
        return NO_CALL
    try:
        return call(row["inputs"], row["outputs"], id=row.get("id"), trace=row.get("trace_id"))
    except ValueError:
        if row.get("parent_run_id") and row["run_type"] == "chain":  # a step between prompt and model
            return NO_CALL
        raise


LANGSMITH = Product(lambda row: "run_type" in row and "inputs" in row, _langsmith_turns)


# MLflow's traces: of a file, or of the table that `search_traces` gives.


def _of_mlflow(row: Row) -> bool:
    """Information and data, or a request and a response with the trace's id."""
    data = row.get("data")
    return (isinstance(data, Mapping) and "spans" in data and "info" in row) or (
        {"request", "response"} <= row.keys() and bool({"trace_id", "request_id"} & row.keys())
    )


def _mlflow_turns(row: Row) -> Turns:
    if "info" not in row:
        name = row.get("trace_id") or row.get("request_id")
        return call(row["request"], row["response"], id=name) if row["response"] is not None else NO_CALL
    info, data = row["info"], row["data"]
    root: Row = next((span for span in data["spans"] if not (span.get("parent_id") or span.get("parent_span_id"))), {})
    values: dict[str, Any] = _attributes(root)
    asked = as_json(data.get("request") or values.get("mlflow.spanInputs") or root.get("inputs"))
    answered = as_json(data.get("response") or values.get("mlflow.spanOutputs") or root.get("outputs"))
    if answered is None:
        return NO_CALL
    return call(asked, answered, id=info.get("trace_id") or info.get("request_id"))


MLFLOW = Product(_of_mlflow, _mlflow_turns)


# Phoenix and whatever else writes OpenInference's spans.

_OF_OPENINFERENCE = ("openinference.", "llm.", "input.value")


def _of_phoenix(row: Row) -> bool:
    return (_is_span(row) or "attributes" in row or any(str(key).startswith("attributes.") for key in row)) and any(
        key.startswith(_OF_OPENINFERENCE) for key in _attributes(row)
    )


def _phoenix_turns(row: Row) -> Turns:
    """A model's messages; of other spans the first of the trace, by its input and output."""
    values = _attributes(row)
    sides = [
        as_json(values.get(f"llm.{side}_messages")) or _numbered(values, f"llm.{side}_messages")
        for side in ("input", "output")
    ]
    if not all(sides):
        if row.get("parent_id") or row.get("parentSpanId"):
            return NO_CALL
        sides = [values.get("input.value"), values.get("output.value")]
    return call(*sides, trace=_trace_of(row)) if all(sides) else NO_CALL


PHOENIX = Product(_of_phoenix, _phoenix_turns)


# OpenTelemetry's spans of generative models: messages as attributes, as events, or as numbered attributes before.


def _opentelemetry_turns(row: Row) -> Turns:
    values = _attributes(row)
    events = [event for event in as_json(row.get("events")) or [] if isinstance(event, Mapping)]
    for event in events:
        values |= {key: value for key, value in _attributes(event).items() if key.startswith("gen_ai.")}
    asked, answered = values.get("gen_ai.input.messages"), values.get("gen_ai.output.messages")
    asked = asked or _numbered(values, "gen_ai.prompt") or _of_events(events, asked=True)
    answered = answered or _numbered(values, "gen_ai.completion") or _of_events(events, asked=False)
    if not asked or not answered:
        return NO_CALL
    system = as_json(values.get("gen_ai.system_instructions"))
    return call(asked, answered, system=system, trace=_trace_of(row), id=values.get("gen_ai.response.id"))


def _of_events(events: list[Any], *, asked: bool) -> list[Any]:
    """The messages that events hold, one each: `gen_ai.user.message`, `gen_ai.choice`."""
    messages = []
    for event in events:
        name = str(event.get("name") or event.get("event_name") or "")
        if not name.startswith("gen_ai.") or not (name.endswith(".message") or name == "gen_ai.choice"):
            continue
        holds = as_json(event.get("body")) or _attributes(event)
        holds = holds.get("message", holds) if isinstance(holds, Mapping) else {"content": holds}
        holds = as_json(holds)
        role = "assistant" if name == "gen_ai.choice" else name.split(".")[1]
        if asked is not (name == "gen_ai.choice"):
            messages.append({"role": role, **(holds if isinstance(holds, Mapping) else {"content": holds})})
    return messages


OPENTELEMETRY = Product(
    lambda row: _is_span(row) or any(str(key).startswith(("gen_ai.", "attributes.gen_ai.")) for key in row),
    _opentelemetry_turns,
)


# Langfuse's traces and observations, as JSON or as a table whose cells hold JSON.

_OF_LANGFUSE = {"trace_id", "observations", "session_id", "html_path", "parent_observation_id", "usage_details"}


def _of_langfuse(row: Row) -> bool:
    names = set(map(snake_case, row))
    return {"input", "output"} <= names and bool(names & _OF_LANGFUSE)


def _langfuse_turns(row: Row) -> Turns:
    named: dict[str, Any] = {snake_case(key): as_json(value) for key, value in row.items()}
    inner = named.get("observations")
    if named["output"] is None and isinstance(inner, list):
        observations = [observation for observation in inner if isinstance(observation, Mapping)]
        made = [observation for observation in observations if observation.get("type") == "GENERATION"]
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


LANGFUSE = Product(_of_langfuse, _langfuse_turns)
