"""How fast DENSITY scores, against named alternatives on the same weights, rows and run.

    python performance/speed.py                     # 2,000 pairs, about three minutes on two cores
    python performance/speed.py --pairs rows.jsonl  # rows of your own

Prints a table and writes performance/speed.json. Every line is a ratio within this run; absolute
rates belong to the machine that is named in the file.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from contenders import cross_encoder
from rich.console import Console
from rich.table import Table
from rows import add_arguments, chosen, generated

from dialeval.approaches.density import Density
from dialeval.engine.encoding import has_fast_bfloat16
from dialeval.exchange import Exchange
from dialeval.weights.config import current_versions

MEMORY_ROWS = 100_000


def seconds(action: Callable[[], Any], repeats: int = 2) -> float:
    """Best of some runs."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return min(taken)


def one_at_a_time(metric: Density, rows: list[Exchange]) -> None:
    """How the published implementation works."""
    for row in rows:
        metric.score_exchanges([row])


def matrix_share(metric: Density, rows: list[Exchange], encoder_seconds: float, dtype: torch.dtype) -> float:
    """Arithmetic of the encoder pass per second, as a share of what plain matrix products of its shapes reach."""
    encoder: Any = metric.network.encoder
    config = encoder.config
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    lengths = [len(pair.ids) for pair in metric.encoder.tokenizer.pairs(rows)]
    tokens = sum(lengths)
    per_token = (layers - 1) * 2 * (4 * width * width + 2 * width * inner) + 2 * 2 * width * width
    attention = (layers - 1) * sum(4 * length * length * width for length in lengths)
    # Of the last layer only the first token goes further than its keys and values.
    last = sum(2 * (2 * width * width + 2 * width * inner) + 4 * length * width for length in lengths)
    batch = metric.encoder.batch_tokens
    shapes = [
        ((batch, width), (width, width), 4),
        ((batch, width), (width, inner), 1),
        ((batch, inner), (inner, width), 1),
    ]
    work = spent = 0.0
    for left, right, count in shapes:
        a, b = torch.randn(left, dtype=dtype), torch.randn(right, dtype=dtype)
        spent += count * seconds(lambda a=a, b=b: a @ b, repeats=5)  # type: ignore[misc]
        work += count * 2 * left[0] * left[1] * right[1]
    share: float = ((tokens * per_token + attention + last) / encoder_seconds) / (work / spent)
    return share


def tokenizer_share(rows: list[Exchange], total_seconds: float) -> float:
    """Tokenisation alone, by a tokenizer that has not seen the rows, as a share of scoring them."""
    tokenizer = Density.tokenizer_of()
    tokenizer.pairs(rows[:64])
    return seconds(lambda: tokenizer.pairs(rows), repeats=1) / total_seconds


def peak_memory() -> float:
    """Gigabytes at the peak of a process that scores 100,000 rows, 2,000 of them distinct."""
    code = (
        "import resource, sys; sys.path.insert(0, 'performance')\n"
        "from rows import generated; from dialeval.approaches.density import Density\n"
        f"rows = generated({MEMORY_ROWS}, duplicates=0.98); Density().score_exchanges(rows)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    return int(done.stdout.split()[-1]) / 2**20


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    arguments = parser.parse_args()
    rows = chosen(arguments)
    few = rows[: max(50, len(rows) // 10)]
    console = Console(stderr=True)

    def timed(name: str, action: Callable[[], Any], count: int, repeats: int = 2) -> float:
        console.print(f"measuring {name} …")
        return count / seconds(action, repeats)

    rates: dict[str, float] = {}
    metric, half = Density(), Density(dtype="bfloat16")
    run(metric, rows[:64])  # warm up threads and caches
    rates["dialeval, float32"] = timed("dialeval float32", lambda: run(metric, rows), len(rows))
    rates["dialeval, bfloat16"] = timed("dialeval bfloat16", lambda: run(half, few), len(few))
    predict = cross_encoder()
    rates["CrossEncoder.predict, defaults"] = timed("CrossEncoder.predict", lambda: predict(rows), len(rows))
    metric.encoder.forget()
    rates["one pair at a time"] = timed("one pair at a time", lambda: one_at_a_time(metric, few), len(few), repeats=1)
    repeated = generated(len(rows), seed=1, duplicates=0.3)
    rates["30 % duplicates"] = timed("with 30 % duplicates", lambda: run(metric, repeated), len(repeated))
    rates["30 % duplicates, not deduplicated"] = timed(
        "the same without deduplication", lambda: run(metric, repeated, deduplicate=False), len(repeated)
    )
    share = matrix_share(metric, rows, len(rows) / rates["dialeval, float32"], torch.float32)
    tokenizing = tokenizer_share(rows, len(rows) / rates["dialeval, float32"])
    memory = peak_memory()

    base = rates["dialeval, float32"]
    table = Table(title=f"{len(rows)} pairs, {torch.get_num_threads()} threads")
    for column in ("what", "pairs/s", "dialeval float32 is … times as fast"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.1f}", f"{base / rate:.2f}")
    Console().print(table)
    Console().print(
        f"share of the matrix-multiply rate (float32): {share:.0%}; tokenizer: {tokenizing:.1%} of the time; "
        f"peak memory, {MEMORY_ROWS:,} rows: {memory:.2f} GB"
    )
    outcome = {
        "rows": len(rows),
        "pairs_per_second": {name: round(rate, 2) for name, rate in rates.items()},
        "matrix_share_float32": round(share, 3),
        "tokenizer_share_float32": round(tokenizing, 4),
        "peak_memory_gb_100k_rows": round(memory, 3),
        "native_bfloat16": has_fast_bfloat16(torch.device("cpu")),
        "machine": {"processor": platform.machine(), "threads": torch.get_num_threads(), **current_versions()},
    }
    arguments.out.write_text(json.dumps(outcome, indent=2) + "\n")


def run(metric: Density, rows: list[Exchange], *, deduplicate: bool = True) -> None:
    """Score with an engine that remembers nothing of earlier runs."""
    metric.encoder.forget()
    metric.encoder.deduplicate = deduplicate
    metric.score_exchanges(rows)


if __name__ == "__main__":
    main()
