"""What `make demo` shows a newcomer: no warnings, good replies above bad ones, and one thing to do next."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("evaluate")

from dialeval.hub.modules import install, module_folders
from dialeval.registry import metric_class, ready_approaches
from dialeval.registry.interface import Level

pytestmark = [pytest.mark.slow, pytest.mark.encoder]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    modules = tmp_path_factory.mktemp("modules")
    for folder in module_folders():
        install(folder, modules)
    environment = {**os.environ, "HF_MODULES_CACHE": str(modules), "HF_EVALUATE_OFFLINE": "1", "COLUMNS": "80"}
    command = [sys.executable, str(EXAMPLES / "demo.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def cells(shown: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if line[:1] == "│"]


def test_every_metric_tells_the_two_systems_apart(shown: str) -> None:
    found = {row[0]: [float(cell) for cell in row[2:]] for row in cells(shown) if len(row) == 4}
    infos = {name: metric_class(name)[0].info for name in ready_approaches()}
    assert found.keys() == {f"{info.title} {'↑' if info.higher_is_better else '↓'}" for info in infos.values()}
    for name, (good, bad) in found.items():
        assert good > bad if name.endswith("↑") else good < bad, name


def test_good_replies_score_as_good(shown: str) -> None:
    header = next(line for line in shown.splitlines() if "an echo ┃" in line)
    kinds = [cell.strip() for cell in header.strip("┃").split("┃")][1:]
    rows = [row for row in cells(shown) if len(row) == 5]
    values = {row[0]: dict(zip(kinds, map(float, row[1:]), strict=True)) for row in rows}
    assert len(values) == sum(metric_class(name)[0].info.level is Level.TURN for name in ready_approaches())
    for metric, of in values.items():
        assert min(of["good"], of["good, too"]) > of["off the topic"], metric
    assert min(values["DEB ↑"]["good"], values["DEB ↑"]["good, too"]) > 0.5 > values["DEB ↑"]["an echo"]
