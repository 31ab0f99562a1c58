"""A test that needs what this machine lacks is skipped with its reason; it never fails, and it never runs."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from refusals import refused
from resources import RESOURCES, hidden

HERE = Path(__file__).parents[1]
#: Every kind of resource once, and the code under test that asks for one.
TESTS = """
import pytest

@pytest.mark.parametrize("name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in {names}])
def test_one_that_needs(name):
    raise AssertionError("the resource is hidden, and this ran")

def test_wordnet_is_absent_for_the_code_as_well():
    from dialeval.baselines.overlap import Meteor
    from dialeval.baselines.words import MissingResource
    with pytest.raises(MissingResource):
        Meteor()
"""


@pytest.mark.slow
def test_hidden_resources_are_skipped_with_their_reasons(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(TESTS.format(names=list(RESOURCES)))
    places = [HERE, HERE / "support", os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "DIALEVAL_TESTS_HIDE": "all"}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-c", str(HERE.parent / "pyproject.toml")]
    command += ["--rootdir", str(tmp_path), "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 passed, {len(RESOURCES)} skipped" in done.stdout
    for resource in RESOURCES.values():
        assert resource.absent in done.stdout


def test_an_unknown_resource_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_TESTS_HIDE", "browser, wordnett")
    refused(ValueError, "wordnett", hidden)
    monkeypatch.setenv("DIALEVAL_TESTS_HIDE", "browser, wordnet")
    assert hidden() == {"browser", "wordnet"}


def test_every_resource_has_a_declared_marker() -> None:
    options = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {line.partition(":")[0] for line in options["markers"]} == {*RESOURCES, "slow"}
    assert "--strict-markers" in options["addopts"]
