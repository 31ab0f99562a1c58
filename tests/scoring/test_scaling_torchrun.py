"""Several processes over one input: the outcome is that of one, also after one of them was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import overlap_metric
from dialeval.readers import Source
from dialeval.scoring.sets import SetPlan
from dialeval.scoring.sharding import ShardedRun
from dialeval.scoring.task import Task
from dialeval.scoring.workers import WorkerGroup
from resources import PATIENCE
from shards import alone, finish, rows, workers, write

pytestmark = pytest.mark.slow


def table(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_two_processes_killed_and_run_again(tmp_path: Path) -> None:
    made = rows()
    made[7]["response"] = ""
    write(tmp_path / "rows.jsonl", made)
    given = ["-m", "overlap", "-i", "rows.jsonl", "--skip-bad"]
    alone_options = [*given, "-o", "alone.jsonl", "--summary", "alone.json"]
    options = [*given, "-o", "scores.jsonl", "--summary", "scores.json"]
    subprocess.run([sys.executable, overlap_metric.__file__, "score", *alone_options], stderr=subprocess.DEVNULL)

    first = workers(2, *options, OVERLAP_SECONDS="2", OVERLAP_LOG="judged.log")
    until = time.monotonic() + PATIENCE
    while sum(path.read_bytes().count(b"\n") for path in Path().glob("*.partial.*")) < 5:
        assert time.monotonic() < until
        time.sleep(0.02)
    for process in first:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not Path("scores.jsonl").exists()

    shown = finish(workers(2, *options, OVERLAP_LOG="judged.log"))
    assert "2999 rows scored" in shown
    assert "1 rows were set aside" in shown
    assert Path("scores.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()
    assert json.loads(Path("scores.json").read_text()) == json.loads(Path("alone.json").read_text())
    rejects = [Path(f"{name}.jsonl.rejects.jsonl").read_text() for name in ("scores", "alone")]
    assert rejects[0] == rejects[1] != ""
    judged = [int(line) for line in Path("judged.log").read_text().split()]
    # A chunk is judged again only if it was under way when its process was killed.
    assert 2999 <= sum(judged) <= 2999 + 2 * 512
    assert not list(Path().glob("*.partial*"))


def test_sets_are_reduced_in_every_process(tmp_path: Path, tiny_encoder: Path) -> None:
    write(tmp_path / "rows.jsonl", rows(1200, ("a", "b")))
    given = ["-m", "fbd,prd,overlap", "-i", "rows.jsonl", "--device", "cpu"]
    given += [f"--checkpoint={name}={tiny_encoder}" for name in ("fbd", "prd")]
    alone(*given, "-o", "alone.jsonl")
    finish(workers(2, *given, "-o", "scores.jsonl"))
    assert table(Path("scores.jsonl")) == table(Path("alone.jsonl"))
    expected, found = (
        json.loads(Path(f"{name}.jsonl.summary.json").read_text())["metrics"] for name in ("alone", "scores")
    )
    for name in ("fbd", "prd"):
        assert list(found[name]["systems"]) == list(expected[name]["systems"])
        # Batches differ in their last digits, and k-means makes that a few thousandths of PRD.
        tolerance = {"rel": 1e-4, "abs": 0} if name == "fbd" else {"abs": 5e-3}
        assert found[name]["systems"] == pytest.approx(expected[name]["systems"], **tolerance)
        assert found[name]["systems"]["a"] != found[name]["systems"]["b"]
        # Intervals need the features again, which shards do not keep.
        changed = {"systems": 0, "aggregate": 0, "intervals": 0, "confidence": 0}
        assert found[name] | changed == expected[name] | changed
    assert found["overlap"] == expected["overlap"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "overlap", "-i", "bad.jsonl", "-o", "out.jsonl"], "row 5 "),
        (["-m", "variety", "-i", "rows.jsonl", "-o", "out.jsonl"], "cannot be computed in shards"),
    ],
)
def test_one_process_says_what_is_wrong(tmp_path: Path, options: list[str], message: str) -> None:
    write(tmp_path / "rows.jsonl", rows(10))
    write(tmp_path / "bad.jsonl", [*rows(5), {"context": ["a"], "response": None}])
    processes = workers(2, *options)
    said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 1]
    assert message in said[0]
    assert "Traceback" not in said[0] + said[1]
    assert "error" not in said[1]


def test_journals_of_another_number_of_processes_are_left_alone() -> None:
    left = [Path(f"scores.jsonl.partial.{rank}-of-3{kind}") for rank in range(3) for kind in ("", ".sets")]
    for path in left:
        path.touch()
    task = Task(Source("rows.jsonl"), {})
    with pytest.raises(ValueError, match="unfinished run of 3 processes; go on with 3"):
        ShardedRun(task, Path("scores.jsonl"), WorkerGroup(0, 2, 0), SetPlan(()), True).check_leftovers()
    assert all(path.exists() for path in left)
    ShardedRun(task, Path("scores.jsonl"), WorkerGroup(0, 2, 0), SetPlan(()), False).check_leftovers()
    assert not any(path.exists() for path in left)


def test_torchrun_itself(tmp_path: Path) -> None:
    made = rows(1500)
    write(tmp_path / "rows.jsonl", made)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "dialeval"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    options = ["-m", "bleu1", "-i", "rows.jsonl", "-o"]
    subprocess.run([*launcher, "score", *options, "scores.jsonl"], env=environment, check=True, capture_output=True)
    alone(*options, "alone.jsonl")
    assert table(Path("scores.jsonl")) == table(Path("alone.jsonl"))
