"""`dialeval benchmarks`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from dialeval import benchmarks
from dialeval.cli import benchmarks as command

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("DIALEVAL_MIRROR", raising=False)
    app = typer.Typer()
    app.add_typer(command.app, name="benchmarks")
    app.callback()(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["benchmarks", *map(str, words)])


def test_the_list_names_every_benchmark_in_full(run: Run) -> None:
    lines = run("list").output.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == benchmarks.available()
    assert lines[1].split() == ["convai2_grade", "turn", "600", "coherence", "4", "no", "standard", "-"]
    rows = [line.split() for line in lines[1:-1]]
    assert [row[0] for row in rows if row[-1] != "-"] == [name for name, *_ in rows if name.startswith("fbd_")]
    assert "`all` leaves out" in lines[-1]
    assert "repeats rows of: dailydialog_zhao" in run("info", "fbd_dailyz").output


def test_an_unknown_name_gets_a_suggestion_before_anything_is_fetched(run: Run) -> None:
    failed = run("fetch", "convai2_grade", "persona_user")
    assert isinstance(failed.exception, ValueError)
    assert "did you mean 'persona_usr'" in str(failed.exception)


def test_fetching_goes_on_after_a_failure_and_says_so_at_the_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    failed = run("fetch", "persona_usr", "fed_turn", "--mirror", tmp_path / "mirror")
    assert failed.exit_code == 1
    first, second = failed.output.splitlines()
    assert first.startswith("persona_usr: ")
    assert "pc_usr_data.json" in first
    assert second.startswith("fed_turn: ")
