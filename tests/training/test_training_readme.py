"""The page beside the training scripts: every command there is one that exists, and nothing is left out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from common import read_recipe
from training_runs import TRAINING, run_here

PAGE = (TRAINING / "README.md").read_text("utf-8")
COMMANDS = [
    words[1:]
    for block in re.findall(r"^```bash\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    for words in (shlex.split(line) for line in block.replace("\\\n", " ").splitlines())
    if words[0] == "python" and words[1].startswith("training/")
]


@cache
def help_of(script: str) -> str:
    """What a script says of itself; the page has many commands of the same one."""
    with contextlib.redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit):
        run_here([script, "--help"])
    return said.getvalue()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.slow
def test_the_script_the_options_and_the_recipe_exist(command: list[str]) -> None:
    script, *arguments = command
    for option in (word for word in arguments if word.startswith("--")):
        assert re.search(rf"{re.escape(option)}\b", help_of(script)), option
    if "--recipe" in arguments:
        recipe = Path(arguments[arguments.index("--recipe") + 1])
        settings = read_recipe(TRAINING.parent / recipe)
        assert settings["name"] == recipe.stem.replace("own-", "my-")
        assert Path(arguments[arguments.index("--out") + 1]).name == recipe.stem


def test_a_recipe_that_begins_from_a_run_stands_behind_that_run() -> None:
    finished: list[str] = []
    for command in COMMANDS:
        if "--recipe" in command:
            settings = read_recipe(TRAINING.parent / command[command.index("--recipe") + 1])
            begun = settings.get("start_from")
            for start in begun if isinstance(begun, list) else [begun]:
                assert not str(start).startswith("runs/") or str(Path(start).parent) in finished
            finished.append(command[command.index("--out") + 1])


def test_no_script_and_no_recipe_is_left_out() -> None:
    scripts = {path.name for path in TRAINING.glob("*.py") if "argparse" in path.read_text("utf-8")}
    shared = {"common.py", "stages.py", "trainer.py", "judge_heads.py", "aspect_rows.py"}
    assert scripts - shared <= {Path(command[0]).name for command in COMMANDS}
    recipes = {path.stem for path in (TRAINING / "recipes").glob("*.yaml")}
    assert {one for one in recipes if f"{one}.yaml" not in PAGE} == set()
