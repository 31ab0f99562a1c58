"""Nasty inputs: each gives one sentence, or its right score, through every entrance."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import malformed
import overlap_metric
from dialeval.core.exchange import BadRow
from dialeval.readers import Rejects, Source, read_exchanges
from refusals import refused
from shell import invoke

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
    message = refused(BadRow, wanted, lambda: list(read_exchanges(path)))
    line = 1 + good.count(b"\n")
    assert message.startswith(f"row 2 ({path}, line {line}): ")
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
    result = invoke("score", "-m", "overlap", "-i", path, "-o", tmp_path / "scores.jsonl", code=2)
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("case", malformed.VALUES)
def test_bad_values_are_refused(case: str) -> None:
    values, message = malformed.VALUES[case]
    refused(ValueError, message, overlap_metric.Overlap().score, **values)


# --- inputs that look broken but are not: of each row, the share of words in common ----------------

_BOM = b"\xef\xbb\xbf"


def line(context: object, response: str, **more: object) -> bytes:
    """One JSON line, not escaped."""
    values = {"context": context, "response": response, **more}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


#: One word of three in common, and one of two.
THIRD, HALF = line(["a b"], "b c"), line(["a b"], "b")
#: Texts that mean something elsewhere; said and answered word for word they overlap wholly.
VERBATIM = {
    "special tokens": "[CLS] hello [SEP] [PAD] <s> </s> <|endoftext|>",
    "a formula": '=HYPERLINK("http://example.org","x")',
    "a Python list": "['a', 'b']",
    "an escaped NUL within": "a\0b",
    "a family joined without width": "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈",
    "separators of the CSV form": "a __eou__ b",
}

SOUND_JSON: dict[str, tuple[bytes, list[float]]] = {
    **{name: (line([text], text), [1.0]) for name, text in VERBATIM.items()},
    "escaped pair of surrogates": (b'{"context": ["\\ud83d\\ude00 a"], "response": "\\ud83d\\ude00"}\n', [1 / 2]),
    "line and paragraph separators": (line(["a b c"], "a\u2028b\u2029c"), [1.0]),
    "next line and vertical tab": (line(["a b c"], "a\x85b\x0bc"), [1.0]),
    "Windows line ends": (THIRD.replace(b"\n", b"\r\n") * 2, [1 / 3, 1 / 3]),
    "blank lines": (b"\n\n" + THIRD + b" \t\r\n\n" + HALF + b"\n", [1 / 3, 1 / 2]),
    "a byte-order mark": (_BOM + THIRD, [1 / 3]),
    "no line end": (THIRD.strip(), [1 / 3]),
    "white space around": (b" \t " + THIRD.strip() + b" \t \n", [1 / 3]),
    "a key twice": (b'{"context": ["a"], "response": "b", "response": "a"}\n', [1.0]),
    "columns that nobody knows": (line(["a"], "a", meta={"deep": [1, {"er": None}]}, **{"": 1}), [1.0]),
    "nulls where a value may lack": (line(["a"], "a", references=None, system=None, id=None), [1.0]),
    "NaN where a value may lack": (b'{"context": ["a"], "response": "a", "reference": NaN, "id": NaN}\n', [1.0]),
    "a context that is a string": (line("a b", "b c"), [1 / 3]),
    "a blank turn among others": (line(["", "a", "\u200b"], "a"), [1 / 2]),
    "a line of ten megabytes": (line(["b"], "b " + "c" * (10 * 2**20)), [1 / 2]),
    "a JSON array": (b"[" + THIRD.strip() + b", " + HALF.strip() + b"]", [1 / 3, 1 / 2]),
    "a JSON array over lines": (b"[\n" + THIRD + b",\n" + HALF + b"]\n", [1 / 3, 1 / 2]),
}

SOUND_TABLES: dict[str, tuple[str, bytes, list[float]]] = {
    "quoted line break": ("rows.csv", b'context,response\n"a\nb","b\r\nc"\n', [1 / 3]),
    "separator inside quotes": ("rows.csv", b'context,response\n"a, b","a, c"\n', [1 / 3]),
    "CSV with a byte-order mark": ("rows.csv", _BOM + b"context,response\r\na b,b c\r\n", [1 / 3]),
    "CSV with blank lines": ("rows.csv", b"\ncontext,response\n\n\na b,b c\n\n", [1 / 3]),
    "CSV with nameless columns": ("rows.csv", b"context,response,\na,a,\n", [1.0]),
    "formulas in cells": ("rows.csv", b"context,response,id\n=1+1,=1+1,@x\n", [1.0]),
    "JSON array in a cell": ("rows.csv", b'context,response\n"[""a"", ""b""]",b c\n', [1 / 3]),
    "turns and a separator behind": ("rows.csv", b"context,response\na__eou__b__eou__,b c\n", [1 / 3]),
    "empty optional cells": ("rows.csv", b"context,response,reference,system,id\na,a,,,\n", [1.0]),
    "semicolons": ("rows.csv", b'context;response\na, b;"a, c"\n', [1 / 3]),
    "tabs in a CSV": ("rows.csv", b"context\tresponse\na b\tb c\n", [1 / 3]),
    "a spreadsheet's separator line": ("rows.csv", b"sep=;\ncontext;response\na b;b c\n", [1 / 3]),
    "CSV in Latin-1": ("rows.csv", "context,response,café\ncafé b,café c,\n".encode("latin-1"), [1 / 3]),
    "CSV in UTF-16": ("rows.csv", "context\tresponse\ncafé b\tcafé c\n".encode("utf-16"), [1 / 3]),
    "JSON lines in UTF-16": ("rows.jsonl", THIRD.decode().encode("utf-16"), [1 / 3]),
    "UTF-16 in gzip": ("rows.jsonl.gz", gzip.compress(THIRD.decode().encode("utf-16")), [1 / 3]),
    "an ending in capitals": ("ROWS.JSONL", THIRD, [1 / 3]),
    "gzip in two parts": ("rows.jsonl.gz", gzip.compress(THIRD) + gzip.compress(HALF), [1 / 3, 1 / 2]),
    "gzip with zeros behind it": ("rows.jsonl.gz", gzip.compress(THIRD) + b"\0" * 512, [1 / 3]),
    "gzip that does not say so": ("rows.jsonl", gzip.compress(THIRD), [1 / 3]),
    "plain text that says gzip": ("rows.jsonl.gz", THIRD, [1 / 3]),
}

SOUND = {name: ("rows.jsonl", *case) for name, case in SOUND_JSON.items()} | SOUND_TABLES


@pytest.mark.parametrize("case", SOUND)
@pytest.mark.slow
def test_what_only_looks_bad_is_scored_right(tmp_path: Path, case: str) -> None:
    name, content, expected = SOUND[case]
    path = write(tmp_path, name, content)
    result = invoke("score", "-m", "overlap", "-i", path, "-o", "-")
    scored = [json.loads(text) for text in result.stdout.splitlines()]
    assert [row["overlap"] for row in scored] == pytest.approx(expected)
    assert [row["row"] for row in scored] == list(range(len(expected)))


def test_ids_come_out_as_they_went_in(tmp_path: Path) -> None:
    """Twice the same, formulas, marks of direction, integers: in JSON nothing needs to be changed."""
    ids = ["x", "x", "=1+1", "\u202eabc", "a\nb", "\0", 2**80]
    path = write(tmp_path, "rows.jsonl", b"".join(malformed.line(id=name) for name in ids))
    result = invoke("score", "-m", "overlap", "-i", path, "-o", "-")
    assert [json.loads(text)["id"] for text in result.stdout.splitlines()] == [str(name) for name in ids]


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
