"""What int8 does to values and correlations, and how fast it is, on CPUs that have units for it.

    python performance/int8.py                       # whole benchmarks, three rounds of 200 pairs
    python performance/int8.py --benchmarks fed_turn,persona_usr --rows 300

Speeds are ratios of processor time, in one process and by turns: DENSITY in float32, in int8, and the CrossEncoder of
sentence-transformers at its defaults on the same pairs and weights. Writes int8.json beside this file and the tables
of docs/precision.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from benchmark_rows import rated_rows
from contenders import MAX_LENGTH, Missing, cross_encoder
from measure import processor
from pages import replace_block, table
from rich.console import Console
from rows import generated
from scipy.stats import spearmanr

import dialeval
from dialeval.engine.int8 import has_fast_int8
from dialeval.exchange import Exchange
from dialeval.weights.config import current_versions

METRICS = ("density", "deb", "quantidce", "judge")
BENCHMARKS = ("convai2_grade", "dailydialog_grade", "empathetic_grade", "dailydialog_zhao", "persona_usr", "fed_turn")
#: Of oneDNN, ATen and MKL.
CAPPED = {
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI",
    "ATEN_CPU_CAPABILITY": "avx512",
    "MKL_ENABLE_INSTRUCTIONS": "AVX512_E1",
}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "precision.md"


def compared(metrics: Sequence[Any], rows: int | None, benchmark: str) -> dict[str, float]:
    """One metric in float32 and in int8 on the rows of a benchmark."""
    rated = rated_rows(rows, benchmark)
    plain, quick = (metric.score_exchanges(rated.exchanges).values for metric in metrics)
    shares = [
        metric.rescale(values, "human_percentile") for metric, values in zip(metrics, (plain, quick), strict=True)
    ]
    return {
        "rows": len(plain),
        "spearman_float32_int8": float(spearmanr(plain, quick).statistic),
        "spearman_people_float32": float(spearmanr(plain, rated.ratings).statistic),
        "spearman_people_int8": float(spearmanr(quick, rated.ratings).statistic),
        "mean_difference_percentile": float(np.abs(shares[0] - shares[1]).mean()),
    }


def speeds(count: int, rounds: int) -> dict[str, float]:
    """How many times as fast int8 is as each other way: the middle of some rounds, in processor time."""
    rows = generated(count)
    ways: dict[str, Callable[[list[Exchange]], Any]] = {}
    for dtype in ("int8", "float32"):
        metric: Any = dialeval.load("density", dtype=dtype, device="cpu", max_length=MAX_LENGTH)
        metric.encoder.deduplicate = False
        ways[dtype] = metric.score_exchanges
    with suppress(Missing):
        ways["CrossEncoder.predict"] = cross_encoder()
    for way in ways.values():
        way(rows[:16])
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.process_time()
            way(rows)
            taken[name].append(time.process_time() - started)
    return {
        name: median(other / own for own, other in zip(taken["int8"], taken[name], strict=True))
        for name in ways
        if name != "int8"
    }


def figures(outcome: dict[str, Any]) -> str:
    """The tables of docs/precision.md."""
    rows = [
        (
            benchmark,
            name,
            str(one["rows"]),
            *(f"{one[f'spearman_{key}']:.4f}" for key in ("float32_int8", "people_float32", "people_int8")),
            f"{one['mean_difference_percentile']:.4f}",
        )
        for benchmark, measured in outcome["benchmarks"].items()
        for name, one in measured.items()
    ]
    header = (
        "benchmark",
        "metric",
        "rows",
        "Spearman, float32 with int8",
        "Spearman with people, float32",
        "Spearman with people, int8",
        "mean difference of percentiles",
    )
    machine = outcome["machine"]
    here, capped = (
        "; ".join(f"**{ratio:.2f} ×** {name}" for name, ratio in outcome[key].items())
        for key in ("times_as_fast_as", "times_as_fast_as_without_bfloat16")
    )
    moved = {
        (benchmark, name): abs(one["spearman_people_float32"] - one["spearman_people_int8"])
        for benchmark, measured in outcome["benchmarks"].items()
        for name, one in measured.items()
    }
    most_on, most = max(moved, key=moved.__getitem__)
    share = max(
        one["mean_difference_percentile"] for measured in outcome["benchmarks"].values() for one in measured.values()
    )
    return (
        f"`{outcome['command']}` on {machine['processor']}, {machine['threads']} threads, torch {machine['torch']}.\n\n"
        f"DENSITY in int8 is {here} (processor time, by turns, {outcome['pairs']} generated pairs). With the libraries "
        f"kept to the instructions of a processor that has VNNI and no bfloat16 it is {capped}.\n\n"
        f"Percentiles move by {share:.4f} or less on average. Correlations with people move by less than .005 in "
        f"{sum(one < 0.005 for one in moved.values())} of {len(moved)} lines; the most, {moved[most_on, most]:.4f}, "
        f"is {most}'s on {most_on}.\n\n" + table(header, rows)
    )


def speeds_without_bfloat16(pairs: int, rounds: int) -> dict[str, float]:
    """`speeds` in a process whose libraries take nothing newer than VNNI."""
    command = [sys.executable, __file__, "--speeds", "--pairs", str(pairs), "--rounds", str(rounds)]
    done = subprocess.run(command, env=os.environ | CAPPED, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure, write the file and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="of each benchmark (default: all)")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), help="names, separated by commas")
    parser.add_argument("--pairs", type=int, default=200, help="to time (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="to time (default: %(default)s)")
    parser.add_argument("--speeds", action="store_true", help="print the ratios of speed alone, as JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are replaced")
    arguments = parser.parse_args()
    if not has_fast_int8():
        parser.error("this CPU has no VNNI units, so there is nothing to measure")
    if arguments.speeds:
        print(json.dumps(speeds(arguments.pairs, arguments.rounds)))
        return
    console = Console(stderr=True)
    names = arguments.benchmarks.split(",")
    with console.status("speed"):
        ratios = speeds(arguments.pairs, arguments.rounds)
        capped = speeds_without_bfloat16(arguments.pairs, arguments.rounds)
    console.print(ratios, capped, markup=False)
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for metric in METRICS:
        both = [dialeval.load(metric, dtype=dtype, device="cpu") for dtype in ("float32", "int8")]
        for name in names:
            with console.status(f"{metric} on {name}"):
                found[name][metric] = compared(both, arguments.rows, name)
            console.print(name, metric, found[name][metric], markup=False)
    chosen = "" if arguments.benchmarks == ",".join(BENCHMARKS) else f" --benchmarks {arguments.benchmarks}"
    rows = "" if arguments.rows is None else f" --rows {arguments.rows}"
    outcome = {
        "command": f"python performance/int8.py{rows} --pairs {arguments.pairs}{chosen}",
        "pairs": arguments.pairs,
        "times_as_fast_as": ratios,
        "times_as_fast_as_without_bfloat16": capped,
        "benchmarks": found,
        "machine": {"processor": processor(), "threads": torch.get_num_threads(), **current_versions()},
    }
    arguments.out.write_text(json.dumps(outcome, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    replace_block(arguments.page, "figures of int8.py", figures(outcome))


if __name__ == "__main__":
    main()
