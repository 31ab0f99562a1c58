"""`dialeval score` on more and more rows, up to a million, as far as the minutes reach.

    python performance/million.py                 # about 30 minutes
    python performance/million.py --minutes 3 --rows 10000
    python performance/million.py --short         # rows of a few words: the same minutes reach further

Every row is another one, so that nothing is spared by repeats. Each size has a command of its own; its processor time
and the peak of its memory are the operating system's own counts, libraries, reading and writing included. The metrics
take turns at each size; a size is begun only if the time that is left should do. Writes a table of README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import machine
from pages import replace_block, table
from rich.console import Console
from rows import generated

METRICS = "judge"
MILLION = 1_000_000
#: Rows generated at once; each block has a seed of its own.
_BLOCK = 10_000


@dataclass(frozen=True)
class Point:
    """One measurement; seconds are the processor's."""

    rows: int
    seconds: float
    peak_mb: float


def exponent(points: list[Point]) -> float | None:
    """The slope of a line through the logarithms: 1 where twice the rows take twice the time."""
    if len(points) < 2:
        return None
    rows, seconds = np.log([point.rows for point in points]), np.log([point.seconds for point in points])
    return float(np.polyfit(rows, seconds, 1)[0])


def expected_seconds(points: list[Point], rows: int) -> float:
    """How long more rows may take: as the last size, or worse if the growth so far was worse than linear."""
    return float(points[-1].seconds * (rows / points[-1].rows) ** max(1.0, exponent(points) or 1.0))


def sizes(first: int) -> list[int]:
    """`first`, then about three times as many each time, up to a million: 1,000, 3,000, 10,000 …"""
    found = [first * times * 10**power for power in range(7) for times in (1, 3)]
    return [size for size in found if size <= max(MILLION, first)]


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


def measure(metrics: list[str], arguments: argparse.Namespace, console: Console) -> dict[str, list[Point]]:
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
    return points


def figures(measured: dict[str, list[Point]]) -> str:
    """What README.md shows of one kind of rows."""
    rows = [
        (
            metric,
            f"{point.rows:,}",
            f"{point.seconds:,.1f}",
            f"{1000 * point.seconds / point.rows:.2f}",
            f"{point.peak_mb:,.0f}",
        )
        for metric, points in measured.items()
        for point in points
    ]
    lines = [
        f"{metric}: time grows with the power {power:.2f} of the rows, start included."
        for metric, points in measured.items()
        if (power := exponent(points)) is not None
    ]
    header = ("metric", "rows", "processor seconds", "milliseconds a row", "peak MB")
    return "\n\n".join([table(header, rows), *lines])


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="the smallest size (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="when to start nothing more (default: %(default)s)")
    parser.add_argument("--metrics", default=METRICS, help="separated by commas (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="default: %(default)s")
    parser.add_argument("--short", action="store_true", help="rows of a few words instead of ordinary ones")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    arguments = parser.parse_args()
    console, known = Console(stderr=True), machine()
    found = measure(arguments.metrics.split(","), arguments, console)
    command = f"python performance/million.py --rows {arguments.rows} --minutes {arguments.minutes:g}"
    command += f" --metrics {arguments.metrics} --dtype {arguments.dtype}{' --short' * arguments.short}"
    text = f"`{command}` on {known['processor']}, {known['threads']} thread(s).\n\n{figures(found)}"
    replace_block(arguments.page, f"figures of million.py, {'short' if arguments.short else 'ordinary'} rows", text)


if __name__ == "__main__":
    main()
