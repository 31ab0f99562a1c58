"""Killed at random moments and started again, until it comes through: the outcome is that of an undisturbed run.

DIALEVAL_KILLS=20 kills each of them twenty times, and the training script as well; the suite does so three times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import overlap_metric
from dialeval.io.files import write_atomically
from loopback_llm import KEY, by_number, serving
from shell import write_rows
from toy_benchmark import rated_rows
from training_runs import command as training

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
KILLS = int(os.environ.get("DIALEVAL_KILLS", "3"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.path.dirname(overlap_metric.__file__)}


def to_the_end(command: Sequence[str], folder: str = ".", **variables: str) -> float:
    """Run and time a command."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command], env={**ENVIRONMENT, **variables}, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return time.monotonic() - started


def killed_at_random(
    command: Sequence[str], seconds: float, again: Sequence[str] = (), folder: str = ".", **variables: str
) -> int:
    """Start and kill a command, each time at another moment of its undisturbed run; then let it end.

    Returns how many of the runs were under way when they were killed.
    """
    chance, killed = random.Random(KILLS), 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, *command, *(again if killed else ())],
            env={**ENVIRONMENT, **variables},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            moment = seconds * chance.uniform(0.1, 1.0)
            # One of them surely comes in time, even where the machine was busier when the run was timed.
            process.wait(moment if killed else min(moment, 0.3))
        except subprocess.TimeoutExpired:
            killed += 1
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    done = subprocess.run(
        [sys.executable, *command, *again], env={**ENVIRONMENT, **variables}, cwd=folder, capture_output=True, text=True
    )
    # A run that came through before is not begun again over its own outcome.
    assert done.returncode == 0 or "already" in done.stderr, done.stderr
    return killed


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_score(tmp_path: Path) -> None:
    rows = [
        {"context": [f"{number} and so on"], "response": f"{number}", "id": str(number)} for number in range(12_000)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    command = [overlap_metric.__file__, "score", "-m", "overlap", "-i", "rows.jsonl"]
    seconds = to_the_end([*command, "-o", "whole.jsonl"], OVERLAP_SECONDS="0.3")
    options = [*command, "-o", "killed.jsonl"]
    assert killed_at_random(options, seconds, OVERLAP_SECONDS="0.3")
    assert Path("killed.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert not list(Path().glob(".*")) + list(Path().glob("*.partial*"))


def check_kills(tmp_path: Path, files: Mapping[str, Rows], words: str, outputs: Sequence[str]) -> None:
    """A command that is killed leaves the same files as one that is not, and these with the same bytes."""
    for folder in ("whole", "killed"):
        for name, rows in files.items():
            write_rows(tmp_path / folder / name, rows)
    command = ["-m", "dialeval", *words.split()]
    seconds = to_the_end(command, folder="whole")
    assert killed_at_random(command, seconds, folder="killed")
    for name in outputs:
        assert Path("killed", name).read_bytes() == Path("whole", name).read_bytes(), name
    assert folder_names("killed") == folder_names("whole")


def test_agreement(tmp_path: Path) -> None:
    words = "agreement -m python:toy_benchmark:count_words -m bleu2 -b mine.jsonl --plots none --quiet --out results"
    outputs = [f"results/{name}" for name in ("agreement.jsonl", "leaderboard.md", "tests.jsonl", "excluded.jsonl")]
    check_kills(tmp_path, {"mine.jsonl": rated_rows()}, words, outputs)


def test_robustness(tmp_path: Path) -> None:
    rows = [{"context": row["context"], "response": row["response"]} for row in rated_rows()]
    words = "robustness -m python:toy_benchmark:count_words -i plain.jsonl -a reverse,noise,truncation --plots none"
    outputs = ["results/robustness.jsonl", "results/robustness.md"]
    check_kills(tmp_path, {"plain.jsonl": rows}, f"{words} --quiet --out results", outputs)


def test_rank(tmp_path: Path) -> None:
    files = {
        f"{system}.jsonl": [
            {"context": [f"How is number {row}?"], "response": words, "id": str(row)} for row in range(60)
        ]
        for system, words in (("a", "fine, thanks"), ("b", "fine"))
    }
    words = "rank a.jsonl b.jsonl -m python:toy_benchmark:count_words --markdown report.md --json report.json"
    check_kills(tmp_path, files, words, ["report.md", "report.json"])


def test_llm_score(tmp_path: Path) -> None:
    def slowly(request: dict[str, Any], before: int) -> dict[str, Any]:
        time.sleep(0.05)
        return by_number(request, before)

    rows = [{"context": ["How many?"], "response": f"It is {number}.", "id": str(number)} for number in range(150)]
    write_rows(tmp_path / "rows.jsonl", rows)
    with serving(slowly) as server:
        command = ["-m", "dialeval", "llm-score", "--model", "toy", "--base-url", server.url, "-i", "rows.jsonl"]
        key = {"OPENAI_API_KEY": KEY}
        seconds = to_the_end([*command, "--answers", "some", "-o", "whole.jsonl"], **key)
        asked = len(server.requests)
        assert killed_at_random([*command, "--answers", "others", "-o", "killed.jsonl"], seconds, **key)
        # What was answered is kept; only what was under way is asked again.
        assert len(server.requests) - asked <= asked + 16 * KILLS
    assert Path("killed.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


@pytest.mark.skipif("DIALEVAL_KILLS" not in os.environ, reason="training takes long; set DIALEVAL_KILLS")
def test_training(tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path) -> None:
    whole = training(tiny_encoder, tiny_corpora, tmp_path / "whole", 12)
    killed = training(tiny_encoder, tiny_corpora, tmp_path / "killed", 12)
    seconds = to_the_end(whole)
    assert killed_at_random(killed, seconds, again=["--resume"])
    expected, found = (load_file(tmp_path / out / "checkpoint" / "model.safetensors") for out in ("whole", "killed"))
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert np.allclose(value, found[name], rtol=1e-4, atol=1e-5), name


KILLED = """
import os, sys
from pathlib import Path
from dialeval.io.files import write_atomically

def lines():
    yield "{"
    os.kill(os.getpid(), 9)

write_atomically(Path(sys.argv[1]), lines())
"""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nobody knows which processes still run")
def test_what_a_killed_run_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert subprocess.run([sys.executable, "-c", KILLED, report], check=False).returncode == -9
    assert len(folder_names(str(tmp_path))) == 1
    other = tmp_path / f".report.{os.getpid()}-00000000.json"
    other.write_text("of a process that runs")
    write_atomically(report, ["{}"])
    assert folder_names(str(tmp_path)) == [other.name, "report.json"]


def folder_names(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))
