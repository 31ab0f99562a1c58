"""What it would spare to encode a context once for all of its replies, and what that costs in agreement.

    python performance/sharing.py                       # whole benchmarks
    python performance/sharing.py --rows 200
    python performance/sharing.py --late runs/late-1/checkpoint,runs/late-2/checkpoint

Exactly, a cross-encoder can share little: under full attention every state behind the first layer's attention depends
on the reply. Counted from the rows' own tokens: the operations that are the same for all replies to a context (queries,
keys and values of its tokens in the first layer), and those that encoding each text by itself would leave.

Then the second way, measured: DENSITY, which reads pairs, beside the metrics here that read each text by itself and
therefore a context once (MAUDE, BERT-RUBER). Processor time, one after the other, and Spearman with people. With
`--late`, DEB beside networks that learned from it and read both texts in their last layers only (`late.py`).
Writes sharing.json beside this file and a table in README.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark_rows import Rated, rated_rows
from int8 import BENCHMARKS
from pages import replace_block, table
from rich.console import Console
from scipy.stats import spearmanr

import dialeval
from dialeval.engine.formatting import PairTokenizer
from dialeval.exchange import Exchange

METRICS = ("density", "maude", "bert_ruber")


def operations(length: int, shape: Any) -> float:
    """Of a whole pass over one text or pair."""
    width, inner = shape.hidden_size, shape.intermediate_size
    products = length * (4 * width * width + 2 * width * inner)
    return float(2 * shape.num_hidden_layers * (products + 2 * length * length * width))


def shares(rated: Rated, tokenizer: PairTokenizer, shape: Any) -> dict[str, float]:
    """Shares of the operations that reading every pair takes."""
    pairs = tokenizer.pairs(rated.exchanges)
    whole = sum(operations(len(pair.ids), shape) for pair in pairs)
    contexts = {one.context for one in rated.exchanges}
    # A pair has its context first; `boundary` is where its reply begins.
    of_first_layer = 2 * 3 * shape.hidden_size**2
    longest: dict[tuple[str, ...], int] = {}
    for one, pair in zip(rated.exchanges, pairs, strict=True):
        longest[one.context] = max(longest.get(one.context, 0), pair.boundary)
    spared = of_first_layer * (sum(pair.boundary for pair in pairs) - sum(longest.values()))
    replies = {one.response for one in rated.exchanges}
    alone = tokenizer.contexts([Exchange(one, "") for one in contexts] + [Exchange((one,), "") for one in replies])
    return {
        "rows_per_context": len(pairs) / len(contexts),
        "same_for_all_replies": spared / whole,
        "each_text_by_itself": sum(operations(len(one.ids), shape) for one in alone) / whole,
    }


def figures(outcome: dict[str, Any]) -> str:
    """The table of README.md."""
    rows = []
    for name, one in outcome["benchmarks"].items():
        times = [f"{one['seconds']['density'] / one['seconds'][metric]:.1f}" for metric in METRICS[1:]]
        rows.append(
            (
                name,
                f"{one['rows_per_context']:.1f}",
                f"{one['same_for_all_replies']:.1%}",
                f"{1 - one['each_text_by_itself']:.0%}",
                *(f"{one['spearman'][metric]:.3f}" for metric in METRICS),
                *times,
            )
        )
    header = (
        "benchmark",
        "replies a context",
        "spared exactly",
        "spared by reading texts by themselves",
        *(f"Spearman, {metric}" for metric in METRICS),
        *(f"{metric}, times as fast as density" for metric in METRICS[1:]),
    )
    parts = [f"`{outcome['command']}`, processor time.", table(header, rows)]
    return "\n\n".join([*parts, table(*late_figures(outcome))] if outcome["late"] else parts)


def late_figures(outcome: dict[str, Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Header and rows of the second table: how far each network is from DEB, and how much faster."""
    rows: list[Sequence[str]] = []
    for name, one in outcome["benchmarks"].items():
        known = one["spearman"]
        told = [f"{known[late]:.3f} ({known[late] - known['deb']:+.3f})" for late in outcome["late"]]
        times = [f"{one['seconds']['deb'] / one['seconds'][late]:.2f}" for late in outcome["late"]]
        rows.append((name, f"{one['rows_per_context']:.1f}", f"{known['deb']:.3f}", *told, *times))
    layers = [f"{count} joint layer{'s' if count > 1 else ''}" for count in outcome["late"].values()]
    named = [*(f"{one}: Spearman" for one in layers), *(f"{one}: times as fast as DEB" for one in layers)]
    return ("benchmark", "replies a context", "DEB, Spearman", *named), rows


def main() -> None:
    """Count, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="of each benchmark (default: all)")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), help="names, separated by commas")
    parser.add_argument("--late", default="", help="checkpoints of late.py, separated by commas")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    arguments = parser.parse_args()
    console = Console(stderr=True)
    metrics: dict[str, Any] = {name: dialeval.load(name, device="cpu") for name in METRICS}
    density = metrics["density"]
    late: dict[str, int] = {}
    for folder in filter(None, arguments.late.split(",")):
        from late import Late  # which brings what training needs

        loaded = Late(folder, device="cpu")
        joint = int(loaded.network.config.architecture["joint"])
        metrics[f"late-{joint}"], late[f"late-{joint}"] = loaded, joint
    if late:
        metrics["deb"] = dialeval.load("deb", device="cpu")
    found: dict[str, Any] = {}
    for name in arguments.benchmarks.split(","):
        rated = rated_rows(arguments.rows, name)
        one: dict[str, Any] = shares(rated, density.encoder.tokenizer, density.network.encoder.config)
        one["seconds"], one["spearman"] = {}, {}
        for metric, loaded in metrics.items():
            with console.status(f"{metric} on {name}"):
                started = time.process_time()
                values = loaded.score_exchanges(rated.exchanges).values
                one["seconds"][metric] = time.process_time() - started
            one["spearman"][metric] = float(spearmanr(values, rated.ratings).statistic)
        found[name] = one
        console.print(name, one, markup=False)
    rows = "" if arguments.rows is None else f" --rows {arguments.rows}"
    chosen = "" if arguments.benchmarks == ",".join(BENCHMARKS) else f" --benchmarks {arguments.benchmarks}"
    folders = f" --late {arguments.late}" if late else ""
    command = f"python performance/sharing.py{rows}{chosen}{folders}"
    outcome = {"command": command, "late": late, "benchmarks": found}
    arguments.out.write_text(json.dumps(outcome, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    replace_block(arguments.page, "figures of sharing.py", figures(outcome))


if __name__ == "__main__":
    main()
