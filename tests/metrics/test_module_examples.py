"""The modules of the trained metrics: what their metric computes, and the examples that they show."""

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cmn_networks
from dialeval.core.exchange import BadRow
from dialeval.hub.evaluate_module import loaded
from dialeval.hub.modules import module_folders
from dialeval.registry import metric_class
from small_checkpoints import small_checkpoint

evaluate = pytest.importorskip("evaluate")

FOLDERS = {folder.name: folder for folder in module_folders()}
ROWS: dict[str, Any] = {
    "predictions": cmn_networks.RESPONSES,
    "contexts": cmn_networks.CONTEXTS,
    "references": cmn_networks.REFERENCES,
}


@pytest.fixture(autouse=True)
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path / "metrics")
    yield
    loaded.cache_clear()


@pytest.mark.parametrize("name", ["cmn", "deb", "quantidce"])
def test_module_gives_what_the_metric_gives(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    options = {"checkpoint": str(small_checkpoint(name, tiny_encoder, tmp_path / "checkpoint")), "device": "cpu"}
    module = evaluate.load(str(FOLDERS[name]))
    result = module.compute(**ROWS, **options)
    found: Any = metric_class(name)[0]
    expected = found(**options).score(*ROWS.values())
    assert result["scores"] == pytest.approx(expected.values.tolist(), abs=1e-4)
    assert result[name] == pytest.approx(expected.aggregate, abs=1e-4)
    assert result["signature"] == str(expected.signature)
    if "references" in found.info.needs:
        with pytest.raises(BadRow) as refused:
            module.compute(predictions=ROWS["predictions"], contexts=ROWS["contexts"], **options)
        assert refused.value.row == 0


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module's script, imported as `evaluate` imports it; by name, modules load from this checkout."""
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path)
    load = evaluate.load
    monkeypatch.setattr(evaluate, "load", lambda name: load(str(FOLDERS[name.removeprefix("dialeval/")])))
    found = evaluate.loading.evaluation_module_factory(str(FOLDERS[request.param]))
    return importlib.import_module(found.module_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fewer")
@pytest.mark.parametrize("script", FOLDERS, indirect=True)
def test_the_examples_of_a_module_run(script: Any) -> None:
    module = evaluate.loading.import_main_class(script.__name__)
    parameters = inspect.signature(dict(inspect.getmembers(module))["_compute"]).parameters.values()
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters)
    results = doctest.testmod(script, raise_on_error=True)
    assert results.failed == 0
    assert results.attempted > 1
