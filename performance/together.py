"""What several metrics cost in one call, beside one call for each, and what the judge says in DEB's place.

    python performance/together.py               # both tables, into README.md
    python performance/together.py --benchmarks '' # the first only

Every call begins with nothing remembered. Processor time, by turns; the middle of some rounds counts. FBD and PRD
share the features of one encoder; the other metrics have adapters of their own, so that they share tokens only. With
`--dtype auto` the one call is in the fastest precision of the machine, as `dialeval score --dtype auto` is.

The judge's encoder learned DEB's rows beside human ratings, so that one pass of it can stand for two: the second table
holds Spearman with people of DEB, of the judge's head for valid replies and of its aspect `relevant`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmark_rows import rated_rows
from contenders import rows_with_references
from int8 import BENCHMARKS
from measure import processor
from pages import replace_block, table
from scipy.stats import spearmanr

import dialeval
from dialeval.approaches.judge import HEADS
from dialeval.metric import Metric

METRICS = ("density", "deb", "quantidce", "judge", "fbd", "prd")


def forget(metrics: list[Metric]) -> None:
    """Drop what encoders and tokenizers remember of earlier calls."""
    for metric in metrics:
        held: Any = getattr(metric, "features", metric)
        held.encoder.forget()


def processor_time(action: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def costs(arguments: argparse.Namespace) -> str:
    """The first table."""
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
    header = ("call", "processor seconds", "share of all calls")
    return table(header, [(name, f"{seconds:.2f}", f"{seconds / alone:.0%}") for name, seconds in middle.items()])


def agreements(benchmarks: list[str]) -> str:
    """The second table."""
    judge: Any = dialeval.load("judge", dtype="auto")
    deb = dialeval.load("deb", dtype="auto")
    rows = []
    for name in benchmarks:
        rated = rated_rows(None, name)
        heads = judge.encoder.encode(rated.exchanges).rows[:, -len(HEADS) :]
        relevant = judge.score_exchanges(rated.exchanges).aspects["relevant"]
        told = (deb.score_exchanges(rated.exchanges).values, heads[:, HEADS.index("valid")], relevant)
        rows.append((name, *(f"{spearmanr(values, rated.ratings).statistic:.3f}" for values in told)))
    return table(("benchmark", "DEB", "the judge's head for valid replies", "the judge's `relevant`"), rows)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--dtype", default="float32", help="of the one call; the others are float32")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), help="of the second table, separated by commas")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    arguments = parser.parse_args()
    asked = f"--rows {arguments.rows} --rounds {arguments.rounds} --dtype {arguments.dtype}"
    parts = [f"`python performance/together.py {asked}` on {processor()}.", costs(arguments)]
    if benchmarks := list(filter(None, arguments.benchmarks.split(","))):
        parts.append(agreements(benchmarks))
    print("\n\n".join(parts))
    replace_block(arguments.page, "figures of together.py", "\n\n".join(parts))


if __name__ == "__main__":
    main()
