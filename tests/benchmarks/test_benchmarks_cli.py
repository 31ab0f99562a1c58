"""`dialeval benchmarks` and the folders that it exports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from dialeval import benchmarks
from dialeval.benchmarks.export import export
from dialeval.cli import benchmarks as command

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("DIALEVAL_MIRROR", raising=False)
    app = typer.Typer()
    command.add_to(app)
    app.callback()(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["benchmarks", *map(str, words)])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = [
        {"id": "a", "context": ["Tea?"], "response": "Yes.", "system": "S2S", "ratings": {"wit": [1, 2], "all": [4]}},
        {"id": "b", "context": ["Tea?"], "response": "", "reference": "No.", "system": "GPT", "scores": {"wit": 3.0}},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


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


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_an_export_is_read_by_datasets_with_the_same_rows(run: Run, mine: Path, tmp_path: Path, form: str) -> None:
    from datasets import load_dataset

    folder = tmp_path / "out"
    done = run("export", mine, "--output", folder, "--format", form)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", f"mine.{form}"]
    read = load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
    assert read.to_list() == benchmarks.load(mine).dataset.to_list()


def test_an_export_overwrites_nothing(run: Run, mine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    failed = run("export", mine, "--output", folder)
    assert isinstance(failed.exception, FileExistsError)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_an_interrupted_export_can_be_repeated(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            export(benchmarks.load(mine), folder)
    assert not (folder / "mine.parquet").exists()
    assert export(benchmarks.load(mine), folder) == folder / "mine.parquet"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "mine.parquet"]
