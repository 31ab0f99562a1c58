"""`dialeval score`: what is written, where, and what is refused."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import overlap_metric
from dialeval.cli import build_app
from dialeval.core.specs import Condition
from dialeval.scoring.score_table import table
from refusals import refused
from shell import invoke, read_rows, write_rows

ROWS = [
    {"context": ["the bus is late", "again"], "response": "the bus", "id": "a", "system": "S"},
    {"context": ["who"], "response": "nobody", "id": "=1+1", "system": "-T"},
    {"context": ["it is long ago"], "response": "long ago it is", "id": "-7"},
]
#: 2 of 5 words, none of 2, all 4.
VALUES = [0.4, 0.0, 1.0]


@pytest.fixture(autouse=True)
def _in_a_folder_with_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlap_metric.register()
    monkeypatch.chdir(tmp_path)
    write_rows("rows.jsonl", ROWS)


def score(*options: str, metric: str = "overlap", output: str = "scores.jsonl", piped: str | None = None) -> Result:
    given = ["score", "-m", metric, "-o", output, *options]
    return CliRunner().invoke(build_app(), [*given, *([] if "-i" in options else ["-i", "rows.jsonl"])], input=piped)


def files() -> set[str]:
    return {path.name for path in Path.cwd().iterdir()}


def test_json_lines() -> None:
    result = score()
    assert result.exit_code == 0
    assert read_rows("scores.jsonl") == [
        {"row": 0, "id": "a", "system": "S", "language": "", "response": "the bus", "overlap": 0.4},
        {"row": 1, "id": "=1+1", "system": "-T", "language": "", "response": ROWS[1]["response"], "overlap": 0.0},
        {"row": 2, "id": "-7", "system": None, "language": "en", "response": "long ago it is", "overlap": 1.0},
    ]
    assert pd.read_json("scores.jsonl", lines=True)["overlap"].tolist() == VALUES
    assert result.stdout == ""
    told = result.stderr.splitlines()
    for line, pattern in zip(told, [r"overlap 0\.466667 .*\b3\b.*\b1\b", r" *S 0\.4\b", r" *-T 0\b"], strict=False):
        assert re.match(pattern, line), line
    assert (told[3].strip(), len(told)) == ("metric:overlap|weight:1.0", 6)
    assert files() == {"rows.jsonl", "scores.jsonl"}


def test_csv_is_harmless_in_a_spreadsheet() -> None:
    assert score("--texts", "none", output="scores.csv").exit_code == 0
    assert Path("scores.csv").read_text(encoding="utf-8").splitlines() == [
        "row,id,system,language,overlap",
        "0,a,S,,0.4",
        "1,'=1+1,'-T,,0.0",
        # A plain number is no formula.
        "2,-7,,en,1.0",
    ]
    assert pd.read_csv("scores.csv")["overlap"].tolist() == VALUES


@pytest.mark.parametrize("hidden", ["", "\0", "\ufeff", "\u200b", "\u200b\ufeff\0 ", "\u2060"])
def test_what_cannot_be_seen_hides_no_formula(hidden: str) -> None:
    stream = io.BytesIO()
    with table(stream, "csv", ["overlap"]) as write:
        ids = [f"{hidden}=1+1", f"{hidden}a=1"]
        others = {"system": [None, None], "language": ["", ""]}
        write({"row": [0, 1], "id": ids, **others, "values": {"overlap": [1.0, 1.0]}})
    first, second = list(csv.reader(io.StringIO(stream.getvalue().decode(), newline="")))[1:]
    assert first[1] == f"'{hidden}=1+1"
    assert second[1] == f"{hidden}a=1"


def test_parquet() -> None:
    assert score("--texts", "all", output="scores.parquet").exit_code == 0
    frame = pd.read_parquet("scores.parquet")
    assert frame.columns.tolist() == ["row", "id", "system", "language", "context", "response", "overlap"]
    assert [list(turns) for turns in frame["context"]] == [row["context"] for row in ROWS]
    assert frame["overlap"].tolist() == VALUES
    assert frame["id"].tolist() == ["a", "=1+1", "-7"]


def test_replies_and_turns_stand_beside_the_values_where_asked() -> None:
    assert score("--texts", "all", output="scores.csv").exit_code == 0
    table = pd.read_csv("scores.csv")
    assert [json.loads(cell) for cell in table["context"]] == [row["context"] for row in ROWS]
    assert table["response"].tolist()[0] == "the bus"
    Path("talks.jsonl").write_text(json.dumps({"dialogue": ["Hi", "Hello\u2028you", "Bye"]}) + "\n", encoding="utf-8")
    talk = ["-i", "talks.jsonl", "--level", "dialogue", "--overwrite"]
    for options, turns in ((["--texts", "all"], ["Hi", "Hello\u2028you", "Bye"]), ([], None)):
        assert score(*talk, *options).exit_code == 0
        (line,) = Path("scores.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(line).get("dialogue") == turns


def test_the_judge_is_the_default() -> None:
    invoke("score", "-i", "rows.jsonl", "-o", "scores.csv")
    assert pd.read_csv("scores.csv")["judge"].between(0, 1).all()


def test_several_metrics_make_one_table() -> None:
    rows = [{**row, "reference": "the bus"} for row in ROWS]
    write_rows("more.jsonl", rows)
    assert score("-i", "more.jsonl", "-m", "quoting", metric="overlap,variety").exit_code == 0
    frame = pd.read_json("scores.jsonl", lines=True)
    assert frame.columns.tolist() == ["row", "id", "system", "language", "response", "overlap", "quoting"]
    assert frame["quoting"].tolist() == [1.0, 0.0, 0.0]
    summary = json.loads(Path("scores.jsonl.summary.json").read_text(encoding="utf-8"))
    assert summary["n"] == 3
    assert summary["metrics"]["overlap"]["aggregate"] == pytest.approx(1.4 / 3)
    assert summary["metrics"]["quoting"]["higher_is_better"] is False
    assert summary["metrics"]["variety"]["systems"] == {"-T": 1.0, "S": 1.0, "all": 1.0}


def test_metrics_of_systems_alone_give_a_row_per_system() -> None:
    assert score(metric="variety").exit_code == 0
    assert pd.read_json("scores.jsonl", lines=True).to_dict("list") == {
        "system": ["-T", "S", "all"],
        "variety": [1, 1, 1],
    }


def test_dialogues() -> None:
    Path("talks.jsonl").write_text('{"dialogue": ["a b", "b", "c"], "id": "t"}\n', encoding="utf-8")
    assert score("-i", "talks.jsonl", "--level", "dialogue").exit_code == 0
    # "b" shares 1 of 2 words with "a b"; "c" none of 3 with both.
    assert pd.read_json("scores.jsonl", lines=True)["overlap"].tolist() == [0.25]
    assert "variety judges a system" in score("-i", "talks.jsonl", "--level", "dialogue", metric="variety").stderr


def test_single_replies_are_no_conversations() -> None:
    Path("rows.csv").write_text("context,response\nhow are you,fine\n", encoding="utf-8")
    for name in ("rows.jsonl", "rows.csv"):
        result = score("-i", name, "--level", "dialogue")
        assert result.exit_code == 2
        assert "dialogue=COLUMN" in result.stderr
        assert not Path("scores.jsonl").exists()


def test_scale_and_the_signature_that_tells_it() -> None:
    result = score("--scale", "human_percentile")
    assert pd.read_json("scores.jsonl", lines=True)["overlap"].tolist() == [0.2, 0.0, 0.5]
    assert "metric:overlap|weight:1.0|scale:human_percentile" in result.stderr


def test_values_that_are_not_numbers_are_null() -> None:
    Path("blank.jsonl").write_text(
        '{"context": [""], "response": ""}\n{"context": ["a"], "response": "a"}\n', encoding="utf-8"
    )
    assert "empty=score" in score("-i", "blank.jsonl").stderr
    result = score("-i", "blank.jsonl", "--empty", "score")
    assert [row["overlap"] for row in read_rows("scores.jsonl")] == [None, 1.0]
    assert re.search("overlap 1 .*1 value, 1 row without", result.stderr)
    assert re.search(r"\b2\b.*\b1\b.*empty", result.stderr)


def test_bad_rows_are_set_aside() -> None:
    rows = [json.dumps(ROWS[0]), '{"context": ["a"], "response": null}', "nonsense", json.dumps(ROWS[2])]
    Path("mixed.jsonl").write_text("\n".join(rows), encoding="utf-8")
    result = score("-i", "mixed.jsonl", "--skip-bad")
    assert result.exit_code == 3
    assert re.search(r"\b2 rows\b.*scores\.jsonl\.rejects\.jsonl", result.stderr)
    assert [row["row"] for row in read_rows("scores.jsonl")] == [0, 3]
    aside = read_rows("scores.jsonl.rejects.jsonl")
    assert [(row["row"], row["raw"]) for row in aside] == [(1, {"context": ["a"], "response": None}), (2, "nonsense")]
    assert score("-i", "mixed.jsonl", "--skip-bad", output="-").exit_code == 2
    assert score("--skip-bad", output="good.jsonl").exit_code == 0
    assert Path("good.jsonl.rejects.jsonl").read_bytes() == b""


def test_nothing_but_bad_rows() -> None:
    Path("bad.jsonl").write_text("nonsense\n", encoding="utf-8")
    result = score("-i", "bad.jsonl", "--skip-bad")
    assert result.exit_code == 2
    assert "row 0 (bad.jsonl, line 1)" in result.stderr
    assert files() == {"rows.jsonl", "bad.jsonl"}


@pytest.mark.parametrize("options", [[], ["-i", "-"]])
def test_nothing_but_rows_in_other_languages(options: list[str]) -> None:
    row = json.dumps({"context": ["who"], "response": "Ich bin es nicht und das ist gut."})
    Path("rows.jsonl").write_text(row)
    result = score("--other-languages", "skip", *options, piped=row)
    assert result.exit_code == 2
    assert "--other-languages mark" in result.stderr.splitlines()[-1]
    assert files() == {"rows.jsonl"}


def test_a_bad_last_row_is_found_before_anything_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object, **__: object) -> None:
        raise AssertionError("scored too early")

    monkeypatch.setattr(overlap_metric.Overlap, "judge", judge)
    Path("rows.jsonl").write_bytes(Path("rows.jsonl").read_bytes() * 2000 + b"{}\n")
    result = score()
    assert (result.exit_code, "row 6000 (rows.jsonl, line 6001)" in result.stderr) == (2, True)


def test_a_link_is_followed_and_a_device_is_written_to() -> None:
    Path("real.jsonl").touch()
    Path("scores.jsonl").symlink_to("real.jsonl")
    assert score("--overwrite").exit_code == 0
    assert Path("scores.jsonl").is_symlink()
    assert len(read_rows("real.jsonl")) == 3
    assert score(output="/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


#: What is wrong, and what the error names.
WRONG: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    ((), {"metric": ","}, "metric"),
    (("--scale", "human_percentile"), {"metric": "variety"}, "human_percentile"),
    ((), {"output": "rows.jsonl"}, "rows.jsonl"),
    ((), {"output": "."}, "jsonl"),
    ((), {"output": "rows.jsonl/scores.jsonl"}, "rows.jsonl"),
    ((), {"output": ""}, "output"),
    (("-i", ""), {}, "input"),
    (("--dtype", "float32"), {}, "dtype"),
    (("--checkpoint", "somewhere"), {}, "checkpoint"),
    (("--checkpoint", "somewhere"), {"metric": "overlap,quoting"}, "METRIC=CHECKPOINT"),
    (("--columns", "response"), {}, "FIELD=COLUMN"),
    (("--split", "test"), {}, "split"),
    (("--scale", "other"), {}, "--scale"),
    (("--max-length", "7"), {}, "--max-length"),
    (("--max-length", "256"), {}, "max_length"),
    ((), {"metric": "../../x"}, "../../x"),
    ((), {"metric": "overlap\x1b[2J"}, "overlap"),
    (("--checkpoint", "a/../b"), {}, "checkpoint"),
    (("--dtype", "int1"), {}, "dtype"),
]


@pytest.mark.parametrize(("options", "changes", "named"), WRONG)
def test_wrong_usage(options: tuple[str, ...], changes: dict[str, str], named: str) -> None:
    before = {name: Path(name).read_bytes() for name in files()}
    result = score(*options, **changes)
    assert result.exit_code == 2
    assert named in result.stderr
    # An option's own range is told by the library that reads options, everything else in a line.
    is_line = result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert is_line or result.stderr.startswith("Usage: ")
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr
    assert {name: Path(name).read_bytes() for name in files()} == before


def test_a_full_disk_is_the_machine_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = score()
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: No space left on device")
    assert "scores.jsonl" in line
    assert "scores.jsonl" not in files()


def test_an_unforeseen_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object, **__: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr(overlap_metric.Overlap, "judge", judge)
    result = score()
    assert result.exit_code == 1
    assert isinstance(result.exception, KeyError)


def test_rows_that_were_set_aside_are_not_missed_in_a_plot() -> None:
    rows = [{"context": ["a"], "response": said, "id": f"r{at}"} for at, said in enumerate(["a", 5, "", "b"])]
    write_rows("some.jsonl", rows)
    assert score("-i", "some.jsonl", "--skip-bad").exit_code == 3
    words = ["plot", "scores", "scores.jsonl", "--input", "some.jsonl", "--out", "plots"]
    assert invoke(*words).stdout.strip() == str(Path("plots", "scores_scores.png"))
    Path("some.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    assert "row 3" in invoke(*words, code=2).stderr


FLAGGED = ["judge", "judge.relevant", "deb", "judge.fluent", "other.fluent"]


@pytest.mark.parametrize(
    ("text", "column", "below", "bound"),
    [
        ("relevant<0.2", "judge.relevant", True, 0.2),
        (" judge > 1e-3 ", "judge", False, 0.001),
        ("other.fluent<-1", "other.fluent", True, -1),
    ],
)
def test_conditions_are_read(text: str, column: str, below: bool, bound: float) -> None:
    flag = Condition.read(text, FLAGGED)
    assert (flag.column, flag.below, flag.bound) == (column, below, bound)


@pytest.mark.parametrize(
    "text", ["", "relevant", "relevant<", "relevant<=0.2", "relevant<0.2.3", "kind<0.2", "fluent<1"]
)
def test_what_is_no_condition_is_refused_by_its_text(text: str) -> None:
    refused(ValueError, repr(text), Condition.read, text, FLAGGED)


def test_the_command_writes_and_counts_them() -> None:
    replies = ["I like it", "no no no", "what is it that you like"]
    rows = [{"context": ["What do you like?"], "response": reply} for reply in replies]
    write_rows("rows.jsonl", rows)
    given = ["score", "-m", "python:number_metrics:letters", "-i", "rows.jsonl", "--flag", "letters<9"]
    for output in ("scores.jsonl", "scores.csv", "scores.parquet"):
        ended = invoke(*given, "-o", output)
        assert "1 of them flagged" in ended.stderr
    found = [row["flags"] for row in read_rows("scores.jsonl")]
    assert found == pd.read_parquet("scores.parquet")["flags"].tolist()
    assert [bool(one) for one in found] == [False, True, False]
    invoke(*given[:-1], "kind<2", "-o", "more.jsonl", code=2)
    assert not Path("more.jsonl").exists()


@pytest.mark.parametrize(("known", "said"), [(3, "3 rows scored"), (2, "3 rows read, 2 of them scored"),
                                             (0, "3 rows read, none of them scored")])  # fmt: skip
def test_rows_without_a_value_are_not_called_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int, said: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    rows = [{"context": ["Was ist das?"], "response": f"Das ist nicht gut für mich {at}."} for at in range(3)]
    write_rows("rows.jsonl", rows)
    Path(f"first_{known}.py").write_text(f"def some_{known}(rows):\n    return [1] * {known} + [None] * {3 - known}\n")
    given = ["score", "-m", f"python:first_{known}:some_{known}", "-i", "rows.jsonl", "-o", "out.jsonl"]
    ended = invoke(*given)
    assert said in ended.stderr
    # A function, or a language model, need not have learned from English.
    assert "not English" not in ended.stderr
