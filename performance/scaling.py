"""Rows a second through a local Ray beside one process: `python performance/scaling.py --rows 4000 --actors 2`.

Ray scores a quarter of the rows and then all of them, each time with new actors; what the additional rows take is the
rate, and the rest is the start. Writes the table of docs/scaling.md. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import processor
from pages import replace_block, table
from rows import generated

import dialeval

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scaling.md"


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    started = time.perf_counter()
    found = run()
    return time.perf_counter() - started, found


def main() -> None:
    """Score the same rows both ways; in one process the model is loaded before the clock."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--actors", type=int, default=2, help="one thread each")
    parser.add_argument("--metric", default="deb")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    import ray
    import torch

    from dialeval.on_ray import score_dataset

    torch.set_num_threads(1)
    exchanges = generated(arguments.rows)
    metric = dialeval.load(arguments.metric)
    metric.score_exchanges(exchanges[:32])
    alone, scores = timed(lambda: metric.score_exchanges(exchanges))
    rows = [
        {"context": list(one.context), "response": one.response, "id": f"r{at}"} for at, one in enumerate(exchanges)
    ]
    ray.init(num_cpus=arguments.actors + 1, include_dashboard=False, log_to_driver=False)
    few = arguments.rows // 4
    (start, _), (whole, scored) = (
        timed(
            lambda some=some: score_dataset(
                ray.data.from_items(some), [arguments.metric], actors=arguments.actors, batch_rows=128
            ).to_pandas()
        )
        for some in (rows[:few], rows)
    )
    found = scored.set_index("id")[arguments.metric].loc[[row["id"] for row in rows]]
    rate, ray_rate = arguments.rows / alone, (arguments.rows - few) / (whole - start)
    lines = [
        ("one process, one thread", f"{rate:.0f}", "1.00", ""),
        (f"Ray, {arguments.actors} actors of one thread", f"{ray_rate:.0f}", f"{ray_rate / rate:.2f}",
         f"{max(0.0, start - few / ray_rate):.0f}"),
    ]  # fmt: skip
    text = (
        f"`python performance/scaling.py --rows {arguments.rows} --actors {arguments.actors}` on {processor()}, "
        f"{arguments.metric}; largest difference of a value {np.abs(found.to_numpy() - scores.values).max():.0e}.\n\n"
        + table(("", "rows a second", "times as fast", "seconds to start"), lines)
    )
    print(text)
    replace_block(PAGE, "figures of scaling.py", text)


if __name__ == "__main__":
    main()
