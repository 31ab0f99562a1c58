"""What somebody else wrote, altered in every way: it is read, or refused in one sentence, and nothing else happens.

The same examples in every run; `make fuzz` tries new ones for about an hour. What it finds is kept as an `example`.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import math
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.benchmarks.rowfile import read_file
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS, CheckpointError
from dialeval.cli.info import _training as told_of_training
from dialeval.hub.publish import card_of
from dialeval.io.files import parse_json, read_small, read_yaml
from dialeval.llm.asking import read_price
from dialeval.llm.protocol import read_protocol
from dialeval.llm.reading import NoAnswer, expectation, read_aspects, read_choice, read_number
from dialeval.readers import Source
from dialeval.readers.score_files import read_scores
from refusals import refused

#: How many examples of each; `make fuzz` sets more, and then they are new ones every time.
EXAMPLES = int(os.environ.get("DIALEVAL_FUZZ", "0"))
usual = settings(
    max_examples=EXAMPLES or 40, derandomize=not EXAMPLES, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

SAMPLES = sorted((Path(__file__).parents[1] / "readers" / "samples").rglob("*.*"))
PLAIN = {
    "rows.jsonl": b'{"context": ["Hi!", "Hello."], "response": "Fine.", "id": 1, "rating": 4}\n' * 3,
    "rows.csv": b'context,response,system\r\n"a __eou__ b","Fine, ""you""?",x\r\nc,d,y\r\n',
    "rows.tsv": b"context\tresponse\nHi\tHello\n",
    "talk.txt": b"User: Hi!\nBot: Hello.\n---\n[01.02.24, 10:02:11] A: x\n[01.02.24, 10:02:12] B: y\n",
    "talk.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi\n\n00:03.000 --> 00:04.000\n<v Bob>Ho\n",
    "talk.md": b"## User\nHi\n## Assistant\nHello\n",
}


def _tables() -> Iterator[tuple[str, bytes]]:
    """The same rows in formats that are no text."""
    table = pa.table({"context": [["Hi!", "Hello."], ["Hi!"]], "response": ["Fine.", "Fine."], "id": [1, 2]})
    stream, columns, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as sink:
        sink.write_table(table)
    pq.write_table(table, columns)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("rows.jsonl", PLAIN["rows.jsonl"])
    for name, content in (("rows.arrow", stream), ("rows.parquet", columns), ("rows.zip", archive)):
        yield name, content.getvalue()
    if find_spec("openpyxl"):
        import openpyxl

        book, content = openpyxl.Workbook(), io.BytesIO()
        for row in (["context", "response"], ["Hi!", "Fine."]):
            book.active.append(row)
        book.save(content)
        yield "rows.xlsx", content.getvalue()


def _zip_with(piece: bytes, other: bytes) -> tuple[str, bytes]:
    content = dict(_tables())["rows.zip"]
    assert piece in content
    return "rows.zip", content.replace(piece, other, 1)


FILES = [*PLAIN.items(), *_tables(), *((path.name, path.read_bytes()) for path in SAMPLES)]
#: What stands in no file of a sound program.
ODD = [
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\r", b"\n\n", b"\x1f\x8b",
    b"null", b"NaN", b"-1e999", b"9" * 5000, b"\\ud800", b"\xed\xa0\x80", b"true", b"[" * 2000, b'{"a":' * 2000,
    b"PK\x03\x04", b"PAR1", b"---", b"\t", b"\x1b[2J", "\u202e\u200b".encode(), b"__eou__", b"User:", b"sep=;\n",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 10**400, 1.5, math.inf, math.nan, "", " ", "\u200b", "\ud800", "a\nb", [], {}, [[]], [{}],
    [None], ["a", 1], {"a": None}, {"": ""}, "x" * 5000, [["a"] * 3] * 3, "../../x", {"role": 1, "content": []},
]  # fmt: skip
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(ODD)), max_size=4)


def edited(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """The content with pieces of it replaced."""
    for place, length, piece in changes:
        start = int(place * len(content))
        content = content[:start] + piece + content[start + length :]
    return content


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a tree of JSON."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def altered(value: Any, changes: list[tuple[float, int]]) -> Any:
    """A tree of which some parts are something else, or gone."""
    value = copy.deepcopy(value)
    for share, which in changes:
        *above, last = [*places(value)][int(share * (len([*places(value)]) - 1))] or (None,)
        if last is None:
            continue
        inner = value
        for key in above:
            inner = inner[key]
        if which < 0:
            del inner[last]
        else:
            inner[last] = copy.deepcopy(VALUES[which])
    return value


alterations = st.lists(st.tuples(st.floats(0, 1), st.integers(-2, len(VALUES) - 1)), min_size=1, max_size=3)


def read_or_refused(call: Callable[[], object]) -> None:
    """Nothing, or a sentence in one line that says something."""
    sentence = "it is read"
    try:
        call()
    except (ValueError, OSError, CheckpointError) as error:
        sentence = str(error)
    assert " " in sentence
    assert sentence.isprintable(), sentence


def read_everything(path: Path) -> None:
    """A file in each of the ways in which a command reads one."""
    read_or_refused(lambda: list(Source(path).exchanges(empty="score")))
    read_or_refused(lambda: list(Source(path).dialogues(empty="score")))
    read_or_refused(lambda: Source(path).preview())
    read_or_refused(lambda: list(Source(path).rated()[1]))


@usual
@given(st.sampled_from(FILES), edits)
@example(("rows.csv", b"context,response\r\na,b\r\n"), [(0.0, 0, b"\x00")])
@example(("rows.tsv", b'"context"x\tresponse\nHi\tHello\n'), [])
@example(_zip_with(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\xba"), [])
@example(_zip_with(b"rows.jsonl", b"\nows.jsonl"), [])
def test_any_bytes_are_rows_or_refused(tmp_path_factory: Any, file: tuple[str, bytes], changes: Any) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzzed-{file[0]}"
    path.write_bytes(edited(file[1], changes))
    read_everything(path)
    read_or_refused(lambda: read_scores(path))


@usual
@given(st.sampled_from([file for file in FILES if b"{" in file[1][:2]]), alterations)
@example(("log.jsonl", b'{"schemaType": "m", "input": {"inputBodyJson": null}, "output": {}}'), [])
def test_any_json_is_rows_or_refused(tmp_path_factory: Any, file: tuple[str, bytes], changes: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    try:
        row = json.loads(file[1])
    except ValueError:
        row = json.loads(file[1].splitlines()[0])
    path.write_text(json.dumps(altered(row, changes)) + "\n", "utf-8")
    read_everything(path)
    read_or_refused(lambda: list(Source([altered(row, changes)]).exchanges(empty="score")))


WORDS = [
    "{", "}", "[", "]", '"relevance"', '"grammar"', ":", ",", "4", "-1", "1e9", "9" * 500, "NaN", "null", '"4"',
    "Score:", "4/5", "4 out of 5", "<think>", "</think>", "Reply A is better", "Answer: B", "tie", "**", "\n", " ", "½",
    "relevance: 4", "grammar - 2", "```json", "```", '{"relevance": 4, "grammar": 2}', "\ud800", "\0", "√", "１", "٤",
]  # fmt: skip


@usual
@given(st.lists(st.sampled_from(WORDS), max_size=12))
@example(["Score:", "1", "9" * 500])
def test_any_answer_is_read_or_none(words: list[str]) -> None:
    text = "".join(words)
    tokens = [{"token": word, "logprob": -0.1} for word in words]
    reads: list[Callable[[], Any]] = [
        lambda: read_aspects(text, ["relevance", "grammar"], 1, 5).values(),
        lambda: [read_number(text, 1, 5)[0]],
        lambda: [expectation(text, tokens, 1, 5)],
        lambda: [1 + 4 * read_choice(text)],
    ]
    for read in reads:
        with suppress(NoAnswer):
            assert all(1 <= value <= 5 for value in read())


CONFIGS = {path.parent.name: json.loads(path.read_text("utf-8")) for path in sorted(WEIGHTS.glob("*/config.json"))}


@usual
@given(st.sampled_from(sorted(CONFIGS)), alterations)
def test_any_config_is_read_or_refused(tmp_path_factory: Any, name: str, changes: Any) -> None:
    """Also what is told of one, and the card that is made of it."""
    folder = tmp_path_factory.getbasetemp() / "fuzzed-config"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(altered(CONFIGS[name], changes)), "utf-8")

    def use() -> None:
        config = CheckpointConfig.read(folder)
        told_of_training(config.training)
        card_of(config, folder)

    read_or_refused(use)


def test_hours_beyond_every_number_are_a_record_of_another_form() -> None:
    assert "training" in told_of_training({"stages": [{"name": "long", "steps": 1, "hours": 10**400}]})


PROTOCOL = (Path(read_protocol.__code__.co_filename).parent / "protocols" / "g_eval.yaml").read_bytes()
YAML = [
    b"!!int ''", b"!!bool x", b"!!timestamp x", b"!!float x", b"2001-99-99", b"9" * 5000,
    b"!!python/object:os.system x", b"&a [*a]", b"*a", b"? [a]", b"<<: 1", b"!!set {a}", b"- ", b"\t", b": ", b"{",
    b"|", b"\0", b"\x85",
]  # fmt: skip


@usual
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from([*YAML, *ODD])), max_size=4))
@example([(0.0, 10**6, b"a: !!int ''")])
@example([(0.0, 10**6, b"a: !!bool x")])
@example([(0.0, 10**6, b"a: 2001-99-99")])
@example([(0.0, 10**6, b"a: &b [*b]")])
def test_any_settings_are_read_or_refused(tmp_path_factory: Any, changes: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.yaml"
    path.write_bytes(edited(PROTOCOL, changes))
    read_or_refused(lambda: read_yaml(path, "settings"))
    read_or_refused(lambda: read_protocol(str(path)))
    read_or_refused(lambda: read_price(path, "a"))


@pytest.mark.parametrize("text", ["a: 1\na: 2\n", "prices:\n- b: {m: 1, m: 2}\n", '{"a": 1, "a": 2}'])
def test_a_setting_that_stands_twice_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"has '[am]' twice in one place"):
        read_yaml(tmp_path / "prices.yaml", "price file")


def test_settings_that_grow_when_they_are_written_out_are_refused(tmp_path: Path) -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9) if level else 'x'}]" for level in range(12)]
    (tmp_path / "laughs.yaml").write_text("\n".join([*levels, "title: *a11"]))
    assert yaml.safe_load((tmp_path / "laughs.yaml").read_text())
    with pytest.raises(ValueError, match="write it out"):
        read_protocol(str(tmp_path / "laughs.yaml"))


# --- what Python cannot take is an error like others ----------------------------------------------


PACKAGE = Path(dialeval.__file__).parent
#: Where texts of one's own making are read back: a piece of work handed to an actor, an option that a pattern allows.
OWN = {"core/specs.py", "readers/rows.py", "hub/card.py", "scoring/run.py"}


def unguarded(path: Path) -> Iterator[int]:
    """Lines that parse JSON where no handler of the same function's `try` names what nesting raises."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try) and any("RecursionError" in ast.unparse(one) for one in block.handlers)
        for statement in block.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        is_parsing = isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load")
        if is_parsing and id(node) not in guarded:
            yield node.lineno


@pytest.mark.slow
def test_json_is_parsed_where_deep_nesting_is_told() -> None:
    found = {
        f"{name}:{line}"
        for path in PACKAGE.rglob("*.py")
        if (name := path.relative_to(PACKAGE).as_posix()) not in OWN
        for line in unguarded(path)
    }
    assert not found, f"{sorted(found)[0]} parses JSON by itself; use dialeval.io.files.parse_json"


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a": ' * 200_000, "9" * 5000, "{", b"\xff", "nul"])
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
        parse_json(text)


def test_a_device_without_an_end_is_not_read_to_it() -> None:
    zero = Path("/dev/zero")
    if not zero.exists():
        pytest.skip("needs /dev/zero")
    for read in (read_scores, read_file, read_small, lambda path: read_protocol(str(path))):
        refused(ValueError, "zero", read, zero)


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "score --help", "info"])
def test_help_for_a_full_disk(arguments: str, unbuffered: str) -> None:
    """Whether the first write fails, or the last one, as the process ends."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    asked = [sys.executable, "-m", "dialeval", *arguments.split()]
    with open("/dev/full", "w") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(asked, stdout=full, stderr=subprocess.PIPE, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: No space left on device")
    assert done.stderr.count(b"\n") == 1
