"""A run that lacks memory ends with one sentence and keeps what was finished; with more memory it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval.cli import _lacks_memory
from shell import read_rows

pytestmark = pytest.mark.slow

#: The command, with as much more memory than its libraries take.
LIMITED = """
import resource, sys
import numpy, torch
from dialeval.cli import main
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (int(sys.argv.pop(1)) << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
main()
"""

#: A metric that takes a gigabyte for each word `large`, as a network does for a batch: nothing is written to it.
HUNGRY = """
import numpy, torch
def by_torch(exchanges):
    return [float(torch.empty(one.response.count("large") << 28).numel()) for one in exchanges]
def by_numpy(exchanges):
    return [float(numpy.empty(one.response.count("large") << 28, "float32").size) for one in exchanges]
"""


def run(folder: Path, megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", LIMITED, str(megabytes), *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_score_goes_on_where_there_is_more(library: str, tmp_path: Path) -> None:
    (tmp_path / "hungry_rows.py").write_text(HUNGRY)
    rows = [{"context": ["How large is it?"], "response": f"It is {number}."} for number in range(40)]
    rows.append({"context": ["How large is it?"], "response": "It is large, large, large."})
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    score = ["score", "-m", f"python:hungry_rows:by_{library}", "-i", "rows.jsonl", "-o", "scores.jsonl"]
    lacking = run(tmp_path, 1024, *score)
    assert lacking.returncode == 1, lacking.stderr
    assert lacking.stderr.splitlines()[-1].startswith("error: there is not enough memory; ")
    assert "Traceback" not in lacking.stderr
    assert {path.name for path in tmp_path.glob("*scores*")} == {"scores.jsonl.partial"}
    enough = run(tmp_path, 16384, *score)
    assert enough.returncode == 0, enough.stderr
    assert "32" in enough.stdout + enough.stderr  # rows that the first run had done
    values = read_rows(tmp_path / "scores.jsonl")
    assert len(values) == 41
    assert 3 << 28 in values[-1].values()


def test_what_libraries_say_of_it_is_known() -> None:
    said = [
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."),
        RuntimeError("std::bad_alloc"),
        RuntimeError("unable to mmap 90 bytes from file <model.safetensors>: Cannot allocate memory (12)"),
        RuntimeError("can't start new thread"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
    ]
    wrapped = ValueError("row 3 cannot be scored")
    wrapped.__cause__ = said[0]
    assert all(map(_lacks_memory, [*said, wrapped, MemoryError()]))
    assert not _lacks_memory(ValueError("row 3: 'not enough memory' is no number"))
    assert not _lacks_memory(FileNotFoundError(2, "No such file", "start new thread.jsonl"))
