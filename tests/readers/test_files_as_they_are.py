"""Files of common tools: guessed columns, transcripts, histories, Excel, other languages, what is told of them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dialeval.cli.options import pairs
from dialeval.core.cautions import language_of
from dialeval.core.exchange import BadRow
from dialeval.io import places
from dialeval.readers import Rejects, Source, guess_columns, matching_ids, read_exchanges, read_transcript
from refusals import refused
from shell import write_rows


@pytest.mark.parametrize(
    ("names", "context", "response"),
    [
        (["user_msg", "bot_reply"], {"message": "user_msg"}, "bot_reply"),
        (["Prompt", "Completion"], {"message": "Prompt"}, "Completion"),
        (["question", "answer"], {"message": "question"}, "answer"),
        (["input", "output"], {"message": "input"}, "output"),
        (["question", "answer", "prediction"], {"message": "question", "reference": "answer"}, "prediction"),
        (["question", "answer", "Model Answer"], {"message": "question", "reference": "answer"}, "Model Answer"),
        (["history", "input", "output"], {"context": "history", "message": "input"}, "output"),
        (["context", "message", "reply"], {"context": "context"}, "reply"),
        (["Chat History", "User Message", "Model Response"],
         {"context": "Chat History", "message": "User Message"}, "Model Response"),
    ],
)  # fmt: skip
def test_columns_are_guessed(names: list[str], context: dict[str, str], response: str) -> None:
    guessed = guess_columns(names, [dict.fromkeys(names, "a")])
    assert guessed == {**context, "response": response}


@pytest.mark.parametrize("names", [["context", "respones"], ["a", "b"], [], ["prompt"], ["answer"]])
def test_what_the_names_do_not_tell_is_not_guessed(names: list[str]) -> None:
    assert guess_columns(names) == {}


def test_a_column_of_numbers_is_no_reply() -> None:
    assert guess_columns(["prompt", "answer"], [{"prompt": "a", "answer": 3}]) == {}


def test_guesses_and_unread_columns_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("prompt,completion,stars\nHi,Hello,3\n", "utf-8")
    source = Source(path)
    for _ in range(2):
        ((_, row),) = source.exchanges()
    assert (row.context, row.response) == (("Hi",), "Hello")
    guessed, unread = caplog.messages
    assert "message=prompt,response=completion" in guessed or "response=completion,message=prompt" in guessed
    assert "stars" in unread


def test_lines_without_a_name_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, text in (("named.txt", "User: Hi\nBot: Hello\n"), ("plain.txt", "Hi\nHello\n")):
        (tmp_path / name).write_text(text, "utf-8")
        assert [row.response for row in read_exchanges(tmp_path / name)] == ["Hello"]
        assert sum(name in message for message in caplog.messages) == (name == "plain.txt")


def test_lines_that_only_look_like_a_turn_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("User: Hi\nBot: Hello\nNote: at 9\n---\nUser: Hi\nBot: Yes\nNote: at 10\n", "utf-8")
    assert [row.response for row in read_exchanges(tmp_path / "a.txt")] == ["Hello\nNote: at 9", "Yes\nNote: at 10"]
    assert ["Note:" in message for message in caplog.messages] == [True]


def test_a_key_that_stands_in_a_later_row_only_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = {"context": ["Hi"], "response": "Hello"}
    rows = [{**row, "stars": 3}, {**row, "referense": "Hi"}, {**row, "referense": "Hey"}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    assert len(list(Source(path).exchanges())) == 3
    first, later = caplog.messages
    assert ("stars" in first, "stars" in later, later.count("referense")) == (True, False, 1)


@pytest.mark.parametrize(
    "history",
    [
        ["Hi", "Hello"],
        [["Hi", "Hello"]],
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        "User: Hi\nBot: Hello",
    ],
)
def test_a_history_and_the_message_are_one_context(tmp_path: Path, history: Any) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"history": history, "message": "And?", "reply": "Fine."}])
    (row,) = read_exchanges(path)
    assert (row.context, row.response) == (("Hi", "Hello", "And?"), "Fine.")


@pytest.mark.parametrize(
    ("text", "turns", "speakers"),
    [
        ("User: Hi!\nBot: Hello.\nI am a bot.\nUser: see https://a.b", ("Hi!", "Hello.\nI am a bot.", "see https://a.b"),
         ("user", "assistant", "user")),
        ("**Human:** Hi\n\n**AI:** Hello", ("Hi", "Hello"), ("user", "assistant")),
        ("[10:02] Anna: Hi\n[10:03] Bert: Hello", ("Hi", "Hello"), ("user", "assistant")),
        ("User: Hi\nSystem: Hello", ("Hi", "Hello"), ("user", "assistant")),
        ("[01.02.24, 10:02:11] Anna: Hi\n\u200e[01.02.24, 10:02:14] Shop: Hello", ("Hi", "Hello"),
         ("user", "assistant")),
        ("2/1/24, 10:02 PM - Messages are encrypted.\n2/1/24, 10:02 PM - ShopBot: Hello\n2/1/24, 10:03 PM - Anna: Hi",
         ("Hello", "Hi"), ("assistant", "anna")),
        ("1/2/24, 10:02 p. m. - Jo: Hi\n1/2/24, 10:03 p. m. - Shop: Hello <This message was edited>\n"
         "1/2/24, 10:04 p. m. - Jo: <Multimedia omitido>", ("Hi", "Hello"), ("user", "assistant")),
        ("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello\n<|im_end|>", ("Hi", "Hello"),
         ("user", "assistant")),
        ("### User:\nHi\n### Assistant:\nHello", ("Hi", "Hello"), ("user", "assistant")),
        ("12/03/2024, 9:14 am - Anna: Hi\n12/03/2024, 9:15 am - +49 151: Hello\n1/3/24, 9:16 am - Al: <Media omitted>",
         ("Hi", "Hello"), ("user", "assistant")),
        ("[2024-03-12, 9:14:02 PM] Anna: Hi\n\u200e[2024-03-12, 9:15:02 PM] ~\u202fMeta \U0001f389: Hello: you?\n"
         "[2024-03-12, 9:16 PM] Anna: \u200eThis message was deleted.", ("Hi", "Hello: you?"), ("user", "assistant")),
        ("Customer: Hi\nAgent (Bot): Hello\n1.5 km away", ("Hi", "Hello\n1.5 km away"), ("user", "assistant")),
        ("User: Hi\n\U0001f916: Hello", ("Hi", "Hello"), ("user", "assistant")),
        ("User: Hi\nCustomer Support Representative Number One: Hello", ("Hi", "Hello"), ("user", "assistant")),
        ("Hi\nHello\nFine?", ("Hi", "Hello", "Fine?"), ("user", "assistant", "user")),
        ("User: Where?\nBot: Here.\n\nAddress: 5 Main Street\nMonday: 9 to 5\nUser: Thanks", ("Where?",
         "Here.\nAddress: 5 Main Street\nMonday: 9 to 5", "Thanks"), ("user", "assistant", "user")),
        ("Anna: Where?\nShop: Here.\nAddress: 5 Main Street\nAnna: Ok",
         ("Where?", "Here.\nAddress: 5 Main Street", "Ok"), ("user", "assistant", "user")),
        ("[1/2/24, 10:02] Al: Hi\n[1/2/24, 10:03] Shop: Hello.\nOpening hours: 9 to 5\nOpening hours: none today",
         ("Hi", "Hello.\nOpening hours: 9 to 5\nOpening hours: none today"), ("user", "assistant")),
        ("Hi\nStep 2: wait.", ("Hi", "Step 2: wait."), ("user", "assistant")),
        ('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}',
         ("Hi", "Hello"), ("user", "assistant")),
        ('[{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]', ("Hi", "Hello"),
         ("user", "assistant")),
    ],
)  # fmt: skip
def test_pasted_conversations(text: str, turns: tuple[str, ...], speakers: tuple[str, ...]) -> None:
    dialogue = read_transcript(text)
    assert (dialogue.turns, dialogue.speakers) == (turns, speakers)


@pytest.mark.parametrize(
    "text", ["", "Hi", "User: Hi\nUser: Hello?", '[{"text": "Hi"}, {"text": "Hello"}]', '{"messages": []}']
)
def test_what_is_no_conversation(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_transcript(text)


def test_transcripts_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "talks.txt"
    path.write_text("User: Hi\nBot: Hello\nUser: Bye\n\nUser: Help!\nBot: How?\n", "utf-8")
    assert [(row.context, row.response, row.following, row.id) for row in read_exchanges(path)] == [
        (("Hi",), "Hello", "Bye", "0#1"),
        (("Help!",), "How?", None, "1#1"),
    ]
    assert [dialogue.turns for _, dialogue in Source(path).dialogues()] == [("Hi", "Hello", "Bye"), ("Help!", "How?")]


def test_excel(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Question", "Answer", "id"], ["Hi __eou__ Hello", "Fine", 7], [None, None, None], ["Hi", 42, 8]):
        book.active.append(row)
    book.save(tmp_path / "rows.xlsx")
    replies = [(reply.response, reply.id) for reply in read_exchanges(tmp_path / "rows.xlsx")]
    assert replies == [("Fine", "7"), ("42", "8")]
    (tmp_path / "rows.xlsx").write_bytes(b"PK\x03\x04rest")
    refused(ValueError, "rows", lambda: list(read_exchanges(tmp_path / "rows.xlsx")))


def test_of_several_sheets_the_one_that_is_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("Later")):
        for row in (["context", "response"], ["Hi", sheet.title]):
            sheet.append(row)
    book.save(tmp_path / "rows.xlsx")
    assert [reply.response for reply in read_exchanges(tmp_path / "rows.xlsx")] == ["Sheet"]
    assert ["'Sheet'" in told for told in caplog.messages] == [True]


def test_a_text_of_several_turns_is_cut_in_every_format(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"context": "Hi __eou__ Hello", "response": "Fine", "facts": " a "}])
    (row,) = read_exchanges(path)
    assert (row.context, row.facts) == (("Hi", "Hello"), (" a ",))


def test_the_option_that_is_told_reads_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"history": ["Hi", "Hello"], "message": "And?", "Bot reply": "Fine."}])
    (guessed,) = read_exchanges(path)
    (option,) = shlex.split(caplog.messages[0].partition("--columns ")[2])
    assert list(read_exchanges(path, columns=pairs([option]))) == [guessed]


def test_ids_of_chat_logs_meet_without_their_numbers() -> None:
    assert matching_ids(["d0#1", "d1#3"], ["d0#2", "d1"]) == (["d0", "d1"], ["d0", "d1"])
    for kept in ((["d0#1", "d0#3"], ["d0#2"]), (["a#1"], ["a#1"]), (["a#1"], ["b#1"])):
        assert matching_ids(*kept) == kept


def test_a_preview_says_why_no_row_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"prompt,answer\nHi,\xf0\x9f\n")
    refused(BadRow, "UTF-8", Source(tmp_path / "rows.csv").preview)


def test_a_folder_of_many_files_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1001):
        (tmp_path / f"{number}.json").touch()
    refused(ValueError, str(tmp_path), lambda: list(read_exchanges(tmp_path)))
    monkeypatch.setattr(places, "_MOST_FILES", 1000)  # else those are counted that lie in /
    refused(ValueError, "1,000 files or more", lambda: places.states([tmp_path]))


ROWS = [
    {"context": ["Hi"], "response": "That is a good question."},
    {"context": ["Hi"], "response": "Das ist eine gute Frage."},
    {"context": ["Hi"], "response": "Danke!"},
]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I would love to go there some day.", "en"), ("Ich würde gerne einmal dorthin fahren.", "de"),
        ("Je ne sais pas.", "fr"), ("¿Qué tal? Estoy muy bien, gracias.", "es"), ("Я не знаю.", "ru"),
        ("我不知道这个", "zh"), ("それは何ですか", "ja"), ("모르겠어요 그것", "ko"),
        ("Danke!", ""), ("La La Land!", ""),
        ("I went to Los Angeles and had el pastor.", "en"), ("El Paso to Los Angeles", ""),
        ("I met Jean de la Fontaine", "en"), ("La La Land and Los Angeles", ""), ("C'est la vie, I guess", ""),
        ("Vivo en la Ciudad de México.", "es"), ("Wir haben Herrn von der Heide nicht gesehen.", "de"),
        ("", ""), ("42", ""), ("Jalapeño poppers?", ""),
        ("Hyvää huomenta, mitä kuuluu?", "fi"), ("Jó napot, hogy van?", "hu"), ("Dobrý den, jak se máte?", "cs"),
        ("Bardzo dziękuję!", "pl"), ("Xin chào, bạn có khỏe không?", "vi"), ("Bună ziua, ce mai faceți?", "ro"),
    ],
)  # fmt: skip
def test_the_language_of_one_reply(text: str, language: str) -> None:
    assert language_of(text) == language


def test_replies_in_other_languages() -> None:
    assert sum(1 for _ in Source(ROWS).exchanges()) == 3
    rejects = Rejects()
    left = [row.response for _, row in Source(ROWS, other_languages="skip").exchanges(skip_bad=rejects)]
    assert (left, rejects.count) == ([ROWS[0]["response"], ROWS[2]["response"]], 1)
    with pytest.raises(BadRow) as told:
        list(Source(ROWS, other_languages="fail").exchanges())
    assert told.value.row == "1 (list)"


@pytest.mark.parametrize("speakers", [None, ["user", "assistant"] * 2, ["Al", "Shop"] * 2])
def test_the_judged_side_tells_the_language_of_a_conversation(speakers: list[str] | None) -> None:
    german, english = "Das ist eine gute Frage, und wer bist du?", "That is a good question."
    for turns, count in (([german, english] * 2, 1), ([english, german] * 2, 0)):
        row = {"dialogue": turns, "speakers": speakers}
        assert len(list(Source([row], other_languages="skip").dialogues())) == count


@pytest.mark.parametrize(
    ("text", "named"),
    [("Anna (10:02)\nHi\nShop (10:03)\nHello", "who speaks"), ("context,response,id\nHi,A fine,1", ".csv")],
)
def test_a_text_that_is_no_transcript_is_refused(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "log.txt").write_text(text)
    refused(ValueError, named, lambda: list(read_exchanges(tmp_path / "log.txt")))


def test_times_within_what_is_said_are_no_headers() -> None:
    assert read_transcript("When do we meet?\n10:30 is fine.\nHow much?\n12.50").turns[1] == "10:30 is fine."


def test_a_cell_may_hold_messages_and_a_cut_array_is_refused(tmp_path: Path) -> None:
    cell = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]).replace('"', '""')
    (tmp_path / "rows.csv").write_text(f'context,response\n"{cell}",Fine\n')
    assert [row.context for row in read_exchanges(tmp_path / "rows.csv")] == [("Hi", "Yo")]
    (tmp_path / "rows.csv").write_text('context,response\n"[""Hi there"", ""Yo""",Fine\n')
    refused(ValueError, "context", lambda: list(read_exchanges(tmp_path / "rows.csv")))


def test_a_prompt_may_hold_the_history(tmp_path: Path) -> None:
    prompt = "User: Hi\nAssistant: Yo\nUser: Fine?\nAssistant:"
    (row,) = read_exchanges(write_rows(tmp_path / "rows.jsonl", [{"prompt": prompt, "completion": "Yes."}]))
    assert (row.context, row.speakers) == (("Hi", "Yo", "Fine?"), ("user", "assistant", "user"))
