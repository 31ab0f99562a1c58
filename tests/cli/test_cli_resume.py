"""A run that is killed goes on where it was; what it had finished is neither lost, nor done again, nor doubled."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dialeval.scoring.run
import overlap_metric
from dialeval.cli import build_app
from dialeval.scoring.journal import Journal
from dialeval.scoring.task import chunked
from resources import PATIENCE

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, overlap_metric.__file__, "score", "-m", "overlap"]
N_ROWS = 10_000


def row(number: int) -> str:
    words = " ".join(str(number + step) for step in range(number % 7))
    return json.dumps({"context": [f"{number} {words}"], "response": f"{number}", "id": f"r{number}"}) + "\n"


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of about five chunks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(map(row, range(N_ROWS))), encoding="utf-8")
    return path


def start(seconds_per_chunk: float) -> subprocess.Popen[str]:
    environment = {**os.environ, "OVERLAP_SECONDS": str(seconds_per_chunk), "OVERLAP_LOG": "judged.log"}
    command = [*COMMAND, "-i", "rows.jsonl", "-o", "scores.jsonl", "--skip-bad"]
    # A shell's background jobs ignore SIGINT, and so would everything that the tests start there.
    return subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_chunks(count: int) -> None:
    journal = Path("scores.jsonl.partial")
    until = time.monotonic() + PATIENCE
    while not journal.exists() or journal.read_bytes().count(b"\n") < 1 + count:
        assert time.monotonic() < until, "the run does not get on"
        time.sleep(0.02)


def expected() -> list[dict[str, object]]:
    exchanges = [json.loads(row(number)) for number in range(N_ROWS)]
    return [
        {
            "row": number,
            "id": f"r{number}",
            "system": None,
            "overlap": len({str(number)}) / len({*exchange["context"][0].split(), str(number)}),
        }
        for number, exchange in enumerate(exchanges)
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.slow
def test_killed_and_run_again(large: Path, how: signal.Signals) -> None:
    run = start(2.0)
    wait_for_chunks(2)
    run.send_signal(how)
    _, message = run.communicate(timeout=PATIENCE)
    assert run.returncode == (130 if how is signal.SIGINT else -how)
    if how is signal.SIGINT:
        assert "finished rows are kept in" in message
        assert "run the same command again to go on" in message
        assert "Traceback" not in message
    assert not Path("scores.jsonl").exists()

    again = start(0.0)
    _, message = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0
    assert [json.loads(line) for line in Path("scores.jsonl").read_text().splitlines()] == expected()
    assert f"{N_ROWS} rows scored" in message
    judged = sum(int(line) for line in Path("judged.log").read_text().split())
    # Only the chunk that was under way may have been judged twice.
    assert N_ROWS <= judged <= N_ROWS + 2048
    assert "taken over from the interrupted run" in message
    assert sorted(path.name for path in large.parent.iterdir()) == [
        "judged.log",
        "rows.jsonl",
        "scores.jsonl",
        "scores.jsonl.rejects.jsonl",
    ]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[int, str]]]:
    """A function that scores ten rows in chunks of three."""
    overlap_metric.register()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dialeval.scoring.run, "chunked", functools.partial(chunked, pairs=3))
    Path("rows.jsonl").write_text("".join(map(row, range(10))), encoding="utf-8")

    def score(*options: str, rows: str = "rows.jsonl") -> tuple[int, str]:
        given = ["score", "-m", "overlap", "-i", rows, "-o", "scores.jsonl", *options]
        result = CliRunner().invoke(build_app(), given)
        return result.exit_code, result.stderr

    return score


def interrupt(monkeypatch: pytest.MonkeyPatch, score: Callable[..., tuple[int, str]], after: int) -> None:
    """Let a run end as by Ctrl-C in the chunk after `after` finished ones."""
    judge = overlap_metric.Overlap.judge
    calls = iter(range(after))

    def failing(*given: object, **options: object) -> object:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return judge(*given, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as changed:
        changed.setattr(overlap_metric.Overlap, "judge", failing)
        assert score()[0] == 130


def finish(score: Callable[..., tuple[int, str]]) -> bytes:
    assert score()[0] == 0
    scores = Path("scores.jsonl").read_bytes()
    Path("scores.jsonl").unlink()
    assert not Path("scores.jsonl.partial").exists()
    return scores


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.slow
def test_a_journal_torn_anywhere_gives_the_same_scores(
    small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    for left in Path.cwd().glob("scores*"):
        left.unlink()
    undisturbed = finish(small)
    interrupt(monkeypatch, small, after=data.draw(st.integers(1, 3)))
    journal = Path("scores.jsonl.partial")
    content = journal.read_bytes()
    journal.write_bytes(content[: int(len(content) * data.draw(st.floats(0, 1)))])
    assert finish(small) == undisturbed


def test_killed_between_the_table_and_the_end(
    small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = finish(small)
    with monkeypatch.context() as changed:
        changed.setattr(Path, "unlink", lambda *_, **__: None)
        assert small()[0] == 0
    assert Path("scores.jsonl").exists()
    assert Path("scores.jsonl.partial").exists()
    monkeypatch.setattr(overlap_metric.Overlap, "judge", None)
    assert finish(small) == undisturbed


def test_other_options_are_refused(small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, small, after=2)
    code, message = small("--scale", "human_percentile")
    assert code == 2
    assert "is an unfinished run with other options (scale was native, now human_percentile)" in message
    assert small("--scale", "human_percentile", "--no-resume")[0] == 0
    assert json.loads(Path("scores.jsonl").read_text().splitlines()[0])["overlap"] == 0.5


def test_other_weights_are_refused(small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, small, after=2)
    monkeypatch.setattr(overlap_metric.Overlap, "signature", lambda _: {"metric": "overlap", "weight": "2.0"})
    assert "metrics: overlap: weight was 1.0, now 2.0" in small()[1]


def test_a_changed_input_is_refused(small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, small, after=2)
    rows = Path("rows.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("rows.jsonl").write_text("".join([*rows[:4], row(77), *rows[5:]]), encoding="utf-8")
    code, message = small()
    assert code == 2
    assert "the input is not that of the interrupted run: it differs between rows 3 and 5" in message
    Path("rows.jsonl").write_text("".join(rows[:3]), encoding="utf-8")
    assert "it ends earlier than it did" in small()[1]
    # A change after what was finished does no harm: the outcome is that of the input as it is now.
    Path("rows.jsonl").write_text("".join([*rows[:8], row(77)]), encoding="utf-8")
    assert json.loads(finish(small).splitlines()[8])["id"] == "r77"


def test_a_moved_input_is_the_same(small: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = finish(small)
    interrupt(monkeypatch, small, after=2)
    Path("rows.jsonl").rename("moved.jsonl")
    assert small(rows="moved.jsonl")[0] == 0
    assert Path("scores.jsonl").read_bytes() == undisturbed


def test_a_foreign_file_is_left_alone(small: Callable[..., tuple[int, str]]) -> None:
    for content in ("my notes", "my notes\n", '{"a": 1}\n', '{"dialeval_journal": 99, "run": {}}\n'):
        Path("scores.jsonl.partial").write_text(content, encoding="utf-8")
        code, message = small()
        assert code == 2
        assert "is no unfinished run of this version" in message
        assert Path("scores.jsonl.partial").read_text(encoding="utf-8") == content


def test_two_runs_do_not_write_the_same_journal(small: Callable[..., tuple[int, str]]) -> None:
    with Journal(Path("scores.jsonl.partial"), {}, fresh=False):
        code, message = small()
    assert code == 2
    assert "another process is writing" in message
