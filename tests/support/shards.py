"""Rows for several processes, and torchrun-like workers over them."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import overlap_metric
from conftest import WORDS
from resources import PATIENCE

N_ROWS = 3000


def rows(count: int = N_ROWS, systems: tuple[str | None, ...] = (None,)) -> list[dict[str, object]]:
    """Queries with replies of every system, in mixed order; the systems answer the same queries."""
    rng = random.Random(3)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 8)))

    made: list[dict[str, object]] = []
    for number in range(count // len(systems)):
        context, references = [text() for _ in range(rng.randint(1, 3))], [text() for _ in range(2)]
        for system in systems:
            row = {"context": context, "response": text(), "references": references, "id": f"{number}-{system}"}
            made.append(row if system is None else {**row, "system": system})
    rng.shuffle(made)
    return made


def write(path: Path, made: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def workers(size: int, *options: str, **variables: str) -> list[subprocess.Popen[str]]:
    """The processes that torchrun would start, without its own agent."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **variables}
    return [
        subprocess.Popen(
            [sys.executable, overlap_metric.__file__, "score", *options],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


def finish(processes: list[subprocess.Popen[str]], code: int = 0) -> str:
    """What the leader said."""
    printed = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert processes[0].returncode == code, printed
    return printed[0]


def alone(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, overlap_metric.__file__, "score", *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stderr
