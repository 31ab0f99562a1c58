"""What bfloat16 and int8 do to values, and to their correlations with people, metric by metric.

    python performance/precision.py                  # all rows of six benchmarks, some minutes each
    python performance/precision.py --benchmarks convai2_grade --rows 100

Writes a table of README.md. A precision that this processor is slow in, or has not, is left out.
"""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

import numpy as np
from measure import machine
from numpy.typing import NDArray
from pages import README, replace_block
from rich.console import Console
from scipy.stats import spearmanr

import dialeval
from dialeval import benchmarks
from dialeval.core.exchange import BadRow, Exchange
from dialeval.io.tables import markdown_table

METRICS = ("judge", "density", "deb", "quantidce", "cmn")
BENCHMARKS = ("convai2_grade", "dailydialog_grade", "empathetic_grade", "dailydialog_zhao", "persona_usr", "fed_turn")


Rated = tuple[list[Exchange], NDArray[np.float64]]


def rated_rows(benchmark: str, count: int | None) -> Rated:
    """So many rows of a benchmark, or all, always the same ones, and what people gave them."""
    loaded = benchmarks.load(benchmark, mirror=os.environ.get("DIALEVAL_MIRROR"))
    chosen = np.sort(np.random.default_rng(0).permutation(len(loaded.dataset))[:count])
    rows = [loaded.dataset[int(number)] for number in chosen]
    exchanges = [
        Exchange(tuple(row["context"]), row["response"], tuple(row["references"] or ()), system=row["system"])
        for row in rows
    ]
    return exchanges, np.array([row["scores"][loaded.info.main_aspect] for row in rows], dtype=np.float64)


def compared(name: str, precisions: list[str], benchmark: str, rated: Rated) -> list[tuple[str, ...]]:
    """A line for each precision: with float32's values, with people, and how far percentiles move."""
    (exchanges, ratings), values, shares = rated, {}, {}
    for dtype in precisions:
        metric = dialeval.load(name, dtype=dtype, device="cpu")
        values[dtype] = metric.score_exchanges(exchanges).values
        shares[dtype] = metric.rescale(values[dtype], "human_percentile")
    people = {dtype: float(spearmanr(scores, ratings).statistic) for dtype, scores in values.items()}
    return [
        (
            benchmark,
            name,
            str(len(ratings)),
            dtype,
            f"{spearmanr(values['float32'], values[dtype]).statistic:.4f}",
            f"{people['float32']:.4f}",
            f"{people[dtype]:.4f}",
            f"{np.abs(shares['float32'] - shares[dtype]).mean():.4f}",
        )
        for dtype in precisions
        if dtype != "float32"
    ]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="of each benchmark (default: all)")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), help="names, separated by commas")
    arguments = parser.parse_args()
    known, console = machine(), Console(stderr=True)
    if known["precisions"] == ["float32"]:
        parser.error("neither int8 nor bfloat16 is faster here than float32, so there is nothing to compare")
    lines = []
    for benchmark in arguments.benchmarks.split(","):
        rated = rated_rows(benchmark, arguments.rows)
        for name in METRICS:
            with console.status(f"{name} on {benchmark}"), suppress(BadRow):  # CMN needs references
                lines += compared(name, known["precisions"], benchmark, rated)
    header = (
        "benchmark",
        "metric",
        "rows",
        "precision",
        "Spearman with float32",
        "Spearman with people, float32",
        "Spearman with people",
        "mean difference of percentiles",
    )
    text = f"`python performance/precision.py` on {known['processor']}, torch {known['versions']['torch']}.\n\n"
    replace_block(README, "figures of precision.py", text + "\n".join(markdown_table(header, lines)))


if __name__ == "__main__":
    main()
