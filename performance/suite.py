"""The speed page: every metric of the suite against named alternatives, same weights, rows and run.

    python performance/suite.py                        # about 12 minutes
    python performance/suite.py --rows 200 --minutes 1 # a quick look

Writes suite.json, suite.png and the figures in README.md beside this file (`--out` for another
folder). Each measurement has a process of its own. The smallest size is measured of everything,
larger ones as far as the minutes reach. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contenders import ALTERNATIVES, CONTENDERS, MAX_LENGTH, RIVALS, suite_of
from growth import Point, expected_seconds, fit, sizes
from rich.console import Console
from suite_page import draw, write_page

HERE = Path(__file__).parent
#: Everything on the CPU and nothing fetched, whatever machine this is.
_OFFLINE = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "DISABLE_TQDM": "1"}


def in_own_process(what: str, rows: int = 2) -> dict[str, Any]:
    """What `measure.py` prints; a failure becomes a note that quotes the last line of its error."""
    command = [sys.executable, str(HERE / "measure.py"), what, "--rows", str(rows)]
    done = subprocess.run(command, env={**os.environ, **_OFFLINE}, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": f"failed at {rows:,} rows (status {done.returncode}): {last}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def order(precisions: Sequence[str]) -> list[str]:
    """Each metric next to its closest alternative, so that both see the machine in the same state."""
    kinds = [suite_of(precision) for precision in precisions]
    names: list[str] = []
    for metric, rivals in RIVALS.items():
        mine = [name for kind in kinds for name in kind if _metric_of(name) == metric]
        names += [*mine, rivals[0]]
    return list(dict.fromkeys([*names, *ALTERNATIVES]))


def _metric_of(name: str) -> str:
    return name.removesuffix("_bfloat16").removesuffix("_int8")


def measure_all(names: list[str], first: int, minutes: float, console: Console) -> dict[str, Any]:
    """Size after size, each of all contenders that the remaining time allows."""
    end = time.monotonic() + 60 * minutes
    points: dict[str, list[Point]] = {name: [] for name in names}
    notes: dict[str, str] = {}
    previous = 0
    for size in sizes(first):
        tried = False
        for name in names:
            left = end - time.monotonic()
            known = points[name]
            if name in notes or (known and (known[-1].rows < previous or expected_seconds(known, size) > left)):
                continue
            tried = True
            with console.status(f"{name}, {size:,} rows, {max(0.0, left) / 60:.1f} minutes left"):
                found = in_own_process(name, size)
            if note := found.get("missing") or found.get("failed"):
                notes[name] = note
                console.print(f"{name}: {note}", markup=False)
                continue
            points[name].append(Point(size, found["seconds"], found["peak_mb"]))
            console.print(f"{name}, {size:,} rows: {found['seconds']:.1f} s, {found['peak_mb']:.0f} MB", markup=False)
        previous = size
        if not tried:
            break
    return {name: _summary(name, points[name], notes.get(name)) for name in names}


def _summary(name: str, points: list[Point], note: str | None) -> dict[str, Any]:
    contender, growth = CONTENDERS[name], fit(points)
    return {
        "title": contender.title,
        "ours": contender.ours,
        "passes": contender.passes,
        "points": [asdict(point) for point in points],
        "growth": asdict(growth) if growth else None,
        "note": note,
    }


def ratios(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Encoder passes per second over those of each alternative, at the largest size that both were measured at."""
    found = []
    for name, mine in measured.items():
        if not mine["ours"]:
            continue
        for rival in RIVALS[_metric_of(name)]:
            seconds = [{one["rows"]: one["seconds"] for one in side["points"]} for side in (mine, measured[rival])]
            common = seconds[0].keys() & seconds[1].keys()
            if common:
                rows = max(common)
                ratio = mine["passes"] / seconds[0][rows] / (measured[rival]["passes"] / seconds[1][rows])
                found.append({"metric": name, "against": rival, "rows": rows, "ratio": round(ratio, 3)})
    return found


def main() -> None:
    """Measure, then write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="the smallest size (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=11, help="when to start nothing more (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the files (default: beside this script)")
    arguments = parser.parse_args()
    if arguments.rows < 20:
        parser.error(f"--rows is {arguments.rows}; below 20 nothing but start-up would be measured")
    console = Console(stderr=True)
    load = os.getloadavg()[0]
    if load > 0.5:
        console.print(f"load is {load:.1f}: something else is running here, and the figures will show it")
    machine = in_own_process("machine")
    if "failed" in machine:
        raise SystemExit(machine["failed"])
    try:
        measured = measure_all(order(machine["precisions"]), arguments.rows, arguments.minutes, console)
    except KeyboardInterrupt:
        raise SystemExit("interrupted; the page stays as it was") from None
    outcome = {
        "command": f"python performance/suite.py --rows {arguments.rows} --minutes {arguments.minutes:g}",
        "max_length": MAX_LENGTH,
        "machine": {**machine, "cpus": os.cpu_count(), "load_before": round(load, 2)},
        "measured": measured,
        "ratios": ratios(measured),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "suite.json").write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")
    draw(outcome, arguments.out / "suite.png")
    console.print(write_page(outcome, HERE / "README.md", arguments.out / "README.md"), markup=False)
    if broken := [name for name, one in measured.items() if one["ours"] and one["note"]]:
        raise SystemExit(f"not measured in full: {', '.join(broken)}; see the notes")


if __name__ == "__main__":
    main()
