"""What several metrics cost in one call, beside one call for each: `python performance/together.py`.

Every call begins with nothing remembered. Processor time, by turns; the middle of some rounds counts. FBD and PRD
share the features of one encoder; the other metrics have adapters of their own, so that they share tokens only. With
`--dtype auto` the one call is in the fastest precision of the machine, as `dialeval score --dtype auto` is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from contenders import rows_with_references

import dialeval
from dialeval.metric import Metric

METRICS = ("density", "deb", "quantidce", "judge", "fbd", "prd")


def forget(metrics: list[Metric]) -> None:
    """Drop what encoders and tokenizers remember of earlier calls."""
    for metric in metrics:
        held: Any = getattr(metric, "features", metric)
        held.encoder.forget()
        held.encoder.tokenizer.expect((), [])


def processor_time(action: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--dtype", default="float32", help="of the one call; the others are float32")
    arguments = parser.parse_args()
    rows, asked = rows_with_references(arguments.rows), {"dtype": arguments.dtype}
    options = {name: {"resamples": 0} for name in ("fbd", "prd")}
    single = {name: dialeval.load(name, **options.get(name, {})) for name in METRICS}
    suite: Any = dialeval.load(list(METRICS), resamples=0, **asked)
    taken: dict[str, list[float]] = {name: [] for name in (*METRICS, "all in one call")}
    for _ in range(arguments.rounds):
        for name, metric in single.items():
            forget([metric])
            taken[name].append(processor_time(lambda metric=metric: metric.score_exchanges(rows)))  # type: ignore[misc]
        forget(list(suite.values()))
        taken["all in one call"].append(processor_time(lambda: suite.score_exchanges(rows)))
    middle = {name: median(seconds) for name, seconds in taken.items()}
    alone = sum(middle[name] for name in METRICS)
    print("| call | processor seconds | share of all calls |\n|---|---:|---:|")
    for name, seconds in middle.items():
        print(f"| {name} | {seconds:.2f} | {seconds / alone:.0%} |")


if __name__ == "__main__":
    main()
