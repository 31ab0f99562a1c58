"""What products write: a sample for each, in the shape that it documents, all of one conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.exchange import BadRow
from dialeval.readers import Chats, Source, read_exchanges
from refusals import refused

SAMPLES = Path(__file__).parent / "samples"
ASKED, ANSWERED = "Which is lighter?", "The red one, 20 kg."
#: Samples that hold a whole conversation, in which the first answer is judged, too; others have the last message alone.
WHOLE = {"data.json", "deepeval_conversation.json", "inspect.json", "messages.csv", "openai_items.json",
         "parlai.jsonl", "ragas.jsonl"}  # fmt: skip
#: Samples without what was said before.
ALONE = {"deepeval.json", "ragas_single.jsonl"}


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_the_reply_and_what_was_said_before(name: str) -> None:
    *before, last = read_exchanges(SAMPLES / name)
    assert (last.context[-1], last.response) == (ASKED, ANSWERED)
    assert len(last.context) == (1 if name in ALONE else 3)
    assert [row.response for row in before] == (["Yes, two kinds."] if name in WHOLE else [])
    assert not last.speakers or set(last.speakers) <= {"user", "assistant"}


@pytest.mark.parametrize("name", ["openai_responses.jsonl", "bedrock_log.jsonl"])
def test_a_preamble_before_a_call_is_a_reply_only_where_asked(name: str) -> None:
    kept = Source(SAMPLES / name, chats=Chats(keep_preambles=True)).exchanges()
    said = [row.response for _, row in kept]
    assert said == ([ANSWERED, "Let me look."] if name.startswith("bedrock") else [ANSWERED])


def test_passages_are_facts_and_what_was_expected_is_a_reference() -> None:
    for name in ALONE:
        (row,) = read_exchanges(SAMPLES / name)
        assert (row.facts, row.references) == (("The red canoe weighs 20 kg.",), ("Red.",))


def test_what_an_unknown_chain_gives_is_named_by_its_path() -> None:
    run = {"run_type": "chain", "id": "r", "inputs": {"a": "Hi", "b": "x"}, "outputs": {"c": "Hello", "d": "y"}}
    told = refused(BadRow, "--columns", lambda: list(read_exchanges([run])))
    assert "response=PATH" in told
    (row,) = read_exchanges([run], columns={"response": "outputs.c", "message": "inputs.a"})
    assert (row.context, row.response) == (("Hi",), "Hello")


@pytest.mark.parametrize("content", [[{"type": "text", "value": "Hi"}], [{"blurb": "Hi"}]])
def test_parts_without_a_text_are_named(content: object) -> None:
    log = {"messages": [{"role": "user", "content": "Hm"}, {"role": "assistant", "content": content}]}
    refused(BadRow, "message 1", lambda: list(read_exchanges([log])))


def test_columns_may_be_paths_and_messages_may_stand_anywhere() -> None:
    said = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]
    row = {"outputs": {"log": {"said": said}}, "bot": "b"}
    for columns in (
        {"response": "outputs.log.said[-1].content", "message": "outputs.log.said[0].content", "system": "bot"},
        {"messages": "outputs.log.said", "system": "bot"},
    ):
        for rows in ([row], [{"data": [row]}]):
            (found,) = read_exchanges(rows, columns=columns)
            assert (found.context, found.response, found.system) == ((ASKED,), ANSWERED, "b")
    refused(ValueError, "outputs.said", lambda: list(read_exchanges([row], columns={"messages": "outputs.said"})))


@pytest.mark.parametrize(
    ("reply", "way"),
    [
        ('{"choices": [{"message": {"content": "Hi"}}]}', "response=reply.choices[-1].message.content"),
        ('[{"role": "assistant", "content": "Hi"}]', "response=reply[-1].content"),
        ('{"a": 1}', "write its text"),
        ("text:Hi", "text:"),
        ("answer: Hi", "answer:"),
    ],
)
def test_replies_that_are_no_texts_stop_with_the_way(reply: str, way: str) -> None:
    rows = [{"context": ["Hm"], "reply": reply}] * 2
    told = refused(ValueError, way, lambda: list(read_exchanges(rows, columns={"response": "reply"})))
    if path := told.partition("--columns response=")[2]:
        assert [row.response for row in read_exchanges(rows, columns={"response": path})] == ["Hi", "Hi"]


def test_a_reply_that_leaks_json_now_and_then_is_a_reply() -> None:
    rows = [{"context": ["Hm"], "response": reply} for reply in ('{"error": 500}', "Fine.", "Note: closed.")]
    assert len(list(read_exchanges(rows))) == 3
