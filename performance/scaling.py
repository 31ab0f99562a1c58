"""How scoring grows with processes and rows: torchrun on two cores, Ray over many rows with an actor killed.

    python performance/scaling.py torchrun --rows 4000          # two processes against one on one core
    python performance/scaling.py ray --rows 200000             # memory over time, equality with one process
    python performance/scaling.py ray --rows 200000 --kill      # the same with an actor killed in the middle

Writes performance/scaling.json. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rows import generated

OUT = Path(__file__).with_name("scaling.json")
#: Share of the rows that repeat others; the rows of the Ray run are a test of plumbing and memory, not of the model.
DUPLICATES = 0.98


def write_rows(path: Path, count: int, duplicates: float) -> None:
    """Rows as JSON lines or Parquet, by the ending."""
    made = generated(count, duplicates=duplicates)
    rows = [{"context": list(row.context), "response": row.response, "id": str(at)} for at, row in enumerate(made)]
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50_000)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def timed(command: list[str], cores: set[int]) -> float:
    """Seconds of a command that may use some cores only, one thread per process."""
    started = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        command,
        env=environment,
        check=True,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    return time.perf_counter() - started


def torchrun(count: int, metric: str) -> dict[str, Any]:
    """Rates of two processes on two cores and of one on one; the start-up, measured alone, is taken off."""
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder) / "rows.jsonl", count, 0.0)
        write_rows(Path(folder) / "one.jsonl", 1, 0.0)
        two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "dialeval"]
        one = [sys.executable, "-m", "dialeval"]

        def seconds(launcher: list[str], cores: set[int], rows: str, output: str) -> float:
            paths = ["-i", f"{folder}/{rows}.jsonl", "-o", f"{folder}/{output}.jsonl", "--overwrite"]
            return timed([*launcher, "score", "-m", metric, *paths], cores)

        start_one, start_two = seconds(one, {0}, "one", "x"), seconds(two, {0, 1}, "one", "x")
        whole_one, whole_two = seconds(one, {0}, "rows", "alone"), seconds(two, {0, 1}, "rows", "together")
        values = [
            np.array([json.loads(line)[metric] for line in (Path(folder) / f"{name}.jsonl").read_text().splitlines()])
            for name in ("alone", "together")
        ]
    return {
        "rows": count,
        "metric": metric,
        "seconds_one_process_one_core": round(whole_one, 2),
        "seconds_two_processes_two_cores": round(whole_two, 2),
        "start_up_seconds": [round(start_one, 2), round(start_two, 2)],
        "ratio_with_start_up": round(whole_one / whole_two, 3),
        "ratio_of_scoring": round((whole_one - start_one) / (whole_two - start_two), 3),
        "largest_difference": float(np.abs(values[0] - values[1]).max()),
    }


class Watch(threading.Thread):
    """Memory of this process and of Ray's, several times a second; kills an actor on request."""

    def __init__(self, output: Path, kill: bool) -> None:
        super().__init__(daemon=True)
        self.output, self.kill = output, kill
        self.samples: list[tuple[float, float]] = []
        self.killed = False
        self.done = threading.Event()

    def run(self) -> None:
        """Sample until told that the job is done."""
        started = time.perf_counter()
        while not self.done.wait(0.5):
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    name = " ".join(process.cmdline()[:1])
                    if name.startswith("ray::"):
                        # Private memory: shared objects of the store would count once per process.
                        memory = process.memory_info()
                        total += memory.rss - memory.shared
                    if self.kill and not self.killed and "PieceScorer" in name and self._is_half_done():
                        process.kill()
                        self.killed = True
                except psutil.Error:
                    continue
            own = psutil.Process().memory_info()
            self.samples.append((time.perf_counter() - started, (total + own.rss - own.shared) / 2**20))

    def _is_half_done(self) -> bool:
        return len(list(self.output.glob("part-*.parquet"))) >= 3


def on_ray(count: int, metric: str, kill: bool) -> dict[str, Any]:
    """A job over Parquet on a local Ray with two actors, compared with one process."""
    import dialeval.ray
    import pyarrow.parquet as pq

    import dialeval
    from dialeval.readers import read_exchanges

    folder = Path(tempfile.mkdtemp())
    try:
        write_rows(folder / "rows.parquet", count, DUPLICATES)
        watch = Watch(folder / "scores", kill)
        watch.start()
        started = time.perf_counter()
        given = {"actors": 2, "cpus_per_actor": 0.75}
        summary = dialeval.ray.score_files(str(folder / "rows.parquet"), str(folder / "scores"), metric, **given)
        seconds = time.perf_counter() - started
        watch.done.set()
        watch.join()
        parts = [pq.read_table(path) for path in sorted((folder / "scores").glob("part-*.parquet"))]
        numbers = np.concatenate([part["row"].to_numpy() for part in parts])
        values = np.concatenate([part[metric].to_numpy() for part in parts])
        alone = dialeval.load(metric).score_exchanges(list(read_exchanges(folder / "rows.parquet")))
    finally:
        shutil.rmtree(folder)
    memory = np.array(watch.samples)
    middle = memory[len(memory) // 4 : -2]
    slope = float(np.polyfit(middle[:, 0], middle[:, 1], 1)[0]) if len(middle) > 2 else float("nan")
    return {
        "rows": count,
        "metric": metric,
        "duplicates": DUPLICATES,
        "seconds": round(seconds, 1),
        "rows_per_second": round(count / seconds, 1),
        "an_actor_was_killed": watch.killed,
        "each_row_once": bool((numbers == np.arange(count)).all()) and summary.n == count,
        "largest_difference": float(np.abs(values - alone.values).max()),
        "peak_megabytes": round(float(memory[:, 1].max())),
        "megabytes_first_and_last_quarter": [
            round(float(part.mean())) for part in (middle[: len(middle) // 3, 1], middle[-len(middle) // 3 :, 1])
        ],
        "megabytes_per_minute_in_steady_state": round(60 * slope, 1),
    }


def main() -> None:
    """Measure one thing, add it to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["torchrun", "ray"])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--metric", default="density")
    parser.add_argument("--kill", action="store_true", help="kill an actor of the Ray job in the middle")
    arguments = parser.parse_args()
    name = f"{arguments.what}{'_killed' if arguments.kill else ''}"
    measured = (
        torchrun(arguments.rows, arguments.metric)
        if arguments.what == "torchrun"
        else on_ray(arguments.rows, arguments.metric, arguments.kill)
    )
    measured["load_before"] = round(os.getloadavg()[2], 2)
    known = json.loads(OUT.read_text()) if OUT.exists() else {}
    OUT.write_text(json.dumps({**known, name: measured}, indent=2) + "\n")
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
