"""Whatever a power cut leaves behind, the same command ends as an undisturbed run does, and nothing else changes."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from typer.testing import CliRunner

import dialeval.scoring.run
import overlap_metric
from dialeval.cli import build_app
from dialeval.scoring.task import chunked
from dialeval.tuning import tune
from power_cuts import PowerCut, operations_of, power_until
from rated_rows import rated, small_judge

pytestmark = pytest.mark.slow


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def command(*arguments: str) -> Any:
    found = CliRunner().invoke(build_app(), list(arguments))
    if isinstance(found.exception, PowerCut):
        raise found.exception
    return found


def cut_everywhere(
    work: Callable[[], Any], prepare: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, step: int = 1
) -> None:
    """Cut before each operation in turn; then run again, with power."""
    place = prepare()
    count = operations_of(work, str(place), monkeypatch)
    undisturbed = listing(place)
    assert count > 3
    for operation in range(0, count, step):
        shutil.rmtree(place)
        prepare()
        with power_until(operation, str(place), monkeypatch), pytest.raises(PowerCut):
            work()
        work()
        assert listing(place) == undisturbed, f"after a cut before operation {operation} of {count}"


@pytest.mark.parametrize("options", [(), ("--skip-bad", "--summary", "summary.json")])
def test_score(options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlap_metric.register()
    monkeypatch.setattr(dialeval.scoring.run, "chunked", functools.partial(chunked, pairs=3))
    place = tmp_path / "here"

    def prepare() -> Path:
        place.mkdir()
        monkeypatch.chdir(place)
        rows = [{"context": [f"{number} a"], "response": f"{number}"} for number in range(8)]
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path("ours.txt").write_text("ours")
        return place

    def work() -> None:
        found = command("score", "-m", "overlap", "-i", "rows.jsonl", "-o", "scores.jsonl", *options)
        assert found.exit_code == 0, found.output

    cut_everywhere(work, prepare, monkeypatch)


@pytest.mark.slow
def test_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toy_benchmark import rated_rows

    overlap_metric.register()
    place = tmp_path / "here"

    def prepare() -> Path:
        place.mkdir()
        monkeypatch.chdir(place)
        Path("toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=8)))
        return place

    def work() -> None:
        given = ("-m", "overlap", "-b", "toy.jsonl", "-o", "out", "--resamples", "20", "--statistics", "spearman")
        found = command("agreement", *given)
        assert found.exit_code == 0, found.output
        # What says when and how long is another one each time.
        for path in Path("out").rglob("run*.json"):
            path.unlink()
        # A cut may leave a hidden file that was being written, under a name that no other run takes.
        for path in Path("out").rglob(".*"):
            path.unlink()

    cut_everywhere(work, prepare, monkeypatch)


@pytest.mark.slow
def test_tune(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former checkpoint is there, whole, until the new one is."""
    judge = small_judge(tiny_encoder, tmp_path / "judge")
    rows, place = rated(90), tmp_path / "here"

    def prepare() -> Path:
        place.mkdir()
        shutil.copytree(judge, place / "mine")
        return place

    def work() -> None:
        tune(rows, out=place / "mine", checkpoint=judge, overwrite=True, resamples=100, device="cpu")

    place = prepare()
    count = operations_of(work, str(place), monkeypatch)
    assert count > 3
    for operation in range(count):
        shutil.rmtree(place)
        prepare()
        before = listing(place / "mine")
        with power_until(operation, str(place), monkeypatch), pytest.raises(PowerCut):
            work()
        held = [listing(one) for one in (place / "mine", *place.glob(".mine-*/former")) if one.exists()]
        assert before in held or any("config.json" in one for one in held), operation


def _answers(good: bool) -> str:
    rows = [
        {"id": f"{at}", "context": [f"{at} a"], "response": f"{at} b" if good else "c", "reference": f"{at} b"}
        for at in range(12)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("command_line", "reports"),
    [
        ("gate new.jsonl -b old.jsonl --margin 0.1 --junit r.xml --markdown r.md --json r.json", "r.xml r.md r.json"),
        (
            "rank new.jsonl old.jsonl --markdown r.md --json r.json --html r.html --plot r.svg",
            "r.md r.json r.html r.svg",
        ),
    ],
)
def test_reports(command_line: str, reports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every report is that of an earlier run, or one of this one, and whole."""
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "always")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    place = tmp_path / "here"

    def prepare() -> Path:
        place.mkdir()
        monkeypatch.chdir(place)
        Path("new.jsonl").write_text(_answers(good=True))
        Path("old.jsonl").write_text(_answers(good=False))
        for name in reports.split():
            Path(name).write_text("of an earlier run")
        return place

    def work() -> None:
        found = command(*command_line.split(), "-m", "bleu1", "--resamples", "100")
        assert found.exit_code == 0, found.output
        for path in Path().glob(".*"):
            path.unlink()

    cut_everywhere(work, prepare, monkeypatch)
    undisturbed = listing(place)
    count = operations_of(work, str(place), monkeypatch)
    for operation in range(count):
        shutil.rmtree(place)
        prepare()
        with power_until(operation, str(place), monkeypatch), pytest.raises(PowerCut):
            work()
        for name in reports.split():
            there = Path(name).read_bytes()
            is_unfinished = b"not come to its end" in there
            assert is_unfinished or there in (b"of an earlier run", undisturbed[name]), (name, operation)


@pytest.mark.parametrize("plots", ["none", "png"])
def test_leaderboard(plots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are read and written anew in one folder: they are never lost, and every page is whole."""
    from toy_benchmark import rated_rows

    overlap_metric.register()
    place, made = tmp_path / "here", tmp_path / "made"
    Path(tmp_path / "toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=8)))
    few = ("--resamples", "20", "--statistics", "spearman", "--plots", plots)
    found = command("agreement", "-m", "overlap", "-b", str(tmp_path / "toy.jsonl"), "-o", str(made), *few)
    assert found.exit_code == 0, found.output
    (made / "leaderboard.md").write_text("of an earlier version")

    def prepare() -> Path:
        shutil.copytree(made, place)
        return place

    def work() -> None:
        found = command("leaderboard", str(place))
        assert found.exit_code == 0, found.output
        for path in place.rglob(".*"):
            path.unlink()

    cut_everywhere(work, prepare, monkeypatch)
    undisturbed, before = listing(place), listing(made)
    for operation in range(operations_of(work, str(place), monkeypatch)):
        shutil.rmtree(place)
        prepare()
        with power_until(operation, str(place), monkeypatch), pytest.raises(PowerCut):
            work()
        there = listing(place)
        assert before.keys() <= there.keys()
        assert all(there[name] in (before[name], undisturbed[name]) for name in before), operation


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_export(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toy_benchmark import rated_rows

    place = tmp_path / "here"

    def prepare() -> Path:
        place.mkdir()
        monkeypatch.chdir(place)
        Path("toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=8)))
        return place

    def work() -> None:
        found = command("benchmarks", "export", "toy.jsonl", "-o", "out", "--format", form)
        # A cut between the last operation and the end of the program leaves what is finished.
        assert found.exit_code == 0 or "is not an empty folder" in found.output, found.output

    cut_everywhere(work, prepare, monkeypatch)
    assert (place / f"out/toy.{form}").exists()
