"""`dialeval publish` against the loopback Hub: what is sent, what is refused, and that it loads again."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Outcome
from huggingface_hub import ModelCard, constants
from typer.testing import CliRunner

from dialeval.checkpoints.catalogue import Checkpoint
from dialeval.checkpoints.find import LAYERS, WEIGHTS, CheckpointError, file_sha256, find_encoder
from dialeval.cli import build_app
from dialeval.papers.density import Density
from loopback_hub import LoopbackHub, User
from rated_rows import small_judge
from refusals import refused
from small_checkpoints import ROWS, small_network

pytestmark = pytest.mark.slow

TOKEN = "hf_this_must_never_be_seen"
MODEL, SPACE = ("models", "dialeval/tiny"), ("spaces", "dialeval/density")


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[LoopbackHub]:
    """A Hub that has the tiny encoder, and a user who may write for dialeval."""
    with LoopbackHub() as hub:
        hub.users[TOKEN] = User("ann", {"dialeval": "write", "readers": "read"})
        hub.add("models", "someone/tiny-encoder", {path.name: path.read_bytes() for path in tiny_encoder.iterdir()})
        yield hub


@pytest.fixture
def publish(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run the command; whatever it does, the token must not be in what it prints."""
    online = {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
    }
    for name, value in online.items():
        monkeypatch.setattr(constants, name, value)
    for name in ("HF_HUB_CACHE", "HF_TOKEN_PATH", "HF_STORED_TOKENS_PATH"):
        monkeypatch.setattr(constants, name, str(tmp_path / name))
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    def run(*arguments: str | Path, code: int = 0) -> Outcome:
        done = CliRunner().invoke(build_app(), ["publish", *map(str, arguments)])
        assert TOKEN not in done.output
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture
def checkpoint(tiny_encoder: Path, tmp_path: Path) -> Path:
    """A checkpoint whose base encoder is on the Hub."""
    folder = tmp_path / "checkpoint"
    small_network("density", tiny_encoder).save_pretrained(folder, card="# An old card\n")
    rename(folder, encoder="someone/tiny-encoder")
    return folder


def rename(folder: Path, *, encoder: str, **changes: str) -> None:
    raw = json.loads((folder / "config.json").read_text()) | changes
    raw["encoder"]["id"] = encoder
    (folder / "config.json").write_text(json.dumps(raw))


def test_a_dry_run_lists_files_and_sends_nothing(
    hub: LoopbackHub, publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    printed = publish(checkpoint, "density", "--dry-run").stdout
    for shown in ("model dialeval/tiny", "space dialeval/density", "model.safetensors  ", "density.py  "):
        assert shown in printed
    assert hub.uploads() == []


def test_what_was_published_is_loaded_again(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    (checkpoint / "notes.pt").write_bytes(b"not for others")
    before = Density(checkpoint).score(**ROWS)
    publish(checkpoint, "density", "--message", "First", "--tag", "v1")
    model, space = hub.repos[MODEL], hub.repos[SPACE]
    assert "First" in [commit.title for commit in model.commits.values()]
    assert list(model.tags) == ["v1"]
    assert "notes.pt" not in model.files
    for name in ("model.safetensors", "config.json"):
        assert model.files[name] == (checkpoint / name).read_bytes()
    assert ModelCard(model.files["README.md"].decode()).data.to_dict()["library_name"] == "dialeval"
    module = Path(__file__).parents[2] / "metrics" / "density"
    assert space.files["density.py"] == (module / "density.py").read_bytes()
    assert (Density("dialeval/tiny").score(**ROWS).values == before.values).all()


def overwrite(link: Path, content: bytes | None = None) -> None:
    """What a link of the cache leads to becomes this, or its own first half."""
    blob = link.resolve()
    blob.write_bytes(blob.read_bytes()[: blob.stat().st_size // 2] if content is None else content)


def remove(place: Path, *, empty: bool = False) -> None:
    shutil.rmtree(place)
    if empty:
        place.mkdir()


def cut_off(folder: Path, snapshot: Path) -> None:
    """A download that has got config and weights, and a blob that is not finished."""
    for path in snapshot.rglob("*"):
        if path.is_file() and path not in (snapshot / "config.json", snapshot / "model.safetensors"):
            path.unlink()
    (folder / "blobs" / f"{'0' * 64}.incomplete").write_bytes(b"half")


#: What a download that ended early, a full disk or a damaged one leaves of a repository in the Hub's cache, given
#: its folder and its snapshot; and whether the next run can complete it or has to tell.
Damage = Callable[[Path, Path], None]
CACHE_STATES: dict[str, tuple[bool, Damage]] = {
    "weights cut": (False, lambda _, snapshot: overwrite(snapshot / "model.safetensors")),
    "other weights": (False, lambda _, snapshot: overwrite(snapshot / "model.safetensors", b"{}")),
    "no weights": (False, lambda _, snapshot: (snapshot / "model.safetensors").resolve().unlink()),
    "a config cut": (False, lambda _, snapshot: overwrite(snapshot / "config.json")),
    "an empty config": (False, lambda _, snapshot: overwrite(snapshot / "config.json", b"")),
    "an empty snapshot": (True, lambda _, snapshot: remove(snapshot, empty=True)),
    "no snapshot": (True, lambda folder, _: remove(folder / "snapshots")),
    "an empty ref": (True, lambda folder, _: overwrite(folder / "refs" / "main", b"")),
    "a ref to nothing": (True, lambda folder, _: overwrite(folder / "refs" / "main", b"0" * 40)),
    "a ref of other bytes": (False, lambda folder, _: overwrite(folder / "refs" / "main", b"\xff\x00/../")),
    "no refs": (True, lambda folder, _: remove(folder / "refs")),
    "files that never came": (True, cut_off),
}


@pytest.mark.parametrize("repository", ["dialeval--tiny", "someone--tiny-encoder"])
@pytest.mark.parametrize("state", CACHE_STATES)
def test_a_damaged_cache_is_completed_or_told(
    hub: LoopbackHub, publish: Any, checkpoint: Path, state: str, repository: str
) -> None:
    publish(checkpoint)
    before = Density("dialeval/tiny").score(**ROWS)
    (folder,) = Path(constants.HF_HUB_CACHE).glob(f"models--{repository}")
    (snapshot,) = (folder / "snapshots").iterdir()
    completed, damage = CACHE_STATES[state]
    damage(folder, snapshot)
    if completed:
        assert (Density("dialeval/tiny").score(**ROWS).values == before.values).all()
    else:
        with pytest.raises(CheckpointError):
            Density("dialeval/tiny")


def test_again_sends_only_what_changed(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint, "--private")
    assert hub.repos[MODEL].private
    first = dict(hub.repos[MODEL].files)
    publish(checkpoint)
    assert dict(hub.repos[MODEL].files) == first
    rename(checkpoint, encoder="someone/tiny-encoder", note="new")
    publish(checkpoint)
    assert hub.repos[MODEL].files["config.json"] == (checkpoint / "config.json").read_bytes()


def test_merged_weights_need_no_base_encoder(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    before = Density(checkpoint).score(**ROWS)
    publish(checkpoint, "--merge")
    hub.repos.pop(("models", "someone/tiny-encoder"))
    after = Density("dialeval/tiny-merged").score(**ROWS)
    assert after.values == pytest.approx(before.values, abs=1e-4)
    assert "dialeval/tiny" in hub.repos["models", "dialeval/tiny-merged"].files["README.md"].decode()


def test_a_tuned_judge_is_published(hub: LoopbackHub, publish: Any, tiny_encoder: Path, tmp_path: Path) -> None:
    folder = small_judge(tiny_encoder, tmp_path / "judge")
    rename(folder, encoder="someone/tiny-encoder", name="ours")
    publish(folder)
    assert "model.safetensors" in hub.repos["models", "dialeval/ours"].files


@pytest.mark.encoder
def test_heads_take_along_the_layers_that_they_share(hub: LoopbackHub, publish: Any) -> None:
    publish("deb-minilm")
    shared = (WEIGHTS / "judge-minilm" / LAYERS).read_bytes()
    assert hub.repos["models", "dialeval/deb-minilm"].files[LAYERS] == shared


def test_a_listed_checkpoint_that_is_not_in_the_package_comes_from_the_hub(
    hub: LoopbackHub, publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(checkpoint)
    files = {"model.safetensors": file_sha256(checkpoint / "model.safetensors")}
    listed = Checkpoint("mine", "density", "tiny", "someone/tiny-encoder", "", (), (), files)
    monkeypatch.setattr("dialeval.checkpoints.find.checkpoint_named", {"mine": listed}.get)
    assert (Density("mine").score(**ROWS).values == Density(checkpoint).score(**ROWS).values).all()
    files["model.safetensors"] = "0" * 64
    refused(CheckpointError, "expected 000000000000", Density, "mine")
    files["more.safetensors"] = files.pop("model.safetensors")
    refused(CheckpointError, "lacks more.safetensors", Density, "mine")


@pytest.mark.parametrize(
    ("kind", "repo_id", "files"),
    [
        ("models", "dialeval/tiny", {"config.json": b'{"model_type": "bert"}'}),
        ("models", "dialeval/tiny", {"pytorch_model.bin": b"x"}),
        ("spaces", "dialeval/density", {"requirements.txt": b"streamlit\n"}),
    ],
)
def test_somebody_elses_repository_is_spared(
    kind: str, repo_id: str, files: dict[str, bytes], hub: LoopbackHub, publish: Any, checkpoint: Path
) -> None:
    hub.add(kind, repo_id, files)
    done = publish(checkpoint if kind == "models" else "density", code=2)
    assert repo_id in done.stderr
    assert {name: hub.repos[kind, repo_id].files[name] for name in files} == files
    assert hub.uploads() == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("denisty",), "density"), (("no-such-thing-anywhere",), "models"), (("{folder}",), "README.md")],
)
def test_what_cannot_be_published(arguments: tuple[str, ...], named: str, publish: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert named in publish(*(one.format(folder=tmp_path / "empty") for one in arguments), code=2).stderr


def test_checkpoints_that_nobody_else_could_load(publish: Any, checkpoint: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint, tmp_path / "twin")
    assert "tiny" in publish(checkpoint, tmp_path / "twin", code=2).stderr
    rename(checkpoint, encoder=str(tmp_path))
    assert str(tmp_path) in publish(checkpoint, code=2).stderr
    rename(checkpoint, encoder="someone/tiny-encoder")
    (checkpoint / "model.safetensors").write_bytes(b"damaged")
    assert publish(checkpoint, code=2).stderr


@pytest.mark.parametrize("where", ["absolute", "up"])
def test_a_foreign_name_leads_nowhere(
    where: str, publish: Any, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    victim = tmp_path / "victim"
    rename(checkpoint, encoder="someone/tiny-encoder", name=str(victim) if where == "absolute" else "../victim")
    assert "name is" in publish(checkpoint, "--dry-run", code=2).stderr
    assert not victim.exists()


def test_only_the_files_of_a_checkpoint_are_sent(publish: Any, checkpoint: Path, tmp_path: Path) -> None:
    """What a folder below holds, a link in it leads to, or a name hides, is somebody's own."""
    (tmp_path / "key.json").write_text("{}")
    (checkpoint / "sub").mkdir()
    (checkpoint / "sub" / "linked.json").symlink_to(tmp_path / "key.json")
    (checkpoint / "sub" / "mine.json").write_text("{}")
    (checkpoint / ".env.txt").write_text("KEY=1")
    os.mkfifo(checkpoint / "sub" / "pipe.safetensors")
    (checkpoint / "spiece.model").write_bytes(b"a tokenizer")
    printed = publish(checkpoint, "--dry-run").stdout
    assert "spiece.model" in printed
    for name in ("linked", "mine", ".env", "pipe"):
        assert name not in printed


@pytest.mark.parametrize("org", ["", "..", "a/b", "-x", "a b", "x" * 100])
def test_what_the_hub_could_not_take_is_refused_before(org: str, publish: Any, checkpoint: Path) -> None:
    for what in (checkpoint, "density"):
        assert "Repo id must" in publish(what, "--dry-run", "--org", org, code=2).stderr


def test_a_space_that_is_odd_is_read_or_refused(hub: LoopbackHub, publish: Any, tmp_path: Path) -> None:
    """A link brings nothing along of what lies elsewhere."""
    space = tmp_path / "odd"
    space.mkdir()
    for name in ("app.py", "requirements.txt"):
        (space / name).write_text("dialeval\n")
    (space / "README.md").write_bytes(b"\xff\xfe\0")
    assert "README.md  3 bytes" in publish(space, "--dry-run").stdout
    os.mkfifo(space / "pipe")
    assert "is no plain file" in publish(space, "--dry-run", code=2).stderr
    (space / "pipe").unlink()
    (tmp_path / "secret.txt").write_text("private")
    (space / "notes.txt").symlink_to(tmp_path / "secret.txt")
    assert "notes.txt" in publish(space, code=2).stderr
    assert hub.uploads() == []


@pytest.mark.parametrize(
    ("endpoint", "status", "there"),
    [
        ("create", 500, "nothing was sent"),
        ("lfs_batch", 500, "is there now, and empty"),
        ("lfs_upload", 0, "is there now, and empty"),
        ("commit", 500, "is there now, and empty"),
        ("commit", 0, "is there now, and empty"),
        ("commit", -1, "is there now, and empty"),
        ("create", b"<html>A page of the hotel</html>", "nothing was sent"),
        ("preupload", b"null", "is there now, and empty"),
        ("validate_yaml", b"[]", "is there now, and empty"),
        ("commit", b"{}", "is there now, and empty"),
        ("tag", 500, "without the tag"),
    ],
)
def test_where_the_hub_fails_on_the_way_is_told_and_the_same_command_goes_on(
    endpoint: str, status: int | bytes, there: str, hub: LoopbackHub, publish: Any, checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # between its own tries
    if status == -1:
        monkeypatch.setattr("dialeval.hub.publish.PATIENCE", 1.0)
    hub.broken[endpoint] = status
    (told,) = publish(checkpoint, "--tag", "v1", code=1).stderr.splitlines()[-1:]
    assert told.startswith("error: dialeval/tiny: ")
    assert there in told
    hub.broken.clear()
    for _ in range(2):
        publish(checkpoint, "--tag", "v1")
        assert list(hub.repos[MODEL].tags) == ["v1"]
        for name in ("model.safetensors", "config.json"):
            assert hub.repos[MODEL].files[name] == (checkpoint / name).read_bytes()
    (checkpoint / "config.json").write_text((checkpoint / "config.json").read_text() + "\n")
    rename(checkpoint, encoder="someone/tiny-encoder", note="new")
    assert "choose another --tag" in publish(checkpoint, "--tag", "v1", code=2).stderr


def test_nothing_private_goes_to_a_public_repository(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    """One that an earlier run, say, has made and not filled."""
    hub.add(*MODEL, {})
    assert "is public on the Hub" in publish(checkpoint, "--private", code=2).stderr
    assert not hub.repos[MODEL].files


def test_an_answer_that_is_not_the_hubs_is_told_where_weights_are_fetched(hub: LoopbackHub, publish: Any) -> None:
    for endpoint, answer in (("info", b"<html>"), ("info", b"null"), ("tree", b"3"), ("resolve", 500)):
        hub.broken = {endpoint: answer}
        refused(CheckpointError, "someone/tiny-encoder could not be downloaded", find_encoder, "someone/tiny-encoder")


def test_failures_of_the_hub_exit_with_one(
    hub: LoopbackHub, publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "readers/tiny" in publish(checkpoint, "--org", "readers", code=1).stderr
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert publish(checkpoint, code=1).stderr
