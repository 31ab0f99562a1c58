"""What metrics on one encoder cost in one call, beside a call for each.

    python performance/together.py               # the table, into README.md

Every call begins with nothing remembered. Processor time, by turns; the middle of some rounds counts. The judge, DEB,
DENSITY and QuantiDCE are heads on one encoder, so that one call of all four should cost little more than the slowest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from contenders import rows_with_references
from measure import processor
from pages import README, replace_block

import dialeval
from dialeval.io.tables import markdown_table

METRICS = ("judge", "deb", "density", "quantidce")
ROWS, ROUNDS = 1000, 3


def forget(metrics: list[Any]) -> None:
    """Drop what encoders and tokenizers remember of earlier calls."""
    for metric in metrics:
        metric.encoder.forget()


def processor_time(action: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def costs() -> list[str]:
    """The table, in float32."""
    rows = rows_with_references(ROWS)
    single = {name: dialeval.load(name, dtype="float32") for name in METRICS}
    suite: Any = dialeval.load(list(METRICS), dtype="float32")
    taken: dict[str, list[float]] = {name: [] for name in (*METRICS, "all in one call")}
    for _ in range(ROUNDS):
        for name, metric in single.items():
            forget([metric])
            taken[name].append(processor_time(lambda metric=metric: metric.score_exchanges(rows)))  # type: ignore[misc]
        forget(list(suite.values()))
        taken["all in one call"].append(processor_time(lambda: suite.score_exchanges(rows)))
    middle = {name: median(seconds) for name, seconds in taken.items()}
    slowest = max(middle[name] for name in METRICS)
    header = ("call", "processor seconds", "times the slowest metric")
    return markdown_table(
        header, [(name, f"{seconds:.2f}", f"{seconds / slowest:.2f}") for name, seconds in middle.items()]
    )


if __name__ == "__main__":
    made = f"`python performance/together.py` on {processor()}, {ROWS:,} rows."
    text = "\n".join([made, "", *costs()])
    print(text)
    replace_block(README, "figures of together.py", text)
