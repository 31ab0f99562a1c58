"""Score a data set of Ray's: `python examples/on_ray.py`. On a cluster, read and write s3:// instead of memory."""

from __future__ import annotations

import ray

from dialeval.scoring.on_ray import score_dataset

ROWS = [
    {"context": ["How was your trip?"], "response": response, "id": str(number)}
    for number, response in enumerate(["Great, thanks!", "The library closes at six.", "Trip trip trip."])
]

if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    scored = score_dataset(ray.data.from_items(ROWS), ["judge"], actors=1)
    print(scored.to_pandas()[["id", "response", "judge"]].to_string(index=False))
