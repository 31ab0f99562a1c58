"""Metrics from elsewhere: functions named on the spot, and packages that bring them by an entry point."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dialeval
from dialeval import registry
from dialeval.cli import build_app
from refusals import refused
from shell import read_rows, write_rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ROWS = [{"context": ["how are you"], "response": text, "id": text[:1]} for text in ("fine", "not bad at all")]
OWN = """
def words(exchanges): return [len(exchange.response.split()) for exchange in exchanges]
def one_too_few(exchanges): return [1.0] * (len(exchanges) - 1)
def no_numbers(exchanges): return ["many"] * len(exchanges)
def other_arguments(responses, contexts): return [1.0] * len(responses)
def one_number(exchanges): return 3
def deep(exchanges): return [share(exchange) for exchange in exchanges]
def share(exchange): return 1 / len(exchange.facts)
def silent(exchanges): return [None for _ in exchanges]
def endless(exchanges): yield from repeat(1.0)
def a_set(exchanges): return {float(len(exchange.response)) for exchange in exchanges}
def digits(exchanges): return "1" * len(exchanges)
def leaves(exchanges): raise SystemExit(0)
def largest(exchanges): return [1e308] * len(exchanges)

number = 3
from itertools import repeat
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_metrics", raising=False)
    monkeypatch.setattr(registry, "REGISTRY", dict(registry.REGISTRY))
    Path("own_metrics.py").write_text(OWN)
    Path("leaves_at_once.py").write_text("raise SystemExit(0)\n")
    write_rows("rows.jsonl", ROWS)


def score(metric: str) -> Result:
    return CliRunner().invoke(build_app(), ["score", "-m", metric, "-i", "rows.jsonl", "-o", "scores.jsonl"])


@pytest.mark.usefixtures("own")
def test_a_function_is_scored_like_any_metric() -> None:
    done = score("python:own_metrics:words?lower_is_better=true&name=length")
    assert done.exit_code == 0, done.output
    assert [row["length"] for row in read_rows("scores.jsonl")] == [1.0, 4.0]
    assert done.stderr.startswith("length 2.5 (lower is better; 2 values")
    # The signature holds a digest of the module, so that another version is another metric.
    assert re.search(r"metric:length\|python:[0-9a-f]{16}", done.stderr)
    assert dialeval.load("python:own_metrics:words").score(ROWS).values.tolist() == [1.0, 4.0]
    assert dialeval.load("length").info.higher_is_better is False


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("metric", "named"),
    [
        ("python:own_metrics:one_too_few", "1 values for 2 rows"),
        ("python:own_metrics:no_numbers", "row 0 (rows.jsonl, line 1): no_numbers"),
        ("python:own_metrics:largest", "1e+308"),
        ("python:own_metrics:words?range=nan:1", "range is 'nan:1'"),
        ("python:own_metrics:endless", "more than 2 values"),
        ("python:own_metrics:a_set", "a set"),
        ("python:own_metrics:digits", "a str"),
        ("python:own_metrics:leaves", "SystemExit: 0"),
        ("python:own_metrics:words?weight=2", "'weight'"),
        ("python:own_metrics:words?name=response", "'response'"),
        ("python:leaves_at_once:words", "leaves_at_once"),
        ("python:../own_metrics:words", "names no function"),
        ("python:own_metrics:", "names no function"),
        ("python:own_metrics:other_arguments", "'contexts' (own_metrics.py, line 5)"),
        ("python:own_metrics:one_number", "(own_metrics.py, line 6)"),
        ("python:own_metrics:deep", "(own_metrics.py, line 8)"),
        ("python:own_metrics:number", "an int"),
        ("python:own_metrics:none", "none"),
        ("python:no_such_module:words", "no_such_module"),
        ("python:own_metrics:words?name=density", "'density'"),
        ("python:own_metrics", "names no function"),
    ],
)
def test_what_is_no_function_of_rows_is_refused(metric: str, named: str) -> None:
    done = score(metric)
    assert done.exit_code == 2, done.output
    assert named in done.output
    assert not Path("scores.jsonl").exists()


@pytest.mark.usefixtures("own")
def test_turns_without_a_number_each_are_no_dialogues() -> None:
    too_few, no_numbers = (dialeval.load(f"python:own_metrics:{name}") for name in ("one_too_few", "no_numbers"))
    dialogues = [["Hi!", "Hello.", "Bye."], ["Yes?", "No."]]
    refused(ValueError, "2 values for 3 rows", lambda: too_few.score_dialogues(dialogues))
    refused(ValueError, "1 values for 2 rows", lambda: too_few.score(ROWS))
    refused(ValueError, "row 0: of its turns, no_numbers gave 'many'", lambda: no_numbers.score_dialogues(dialogues))


@pytest.mark.usefixtures("own")
def test_a_fault_in_a_function_is_told_once_and_keeps_its_cause_in_python() -> None:
    done = score("python:own_metrics:deep")
    assert "Traceback" not in done.output
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its cause says what it was
        dialeval.load("python:own_metrics:deep").score(ROWS)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.usefixtures("own")
def test_rows_without_a_number_are_told() -> None:
    done = score("python:own_metrics:silent")
    assert done.exit_code == 0, done.output
    assert re.search("row 0.*silent", done.stderr)
    assert dialeval.load("python:own_metrics:silent").score(ROWS).problems.keys() == {0, 1}


def steps() -> list[str]:
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Add a metric as a package of your own")[1]
    block = section.split("```bash\n")[1].split("```")[0]
    return [line for line in block.splitlines() if line.strip()]


def test_the_steps_of_contributing_make_a_plug_in(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    installed = tmp_path / "installed"
    # Installed beside, not into, the environment that runs these tests; the metadata is real.
    path = f"{installed}{os.pathsep}{ROOT / 'src'}"
    pip = {"PIP_TARGET": str(installed), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    programs = {"dialeval": "-m dialeval", "pip": "-m pip", "pytest": "-m pytest -p no:cacheprovider"}
    lines = [
        re.sub(r"^(dialeval|pip|pytest)\b", lambda found: f"{sys.executable} {programs[found[0]]}", line)
        for line in steps()
    ]
    environment = {**os.environ, "PYTHONPATH": path, **pip}
    command = ["bash", "-euc", "\n".join(lines)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\W*questions .*of dialeval-questions", done.stdout, re.MULTILINE), done.stdout
    assert json.loads((tmp_path / "scores.jsonl").read_text())["questions"] == 0.5
    assert "3 passed" in done.stdout


def test_a_plug_in_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "bad_plugin-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-plugin\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        "[dialeval.metrics]\ndensity = json:dumps\nbad = json:dumps\ngone = no_such_module:Metric\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "REGISTRY", dict(registry.REGISTRY))
    registry.find_plugins.cache_clear()
    with pytest.warns(UserWarning, match="bad-plugin.*density"):
        assert {"bad", "gone"} <= set(dialeval.available())
    refused(ValueError, "json:dumps", dialeval.load, "bad")
    refused(ModuleNotFoundError, "no_such_module", dialeval.load, "gone")
    registry.find_plugins.cache_clear()
