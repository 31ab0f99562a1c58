"""The command as a process: pipes, imports, options, info, installed modules."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import dialeval
import overlap_metric
from dialeval.cli import build_app
from dialeval.cli import options as reading
from dialeval.hub.modules import install, module_folders, modules_cache
from dialeval.registry import REGISTRY, RegisteredMetric, find_plugins
from resources import PATIENCE
from shell import invoke, write_rows

PROGRAM = [sys.executable, overlap_metric.__file__]


def rows(count: int) -> bytes:
    return b"".join(json.dumps({"context": ["a b"], "response": f"a {n}"}).encode() + b"\n" for n in range(count))


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PROGRAM, *arguments], input=given, capture_output=True, timeout=PATIENCE, check=False)


def test_a_pipe_in_and_out() -> None:
    done = run("score", "-m", "overlap", "-i", "-", "-o", "-", given=gzip.compress(rows(3000)))
    assert done.returncode == 0
    values = [json.loads(line)["overlap"] for line in done.stdout.splitlines()]
    assert values == [1 / 3] * 3000
    assert b"3000 rows scored" in done.stderr


def test_a_bad_row_in_a_pipe() -> None:
    done = run("score", "-m", "overlap", "-i", "-", "-o", "-", given=rows(2) + b"nonsense\n")
    assert done.returncode == 2
    assert re.match(rb"error: row 2 .*line 3", done.stderr)


@pytest.mark.slow
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(rows(60_000))
    command = f"{' '.join(PROGRAM)} score -m overlap -i {tmp_path / 'rows.jsonl'} -o - | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=PATIENCE, check=False)
    assert json.loads(done.stdout)["row"] == 0
    assert done.stderr == b""


def test_info_names_versions_devices_metrics_and_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    # All metrics of the registry would import every library there is.
    entries = {
        "density": REGISTRY["density"],
        "lacking": RegisteredMetric("json:nothing", extra="more"),
        "absent": RegisteredMetric("no_such_library:Metric"),
    }
    find_plugins()  # once, and not into these entries
    monkeypatch.setattr("dialeval.registry.REGISTRY", entries)
    result = invoke("info")
    lines = [line.replace("│", " ").split() for line in result.stdout.splitlines()]
    assert ["dialeval", dialeval.__version__] in lines
    assert any(line[:1] == ["cpu"] and line[-1] in ("float32", "bfloat16", "int8") for line in lines)
    assert ["density", "turn", "higher", "-inf", "to", "inf", "contexts"] in lines
    assert "all-MiniLM-L6-v2" in result.stdout
    assert "module 'json' has no attribute 'nothing'" in result.stdout
    assert "No module named 'no_such_library'" in result.stdout
    assert str(modules_cache()) in result.stdout


def test_unknown_commands_and_options() -> None:
    invoke("scoer", code=2)
    invoke("info", "--nothing", code=2)
    invoke(code=2)


def test_a_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_TRACEBACK", "1")
    result = invoke("score", "-m", "nothing", "-i", "a.jsonl", "-o", "b.jsonl", code=2)
    assert "Traceback" in result.stderr
    assert re.search("error: .*nothing", result.stderr)


def test_modules_are_installed_where_evaluate_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    invoke("install-modules")
    (script,) = tmp_path.glob("modules/evaluate_modules/metrics/dialeval--density/*/density.py")
    assert len(script.parent.name) == 64
    assert (
        script.read_bytes()
        == next(f for f in module_folders() if f.name == "density").joinpath("density.py").read_bytes()
    )

    # evaluate takes the newest version; what was installed last has to be it.
    os.utime(script, (1, 1))
    invoke("install-modules")
    assert script.stat().st_mtime > 1
    assert [path.name for path in script.parent.parent.iterdir()] == [script.parent.name]


def test_many_install_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "thing"
    folder.mkdir(parents=True)
    (folder / "thing.py").write_text("VALUE = 1\n", encoding="utf-8")
    with ThreadPoolExecutor(16) as pool:
        installed = set(pool.map(lambda _: install(folder, tmp_path / "cache"), range(64)))
    (script,) = installed
    assert script.read_text(encoding="utf-8") == "VALUE = 1\n"
    assert [path.name for path in script.parent.parent.iterdir()] == [script.parent.name]


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"HF_HOME": "~/hf"}, {"XDG_CACHE_HOME": "/x"}, {"HF_MODULES_CACHE": "/m"}])
def test_the_modules_cache_is_evaluate_s_own(changes: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_config = pytest.importorskip("evaluate.config")
    for name in ("HF_HOME", "XDG_CACHE_HOME", "HF_MODULES_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    source = Path(evaluate_config.__file__).read_text(encoding="utf-8")
    start, end = source.index("# Cache location"), source.index("DOWNLOADED_DATASETS_DIR")
    its_own: dict[str, object] = {"os": os, "Path": Path}
    exec(source[start:end], its_own)
    assert modules_cache() == its_own["HF_MODULES_CACHE"]


OPTIONS = set(inspect.signature(reading.source).parameters) - {"input"}


def commands(group: Any, before: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command with the names of its parameters."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", {parameter.name for parameter in command.params}


def test_the_commands_that_read_rows_have_all_options_of_reading() -> None:
    readers = {name: taken for name, taken in commands(get_command(build_app())) if "columns" in taken}
    known = {"score", "llm-score", "score-ray", "rank", "gate", "compare", "tune", "robustness", "plot scores", "show"}
    assert readers.keys() == known
    for name, taken in readers.items():
        assert taken >= (OPTIONS - {"show"} if name == "show" else OPTIONS), name  # which shows rows in any case


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


def of_score(folder: Path, *, after: str = "") -> list[str]:
    """The files of `dialeval score` with one file of JSON lines: all, or (`after`) those that its rows pass."""
    rows = folder / "rows.jsonl"
    write_rows(rows, ROWS)
    app = build_app(["score"])
    arguments = ["score", "-i", str(rows), "-o", str(folder / "scores.jsonl"), "--overwrite"]

    def call() -> None:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output

    return files_on_path(call, after=after)


@pytest.mark.slow
def test_score_of_one_file(tmp_path: Path) -> None:
    assert len(of_score(tmp_path)) <= 36
    assert len(of_score(tmp_path, after="load_metrics")) <= 25


def test_the_judge_in_python() -> None:
    metric = dialeval.load("judge")
    contexts, calls = [row["context"] for row in ROWS], count()

    def call() -> None:
        metric.score(responses=[f"{row['response']} Call {next(calls)}." for row in ROWS], contexts=contexts)

    assert len(files_on_path(call)) <= 14
