"""Recipes, logs, cards and pages on training agree with one another and with what shipped."""

import contextlib
import io
import json
import re
import shlex
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from common import read_recipe
from dialeval.checkpoints.catalogue import checkpoints
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS
from dialeval.io.files import read_json_lines
from history import TrainingRun, joined, stage_in, stages_of, total
from runs_table import figures_of, runs_table
from training_runs import RECIPES, TRAINING, run_here

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "results" / "training"
FOLDERS = [listed.folder for listed in checkpoints().values()]
OF_PAPERS = [listed.folder for listed in checkpoints().values() if listed.approach != "judge"]


def log(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"seconds": 3600 * number, **one}) + "\n" for number, one in enumerate(lines)))
    return path


def test_the_kept_validation_counts_not_the_last(tmp_path: Path) -> None:
    written = log(
        tmp_path / "mine.jsonl",
        {"kind": "train", "step": 10, "loss": 1.0},
        {"kind": "validation", "step": 10, "r1": 0.5, "pairs": 80, "kept": 1},
        {"kind": "validation", "step": 20, "r1": 0.7, "pairs": 160, "kept": 1},
        {"kind": "validation", "step": 30, "r1": 0.6, "pairs": 240, "kept": 0},
        {"kind": "final", "step": 30, "r1": 0.65},
    )
    assert stage_in(written, "mine") == TrainingRun("mine", 20, 30, 4.0, {"pairs": 160})
    assert stage_in(written, "mine").summary == "20 of 30 steps, 160 pairs"
    assert figures_of(written)["r1"] == 0.65


def test_totals_count_a_shared_ancestor_once() -> None:
    trunk = TrainingRun("trunk", 600, 900, 0.5, {"pairs": 6000})
    one, two = TrainingRun("one", 10, 10, 0.25, {"replies": 100}), TrainingRun("two", 20, 30, 0.25, {"replies": 200})
    stages = joined([trunk, one], [trunk, two])
    assert stages == [trunk, one, two]
    assert joined([trunk, one, one], [trunk, one, two]) == [trunk, one, one, two]
    assert total(stages) == TrainingRun("together", 630, 940, 1.0, {"pairs": 6000, "replies": 300})
    assert stages_of({"stages": [asdict(one)], "steps": 99, "hours": 1}) == [one]
    assert stages_of({}) == []


@pytest.mark.parametrize(
    ("name", "phase", "validated"),
    [("judge-minilm", "distil-again", "distil-mean"), ("judge-open", "aspects-open", "aspects-open")],
)
def test_a_judge_s_last_phase_is_what_its_log_says(name: str, phase: str, validated: str) -> None:
    training = CheckpointConfig.read(WEIGHTS / name).training
    end, measured = (read_json_lines(ROOT / "results" / "trunk" / f"{log}.jsonl")[-1] for log in (phase, validated))
    own = stages_of(training)[-1]
    assert (own.name, own.steps, own.hours) == (phase, end["step"], round(end["seconds"] / 3600, 2))
    assert training["validation"].items() <= measured.items()


@pytest.mark.parametrize("name", OF_PAPERS)
def test_what_a_card_says_of_a_run_is_what_its_log_says(name: str) -> None:
    config = CheckpointConfig.read(WEIGHTS / name)
    card = (ROOT / "model_cards" / f"{name}.md").read_text("utf-8")
    written = LOGS / f"{name}.jsonl"
    assert written.is_file(), f"results/training has no log of {name}"
    own = stages_of(config.training)[-1]
    logged = stage_in(written, name)
    assert (own.steps, own.steps_run) == (logged.steps, logged.steps_run)
    assert f"| {name} | {own.summary} |" in card, name
    for stage in stages_of(config.training):
        if (LOGS / f"{stage.name}.jsonl").is_file():
            assert stage.steps == stage_in(LOGS / f"{stage.name}.jsonl", stage.name).steps, stage.name
    final = next(line for line in reversed(read_json_lines(written)) if line["kind"] == "final")
    recorded = config.training["validation"]
    found = {key: value for key, value in recorded.items() if key in final}
    assert found
    for key, value in found.items():
        assert value == pytest.approx(final[key], abs=1e-5), key


@pytest.mark.parametrize("name", FOLDERS)
def test_an_embedded_checkpoint_was_made_by_its_recipe(name: str) -> None:
    recipe = read_recipe(ROOT / "training" / "recipes" / f"{name}.yaml")
    assert CheckpointConfig.read(WEIGHTS / name).training["recipe"] == recipe


def test_the_page_on_training_holds_the_table_that_the_logs_give() -> None:
    text = (ROOT / "docs" / "training.md").read_text("utf-8")
    assert runs_table(LOGS, ROOT / "training" / "recipes") in text, "run: python training/cards.py"


def test_judge_open_learned_from_what_a_company_may_use() -> None:
    training = CheckpointConfig.read(WEIGHTS / "judge-open").training
    assert set(training["corpora"]) == set(
        read_recipe(ROOT / "training/recipes/trunk-open.yaml")["stages"][0]["corpora"]
    )
    assert (checkpoints()["judge-open"].licence, checkpoints()["judge"].licence) == ("apache-2.0", "cc-by-nc-sa-4.0")


def keys(node: Any, path: str = "") -> set[str]:
    # How a layout spends its tokens on facts is said only where there are facts.
    if not isinstance(node, dict) or path in ("lora", "layout", "groups"):
        return {path}
    return {key for name, child in node.items() for key in keys(child, f"{path}.{name}".strip("."))}


@pytest.mark.parametrize("approach", ["cmn", "deb", "quantidce"])
def test_recipes_have_the_same_keys(approach: str) -> None:
    recipes = {path.stem: read_recipe(path) for path in sorted(RECIPES.glob(f"{approach}-*.yaml"))}
    assert {f"{approach}-minilm", f"{approach}-bert-base"} <= recipes.keys()
    for name, recipe in recipes.items():
        assert recipe["name"] == name
        assert keys(recipe) == keys(recipes[f"{approach}-minilm"]), name


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
