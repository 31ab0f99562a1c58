"""The real clients, unmodified, against the loopback Hub: evaluate, transformers, hub client, dialeval."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.hub.modules import module_folders
from loopback_hub import LoopbackHub, User
from resources import PATIENCE
from small_checkpoints import ENCODER_ID, small_checkpoint

pytestmark = pytest.mark.slow

TOKEN = "hf_may_read_secrets"
ROWS = {
    "predictions": ["i am fine thanks", "fish and chips"],
    "contexts": [["hello there", "how are you"], ["what do you like to eat"]],
    "references": [["i am fine"], ["fish please"]],
}
#: Modules of a metric of turns and of one of systems.
FOLDERS = {folder.name: folder for folder in module_folders() if folder.name in ("density", "fbd")}


def files_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def checkpoint(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose base encoder is named as on the Hub."""
    folder = small_checkpoint("density", tiny_encoder, tmp_path_factory.mktemp("checkpoints") / "density-tiny")
    config = folder / "config.json"
    config.write_bytes(config.read_bytes().replace(str(tiny_encoder).encode(), ENCODER_ID.encode()))
    return folder


@pytest.fixture(scope="module")
def hub(checkpoint: Path, tiny_encoder: Path) -> Iterator[LoopbackHub]:
    """A Hub with an encoder, a checkpoint and modules, an older state of two of them, and a private repository."""
    with LoopbackHub() as hub:
        hub.users[TOKEN] = User("ann", {"dialeval": "read"})
        hub.add("models", ENCODER_ID, files_of(tiny_encoder))
        older = hub.add("models", "dialeval/density-tiny", files_of(checkpoint))
        older.tags["v1"] = older.refs["main"]
        hub.add("models", "dialeval/density-tiny", {**files_of(checkpoint), "README.md": b"# Card\n"})
        hub.add("models", "dialeval/secret", files_of(checkpoint), private=True)
        for name, folder in FOLDERS.items():
            files = files_of(folder)
            old = files[f"{name}.py"].replace(b"_EXAMPLES = ", b'_EXAMPLES = "Of old." + ')
            repo = hub.add("spaces", f"dialeval/{name}", {**files, f"{name}.py": old})
            repo.tags["v1"] = repo.refs["main"]
            hub.add("spaces", f"dialeval/{name}", files)
        yield hub


def environment(hub: LoopbackHub, home: Path, token: str | None) -> dict[str, str]:
    """This process's variables, but for those that would point a client elsewhere."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    return {**clean, **hub.environment(home, token), "OMP_NUM_THREADS": "1"}


def ask(hub: LoopbackHub, home: Path, *orders: list[Any], token: str | None = None) -> list[dict[str, Any]]:
    """Let a process of its own do things, with empty caches below `home`."""
    home.mkdir(exist_ok=True)
    (home / "orders.json").write_text(json.dumps(orders))
    command = [sys.executable, str(Path(__file__).with_name("hub_clients.py")), str(home / "orders.json")]
    done = subprocess.run(
        command, env=environment(hub, home, token), cwd=home, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.fixture(scope="module")
def answers(hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One process, because importing the clients is most of the work."""
    orders = {
        "modules": ["modules", ROWS, {"density": "dialeval/density-tiny", "fbd": ENCODER_ID}],
        "pinned_module": ["pinned_module", "v1"],
        "auto": ["auto_model", "dialeval/density-tiny"],
        "pinned_model": ["scored", ROWS, "dialeval/density-tiny", "v1"],
        "unpinned_model": ["scored", ROWS, "dialeval/density-tiny", "main"],
        "unknown_revision": ["scored", ROWS, "dialeval/density-tiny", "v9"],
        "snapshot": ["snapshot_download", "dialeval/density-tiny"],
        "hidden": ["scored", ROWS, "dialeval/secret"],
    }
    return dict(zip(orders, ask(hub, tmp_path_factory.mktemp("home"), *orders.values()), strict=True))


def test_modules_load_by_name_and_compute(answers: dict[str, Any], tiny_encoder: Path) -> None:
    shown = answers["modules"]["value"]
    of_replies = answers["pinned_model"]["value"]["values"]
    of_system = dialeval.load("fbd", checkpoint=tiny_encoder).score(*ROWS.values()).values.tolist()
    assert shown["density"]["scores"] == pytest.approx(of_replies, rel=1e-5, abs=1e-6)
    assert shown["fbd"]["scores"] == pytest.approx(of_system, rel=1e-5, abs=1e-6)


def test_a_module_is_pinned_to_a_revision(answers: dict[str, Any]) -> None:
    assert "Of old." in answers["pinned_module"]["value"]


def test_auto_model(answers: dict[str, Any]) -> None:
    assert answers["auto"]["value"] == "DensityNetwork"


def test_a_model_is_pinned_to_a_revision_and_says_so(answers: dict[str, Any], hub: LoopbackHub) -> None:
    repo = hub.repos["models", "dialeval/density-tiny"]
    pinned, newest = answers["pinned_model"]["value"], answers["unpinned_model"]["value"]
    assert pinned["values"] == newest["values"]
    assert repo.tags["v1"] != repo.refs["main"]
    assert f"@{repo.tags['v1']}|" in pinned["signature"]
    assert f"@{repo.refs['main']}|" in newest["signature"]


@pytest.mark.parametrize(("order", "named"), [("unknown_revision", "v9"), ("hidden", "dialeval/secret")])
def test_what_cannot_be_had_is_a_checkpoint_error(order: str, named: str, answers: dict[str, Any]) -> None:
    assert answers[order]["error"].startswith("CheckpointError: ")
    assert named in answers[order]["error"]


def test_snapshots_are_repositories_byte_for_byte(answers: dict[str, Any], hub: LoopbackHub, tmp_path: Path) -> None:
    (private,) = ask(hub, tmp_path / "home", ["snapshot_download", "dialeval/secret"], token=TOKEN)
    for answer, name in ((answers["snapshot"], "density-tiny"), (private, "secret")):
        found = files_of(Path(answer["value"]))
        found.pop(".gitattributes")
        assert found == hub.repos["models", f"dialeval/{name}"].files


def test_the_hub_knew_all_that_was_asked(hub: LoopbackHub, answers: dict[str, Any]) -> None:
    assert answers
    assert not [one for one in hub.asked if one.status == 501]
