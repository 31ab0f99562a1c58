"""What metrics on one encoder cost in one call, beside a call for each.

    python performance/together.py               # the table, into README.md

Every call begins with nothing remembered. Processor time, by turns; the middle of some rounds counts. The judge, DEB,
DENSITY and QuantiDCE are heads on one encoder, so that one call of all four should cost little more than the slowest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from contenders import rows_with_references
from measure import processor
from pages import replace_block, table

import dialeval

METRICS = ("judge", "deb", "density", "quantidce")


def forget(metrics: list[Any]) -> None:
    """Drop what encoders and tokenizers remember of earlier calls."""
    for metric in metrics:
        metric.encoder.forget()


def processor_time(action: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def costs(arguments: argparse.Namespace) -> str:
    """The table."""
    rows, asked = rows_with_references(arguments.rows), {"dtype": arguments.dtype}
    single = {name: dialeval.load(name, **asked) for name in METRICS}
    suite: Any = dialeval.load(list(METRICS), **asked)
    taken: dict[str, list[float]] = {name: [] for name in (*METRICS, "all in one call")}
    for _ in range(arguments.rounds):
        for name, metric in single.items():
            forget([metric])
            taken[name].append(processor_time(lambda metric=metric: metric.score_exchanges(rows)))  # type: ignore[misc]
        forget(list(suite.values()))
        taken["all in one call"].append(processor_time(lambda: suite.score_exchanges(rows)))
    middle = {name: median(seconds) for name, seconds in taken.items()}
    slowest = max(middle[name] for name in METRICS)
    header = ("call", "processor seconds", "times the slowest metric")
    return table(header, [(name, f"{seconds:.2f}", f"{seconds / slowest:.2f}") for name, seconds in middle.items()])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--dtype", default="float32", help="default: %(default)s")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    arguments = parser.parse_args()
    asked = f"--rows {arguments.rows} --rounds {arguments.rounds} --dtype {arguments.dtype}"
    text = f"`python performance/together.py {asked}` on {processor()}.\n\n{costs(arguments)}"
    print(text)
    replace_block(arguments.page, "figures of together.py", text)


if __name__ == "__main__":
    main()
