"""The real clients, unmodified, against the loopback Hub: evaluate, transformers, datasets, hub client, dialeval."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval import benchmarks
from dialeval.approaches import _NETWORKS, network_class
from dialeval.benchmarks.export import export
from dialeval.module_install import module_folders
from hub_clients import CONTEXTS, OPTIONS, PREDICTIONS
from loopback_hub import Fault, LoopbackHub, User
from resources import PATIENCE
from small_checkpoints import ENCODER_ID, small_checkpoint

pytestmark = pytest.mark.slow

TOKEN = "hf_may_read_secrets"
MODULES = [folder.name for folder in module_folders()]
SUPPORT = Path(__file__).parents[1] / "support"


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def folders(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of every approach."""
    home = tmp_path_factory.mktemp("checkpoints")
    return {name: small_checkpoint(name, tiny_encoder, home / f"{name}-tiny") for name in _NETWORKS}


def published(folder: Path, encoder: Path) -> dict[str, bytes]:
    """The files of a checkpoint, its base encoder named as on the Hub."""
    files = files_of(folder)
    return {**files, "config.json": files["config.json"].replace(str(encoder).encode(), ENCODER_ID.encode())}


@pytest.fixture(scope="module")
def hub(
    folders: dict[str, Path], tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoopbackHub]:
    """A Hub with all that the project publishes, an older state of two repositories, and a private one."""
    with LoopbackHub() as hub:
        hub.users[TOKEN] = User("ann", {"dialeval": "read"})
        hub.add("models", ENCODER_ID, files_of(tiny_encoder))
        older = hub.add("models", "dialeval/density-tiny", published(folders["density"], tiny_encoder))
        older.tags["v1"] = older.refs["main"]
        for name, folder in folders.items():
            hub.add("models", f"dialeval/{name}-tiny", {**published(folder, tiny_encoder), "README.md": b"# Card\n"})
        hub.add("models", "dialeval/secret", published(folders["density"], tiny_encoder), private=True)
        for folder in module_folders():
            files = files_of(folder)
            if folder.name == "density":
                old = files["density.py"].replace(b"_EXAMPLES = ", b'_EXAMPLES = "Of old." + ')
                repo = hub.add("spaces", "dialeval/density", {**files, "density.py": old})
                repo.tags["v1"] = repo.refs["main"]
            hub.add("spaces", f"dialeval/{folder.name}", files)
        exported = tmp_path_factory.mktemp("export")
        source = exported / "made-up.jsonl"
        row = {"id": "1", "context": ["hello there"], "response": "hi", "scores": {"quality": 3}, "system": "a"}
        source.write_text("".join(json.dumps({**row, "id": str(n), "response": f"hi {n}"}) + "\n" for n in range(6)))
        export(benchmarks.load(source), exported / "made-up")
        hub.add("datasets", "dialeval/made-up", files_of(exported / "made-up"))
        yield hub


def ask(hub: LoopbackHub, home: Path, *orders: list[Any], token: str | None = None) -> list[dict[str, Any]]:
    """Let a process of its own do things, with empty caches below `home`."""
    done = start(hub, home, *orders, token=token)
    out, err = done.communicate(timeout=PATIENCE)
    assert done.returncode == 0, err
    answers: list[dict[str, Any]] = json.loads(out.splitlines()[-1])
    return answers


def start(hub: LoopbackHub, home: Path, *orders: list[Any], token: str | None = None) -> subprocess.Popen[str]:
    home.mkdir(exist_ok=True)
    asked = home / f"orders-{os.urandom(4).hex()}.json"
    asked.write_text(json.dumps(orders))
    return subprocess.Popen(
        [sys.executable, str(SUPPORT / "hub_clients.py"), str(asked)],
        env=environment(hub, home, token),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment(hub: LoopbackHub, home: Path, token: str | None) -> dict[str, str]:
    """This process's variables, but for those that would point a client elsewhere."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    return {**clean, **hub.environment(home, token), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def answers(hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One process, because importing the clients is most of the work."""
    checkpoints = {name: f"dialeval/{name}-tiny" if name in _NETWORKS else ENCODER_ID for name in MODULES}
    given = {name: {"checkpoint": one} for name, one in checkpoints.items()}
    orders = {
        "modules": ["modules", given],
        "pinned_module": ["pinned_module", "v1"],
        "auto": ["auto_classes", {name: f"dialeval/{name}-tiny" for name in _NETWORKS}],
        "pinned_model": ["pinned_model", "v1"],
        "unpinned_model": ["pinned_model", "main"],
        "unknown_revision": ["pinned_model", "v9"],
        "snapshot": ["snapshot", "dialeval/density-tiny"],
        "benchmark": ["benchmark"],
        "hidden": ["hidden"],
    }
    shown = ask(hub, tmp_path_factory.mktemp("home"), *orders.values())
    return dict(zip(orders, shown, strict=True))


def test_every_module_loads_by_name_and_computes(
    answers: dict[str, Any], folders: dict[str, Path], tiny_encoder: Path
) -> None:
    assert "value" in answers["modules"], answers["modules"]
    for name in MODULES:
        shown = answers["modules"]["value"][name]
        here = dialeval.load(name, checkpoint=folders.get(name, tiny_encoder))
        scores = here.score(PREDICTIONS, CONTEXTS, OPTIONS["references"])
        assert shown[name] == pytest.approx(scores.aggregate, rel=1e-5, abs=1e-6), name
        assert shown["scores"] == pytest.approx(scores.values.tolist(), rel=1e-5, abs=1e-6)
        if name in _NETWORKS:
            assert f"checkpoint:{name}-tiny@" in shown["signature"]


def test_a_module_is_pinned_to_a_revision(answers: dict[str, Any]) -> None:
    assert "Of old." in answers["pinned_module"]["value"]


def test_auto_classes(answers: dict[str, Any]) -> None:
    assert "value" in answers["auto"], answers["auto"]
    for name in _NETWORKS:
        kind, ids = answers["auto"]["value"][name]
        assert kind == network_class(name).__name__
        assert len(ids) == 4


def test_a_model_is_pinned_to_a_revision_and_says_so(answers: dict[str, Any], hub: LoopbackHub) -> None:
    repo = hub.repos["models", "dialeval/density-tiny"]
    pinned, newest = answers["pinned_model"]["value"], answers["unpinned_model"]["value"]
    assert pinned["values"] == newest["values"]
    assert f"@{repo.tags['v1']}|" in pinned["signature"]
    assert f"@{repo.refs['main']}|" in newest["signature"]
    assert repo.tags["v1"] != repo.refs["main"]
    assert answers["unknown_revision"]["error"] == "CheckpointError: dialeval/density-tiny has no revision 'v9'"


def test_a_snapshot_is_the_repository_byte_for_byte(answers: dict[str, Any], hub: LoopbackHub) -> None:
    found = files_of(Path(answers["snapshot"]["value"]))
    found.pop(".gitattributes")
    assert found == hub.repos["models", "dialeval/density-tiny"].files


def test_an_exported_benchmark_is_a_data_set(answers: dict[str, Any]) -> None:
    count, columns, first = answers["benchmark"]["value"]
    assert count == 6
    assert {"context", "response", "id"} <= set(columns)
    assert first == "hi 0"


def test_a_private_repository_without_a_token(answers: dict[str, Any], hub: LoopbackHub, tmp_path: Path) -> None:
    assert answers["hidden"]["error"].startswith("CheckpointError: dialeval/secret is not on the Hub, or is private")
    assert "hf auth login" in answers["hidden"]["error"]
    (message,) = ask(hub, tmp_path / "home", ["snapshot", "dialeval/secret"], token=TOKEN)
    assert "config.json" in files_of(Path(message["value"]))


def test_a_transfer_that_breaks_off_is_resumed(hub: LoopbackHub, tmp_path: Path) -> None:
    # The client writes ten megabytes at a time, so what is smaller begins anew.
    weights = random.Random(0).randbytes(12_000_000)
    hub.add("models", "dialeval/big", {"model.safetensors": weights})
    hub.faults.append(Fault("GET", "big/resolve/.*/model.safetensors", cut_after=11_000_000))
    (message,) = ask(hub, tmp_path / "home", ["snapshot", "dialeval/big"])
    assert files_of(Path(message["value"]))["model.safetensors"] == weights
    fetched = [one for one in hub.asked if one.method == "GET" and re.search("big/.*/model.safetensors", one.path)]
    assert [one.status for one in fetched] == [200, 206]


def test_two_processes_download_at_once_into_one_cache(hub: LoopbackHub, tmp_path: Path) -> None:
    order = ["snapshot", "dialeval/deb-tiny"]
    both = [start(hub, tmp_path / "home", order) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        (message,) = json.loads(out.splitlines()[-1])
        found = files_of(Path(message["value"]))
        found.pop(".gitattributes")
        assert found == hub.repos["models", "dialeval/deb-tiny"].files
    assert not list((tmp_path / "home").rglob("*.incomplete"))


def test_publish_as_a_user_runs_it(hub: LoopbackHub, folders: dict[str, Path], tmp_path: Path) -> None:
    """The command, configured by nothing but the variables that every Hub client reads."""
    hub.users["hf_writer"] = User("bob", {"lab": "write"})
    raw = json.loads((folders["density"] / "config.json").read_text())
    raw["encoder"]["id"] = ENCODER_ID
    mine = tmp_path / "mine"
    shutil.copytree(folders["density"], mine)
    (mine / "config.json").write_text(json.dumps(raw))
    done = subprocess.run(
        [sys.executable, "-m", "dialeval", "publish", str(mine), "fbd", "--org", "lab", "--tag", "v1"],
        env=environment(hub, tmp_path / "home", "hf_writer"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "hf_writer" not in done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == [
        f"published lab/density-tiny at {hub.repos['models', 'lab/density-tiny'].refs['main'][:8]}",
        f"published lab/fbd at {hub.repos['spaces', 'lab/fbd'].refs['main'][:8]}",
    ]
    (message,) = ask(hub, tmp_path / "other", ["snapshot", "lab/density-tiny", "v1"])
    there, here = files_of(Path(message["value"])), files_of(mine)
    assert b'checkpoint="lab/density-tiny"' in there.pop("README.md")
    assert {name: there[name] for name in here} == here


def test_the_hub_knew_all_that_was_asked(hub: LoopbackHub, answers: dict[str, Any]) -> None:
    assert len(hub.asked) > 50
    assert not [one for one in hub.asked if one.status == 501]
