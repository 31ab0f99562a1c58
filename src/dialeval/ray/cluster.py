"""Where a job runs: the cluster that is there, or a small local one."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from dialeval.version import how_to_install

Result = TypeVar("Result")

#: Shared memory of a local Ray: a few dozen packets; the default takes a third of the machine.
_LOCAL_STORE_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Workers:
    """How many processes hold models, and what each of them may use."""

    actors: int
    cpus: float
    gpus: float

    @classmethod
    def choose(cls, actors: int | None, cpus: float | None, gpus: float | None) -> Workers:
        """One actor per GPU of the cluster; without GPUs one for every two cores, which then share the work."""
        import ray

        there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = (1.0 if there.get("GPU") else 0.0) if gpus is None else gpus
        count = int(there.get("GPU", 0) / gpus) if gpus else int(there.get("CPU", 1)) // 2
        actors = max(1, count) if actors is None else actors
        if actors < 1:
            raise ValueError(f"actors is {actors}; pass at least 1")
        # Readers need a core beside the actors, else nothing ever reaches those.
        return cls(actors, min(1.0, (there.get("CPU", 1) - 0.5) / actors) if cpus is None else cpus, gpus)

    def pool(self) -> dict[str, Any]:
        """Options of `map_batches` for a stage of actors; Ray replaces an actor that is gone, as often as it takes."""
        from ray.data import ActorPoolStrategy

        return {
            "compute": ActorPoolStrategy(size=self.actors),
            "num_cpus": self.cpus,
            "num_gpus": self.gpus,
            "batch_size": 1,
            "batch_format": "numpy",
        }

    def call(self, action: Callable[..., Result], *given: Any) -> Result:
        """Run one function where a model may be loaded."""
        import ray

        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=3)(action)
        found: Result = ray.get(remote.remote(*given))
        return found


def connect() -> None:
    """Join the cluster of RAY_ADDRESS, or start Ray here: without dashboard, without reports to its makers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"Ray is not installed; install it with: {how_to_install('ray')}") from None
    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=_LOCAL_STORE_BYTES)
    with suppress(AttributeError):
        ray.data.DataContext.get_current().enable_progress_bars = False
