"""The documentation's site and its notebook: they are built and run as they stand."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from resources import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


@pytest.mark.encoder
def test_the_tutorial_runs_from_top_to_bottom(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = "".join(str(cell.get("outputs", "")) for cell in notebook.cells)
    assert "judge: answers is best." in shown
    assert "worse: judge is worse by more than 0.1" in shown
    assert "are the same" in shown


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / "results").rglob("README.md")], ids=str)
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s#]+)", page.read_text("utf-8"))
    files = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert not [target for target in files if not (page.parent / target).exists()]


def test_every_page_is_in_the_menu() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]

    def pages(entries: list[dict[str, Any]]) -> set[str]:
        targets = [target for entry in entries for target in entry.values()]
        within = [pages(target) for target in targets if isinstance(target, list)]
        return set().union(*within, (target for target in targets if isinstance(target, str)))

    metrics = {f"metrics/{path.name}.md" for path in (ROOT / "metrics").iterdir() if path.is_dir()}
    assert pages(menu) == {path.name for path in (ROOT / "docs").glob("*.md")} | metrics | {"index.md", "tutorial.md"}


def _module(name: str) -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "site" / f"{name}.py")))


def test_the_reference_is_what_its_command_writes_and_the_site_makes_docstrings_of_it() -> None:
    made = _module("api")
    written = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert written == made.page(), "run: python docs/site/api.py"
    page = SimpleNamespace(file=SimpleNamespace(src_uri="api.md", generated_by=None))
    shown = _module("hooks").on_page_markdown(written, page=page, config=None, files=None)
    paths = [path for section in made.SECTIONS.values() for path in section]
    assert [line.removeprefix("::: ") for line in shown.splitlines() if line.startswith(":::")] == paths
    assert [line for line in shown.splitlines() if line.startswith("## ")] == [f"## {one}" for one in made.SECTIONS]
    assert "```" not in shown


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for library in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(library, reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'class="doc ' in (tmp_path / "site" / "metrics" / "density.html").read_text("utf-8")
    for page in ("index.html", "tutorial.html", "api.html", "systems.html"):
        # What the site shows comes from the site alone.
        assert "fonts.googleapis" not in (tmp_path / "site" / page).read_text("utf-8"), page
