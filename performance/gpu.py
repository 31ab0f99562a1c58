"""How fast metrics score on a graphics card: one command for a machine that has one.

    python performance/gpu.py                      # 20,000 pairs on the first GPU
    python performance/gpu.py --rows 200 --cpu     # that the script and its values are right, where there is none

For every metric and precision: rows per second, the share of the card's own rate of matrix products, the peak of its
memory, and the largest difference to the CPU's float32 on a few rows. CrossEncoder.predict of sentence-transformers
reads the same pairs. Prints a table and writes gpu.json beside this file; no figure of it stands on any page until a
machine with a GPU has made it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contenders import MAX_LENGTH, Missing, cross_encoder, rows_with_references
from measure import processor
from pages import table
from rich.console import Console

import dialeval
from dialeval.exchange import Exchange
from dialeval.weights.config import current_versions

METRICS = ("density", "deb", "quantidce", "judge", "cmn", "fbd", "prd")
#: Those whose work is one pass over each pair, so that it can be counted.
COUNTED = frozenset({"density", "deb", "quantidce", "judge"})
#: Rows whose values are held against the CPU's.
FEW = 64


def seconds(action: Callable[[], Any], device: torch.device) -> float:
    """How long something takes until the device has finished it."""
    started = time.perf_counter()
    action()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of square matrix products, the best of some."""
    size = 8192 if device.type == "cuda" else 512
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    torch.mm(one, other)
    return 2 * size**3 / min(seconds(lambda: torch.mm(one, other), device) for _ in range(10))


def operations(metric: Any, rows: list[Exchange]) -> float:
    """What the encoder's matrix products come to; of the last layer only the first token goes all the way."""
    config = metric.network.encoder.config
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    lengths = np.array([len(pair.ids) for pair in metric.encoder.tokenizer.pairs(rows)], dtype=np.float64)
    whole = lengths * 2 * (4 * width**2 + 2 * width * inner) + 4 * lengths**2 * width
    last = lengths * 4 * width**2 + 2 * (2 * width**2 + 2 * width * inner) + 4 * lengths * width
    return float(((layers - 1) * whole + last).sum())


def measured(
    name: str, dtype: str, device: torch.device, rows: list[Exchange], batch_tokens: int | None
) -> dict[str, Any]:
    """One metric in one precision."""
    options: dict[str, Any] = {"max_length": MAX_LENGTH}
    if name in ("fbd", "prd"):
        options["resamples"] = 0
    metric: Any = dialeval.load(name, dtype=dtype, device=str(device), batch_tokens=batch_tokens, **options)
    reference = dialeval.load(name, device="cpu", **options).score_exchanges(rows[:FEW])
    difference = np.abs(metric.score_exchanges(rows[:FEW]).values - reference.values).max()
    getattr(metric, "features", metric).encoder.forget()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    taken = seconds(lambda: metric.score_exchanges(rows), device)
    rate = product_rate(device, torch.bfloat16 if dtype == "bfloat16" else torch.float32)
    return {
        "metric": name,
        "dtype": dtype,
        "batch_tokens": getattr(metric, "features", metric).encoder.batch_tokens,
        "rows_per_second": len(rows) / taken,
        "share_of_product_rate": operations(metric, rows) / taken / rate if name in COUNTED else None,
        "peak_gb": torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None,
        "largest_difference_to_cpu_float32": float(difference),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="distinct pairs (default: %(default)s)")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU, to see that the script is right")
    parser.add_argument("--batch-tokens", type=int, help="padded tokens in one batch (default: by the free memory)")
    parser.add_argument("--metrics", default=",".join(METRICS), help="names, separated by commas")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    if not arguments.cpu and not torch.cuda.is_available():
        parser.error("there is no GPU here; --cpu runs the same on the CPU, which says nothing about speed")
    device = torch.device("cpu" if arguments.cpu else "cuda")
    rows, console = rows_with_references(arguments.rows), Console(stderr=True)
    found = []
    for name in arguments.metrics.split(","):
        for dtype in ("float32",) if arguments.cpu else ("bfloat16", "float32"):
            with console.status(f"{name} in {dtype}"):
                found.append(measured(name, dtype, device, rows, arguments.batch_tokens))
    try:
        predict = cross_encoder(device=str(device))
        predict(rows[:FEW])
        rival = len(rows) / seconds(lambda: predict(rows), device)
    except Missing as missing:
        console.print(str(missing), markup=False)
        rival = None
    header = (
        "metric",
        "dtype",
        "rows/s",
        "share of the product rate",
        "peak GB",
        "largest difference",
        "× CrossEncoder",
    )
    lines = [
        (
            one["metric"],
            one["dtype"],
            f"{one['rows_per_second']:,.0f}",
            "–" if one["share_of_product_rate"] is None else f"{one['share_of_product_rate']:.0%}",
            "–" if one["peak_gb"] is None else f"{one['peak_gb']:.2f}",
            f"{one['largest_difference_to_cpu_float32']:.2g}",
            "–" if rival is None else f"{one['rows_per_second'] / rival:.2f}",
        )
        for one in found
    ]
    place = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{processor()}, which is no GPU"
    print(f"{len(rows):,} pairs, {found[0]['batch_tokens']:,} tokens in a batch, on {place}\n\n{table(header, lines)}")
    outcome = {
        "device": place,
        "rows": len(rows),
        "cross_encoder_rows_per_second": rival,
        "measured": found,
        "versions": current_versions(),
    }
    if device.type == "cuda" or arguments.out != parser.get_default("out"):
        arguments.out.write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
