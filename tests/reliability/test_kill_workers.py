"""Processes of one run, killed while work is half done, until enough have been: the outcome is that of one process.

DIALEVAL_KILLS=20 kills twenty times, and eight processes on two machines, not two on one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import overlap_metric
from resources import PATIENCE
from shards import alone, rows, write

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("DIALEVAL_KILLS", "2"))
MANY = "DIALEVAL_KILLS" in os.environ
#: Machines, and processes on each.
SHAPE = (2, 4) if MANY else (1, 2)
CHUNK = 512
#: So many chunks for each process that every kill finds another one under way.
N_ROWS = CHUNK * SHAPE[0] * SHAPE[1] * (KILLS + 3)
OPTIONS = ["-m", "overlap", "-i", "rows.jsonl", "-o", "scores.jsonl", "--summary", "scores.json"]


def machines(*options: str, **variables: str) -> list[subprocess.Popen[bytes]]:
    """What would be typed on each machine, here on one: torchrun, its agents and their processes in one group each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    many, each = SHAPE
    launch = ["-m", "torch.distributed.run", f"--nnodes={many}", f"--nproc_per_node={each}", "--max_restarts=0"]
    launch += ["--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", f"--rdzv_id={port}"]
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    return [
        subprocess.Popen(
            [sys.executable, *launch, overlap_metric.__file__, "score", *options],
            env=shared,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(many)
    ]


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    import psutil

    for process in processes:
        # torchrun puts its processes into sessions of their own.
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        process.send_signal(signal.SIGKILL)
        for one in family:
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue
        process.wait()
        psutil.wait_procs(family)


def chunks_done() -> int:
    """Finished chunks in the journals of all processes: a line each, after the line that begins a journal."""
    return sum(max(0, path.read_bytes().count(b"\n") - 1) for path in Path().glob("scores.jsonl.partial.*-of-*"))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    monkeypatch.chdir(tmp_path)


def test_processes_of_torchrun() -> None:
    write(Path("rows.jsonl"), rows(N_ROWS))
    alone(*[option.replace("scores.", "alone.") for option in OPTIONS])
    chance, before = random.Random(KILLS), 0
    for kill in range(KILLS):
        running = machines(*OPTIONS, OVERLAP_SECONDS="0.3", OVERLAP_LOG="judged.log")
        until = time.monotonic() + PATIENCE
        # Work is half done: this run has finished chunks that the one before had not, and others are missing.
        while chunks_done() <= before:
            assert time.monotonic() < until
            assert not Path("scores.jsonl").exists(), f"the run ended before kill {kill}"
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        end(running)
        before = chunks_done()
        assert before > kill
    for process in machines(*OPTIONS, OVERLAP_LOG="judged.log"):
        assert process.wait(timeout=PATIENCE) == 0
    assert Path("scores.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()
    assert json.loads(Path("scores.json").read_text()) == json.loads(Path("alone.json").read_text())
    judged = sum(map(int, Path("judged.log").read_text().split()))
    # Nothing finished was judged again: of each kill at most the chunk that each process was at.
    assert N_ROWS <= judged <= N_ROWS + KILLS * SHAPE[0] * SHAPE[1] * CHUNK
    assert not list(Path().glob("*.partial*"))
