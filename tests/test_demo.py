"""What `make demo` shows a newcomer: no warnings, good replies above bad ones, and one thing to do next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("evaluate")

from dialeval.cli.install_modules import install, module_folders
from dialeval.metric import metric_class
from dialeval.suite import ready_approaches

pytestmark = [pytest.mark.slow, pytest.mark.encoder]
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    modules = tmp_path_factory.mktemp("modules")
    for folder in module_folders():
        install(folder, modules)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env={**os.environ, "HF_MODULES_CACHE": str(modules), "HF_EVALUATE_OFFLINE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
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
    table = [row for row in cells(shown) if row[1] in ("good", "good, too", "off the topic", "an echo")]
    title = next(line for line in shown.splitlines() if "DEB" in line)
    columns = [cell.strip() for cell in re.split("[┃│]", title)[1:-1]]
    values = {row[1]: dict(zip(columns[2:], map(float, row[2:]), strict=True)) for row in table}
    for metric in columns[2:]:
        assert values["good"][metric] > values["off the topic"][metric], metric
        assert values["good, too"][metric] > values["off the topic"][metric], metric
    assert min(values["good"]["DEB ↑"], values["good, too"]["DEB ↑"]) > 0.5 > values["an echo"]["DEB ↑"]


def test_it_ends_with_what_to_do_next(shown: str) -> None:
    assert shown.rstrip().splitlines()[-1].startswith("Next: ")
