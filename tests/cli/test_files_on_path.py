"""How many files of the library a row passes: what somebody opens to follow it. Meant for them is 28, 20 and 12.

The first call imports and loads; only the second counts, and it has other rows: what was encoded before is remembered.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

import dialeval
from dialeval.cli import build_app

PACKAGE = Path(dialeval.__file__).parent
ROWS = [{"context": ["Hi!", "Hello, how are you?"], "response": f"Fine, thanks, number {at}!"} for at in range(3)]


def files_on_path(call: Callable[[], object], *, after: str = "") -> list[str]:
    """The files in which a function runs in the second of two calls, in any thread that it starts.

    With `after` only what runs once the function of that name has returned counts.
    """
    call()
    names: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if after and event == "return" and frame.f_code.co_name == after:
            names.clear()
        elif event == "call" and frame.f_code.co_name != "<module>":
            names.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed forgets that None ends it
    ours = [Path(name) for name in names if Path(name).is_relative_to(PACKAGE)]
    return sorted(path.relative_to(PACKAGE).as_posix() for path in ours)


def of_score(folder: Path, metric: str = "judge", *, after: str = "") -> list[str]:
    """The files of `dialeval score` with one file of JSON lines: all, or (`after`) those that its rows pass."""
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    app = build_app(["score"])
    arguments = ["score", "-m", metric, "-i", str(rows), "-o", str(folder / "scores.jsonl"), "--overwrite"]

    def call() -> None:
        done = CliRunner().invoke(app, arguments)
        if done.exit_code:
            raise RuntimeError(done.output)

    return files_on_path(call, after=after)


def of_library(name: str = "judge") -> list[str]:
    """The files of `load(name).score`."""
    metric = dialeval.load(name)
    contexts, calls = [row["context"] for row in ROWS], count()
    return files_on_path(
        lambda: metric.score(responses=[f"{row['response']} Call {next(calls)}." for row in ROWS], contexts=contexts)
    )


@pytest.mark.slow
def test_score_of_one_file(tmp_path: Path) -> None:
    assert len(of_score(tmp_path)) <= 34
    assert len(of_score(tmp_path, after="load_metrics")) <= 23


def test_the_judge_in_python() -> None:
    assert len(of_library("judge")) <= 12
