"""What libraries of evaluation write: samples, test cases and results, with references and facts beside the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats.calls import NO_CALL, call, messages_from
from dialeval.readers.chats.messages import Product, Row, Turns, as_json, each, known_roles, read_message, snake_case

# OpenAI's Evals: output items of a run, and the log of the library, of whose events those of sampling hold a reply.


def _of_openai_evals(row: Row) -> bool:
    sample = row.get("sample")
    of_log = "event_id" in row and "run_id" in row
    ends = any(isinstance(row.get(key), Mapping) for key in ("spec", "final_report")) and "messages" not in row
    return of_log or ends or (isinstance(sample, Mapping) and "output" in sample)


def _sampled(row: Row) -> Turns:
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


OPENAI_EVALS = Product(_of_openai_evals, _sampled)


# Inspect's logs: samples with target and output, each the conversation of a model with its task.


def _inspect_turns(row: Row) -> Turns:
    name = f"{row.get('id')}/{row.get('epoch', 1)}" if row.get("id") is not None else None
    return Turns(messages_from(row["messages"], "user"), {"id": name, "system": row["output"].get("model")})


INSPECT = Product(
    lambda row: {"messages", "target", "output"} <= row.keys() and isinstance(row["output"], Mapping), _inspect_turns
)


# promptfoo's results: a prompt, which may be a chat as JSON, and the output of each provider.


def _promptfoo_turns(row: Row) -> Turns:
    """Prompt and output; a result without one is an error of the provider."""
    prompt, provider, response = row["prompt"], row["provider"], row.get("response")
    output = response.get("output") if isinstance(response, Mapping) else response
    if not output:
        return NO_CALL
    system = provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider
    name = f"{row['testIdx']}/{row.get('promptIdx', 0)}" if "testIdx" in row else None
    parsed = call(prompt.get("raw") if isinstance(prompt, Mapping) else prompt, output, id=name)
    return Turns(parsed.messages, {**parsed.fields, "system": system}, last_only=True)


PROMPTFOO = Product(
    lambda row: {"prompt", "provider"} <= row.keys() and bool({"vars", "testCase", "testIdx"} & row.keys()),
    _promptfoo_turns,
)


# deepeval's test cases of one reply; `context` and `retrieval_context` are facts there, not what was said before.


def _deepeval_turns(row: Row) -> Turns:
    named: dict[str, Any] = {snake_case(key): as_json(value) for key, value in row.items()}
    facts = [*(named.get("context") or ()), *(named.get("retrieval_context") or ())]
    return call(
        named["input"], named["actual_output"], id=named.get("id") or named.get("name"),
        reference=named.get("expected_output") or None, facts=facts or None,
    )  # fmt: skip


DEEPEVAL = Product(lambda row: {"input", "actual_output"} <= set(map(snake_case, row)), _deepeval_turns)


# ragas' samples, by its names of today or those before them: of one reply with the passages that were found for it, or
# of a whole conversation.


def _of_ragas(row: Row) -> bool:
    passages = as_json(row.get("contexts"))
    return "user_input" in row or ({"question", "answer"} <= row.keys() and isinstance(passages, list))


def _ragas_turns(row: Row) -> Turns:
    asked: Any = as_json(row.get("user_input", row.get("question")))
    answered = row.get("response", row.get("answer"))
    if isinstance(asked, list) and answered is None:
        return Turns(messages_from(asked, "user"))
    facts = as_json(row.get("retrieved_contexts", row.get("contexts")))
    reference = row.get("reference") or row.get("ground_truth")
    return call(asked, answered, facts=facts, reference=reference, id=row.get("id"))


RAGAS = Product(_of_ragas, _ragas_turns)


# ParlAI's logs: acts with `id` and `text`, alone or in pairs; contexts that a task sets are nobody's turn.


def _acts(row: Row) -> list[Any]:
    dialog = row.get("dialog")
    if not isinstance(dialog, list):
        return []
    return [act for episode in dialog for act in (episode if isinstance(episode, list) else [episode])]


def _parlai_turns(row: Row) -> Turns:
    acts = [act for act in _acts(row) if act.get("id") not in (None, "context")]
    roles = known_roles(str(act["id"]) for act in acts)
    return Turns(each(acts, lambda raw: read_message(raw, roles[str(raw["id"])], raw.get("text"), name=raw["id"])))


PARLAI = Product(
    lambda row: any(isinstance(act, Mapping) and "id" in act and "text" in act for act in _acts(row)), _parlai_turns
)
