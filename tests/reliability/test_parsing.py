"""JSON and numbers of somebody else end no run with a traceback: what Python cannot take is an error like others."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dialeval
from dialeval.benchmarks.rowfile import read_file
from dialeval.io.files import parse_json, read_small
from dialeval.llm.protocol import read_protocol
from dialeval.readers.score_files import read_scores
from refusals import refused

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
