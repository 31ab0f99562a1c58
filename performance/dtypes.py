"""What bfloat16 does to values and to correlations, metric by metric, on rows that people rated.

    python performance/dtypes.py             # 300 rows of convai2_grade
    python performance/dtypes.py --rows 600  # all of them

Writes dtypes.json beside this file and the table in docs/precision.md. Without bfloat16 units a row
takes several times as long in bfloat16.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmark_rows import BENCHMARK, Rated, rated_rows
from measure import processor
from numpy.typing import NDArray
from pages import replace_block, table
from rich.console import Console
from scipy.stats import spearmanr

import dialeval
from dialeval.engine.encoding import has_fast_bfloat16
from dialeval.metric import Level
from dialeval.registry import metric_class
from dialeval.weights.config import current_versions

METRICS = ("density", "deb", "quantidce", "cmn", "fbd", "prd")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "precision.md"
#: Fewer values than this have no correlation worth printing.
_FEWEST = 5
FEWEST_ROWS = 40

Values = NDArray[np.float64]


def compare(reference: Values, other: Values, ratings: Values | None) -> dict[str, Any]:
    """Differences of two columns of values, and their correlations with each other and with people."""
    difference = np.abs(other - reference)
    return {
        "n": len(reference),
        "largest_difference": float(difference.max()),
        "mean_difference": float(difference.mean()),
        "standard_deviation_float32": float(reference.std()),
        "spearman_float32_bfloat16": _spearman(reference, other),
        "spearman_people_float32": None if ratings is None else _spearman(reference, ratings),
        "spearman_people_bfloat16": None if ratings is None else _spearman(other, ratings),
    }


def _spearman(one: Values, other: Values) -> float | None:
    if len(one) < _FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other).statistic)


def measure(name: str, rated: Rated) -> dict[str, Any]:
    """One metric in both precisions; system-level ones give a value per system, too few to correlate with people."""
    given = {"resamples": 0} if name in ("fbd", "prd") else {}
    reference, other = (
        dialeval.load(name, dtype=dtype, device="cpu", **given).score_exchanges(rated.exchanges).values
        for dtype in ("float32", "bfloat16")
    )
    level = metric_class(name)[0].info.level
    return {"level": str(level), **compare(reference, other, rated.ratings if level is Level.TURN else None)}


def figures(outcome: dict[str, Any]) -> str:
    """The table of docs/precision.md."""

    def shown(value: float | None, form: str = ".4f") -> str:
        return "–" if value is None else format(value, form)

    rows = [
        (
            name,
            f"{one['n']} {'rows' if one['level'] == 'turn' else 'systems'}",
            shown(one["largest_difference"], ".2g"),
            shown(one["mean_difference"], ".2g"),
            shown(one["standard_deviation_float32"], ".3g"),
            *(shown(one[f"spearman_{key}"]) for key in ("float32_bfloat16", "people_float32", "people_bfloat16")),
        )
        for name, one in outcome["metrics"].items()
    ]
    header = (
        "metric",
        "values",
        "largest difference",
        "mean difference",
        "standard deviation of the values",
        "Spearman, float32 with bfloat16",
        "Spearman with people, float32",
        "Spearman with people, bfloat16",
    )
    machine = outcome["machine"]
    return (
        f"`{outcome['command']}`: {outcome['rows']} rows of {outcome['benchmark']} on {machine['processor']} "
        f"({'with' if machine['native_bfloat16'] else 'without'} bfloat16 units), torch {machine['torch']}.\n\n"
        + table(header, rows)
    )


def main() -> None:
    """Measure all metrics, write the file and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="rows of the benchmark (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("dtypes.json"))
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose table is replaced")
    arguments = parser.parse_args()
    if arguments.rows < FEWEST_ROWS:
        parser.error(
            f"--rows is {arguments.rows}; FBD and PRD need some rows of every system, so at least {FEWEST_ROWS}"
        )
    rated = rated_rows(arguments.rows)
    console = Console(stderr=True)
    measured = {}
    for name in METRICS:
        with console.status(f"{name} in float32 and bfloat16"):
            measured[name] = measure(name, rated)
        console.print(f"{name}: largest difference {measured[name]['largest_difference']:.2g}", markup=False)
    native = has_fast_bfloat16(torch.device("cpu"))
    outcome = {
        "command": f"python performance/dtypes.py --rows {arguments.rows}",
        "benchmark": BENCHMARK,
        "rows": arguments.rows,
        "machine": {"processor": processor(), "native_bfloat16": native, **current_versions()},
        "metrics": measured,
    }
    arguments.out.write_text(json.dumps(outcome, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    replace_block(arguments.page, "figures of dtypes.py", figures(outcome))


if __name__ == "__main__":
    main()
