"""The papers' variants: every key exists, the tables name runs that are made, and the runner goes on where it was."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from common import read_recipe
from reproduce.ablations import recipe_file
from reproduce.papers.listing import PAPERS as TABLES
from training_runs import PAPERS, ROOT, environment, overrides

pytestmark = pytest.mark.slow

VARIANTS: dict[str, dict[str, Any]] = yaml.safe_load((PAPERS / "ablations.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_changes_what_its_recipe_has(name: str) -> None:
    variant = VARIANTS[name]
    recipe = read_recipe(recipe_file(variant["recipe"]))
    for key in variant["set"]:
        node = recipe
        for part in key.split("."):
            assert part in node, key
            node = node[part]
    before = list(VARIANTS)[: list(VARIANTS).index(name)]
    if "first_stage_of" in variant:
        assert variant["first_stage_of"] in before


def test_the_tables_name_every_variant_and_no_other() -> None:
    rows = [row for paper in TABLES for table in paper.tables for row in table.rows]
    specs = [spec for row in rows for spec in row.specs if "runs/ablations" in spec]
    named = {spec.split("runs/ablations/")[1].split("/")[0] for spec in specs}
    # Table 5 asks for no benchmark: its figures are those of validation, in results/papers/ablations.md.
    assert named == {name for name in VARIANTS if not name.startswith("density-convai2")}


def test_the_runner_trains_resumes_and_tells(tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path) -> None:
    words = overrides(tiny_encoder, 2)[1::2]
    settings = {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)}
    variants = {
        "first": {"script": "density.py", "recipe": "trunk-minilm", "set": settings},
        "second": {"script": "density.py", "recipe": "trunk-minilm", "set": settings},
    }
    (tmp_path / "variants.yaml").write_text(yaml.safe_dump(variants))
    command = [sys.executable, "-m", "reproduce.ablations", "--corpora", str(tiny_corpora)]
    command += ["--out", str(tmp_path / "runs"), "--variants", str(tmp_path / "variants.yaml")]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        found = {**environment(), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        return subprocess.run([*command, *more], env=found, capture_output=True, text=True, check=False)

    unknown = run("--only", "third")
    assert unknown.returncode == 2
    assert "third" in unknown.stderr
    staged = {"third": {"script": "quantidce.py", "recipe": "quantidce-minilm", "first_stage_of": "first", "set": {}}}
    (tmp_path / "staged.yaml").write_text(yaml.safe_dump({**variants, **staged}))
    unstaged = run("--variants", str(tmp_path / "staged.yaml"), "--only", "third")
    assert unstaged.returncode == 1
    assert "third" in unstaged.stderr
    alone = run("--only", "first")
    assert alone.returncode == 0, alone.stderr[-2000:]
    both = run("--table", str(tmp_path / "table.md"))
    assert both.returncode == 0, both.stderr[-2000:]
    assert "first: done before" in both.stdout
    table = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("|")]
    assert [line.split(" | ")[0] for line in table[2:]] == ["| first", "| second"]
    assert all("." in line.split(" | ")[1] for line in table[2:])
