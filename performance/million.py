"""`dialeval score` on more and more rows, up to a million, as far as the minutes reach.

    python performance/million.py                 # about 30 minutes
    python performance/million.py --minutes 3 --metrics density
    python performance/million.py --short         # rows of a few words: the same minutes reach further

Every row is another one, so that nothing is spared by repeats. Each size has a command of its own; its processor time
and the peak of its memory are the operating system's own counts, libraries, reading and writing included. The metrics
take turns at each size; a size is begun only if the time that is left should do. Writes million.json beside this file,
which keeps the figures of long and of short rows, and their tables in README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from growth import Point, expected_seconds, fit, sizes
from measure import machine
from pages import replace_block, table
from rich.console import Console
from rows import generated

METRICS = "density,judge"
#: Rows generated at once; each block has a seed of its own.
_BLOCK = 10_000


def write_rows(path: Path, count: int, *, short: bool) -> None:
    """JSON lines, block by block."""
    with path.open("w", encoding="utf-8") as file:
        if short:
            file.writelines(f'{{"context": ["hi {row % 997}"], "response": "yes {row}"}}\n' for row in range(count))
            return
        for start in range(0, count, _BLOCK):
            for one in generated(min(_BLOCK, count - start), seed=start):
                file.write(json.dumps({"context": one.context, "response": one.response}) + "\n")


def scored(metric: str, rows: int, arguments: argparse.Namespace) -> tuple[float, Point]:
    """Seconds by the clock, then processor seconds and the peak of memory of a command that scores so many rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", rows, short=arguments.short)
        command = [sys.executable, "-m", "dialeval", "score", "-m", metric, "--dtype", arguments.dtype]
        command += ["--device", "cpu", "-i", str(folder / "rows.jsonl"), "-o", str(folder / "scores.jsonl")]
        started = time.monotonic()
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0o600) for number in (1, 2)]
        _, status, used = os.wait4(
            os.posix_spawn(sys.executable, command, os.environ, file_actions=quiet),
            0,
        )
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        return time.monotonic() - started, Point(rows, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def measure(metrics: list[str], arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Size after size of every metric."""
    end = time.monotonic() + 60 * arguments.minutes
    points: dict[str, list[Point]] = {metric: [] for metric in metrics}
    clock: dict[str, float] = {}
    for size in sizes(arguments.rows):
        for metric in metrics:
            known, left = points[metric], end - time.monotonic()
            slower = clock[metric] / known[-1].seconds if known else 1.0
            if known and (known[-1].rows * 4 < size or expected_seconds(known, size) * slower > left):
                continue
            with console.status(f"{metric}, {size:,} rows, {left / 60:.1f} minutes left"):
                clock[metric], point = scored(metric, size, arguments)
            known.append(point)
            console.print(f"{metric}, {size:,} rows: {point.seconds:.1f} s, {point.peak_mb:.0f} MB", markup=False)
    return {
        metric: {
            "points": [asdict(point) for point in known],
            "seconds_by_the_clock": clock[metric],
            "growth": asdict(grown) if (grown := fit(known)) else None,
        }
        for metric, known in points.items()
    }


def figures(outcome: dict[str, Any]) -> str:
    """What README.md shows of one kind of rows."""
    rows = [
        (metric, f"{point['rows']:,}", f"{point['seconds']:,.1f}", f"{1000 * point['seconds'] / point['rows']:.2f}",
         f"{point['peak_mb']:,.0f}")
        for metric, one in outcome["metrics"].items()
        for point in one["points"]
    ]  # fmt: skip
    lines = [
        f"Of {metric}, time grows with the power {one['growth']['exponent']:.2f} of the rows, start included."
        for metric, one in outcome["metrics"].items()
        if one["growth"]
    ]
    header = ("metric", "rows", "processor seconds", "milliseconds a row", "peak MB")
    told = f"`{outcome['command']}` on {outcome['processor']}, {outcome['threads']} thread(s)."
    return "\n\n".join([told, table(header, rows), *lines])


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="the smallest size (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="when to start nothing more (default: %(default)s)")
    parser.add_argument("--metrics", default=METRICS, help="separated by commas (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="default: %(default)s")
    parser.add_argument("--short", action="store_true", help="rows of a few words instead of ordinary ones")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    arguments = parser.parse_args()
    console, known = Console(stderr=True), machine()
    found = measure(arguments.metrics.split(","), arguments, console)
    command = f"python performance/million.py --rows {arguments.rows} --minutes {arguments.minutes:g}"
    outcome = {
        "command": f"{command} --metrics {arguments.metrics} --dtype {arguments.dtype}{' --short' * arguments.short}",
        "processor": known["processor"],
        "threads": known["threads"],
        "precisions": known["precisions"],
        "metrics": found,
    }
    kept = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.is_file() else {}
    kept["short rows" if arguments.short else "ordinary rows"] = outcome
    arguments.out.write_text(json.dumps(kept, indent=2, allow_nan=False, sort_keys=True) + "\n", encoding="utf-8")
    told = "\n\n".join(f"**{kind.capitalize()}.** {figures(one)}" for kind, one in sorted(kept.items()))
    replace_block(arguments.page, "figures of million.py", told)


if __name__ == "__main__":
    main()
