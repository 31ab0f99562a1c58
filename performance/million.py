"""`dialeval score` on more and more rows, up to a million, as far as the minutes reach.

    python performance/million.py                 # about 30 minutes
    python performance/million.py --minutes 3
    python performance/million.py --short         # rows of a few words: the same minutes reach further

Every row is another one, so that nothing is spared by repeats. Each size has a command of its own; its processor time
and the peak of its memory are the operating system's own counts, libraries, reading and writing included. A size is
begun only if the time that is left should do. Writes a table of README.md.
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
from pages import README, replace_block
from rich.console import Console
from rows import generated

from dialeval.io.tables import markdown_table

METRIC = "judge"
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
    counts = [first * times * 10**power for power in range(7) for times in (1, 3)]
    return [size for size in counts if size <= max(MILLION, first)]


def write_rows(path: Path, count: int, *, short: bool) -> None:
    """JSON lines, block by block."""
    with path.open("w", encoding="utf-8") as file:
        if short:
            file.writelines(f'{{"context": ["hi {row % 997}"], "response": "yes {row}"}}\n' for row in range(count))
            return
        for start in range(0, count, _BLOCK):
            for exchange in generated(min(_BLOCK, count - start), seed=start):
                file.write(json.dumps({"context": exchange.context, "response": exchange.response}) + "\n")


def scored(rows: int, *, short: bool) -> tuple[float, Point]:
    """Seconds by the clock, then processor seconds and the peak of memory of a command that scores so many rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", rows, short=short)
        command = [sys.executable, "-m", "dialeval", "score", "-m", METRIC, "--device", "cpu"]
        command += ["-i", str(folder / "rows.jsonl"), "-o", str(folder / "scores.jsonl")]
        started = time.monotonic()
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0o600) for number in (1, 2)]
        _, status, used = os.wait4(os.posix_spawn(sys.executable, command, os.environ, file_actions=quiet), 0)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        return time.monotonic() - started, Point(rows, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def measure(minutes: float, *, short: bool) -> list[Point]:
    """Size after size, until the next one would take longer than is left."""
    end, console, points, clock = time.monotonic() + 60 * minutes, Console(stderr=True), list[Point](), 0.0
    for size in sizes(1000):
        left = end - time.monotonic()
        if points and expected_seconds(points, size) * clock / points[-1].seconds > left:
            break
        with console.status(f"{size:,} rows, {left / 60:.1f} minutes left"):
            clock, point = scored(size, short=short)
        points.append(point)
        console.print(f"{size:,} rows: {point.seconds:.1f} s, {point.peak_mb:.0f} MB", markup=False)
    return points


def figures(points: list[Point]) -> str:
    """What README.md shows of one kind of rows."""
    rows = [
        (
            f"{point.rows:,}",
            f"{point.seconds:,.1f}",
            f"{1000 * point.seconds / point.rows:.2f}",
            f"{point.peak_mb:,.0f}",
        )
        for point in points
    ]
    text = "\n".join(markdown_table(("rows", "processor seconds", "milliseconds a row", "peak MB"), rows))
    if (power := exponent(points)) is not None:
        text += f"\n\nTime grows with the power {power:.2f} of the rows, start included."
    return text


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, help="when to start nothing more (default: %(default)s)")
    parser.add_argument("--short", action="store_true", help="rows of a few words instead of ordinary ones")
    arguments = parser.parse_args()
    known, points = machine(), measure(arguments.minutes, short=arguments.short)
    command = f"python performance/million.py --minutes {arguments.minutes:g}{' --short' * arguments.short}"
    text = f"`{command}` on {known['processor']}, {known['threads']} thread(s), {METRIC}.\n\n{figures(points)}"
    replace_block(README, f"figures of million.py, {'short' if arguments.short else 'ordinary'} rows", text)


if __name__ == "__main__":
    main()
