"""The package as people get it: built, installed into a folder of its own, and used without a network."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialeval.checkpoints.catalogue import checkpoints
from dialeval.version import __version__, how_to_install
from shell import invoke

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
QUIET: dict[str, Any] = {"capture_output": True, "text": True, "env": ENVIRONMENT}
ROW = {"context": ["How are you?"], "response": "Fine, thanks! And you?", "id": "1"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the source archive, so that both are seen to hold what they need."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")

    def build(kind: str, source: Path) -> Path:
        code = f"import hatchling.build as b; print(b.build_{kind}({str(folder)!r}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / done.stdout.splitlines()[-1]

    with tarfile.open(build("sdist", ROOT)) as archive:
        archive.extractall(folder)  # `filter=` came with 3.11.4
    return build("wheel", folder / f"dialeval-{__version__}")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel alone; the libraries are those of this one, which it is put before."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    # Paths in such a file are no more than paths: what this environment has as an editable install is not found there.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    return folder / "bin"


def run(installed: Path, cwd: Path, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*before, str(installed / "dialeval"), *words], cwd=cwd, **QUIET)


def test_the_wheel_holds_what_it_needs_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for held in (
        "dialeval/py.typed",
        *(f"dialeval/weights/{listed.folder}/{file}" for listed in checkpoints().values() for file in listed.files),
        "dialeval/modules/density/density.py",
        "dialeval/training_files/density.py",
        "dialeval/training_files/recipes/own-density.yaml",
        f"dialeval-{__version__}.dist-info/licenses/LICENSE",
    ):
        assert held in names
    # One encoder for the judge, DEB, DENSITY and QuantiDCE, and one from sources that a company may use.
    layers = {name for name in names if name.endswith("layers.safetensors")}
    assert len(layers) == 2
    assert wheel.stat().st_size <= 95_000_000
    assert not [name for name in names if name.split("/")[0] in ("tests", "results", "docs") or "__pycache__" in name]


@pytest.mark.encoder
def test_an_installed_package_scores_with_the_network_cut(installed: Path, tmp_path: Path) -> None:
    cut = ("unshare", "--net", "--map-root-user")
    if shutil.which("unshare") is None or subprocess.run([*cut, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let a process cut its own network")
    reaches = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    assert subprocess.run([*cut, sys.executable, "-c", reaches], capture_output=True).returncode
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    found = subprocess.run([installed / "python", "-Pc", "import dialeval; print(dialeval.__file__)"], **QUIET)
    assert found.stdout.startswith(str(installed.parent))
    done = run(installed, tmp_path, "score", "-m", "judge", "-i", "rows.jsonl", "-o", "scores.jsonl", before=cut)
    assert done.returncode == 0, done.stderr
    assert 0 < json.loads((tmp_path / "scores.jsonl").read_text())["judge"] < 1


def test_an_installed_package_brings_training_scripts_that_start(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "copy-training").returncode == 0
    printed = subprocess.run([installed / "python", "training/density.py", "--help"], cwd=tmp_path, **QUIET)
    assert printed.returncode == 0, printed.stderr
    assert "--corpora" in printed.stdout
    assert (tmp_path / "training" / "recipes" / "own-density.yaml").is_file()
    version = run(installed, tmp_path, "--version")
    assert version.stdout == f"dialeval {__version__}\n"


def test_training_scripts_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    invoke("copy-training", "mine")
    kept = {path.name for path in (ROOT / "training" / "recipes").iterdir()}
    assert {path.name for path in Path("mine/recipes").iterdir()} == kept
    again = invoke("copy-training", "mine", code=2)
    assert "mine already exists" in again.output


def test_hints_name_a_way_that_works_without_an_index() -> None:
    assert how_to_install("offline") == "pip install '.[offline]' in a clone of https://github.com/dialeval/dialeval"
    named = [path for path in (ROOT / "src").rglob("*.py") if "pip install 'dialeval" in path.read_text("utf-8")]
    assert named == []


def test_citation_and_workflows_agree_with_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    flows = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}
    assert set(flows) == {"test", "publish"}
    tried = {row["python"] for row in flows["test"]["jobs"]["test"]["strategy"]["matrix"]["include"]}
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert all(f"Python :: {version}" in project for version in tried)
    assert project.count("Programming Language :: Python") == len(tried)
    assert "src/dialeval/version.py" in str(flows["publish"])
