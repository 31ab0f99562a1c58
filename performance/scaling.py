"""Rows a second through a local Ray beside one process: `python performance/scaling.py --rows 4000 --actors 2`.

Writes scaling.json beside this file. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine
from rows import generated

import dialeval


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    started = time.perf_counter()
    found = run()
    return time.perf_counter() - started, found


def main() -> None:
    """Score the same rows both ways, models loaded and actors started before the clock."""
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
    dataset = ray.data.from_items(rows).materialize()
    together, table = timed(
        lambda: score_dataset(dataset, [arguments.metric], actors=arguments.actors, batch_rows=512).to_pandas()
    )
    found = table.set_index("id")[arguments.metric].loc[[row["id"] for row in rows]]
    outcome = {
        "machine": machine(),
        "rows": arguments.rows,
        "actors": arguments.actors,
        "rows_per_second": {"one process, one thread": arguments.rows / alone, "ray": arguments.rows / together},
        "times_as_fast": alone / together,
        "largest_difference": float(np.abs(found.to_numpy() - scores.values).max()),
    }
    Path(__file__).with_name("scaling.json").write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(outcome, indent=1))


if __name__ == "__main__":
    main()
