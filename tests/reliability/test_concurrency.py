"""Eight processes at once on one home directory: they download, load, score and fill caches, and agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopback_hub import LoopbackHub
from small_checkpoints import small_network

pytestmark = pytest.mark.slow

PROCESSES = 8

#: Forked when the libraries are imported, so that all of them meet at the caches and not at the importer.
_TOGETHER = f"""
import json, os, sys
import dialeval, torch
from dialeval.papers.density import Density

torch.set_num_threads(1)
children = []
for number in range({PROCESSES}):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            metric = dialeval.load("density", checkpoint="dialeval/tiny", device="cpu")
            scores = metric.score(["i am fine", "fish and chips"], [["how are you"], ["what do you like to eat"]])
            told = {{"values": list(scores.values), "signature": str(scores.signature)}}
        except BaseException as error:
            told = {{"error": repr(error)}}
        os.write(theirs, json.dumps(told).encode())
        os.kill(os.getpid(), 9)
    os.close(theirs)
    children.append(ours)
print(json.dumps([json.loads(os.read(ours, 65536)) for ours in children]))
"""


#: Two runs of `agreement` that meet at the end of one: it removes the chunks that the other still writes.
_AGREEMENT = """
import sys
from pathlib import Path
from dialeval.agreement.values import StoredValues, Values

values = Values({str(number): number / 4 for number in range(5)})
stored = StoredValues(Path(sys.argv[1]), {"benchmark": "toy", "metric": "length"})
stored.finish(list(values.by_id), values)
print("ready", flush=True)
sys.stdin.readline()
for number in range(300):
    if sys.argv[2] == "finish":
        stored.finish(list(values.by_id), values)
    else:
        stored.write_chunk(number % 7, values)
assert stored.read() == values
"""


def test_two_agreements_fill_one_cache(tmp_path: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", _AGREEMENT, tmp_path, does], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for does in ("finish", "write")
    ]  # fmt: skip
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        _, told = process.communicate()
        assert process.returncode == 0, told


def test_eight_processes_share_one_home(tiny_encoder: Path, tmp_path: Path) -> None:
    small_network("density", tiny_encoder).save_pretrained(tmp_path / "checkpoint")
    config = tmp_path / "checkpoint" / "config.json"
    raw = json.loads(config.read_text())
    raw["encoder"]["id"] = "someone/tiny-encoder"
    config.write_text(json.dumps(raw))
    folders = {"someone/tiny-encoder": tiny_encoder, "dialeval/tiny": tmp_path / "checkpoint"}
    home = tmp_path / "home"
    with LoopbackHub() as hub:
        for name, folder in folders.items():
            files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            hub.add("models", name, files)
        environment = {**os.environ, **hub.environment(home), "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-c", _TOGETHER], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    assert len(printed) == PROCESSES
    assert "values" in printed[0], printed[0]
    assert all(one == printed[0] for one in printed)
    assert not list(home.rglob("*.incomplete"))
    # Whatever lock files there are, nobody holds one.
    import fcntl

    for lock in home.rglob("*.lock"):
        with lock.open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
