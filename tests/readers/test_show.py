"""`dialeval show` and `dialeval.read`: how rows are understood, before they are scored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dialeval
from refusals import refused
from shell import invoke

SAMPLES = Path(__file__).parent / "samples"


def test_a_row_is_shown_as_a_chat_with_what_is_judged() -> None:
    assert invoke("show", SAMPLES / "ragas_single.jsonl").stdout.splitlines()[1:] == [
        "    user: Which is lighter?", "  > reply: The red one, 20 kg.", "    reference: Red.",
        "    fact: The red canoe weighs 20 kg.",
    ]  # fmt: skip
    shown = invoke("show", SAMPLES / "data.json", "--level", "dialogue", "--rows", 1).stdout
    assert [line[:17] for line in shown.splitlines()[1:]] == [
        "    user: Do you ", "  > assistant: Ye", "    user: Which i", "  > assistant: Th"
    ]  # fmt: skip


def test_columns_that_were_guessed_are_told_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("prompt;completion;stars\nHi;Hello;3\n")
    assert "> reply: Hello" in invoke("show", tmp_path / "rows.csv").stdout
    invoke("show", "-", code=2)


@pytest.mark.parametrize("command", ["score", "rank"])
def test_every_command_shows_rows_as_it_reads_them(
    command: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rows.csv").write_text("question;bot_a;bot_b\nHi;Hello;Bye\nAnd?;So;What\n")
    path, show = str(tmp_path / "rows.csv"), ["--metric", "judge", "--show", "1"]
    words = {
        "score": ["--input", path, "--output", str(tmp_path / "o.csv"), "--columns", "context=question,response=bot_a"],
        "rank": [path, "--systems", "bot_a,bot_b"],
    }
    invoke(command, *words[command], *show)
    replies = [line for line in caplog.messages if "> reply" in line]
    assert replies == ["  > reply: Hello", "  > reply: Bye"][: 2 if command == "rank" else 1]


def test_a_file_becomes_a_frame_that_is_scored_as_the_file_is() -> None:
    frame = dialeval.read(SAMPLES / "deepeval.json")
    assert frame.to_dict("records") == [
        {"context": ["Which is lighter?"], "response": "The red one, 20 kg.", "references": ["Red."],
         "facts": ["The red canoe weighs 20 kg."], "id": "case_0", "speakers": ["user"]}
    ]  # fmt: skip
    metric = dialeval.load("rougeL")
    path = SAMPLES / "deepeval.json"
    assert metric.score(frame).aggregate == metric.score(path).aggregate == metric.score(str(path)).aggregate
    refused(FileNotFoundError, "no.jsonl", metric.score, "no.jsonl")


@pytest.mark.parametrize("name", ["langfuse_observations.jsonl", "langsmith.jsonl", "opentelemetry_events.jsonl"])
def test_frames_of_traces_are_read_as_files(name: str) -> None:
    frame = pd.read_json(SAMPLES / name, lines=True)
    assert dialeval.read(frame)["response"].tolist() == ["The red one, 20 kg."]
