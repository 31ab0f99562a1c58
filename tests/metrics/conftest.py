"""The density module of `evaluate`, with a metric without weights behind it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval import registry
from dialeval.hub.evaluate_module import loaded

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library: no network, caches of our own, and a metric that needs no weights under the module's name."""
    library = pytest.importorskip("evaluate")
    home = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(library.config, "HF_EVALUATE_OFFLINE", True)
        changed.setattr(library.config, "HF_METRICS_CACHE", home / "metrics")
        changed.setitem(registry.REGISTRY, "density", registry.RegisteredMetric("overlap_metric:Overlap"))
        loaded.cache_clear()
        yield library
    loaded.cache_clear()


@pytest.fixture
def module(evaluate: Any) -> Any:
    return evaluate.load(str(ROOT / "metrics" / "density"))
