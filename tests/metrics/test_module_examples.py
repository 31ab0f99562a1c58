"""The examples that the modules of `evaluate` show."""

import doctest
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from dialeval.hub.evaluate_module import loaded
from dialeval.hub.modules import module_folders

evaluate = pytest.importorskip("evaluate")

FOLDERS = {folder.name: folder for folder in module_folders()}


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module's script, imported as `evaluate` imports it; by name, modules load from this checkout."""
    loaded.cache_clear()
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
