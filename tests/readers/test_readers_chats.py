"""Chat logs as services write them become rows of replies, or dialogues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dialeval.core.exchange import BadRow
from dialeval.readers import Chats, Rejects, Source, read_exchanges
from dialeval.readers.chats import product_of
from dialeval.readers.frames import exchanges_of
from refusals import refused
from shell import invoke, read_rows, write_rows

SAMPLES = Path(__file__).parent / "samples"
CHAT = [
    {"role": "system", "content": "You sell boats."},
    {"role": "user", "content": "Hi! Do you have canoes?"},
    {"role": "assistant", "content": "Yes, two kinds."},
    {"role": "user", "content": [{"type": "text", "text": "Which is"}, {"type": "image_url", "image_url": {"url": "x"}},
                                 {"type": "text", "text": "lighter?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "weights"}}]},
    {"role": "tool", "tool_call_id": "1", "content": '{"red": 20}'},
    {"role": "assistant", "content": "The red one, 20 kg."},
]  # fmt: skip


def test_every_answer_is_a_row_with_what_came_before() -> None:
    rows = list(read_exchanges([{"messages": CHAT, "id": "c7", "model": "bot-2"}]))
    assert [row.response for row in rows] == ["Yes, two kinds.", "The red one, 20 kg."]
    assert rows[0].context == ("Hi! Do you have canoes?",)
    assert rows[1].context == ("Hi! Do you have canoes?", "Yes, two kinds.", "Which is\nlighter?")
    assert rows[1].speakers == ("user", "assistant", "user")
    assert (rows[0].following, rows[1].following) == ("Which is\nlighter?", None)
    assert [row.id for row in rows] == ["c7#1", "c7#3"]
    assert {row.system for row in rows} == {"bot-2"}
    assert rows[0].facts == ()  # nobody asked for the system prompt


def test_system_prompts_are_facts_where_asked() -> None:
    source = Source([{"messages": CHAT, "facts": ["Canoes float."]}], chats=Chats(system_as_facts=True))
    facts = {row.facts for _, row in source.exchanges()}
    assert facts == {("Canoes float.", "You sell boats.")}


def test_a_conversation_can_be_judged_on_another_side() -> None:
    ((_, dialogue),) = Source([{"messages": CHAT}], chats=Chats("user")).dialogues()
    # The side that is judged goes by the name that metrics look for.
    assert dialogue.speakers == ("assistant", "user", "assistant", "user")


SAID = [("user", "Hi!"), ("assistant", "Hello?"), ("user", "My parcel is late."), ("assistant", "Sorry!")]


def test_a_table_of_messages(tmp_path: Path) -> None:
    lines = [f"{talk},{role},{text}" for role, text in SAID for talk in ("t1", "t2")]
    (tmp_path / "log.csv").write_text("\n".join(["Conversation_ID,sender,text", *lines]))
    rows = list(read_exchanges(tmp_path / "log.csv"))
    assert [row.id for row in rows] == ["t1#1", "t1#3", "t2#1", "t2#3"]
    assert [len(row.context) for row in rows] == [1, 3, 1, 3]
    unfolded = exchanges_of(pd.read_csv(tmp_path / "log.csv"))
    assert unfolded == rows


def test_an_export_of_several_conversations_is_opened() -> None:
    azure, intercom, telegram = (
        json.loads((SAMPLES / "exports" / f"{name}.json").read_text()) for name in ("azure", "intercom", "telegram")
    )
    activities = [{**activity, "conversation": {"id": "c1"}} for activity in azure["activities"]]
    listed = {"type": "conversation.list", "conversations": [intercom, intercom]}
    account = {"chats": {"list": [{"id": 4, "messages": []}, {**telegram, "id": 5}]}}
    for log, ids in ((activities, ["c1#1", "c1#3"]), ([listed], ["9#1", "9#3"] * 2), ([account], ["5#1", "5#3"])):
        assert [row.id for row in read_exchanges(log)] == ids


@pytest.mark.parametrize("name", ["turn", "turn_index", "position"])
def test_messages_are_read_in_the_order_of_their_places(name: str) -> None:
    order = (2, 0, 3, 1)
    rows = [{"conversation_id": "c", name: n + 1, "role": SAID[n][0], "content": SAID[n][1]} for n in order]
    assert [row.response for row in read_exchanges(rows)] == [SAID[1][1], SAID[3][1]]


def test_who_else_answers_is_told(caplog: pytest.LogCaptureFixture) -> None:
    turns = [*SAID[:2], ("Kim", "I take over."), *SAID[2:]]
    rows = list(read_exchanges([{"messages": [{"role": who, "content": text} for who, text in turns]}]))
    assert [row.response for row in rows] == ["Hello?", "Sorry!"]
    (told,) = [message for message in caplog.messages if "--judge-role" in message]
    assert "'kim'" in told.lower()
    assert "'user'" not in told


def test_what_is_to_be_done_about_other_exports_is_told() -> None:
    for log in ({"turns": [{"asks": "Hi", "answers": "Hello"}]}, {"queryResult": {}}):
        for read in (Source([log]).exchanges, Source([log]).dialogues):
            assert "one row with a list" in refused(ValueError, list(log)[-1], lambda read=read: list(read()))


@pytest.mark.parametrize("key", ["id", "sender_id"])
def test_a_conversation_is_one_dialogue(key: str) -> None:
    ((_, dialogue),) = Source([{"messages": CHAT, key: "c7"}]).dialogues()
    assert dialogue.turns[-1] == "The red one, 20 kg."
    assert dialogue.speakers == ("user", "assistant", "user", "assistant")
    assert dialogue.id == "c7"


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([], "messages"),
        ("hello", "'context'"),
        ([{"role": "user"}, "hi"], "message 1"),
        ([{"content": "hi"}], "message 0"),
        ([{"role": "user", "content": 5}], "message 0"),
        ([{"role": "user", "content": [5]}], "message 0"),
        ([{"role": "user", "content": "hi"}], "'assistant'"),
        ([{"role": "assistant", "content": "hi"}], "only an opening turn"),
    ],
)
def test_what_is_no_conversation_is_named(messages: Any, named: str) -> None:
    assert "row 0" in refused(BadRow, named, lambda: list(read_exchanges([{"messages": messages}])))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"messages": [{"role": "user", "content": text} for text in ("Hi", "Hello?")]}, "'assistant'"),
        ({"messages": [*CHAT[:2], *CHAT[4:6], CHAT[1]]}, "'assistant'"),
        ({"messages": [{"role": "assistant", "content": text} for text in ("Hi", "Hello?")]}, "'assistant'"),
        ({"dialogue": ["Hi", "Hello?"], "speakers": ["user", "user"]}, "'user'"),
    ],
    ids=["user", "calls", "bot", "speakers"],
)
def test_a_conversation_of_one_side_is_named(row: Any, named: str) -> None:
    refused(BadRow, named, lambda: list(Source([row]).dialogues()))


@pytest.mark.parametrize("system", ["Be nice.", [{"type": "text", "text": "Be nice."}]])
def test_a_system_prompt_beside_the_messages_is_no_name(system: Any) -> None:
    for row, name in (({"model": "claude"}, "claude"), ({}, None)):
        chat = {**row, "system": system, "messages": CHAT}
        ((_, first), *_) = Source([chat], chats=Chats(system_as_facts=True)).exchanges()
        assert (first.system, first.facts[0]) == (name, "Be nice.")


SILENT = [("user", "Hi!"), ("assistant", " "), ("user", "Hello?"), ("assistant", "Yes.")]
CALL: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.jsonl", json.dumps({"messages": [{"role": who, "content": text} for who, text in SILENT] + [CALL]})),
        ("log.json", json.dumps([{"role": who, "content": text.strip() or None} for who, text in SILENT])),
        ("log.jsonl", json.dumps({"contents": [{"role": who, "parts": [{"text": text}]} for who, text in SILENT]})),
        ("log.csv", "\n".join(["session_id,role,content,tool_calls", *(f"1,{who},{text},[]" for who, text in SILENT)])),
        ("log.txt", "\n".join(f"{who}:{text}" if text == " " else f"{who}: {text}" for who, text in SILENT)),
    ],
)  # fmt: skip
def test_a_silent_bot_is_a_row_with_a_blank_reply(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert "message 1" in refused(BadRow, "response", lambda: list(read_exchanges(tmp_path / name)))
    rows = list(read_exchanges(tmp_path / name, empty="score"))
    assert [(len(row.context), row.is_empty) for row in rows] == [(1, True), (3, False)]


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (["9:58 AM", "10:02 AM"], "01"), (["9/30/2024", "10/1/2024"], "01"), (["11:59 PM", "12:01 AM"], "01"),
        (["9", "10", "11"], "012"), (["11", "10", "9"], "210"), (["10:02 AM", "9:58 AM"], "10"),
        (["10/1/2024", "9/30/2024"], "10"), (["01/10/2024", "30/09/2024"], "10"), (["01/12/2023", "02/11/2023"], "01"),
        (["2024-02-01T00:00:00Z", "2024-01-31 23:59"], "10"), (["2", "1", "3"], "102"), (["b", "a"], "01"),
        (["2024-05-01", "2024-05-03", "2024-05-02"], "021"), (["3", "1", "1"], "210"), (["3", "1", "1", "4"], "1203"),
        (["2", "", "1"], "012"), (["10:05", "10:01", "10:03"], "120"), (["00:05", "23:59", "23:58"], "012"),
    ],
)  # fmt: skip
def test_messages_are_read_in_the_order_of_their_times(times: list[str], order: str) -> None:
    rows = [{"conversationId": 1, "role": role, "content": f"turn {index}", "createdAt": when}
            for index, (role, when) in enumerate(zip(["user", "bot"] * 2, times, strict=False))]  # fmt: skip
    ((_, dialogue),) = Source(rows).dialogues()
    assert dialogue.turns == tuple(f"turn {index}" for index in order)


@pytest.mark.parametrize("blank", [None, " ", float("nan")])
def test_a_message_of_no_conversation_is_named(blank: Any) -> None:
    rows = [{"session_id": "a", "role": role, "content": text} for role, text in SAID]
    rows.insert(2, {"session_id": blank, "role": "user", "content": "Hi"})
    assert "message 2" in refused(BadRow, "session_id", lambda: list(read_exchanges(rows)))
    assert len(list(read_exchanges(rows, skip_bad=Rejects()))) == 2


@pytest.mark.parametrize(("judge", "judged"), [("helpy", "Which?"), ("ANNA", "Help!"), ("assistant", "Help!")])
def test_a_speaker_is_judged_by_name_and_a_guess_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, judge: str, judged: str
) -> None:
    (tmp_path / "a.txt").write_text("Helpy: Hello\nAnna: Help!\nHelpy: Which?\n\n---\nBert: Hi\nZoe: Help!\n")
    rejects = Rejects()
    (_, first), *_ = Source(tmp_path / "a.txt", chats=Chats(judge)).exchanges(skip_bad=rejects)
    assert first.response == judged
    told = [("Anna" in message, "Helpy" in message) for message in caplog.messages]
    assert (told, rejects.count) == (([(True, True)], 0) if judge == "assistant" else ([], 1))


@pytest.mark.slow
def test_the_command_scores_logs_and_sets_bad_ones_aside(tmp_path: Path) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "scores.jsonl"
    talks = [{"messages": CHAT, "id": "a"}, {"messages": CHAT[:2], "id": "b"}, {"messages": CHAT, "id": "c"}]
    invoke("score", "-m", "density", "-i", write_rows(log, talks), "-o", out, "--skip-bad", code=3)
    assert [row["id"] for row in read_rows(out)] == ["a#1", "a#3", "c#1", "c#3"]
    (bad,) = read_rows(f"{out}.rejects.jsonl")
    assert (bad["raw"]["id"], "no answer of the role" in bad["problem"]) == ("b", True)


class Huge(list[Any]):
    """What a line of sixteen megabytes has room for: read to its end once for each product, it takes minutes."""

    def __iter__(self) -> Any:
        raise AssertionError("all of it was read")


@pytest.mark.parametrize("key", ["messages", "turns", "dialogue", "events", "comments"])
def test_of_a_list_without_messages_the_beginning_is_looked_at(key: str) -> None:
    assert product_of({key: Huge([[]] * 5000)}) is None


def test_a_page_break_ends_no_turn(tmp_path: Path) -> None:
    (tmp_path / "pages.txt").write_text("How are you?\nFine.\x0c\x0bAnd\u2028you?\x85\nFine, too.\rBye.\r\n", "utf-8")
    assert [row.response for _, row in Source(tmp_path / "pages.txt").exchanges()] == [
        "Fine.\x0c\x0bAnd\u2028you?", "Bye."
    ]  # fmt: skip
