"""The page's workers: what is stopped, what is told, and that nobody else notices."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("gradio")

import space_server

# isort: split
import workers
from limits import Refused
from workers import Allowance, Pool

from resources import PATIENCE

pytestmark = pytest.mark.slow

#: Stands in for `work.py`: what a visitor's file might make of a worker.
WORK = """
import os, time
from limits import Refused

def spin(progress):
    while True:
        pass

def refuse(progress):
    raise Refused("the visitor's fault")

def fail(progress):
    raise KeyError("a secret of the house")

def say(progress, value):
    progress("saying", 1, 2)
    return [value, os.getpid()]

WORK = {
    "spin": spin, "refuse": refuse, "fail": fail, "say": say,
    "die": lambda progress: os.abort(),
    "swell": lambda progress: len(bytearray(2**32)),
    "wait": lambda progress, seconds: time.sleep(seconds),
}
"""


@pytest.fixture
def small_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker whose work is the one above."""
    for name in ("worker.py", "workers.py", "limits.py"):
        (tmp_path / name).write_bytes((space_server.SPACE / name).read_bytes())
    (tmp_path / "work.py").write_text(WORK)
    monkeypatch.setattr(workers, "_CHILD", tmp_path / "worker.py")
    return tmp_path


@pytest.fixture
def pool(small_work: Path) -> Iterator[Pool]:
    pool = Pool(1, Allowance(seconds=1, memory=2**31))
    yield pool
    pool.close()


def test_work_is_done_and_progress_told(pool: Pool) -> None:
    seen = []
    odd = ["\ud800", {"a": [None, 1.5, "é"]}]
    assert pool.ask("say", odd, progress=lambda *message: seen.append(message))[0] == odd
    assert seen == [("saying", 1, 2)]
    assert pool.ask("say", 1)[1] == pool.ask("say", 2)[1] != os.getpid()


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("spin", "more than 1 seconds of computing and was stopped"),
        ("die", "ended the process"),
        ("swell", "more memory than the page gives"),
        ("refuse", "the visitor's fault"),
        ("fail", "something went wrong here"),
        ("no such work", "something went wrong here"),
    ],
)
def test_whatever_happens_to_a_worker_is_a_sentence_and_the_next_request_is_served(
    pool: Pool, work: str, message: str
) -> None:
    for _ in range(2):
        with pytest.raises(Refused, match=message) as refused:
            pool.ask(work)
        assert "secret" not in str(refused.value)
        assert pool.ask("say", "well")[0] == "well"


def test_what_nests_without_end_is_refused_before_it_is_sent(pool: Pool) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Refused, match="nested too deeply"):
        pool.ask("say", deep)
    assert pool.ask("say", 1)[0] == 1


def test_a_worker_that_has_grown_is_replaced(small_work: Path) -> None:
    pool = Pool(1, Allowance(seconds=60, memory=2**31, grown=1))
    assert pool.ask("say", 1)[1] != pool.ask("say", 2)[1]
    pool.close()


def test_one_that_never_ends_keeps_nobody_waiting(small_work: Path) -> None:
    """Of two workers one spins for as long as it may; the other one answers meanwhile."""
    pool = Pool(2, Allowance(seconds=PATIENCE, memory=2**31))
    ended = threading.Event()

    def spin() -> None:
        with pytest.raises(Refused, match="ended the process"):
            pool.ask("spin")
        ended.set()

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        assert [pool.ask("say", number)[0] for number in range(5)] == list(range(5))
        assert not ended.is_set()
    finally:
        while not ended.is_set():
            pool.close()
            time.sleep(0.05)
        thread.join()


def test_the_page_has_workers_for_each_kind_of_work() -> None:
    from pools import FILES, PREVIEWS, TEXTS

    assert len({id(pool) for pool in (FILES, PREVIEWS, TEXTS)}) == 3
    assert PREVIEWS.size > 1


def test_a_preview_loads_no_network(tmp_path: Path) -> None:
    """What only reads starts at once and stays small."""
    import subprocess
    import sys

    line = (
        "import sys; sys.path.insert(0, sys.argv[1]); import work; "
        "work.WORK['preview'](print, sys.argv[2], 'assistant', {}); "
        "print([name for name in ('torch', 'transformers', 'gradio', 'matplotlib') if name in sys.modules])"
    )
    sample = str(space_server.SPACE / "sample.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", line, str(space_server.SPACE), sample], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
