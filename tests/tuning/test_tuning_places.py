"""Where a tuned judge is written: the folder appears when it is complete, and nothing else is lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dialeval.tuning import tune, tuned
from dialeval.tuning.opinions import as_rows
from rated_rows import rated, small_judge
from refusals import refused
from resources import PATIENCE
from shell import invoke


@pytest.fixture(scope="module")
def judge(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "judge-tiny")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "rated.jsonl").write_text("\n".join(map(json.dumps, rated(120))))
    return tmp_path


def run(judge: Path, place: Path, *options: str, code: int = 0) -> str:
    fixed = ["--checkpoint", judge, "--device", "cpu", "--resamples", 200]
    return invoke("tune", place / "rated.jsonl", "--out", place / "mine", *fixed, *options, code=code).output


def left_in(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {"rated.jsonl"}


def test_the_command_says_what_it_found(judge: Path, place: Path) -> None:
    output = run(judge, place)
    assert re.search(r"\b120\b.*\b40 contexts\b", output)
    for word in ("before", "after", "difference", "uses_facts", "90 % intervals"):
        assert word in output
    assert left_in(place) == {"mine"}
    assert json.loads((place / "mine" / "config.json").read_text())["name"] == "mine"


def test_the_command_warns_of_other_languages(judge: Path, place: Path) -> None:
    german = [{**row, "response": f"Das ist nicht gut und ich mag {row['response']}"} for row in rated(120)]
    (place / "rated.jsonl").write_text("\n".join(map(json.dumps, german)))
    with pytest.warns(UserWarning, match=r"^120 of 120 replies are not English \(de 120\)"):
        run(judge, place)


def test_a_folder_that_holds_something_is_refused(judge: Path, place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "thesis.txt").write_text("years of work")
    assert "mine" in run(judge, place, code=2)
    run(judge, place, "--overwrite", code=2)
    assert (place / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_a_checkpoint_is_replaced_when_asked(judge: Path, place: Path) -> None:
    (place / "mine").mkdir()
    run(judge, place)  # an empty folder is nothing
    (place / "mine" / "old.txt").write_text("of the former one")
    run(judge, place, code=2)
    run(place / "mine", place, "--overwrite")  # a judge may be tuned further in its own place
    assert not (place / "mine" / "old.txt").exists()
    assert "earlier" in json.loads((place / "mine" / "config.json").read_text())["training"]["tuned"]
    assert left_in(place) == {"mine"}


@pytest.mark.slow
def test_what_fails_while_writing_leaves_the_former_one(
    judge: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(judge, place)
    before = (place / "mine" / "config.json").read_bytes()

    def broken(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuned, "Judge", broken)
    run(judge, place, "--overwrite", code=130)
    assert (place / "mine" / "config.json").read_bytes() == before
    assert left_in(place) == {"mine"}
    with pytest.raises(KeyboardInterrupt):
        tune(place / "rated.jsonl", out=place / "new", checkpoint=judge, resamples=200, device="cpu")
    assert left_in(place) == {"mine"}


KILLED = """
import os, sys
from dialeval.checkpoints.network import Network
from dialeval.tuning import tune
save = Network.save_pretrained
rename = os.replace
def killed(self, folder, **options):
    save(self, folder, **options)
    os.kill(os.getpid(), 9)
def killed_between_renames(old, new):
    rename(old, new)
    if str(new).endswith("former"):
        os.kill(os.getpid(), 9)
if sys.argv[4] == "saved":
    Network.save_pretrained = killed
else:
    os.replace = killed_between_renames
tune(sys.argv[1], out=sys.argv[2], checkpoint=sys.argv[3], resamples=200, device="cpu", overwrite=True)
"""


def kill(judge: Path, place: Path, moment: str) -> None:
    arguments = [str(place / "rated.jsonl"), str(place / "mine"), str(judge), moment]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], env=environment, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == -9, done.stderr
    assert not (place / "mine").exists()


@pytest.mark.slow
def test_a_kill_leaves_no_half_folder(judge: Path, place: Path) -> None:
    kill(judge, place, "saved")
    run(judge, place)  # and the same command comes through
    assert (place / "mine" / "config.json").is_file()
    assert left_in(place) == {"mine"}


@pytest.mark.slow
def test_a_kill_between_two_renames_loses_nothing(judge: Path, place: Path) -> None:
    run(judge, place)
    before = (place / "mine" / "config.json").read_bytes()
    kill(judge, place, "renamed")
    assert "already exists" in run(judge, place, code=2)
    assert (place / "mine" / "config.json").read_bytes() == before
    assert left_in(place) == {"mine"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("out", None), ("out", 3), ("resamples", 10**400), ("resamples", "x"), ("seed", None), ("columns", [1]),
     ("contaminated_by", 3), ("contaminated_by", [None])],
)  # fmt: skip
def test_what_a_caller_cannot_mean_is_refused_before_anything_is_read(name: str, wrong: object, place: Path) -> None:
    asked: dict[str, Any] = {"out": place / "mine", name: wrong}
    refused(ValueError, name, tune, place / "rated.jsonl", **asked)
    assert "the column 'a'" in refused(ValueError, "NoneType", tune, {"a": None}, out=place / "mine")
    refused(ValueError, "1 a, 2 b", tune, {"a": [1], "b": [1, 2]}, out=place / "mine")
    refused(ValueError, "context is one str", tune, {"context": "Hi.", "rating": [1, 2, 3]}, out=place / "mine")


def test_columns_are_rows_under_the_names_that_they_have() -> None:
    assert as_rows({"contexts": ("a", "b"), "rating": [1, 2]}) == [
        {"contexts": "a", "rating": 1}, {"contexts": "b", "rating": 2},
    ]  # fmt: skip


@pytest.mark.parametrize("out", ["", "."])
def test_the_folder_that_one_is_in_is_not_replaced(
    out: str, judge: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "empty").mkdir()
    monkeypatch.chdir(place / "empty")
    refused(ValueError, "the folder that you are in", tune, place / "rated.jsonl", out=out, checkpoint=judge)
    assert Path.cwd().is_dir()
