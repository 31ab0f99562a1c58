"""Inputs that are no plain files, and files that unpack to far more: told in a sentence, in bounded memory."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import overlap_metric
from shell import invoke

ROWS = b'{"context": ["Is it still raining?"], "response": "No, it stopped at noon."}\n'
#: Far more than a well-behaved run takes, far less than what the bombs unpack to.
MEMORY = 1_500 * 2**20


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "rows.jsonl").symlink_to(folder / target)


def files(contents: Mapping[str, bytes]) -> Callable[[Path], None]:
    """Makes files of a folder `data`."""

    def make(folder: Path) -> None:
        (folder / "data").mkdir()
        for name, content in contents.items():
            (folder / "data" / name).write_bytes(content)

    return make


CODE = b"raise SystemExit('code was run')"
ODD = "two\nlines\x1b[2J.jsonl"
#: What is made, what is read, and what the error names.
PLACES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a loop of links": (a_link_to("rows.jsonl"), "rows.jsonl", "rows.jsonl"),
    "a link to nothing": (a_link_to("gone.jsonl"), "rows.jsonl", "rows.jsonl"),
    "a file inside a file": (lambda it: (it / "rows.jsonl").write_bytes(ROWS), "rows.jsonl/rows.jsonl", "rows.jsonl"),
    "a name too long": (lambda it: None, "x" * 300 + ".jsonl", "xxx.jsonl"),
    "a folder that is called a file": (lambda it: (it / "rows.jsonl").mkdir(), "rows.jsonl", "rows.jsonl"),
    "a folder of code": (files({"data.py": CODE}), "data", "data"),
    "a folder of torn rows": (files({"rows.jsonl": b'{"context": ["a"], "resp'}), "data", "data"),
    "a folder that only says it is a data set": (
        files(dict.fromkeys(("state.json", "dataset_info.json"), b"{}")),
        "data",
        "data",
    ),
    "a name with a line break": (
        lambda it: (it / ODD).write_bytes(b'{"context": ["a"], "response": 1}\n'),
        ODD,
        "two\\nlines\\x1b[2J.jsonl, line 1): response",
    ),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.slow
def test_a_place_without_rows_is_told_in_a_sentence(tmp_path: Path, case: str) -> None:
    overlap_metric.register()
    make, place, named = PLACES[case]
    make(tmp_path)
    result = invoke("score", "-m", "overlap", "-i", str(tmp_path / place), "-o", "-", code=2)
    assert named in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def packed(piece: bytes, times: int) -> bytes:
    """The same piece many times over; gzip files may be strung together, so only one has to be packed."""
    return gzip.compress(piece, compresslevel=1) * times


MEGABYTES = 16 * 2**20
#: name, content, the size it is stretched to with zeros, what is told
BOMBS: dict[str, tuple[str, bytes, int, str]] = {
    "a gigabyte of zeros": ("rows.jsonl.gz", packed(bytes(MEGABYTES), 64), 0, "line 1"),
    "a gigabyte in one response": (
        "rows.jsonl.gz",
        gzip.compress(ROWS + b'{"context": ["a"], "response": "') + packed(b"a" * MEGABYTES, 64),
        0,
        "line 2",
    ),
    "a gigabyte in a CSV cell": (
        "rows.csv.gz",
        gzip.compress(b'context,response\na,"') + packed((b"b" * 1023 + b"\n") * 2**10, 512),
        0,
        "rows.csv.gz",
    ),
    "a file of holes": ("rows.jsonl", b"", 2**40, "line 1"),
    "sixteen megabytes of lists": (
        "rows.jsonl",
        b'{"response": "a", "context": [' + b"[]," * 5_000_000 + b"[]]}\n",
        0,
        "64 MB",
    ),
    "sixteen megabytes of brackets": ("rows.jsonl", b"[" * (MEGABYTES - 10) + b"\n", 0, "nested"),
}


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.fixture(params=BOMBS)
def bomb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    name, content, size, named = BOMBS[request.param]
    path = tmp_path / name
    path.write_bytes(content)
    if size:
        os.truncate(path, size)
    yield path, named
    path.unlink()


@pytest.mark.slow
def test_a_bomb_is_told_before_memory_runs_out(bomb: tuple[Path, str]) -> None:
    path, named = bomb
    command = [sys.executable, overlap_metric.__file__, "score", "-m", "overlap", "-i", str(path), "-o", "-"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=bounded)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr
    assert done.stdout == ""
