"""Time one contender on a number of rows, alone in this process; prints one line of JSON.

    python performance/measure.py judge_float32 --rows 1000

`suite.py` starts this for every contender, so that a peak of memory belongs to one of them.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from contenders import CONTENDERS, Missing, rows_with_references

_WARM_ROWS, _WARM_SEED = 16, 99


def measured(name: str, count: int) -> dict[str, Any]:
    """Seconds for the rows after a warm-up on others, and the process's peak of memory."""
    rows = rows_with_references(count)
    action = CONTENDERS[name].build()
    action(rows_with_references(_WARM_ROWS, _WARM_SEED))
    started = time.perf_counter()
    action(rows)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    import torch

    from dialeval.checkpoints.config import current_versions
    from dialeval.encoders.batching import gains_by_bfloat16
    from dialeval.encoders.int8 import has_fast_int8

    cpu, versions = torch.device("cpu"), current_versions()
    for package in ("sentence-transformers", "bert-score", "mauve-text"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "precisions": [
            "float32",
            *(["int8"] if has_fast_int8() else []),
            *(["bfloat16"] if gains_by_bfloat16(cpu) else []),
        ],
        "versions": versions,
    }


def processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    import platform

    info = Path("/proc/cpuinfo")
    for line in info.read_text(encoding="utf-8").splitlines() if info.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Measure; what an alternative lacks is an answer, not an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*CONTENDERS, "machine"])
    parser.add_argument("--rows", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.rows < 2:
        parser.error(f"--rows is {arguments.rows}; the metrics that compare sets need at least 2")
    try:
        figures = machine() if arguments.what == "machine" else measured(arguments.what, arguments.rows)
    except Missing as error:
        figures = {"missing": str(error)}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
