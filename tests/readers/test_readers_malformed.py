"""Two hundred nasty inputs: each gives one sentence, or its right score, through every entrance."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import malformed
import odd_but_sound
import overlap_metric
from dialeval.cli import build_app
from dialeval.core.exchange import BadRow
from dialeval.readers import Rejects, Source, read_exchanges
from refusals import refused

TWO_GOOD_JSON = malformed.line() * 2
TWO_GOOD_CSV = b'context,response\nIs it raining?,No.\nIs it snowing?,"No, and\nit will not."\n'
#: file name, good rows, the bad row 2, what is said of it
ROWS = {
    **{f"JSON: {name}": ("rows.jsonl", TWO_GOOD_JSON, *case) for name, case in malformed.JSON_ROWS.items()},
    **{f"CSV: {name}": ("rows.csv", TWO_GOOD_CSV, *case) for name, case in malformed.CSV_ROWS.items()},
}
EVERYTHING = {case: (name, good + bad, told) for case, (name, good, bad, told) in ROWS.items()} | malformed.FILES


@pytest.fixture(autouse=True)
def _overlap() -> None:
    overlap_metric.register()


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_is_named_with_its_file_and_line(tmp_path: Path, case: str) -> None:
    name, good, bad, wanted = ROWS[case]
    path = write(tmp_path, name, good + bad)
    with pytest.raises(BadRow) as caught:
        list(read_exchanges(path))
    message = str(caught.value)
    line = 1 + good.count(b"\n")
    assert message.startswith(f"row 2 ({path}, line {line}): ")
    assert wanted in message
    assert "\n" not in message


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_can_be_set_aside(tmp_path: Path, case: str) -> None:
    name, good, bad, message = ROWS[case]
    is_closed = bad.endswith(b"\n") and "open quote" not in case
    another = malformed.line() if name == "rows.jsonl" else b"Is it dry?,Yes.\n"
    path = write(tmp_path, name, good + bad + (another if is_closed else b""))
    with Rejects(tmp_path / "bad.jsonl") as rejects:
        exchanges = list(read_exchanges(path, skip_bad=rejects))
    assert rejects.count == 1
    assert len(exchanges) == (3 if is_closed else 2)
    (aside,) = [json.loads(text) for text in (tmp_path / "bad.jsonl").read_text(encoding="utf-8").splitlines()]
    assert aside["row"] == 2
    assert message in aside["problem"]
    assert aside["raw"] is not None or bad == b"null\n"


@pytest.mark.parametrize("case", malformed.FILES)
def test_a_bad_file_is_named(tmp_path: Path, case: str) -> None:
    name, content, message = malformed.FILES[case]
    path = write(tmp_path, name, content)
    assert "\n" not in refused(ValueError, message, lambda: list(read_exchanges(path)))


@pytest.mark.parametrize("case", list(EVERYTHING)[::4])
@pytest.mark.slow
def test_the_command_says_the_same_and_writes_nothing(tmp_path: Path, case: str) -> None:
    name, content, message = EVERYTHING[case]
    path = write(tmp_path, name, content)
    output = tmp_path / "scores.jsonl"
    result = CliRunner().invoke(build_app(), ["score", "-m", "overlap", "-i", str(path), "-o", str(output)])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("case", malformed.VALUES)
def test_bad_values_are_refused(case: str) -> None:
    values, message = malformed.VALUES[case]
    refused(ValueError, message, overlap_metric.Overlap().score, **values)


@pytest.mark.parametrize("case", odd_but_sound.FILES)
@pytest.mark.slow
def test_what_only_looks_bad_is_scored_right(tmp_path: Path, case: str) -> None:
    name, content, expected = odd_but_sound.FILES[case]
    path = write(tmp_path, name, content)
    result = CliRunner().invoke(build_app(), ["score", "-m", "overlap", "-i", str(path), "-o", "-"])
    assert result.exit_code == 0, result.stderr
    scored = [json.loads(text) for text in result.stdout.splitlines()]
    assert [row["overlap"] for row in scored] == pytest.approx(expected)
    assert [row["row"] for row in scored] == list(range(len(expected)))


def test_ids_come_out_as_they_went_in(tmp_path: Path) -> None:
    """Twice the same, formulas, marks of direction, integers: in JSON nothing needs to be changed."""
    ids = ["x", "x", "=1+1", "\u202eabc", "a\nb", "\0", 2**80]
    path = write(tmp_path, "rows.jsonl", b"".join(malformed.line(id=one) for one in ids))
    result = CliRunner().invoke(build_app(), ["score", "-m", "overlap", "-i", str(path), "-o", "-"])
    assert [json.loads(text)["id"] for text in result.stdout.splitlines()] == [str(one) for one in ids]


@pytest.mark.parametrize(
    "content",
    [
        *("User: Hi!\nBot: Hello.\n".encode(coding) for coding in ("utf-16-le", "utf-16-be", "utf-32-le")),
        "User: 你好\nBot: 再见\n".encode("utf-16-le"),
        b"User: Hi!\nBot: Hel\0lo.\n",
        b"User: Hi!\nBot: caf\xe9\0.\n",
        bytes(2**20),
    ],
)
@pytest.mark.parametrize("name", ["talk.txt", "talk.md", "talk.srt", "talk.txt.gz"])
def test_a_text_with_nul_bytes_is_named(tmp_path: Path, content: bytes, name: str) -> None:
    """UTF-16 without its mark looks so."""
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(ValueError, match=name):
        list(Source(tmp_path / name).exchanges())
