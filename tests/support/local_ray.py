"""A small Ray on this machine, whose workers find the modules of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_HELPERS = Path(__file__).parent


@contextmanager
def local_ray(**variables: str) -> Iterator[None]:
    """Ray with three cores, its workers with these variables; gone afterwards."""
    import ray

    with pytest.MonkeyPatch.context() as changed:
        for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", **variables}.items():
            changed.setenv(name, value)
        for folder in (_HELPERS, _HELPERS.parent / "on_ray"):
            changed.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        for attempt in range(4):
            try:
                ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 * 2**20)
                break
            except Exception:  # Ray has no narrower one; it gives its parts half a minute, too little on a busy machine
                ray.shutdown()
                if attempt == 3:
                    raise
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        finally:
            ray.shutdown()
