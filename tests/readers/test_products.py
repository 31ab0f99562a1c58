"""What products write: a sample for each, in the shape that it documents, all of one conversation."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from dialeval.core.exchange import BadRow
from dialeval.readers import Chats, Source, read_exchanges, read_transcript
from refusals import refused

SAMPLES = Path(__file__).parent / "samples"
ASKED, ANSWERED = "Which is lighter?", "The red one, 20 kg."
CHAT = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]
#: Samples that hold a whole conversation, in which the first answer is judged, too; others have the last message alone.
WHOLE = {"data.json", "deepeval_conversation.json", "discord.csv", "inspect.json", "messages.csv", "openai_items.json",
         "parlai.jsonl", "ragas.jsonl"}  # fmt: skip
#: Samples without what was said before.
ALONE = {"deepeval.json", "ragas_single.jsonl"}
#: Whole conversations, as channels, help desks and assistants export them.
EXPORTS = sorted((SAMPLES / "exports").iterdir())


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.is_file()))
def test_the_reply_and_what_was_said_before(name: str) -> None:
    *before, last = read_exchanges(SAMPLES / name)
    assert (last.context[-1], last.response) == (ASKED, ANSWERED)
    assert len(last.context) == (1 if name in ALONE else 3)
    assert [row.response for row in before] == (["Yes, two kinds."] if name in WHOLE else [])
    assert not last.speakers or set(last.speakers) <= {"user", "assistant"}


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_every_answer_of_an_export_is_a_row(path: Path) -> None:
    rows = list(read_exchanges(path))
    assert [row.response for row in rows] == ["Yes, two kinds.", ANSWERED]
    assert rows[1].context == ("Do you have canoes?", "Yes, two kinds.", ASKED)
    assert read_transcript(path.read_text("utf-8")).turns == (*rows[1].context, ANSWERED)


@pytest.mark.parametrize("path", sorted((SAMPLES / "asides").iterdir()), ids=lambda path: path.stem)
def test_what_is_said_and_nothing_else_is_read(path: Path) -> None:
    """Notes of the team, news of a channel, thoughts, code and pictures are no replies."""
    ((context, response),) = [(row.context, row.response) for row in read_exchanges(path)]
    assert (context, response) == (("Hi",), "Hello")


@pytest.mark.parametrize("name", ["openai_responses.jsonl", "bedrock_log.jsonl"])
def test_a_preamble_before_a_call_is_a_reply_only_where_asked(name: str) -> None:
    kept = Source(SAMPLES / name, chats=Chats(keep_preambles=True)).exchanges()
    replies = [row.response for _, row in kept]
    assert replies == ([ANSWERED, "Let me look."] if name.startswith("bedrock") else [ANSWERED])


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
    row = {"outputs": {"log": {"turns": CHAT}}, "bot": "b"}
    for columns in (
        {"response": "outputs.log.turns[-1].content", "message": "outputs.log.turns[0].content", "system": "bot"},
        {"messages": "outputs.log.turns", "system": "bot"},
    ):
        for rows in ([row], [{"data": [row]}]):
            (reply,) = read_exchanges(rows, columns=columns)
            assert (reply.context, reply.response, reply.system) == ((ASKED,), ANSWERED, "b")
    refused(ValueError, "outputs.turns", lambda: list(read_exchanges([row], columns={"messages": "outputs.turns"})))


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


def day(first: int, *turns: tuple[str, str, str | None]) -> str:
    """A day of a channel: who, what, and in which thread."""
    return json.dumps([
        {"type": "message", "ts": str(first + index), "text": text, "bot_id" if who == "B1" else "user": who,
         "thread_ts": thread} for index, (who, text, thread) in enumerate(turns)
    ])  # fmt: skip


DAYS = {
    "shop/2024-05-01.json": day(0, ("U1", "Hi!", None), ("B1", "Hello.", None), ("U2", "Canoes?", "7")),
    "shop/2024-05-02.json": day(10, ("B1", "Two kinds.", "7"), ("U1", "Bye.", None)),
    "users.json": json.dumps([{"id": "U1", "name": "anna", "profile": {}}]),
}


@pytest.mark.parametrize("packed", [False, True])
def test_days_of_a_channel_are_one_conversation_and_threads_their_own(tmp_path: Path, packed: bool) -> None:
    for name, text in DAYS.items():
        (tmp_path / "export" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / name).write_text(text)
    path = tmp_path / "export"
    path = Path(shutil.make_archive(str(path), "zip", path)) if packed else path
    rows = list(read_exchanges(path))
    turns = [(*row.context, row.response, row.following) for row in rows]
    assert turns == [("Hi!", "Hello.", "Bye."), ("Canoes?", "Two kinds.", None)]


def test_an_archive_of_exports_passes_over_what_is_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("user.json", '{"email": "a@b.c"}')
        archive.writestr("image.png", b"x")
        archive.writestr("__MACOSX/samples/._data.json", b"\0\5\26\7")
        for name in ("messages.csv", "data.json"):
            archive.write(SAMPLES / name, f"samples/{name}")
    assert [row.response for row in read_exchanges(tmp_path / "export.zip")] == ["Yes, two kinds.", ANSWERED] * 2
    (tmp_path / "export.zip").write_bytes(b"PK")
    refused(ValueError, "zip", lambda: list(read_exchanges(tmp_path / "export.zip")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_both_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for reply in ("Two.", "Three."):
            archive.writestr("rows.jsonl", json.dumps({"context": ["How many?"], "response": reply}))
    assert [row.response for row in read_exchanges(tmp_path / "export.zip")] == ["Two.", "Three."]


@pytest.mark.parametrize("path", sorted((SAMPLES / "texts").iterdir()), ids=lambda path: path.name)
def test_subtitles_headings_and_files_of_parlai(path: Path) -> None:
    (row,) = read_exchanges(path)
    assert (row.context, row.response) == ((ASKED,), ANSWERED)


def test_episodes_of_parlai_are_conversations(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 Hi\tHello\n2 And?\tFine\n1 Ho\tHey\n")
    rows = [(len(row.context), row.response) for row in read_exchanges(tmp_path / "a.txt")]
    assert rows == [(1, "Hello"), (3, "Fine"), (1, "Hey")]


def test_subtitles_without_speakers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n\n00:02.000 --> 00:03.000\nHello\n")
    refused(ValueError, "speaker", lambda: list(read_exchanges(tmp_path / "a.vtt")))


@pytest.mark.parametrize("text", ["\n".join([json.dumps(CHAT)] * 2), json.dumps([CHAT, CHAT])])
def test_a_list_of_messages_is_a_conversation(tmp_path: Path, text: str) -> None:
    (tmp_path / "chats.json").write_text(text)
    rows = [(row.context, row.response) for row in read_exchanges(tmp_path / "chats.json")]
    assert rows == [((ASKED,), ANSWERED)] * 2


def test_inputs_and_outputs_of_somebody_s_own_log(tmp_path: Path) -> None:
    cells = [json.dumps(cell).replace('"', '""') for cell in ({"messages": CHAT[:1]}, CHAT[1])]
    (tmp_path / "log.csv").write_text(f'id,input,output\n7,"{cells[0]}","{cells[1]}"\n')
    (row,) = read_exchanges(tmp_path / "log.csv")
    assert (row.context, row.response, row.id) == ((ASKED,), ANSWERED, "7")


def test_a_path_that_leads_nowhere_is_named() -> None:
    row = {"context": ["Hm"], "out": {"a": "Hi"}}
    refused(BadRow, "out.b", lambda: list(read_exchanges([row], columns={"response": "out.b"})))
