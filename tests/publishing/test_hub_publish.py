"""`dialeval publish` against the loopback Hub: what is sent, what is refused, what a failure leaves behind."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result as Outcome
from huggingface_hub import ModelCard, constants, parse_eval_result_entries
from huggingface_hub.utils import _http
from typer.testing import CliRunner

import dialeval
from card_rows import result
from density_networks import ROWS, make_network
from dialeval.approaches.density import Density
from dialeval.cli import build_app
from dialeval.publishing.hub import Hub
from dialeval.publishing.plan import PublishOptions, make_plan
from dialeval.publishing.push import push
from dialeval.publishing.uploads import PublishError, model_upload
from dialeval.weights.find import find_encoder, weights_digest
from loopback_hub import Fault, LoopbackHub, User
from rated_rows import rated, small_judge

pytestmark = pytest.mark.slow

TOKEN = "hf_this_must_never_be_seen"
MODEL, SPACE = ("models", "dialeval/tiny"), ("spaces", "dialeval/density")


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[LoopbackHub]:
    """A Hub that has the tiny encoder, and a user who may write for dialeval."""
    with LoopbackHub() as hub:
        hub.users[TOKEN] = User("ann", {"dialeval": "write", "readers": "read"})
        files = {path.name: path.read_bytes() for path in tiny_encoder.iterdir()}
        hub.add("models", "someone/tiny-encoder", files)
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
    monkeypatch.setenv("DIALEVAL_TRACEBACK", "1")
    monkeypatch.setattr(_http.time, "sleep", lambda seconds: None)

    def run(*arguments: str | Path, code: int = 0) -> Outcome:
        done = CliRunner().invoke(build_app(), ["publish", *map(str, arguments)])
        assert TOKEN not in done.output
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture(scope="module")
def made(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose base encoder is on the Hub."""
    folder = tmp_path_factory.mktemp("made") / "checkpoint"
    make_network(tiny_encoder).save_pretrained(folder, card="# An old card\n")
    raw = json.loads((folder / "config.json").read_text())
    raw["encoder"]["id"] = "someone/tiny-encoder"
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


@pytest.fixture
def checkpoint(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def message(done: Outcome) -> str:
    """The one line that says what went wrong."""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line.removeprefix("error: ")


def test_a_dry_run_says_all_and_sends_nothing(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    printed = publish(checkpoint, "density", "--dry-run").stdout
    assert "dialeval/tiny (new model, public)" in printed
    assert "spaces/dialeval/density (new space, public)" in printed
    size = (checkpoint / "model.safetensors").stat().st_size
    assert f"+ model.safetensors  {size / 1000:.1f} kB" in printed
    assert "+ density.py" in printed
    assert printed.rstrip().endswith("dry run: nothing was sent")
    assert hub.uploads() == []


def test_a_name_that_the_hub_does_not_allow(publish: Any, checkpoint: Path) -> None:
    raw = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(raw | {"name": "my model!"}))
    assert "looking at dialeval/my model!" in message(publish(checkpoint, code=2))


def test_a_dry_run_needs_no_token(
    hub: LoopbackHub, publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert "new model" in publish(checkpoint, "--dry-run").stdout


@pytest.mark.slow
def test_what_was_published_is_loaded_byte_for_byte(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    before = Density(checkpoint).score(**ROWS)
    publish(checkpoint, "density", "--message", "First")
    model, space = hub.repos[MODEL], hub.repos[SPACE]
    assert not model.private
    assert not space.private
    names = [path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("*") if path.is_file()]
    assert sorted(model.files) == sorted(names)
    for name in set(names) - {"README.md"}:
        assert model.files[name] == (checkpoint / name).read_bytes()
    # One commit that holds everything, after the one that every repository begins with.
    assert [commit.title for commit in model.commits.values()] == ["seeded", "First"]
    module = Path(__file__).parents[2] / "metrics" / "density"
    for name in ("density.py", "app.py", "requirements.txt", "README.md"):
        assert space.files[name] == (module / name).read_bytes()

    after = Density("dialeval/tiny").score(**ROWS)
    assert (after.values == before.values).all()
    assert after.signature["checkpoint"] == f"tiny@{model.refs['main']}"


@pytest.mark.slow
def test_a_judge_tuned_to_ones_own_ratings(hub: LoopbackHub, publish: Any, tiny_encoder: Path, tmp_path: Path) -> None:
    """What `dialeval tune` writes is published like any checkpoint and says the same from the Hub."""
    rows = rated(150)
    tuned = dialeval.tune(
        rows, out=tmp_path / "our-judge", checkpoint=small_judge(tiny_encoder, tmp_path / "small"), resamples=200
    )
    config = tuned.folder / "config.json"
    raw = json.loads(config.read_text())
    raw["encoder"]["id"] = "someone/tiny-encoder"
    config.write_text(json.dumps(raw))
    before = dialeval.load("judge", checkpoint=tuned.folder, device="cpu").score(rows[:6])
    publish(tuned.folder)
    after = dialeval.load("judge", checkpoint="dialeval/our-judge", device="cpu").score(rows[:6])
    assert (after.values == before.values).all()
    assert after.aspects.keys() == before.aspects.keys()
    assert [after.explain(row) for row in range(6)] == [before.explain(row) for row in range(6)]
    card = hub.repos[("models", "dialeval/our-judge")].files["README.md"].decode()
    assert "Its user fitted it to 150 rated replies to 50 contexts" in " ".join(card.split())


@pytest.mark.slow
def test_again_sends_nothing_and_a_change_only_itself(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint, "density")
    hub.asked.clear()
    assert publish(checkpoint, "density").stdout.count("nothing to do") == 2
    assert hub.uploads() == []

    path = checkpoint / "tokenizer.json"
    path.write_text(path.read_text() + "\n")
    printed = publish(checkpoint, "density").stdout
    assert "~ tokenizer.json" in printed
    assert "1 files to send" in printed
    assert [one.path for one in hub.uploads()] == ["/api/models/dialeval/tiny/commit/main"]
    assert hub.repos[MODEL].files["tokenizer.json"] == path.read_bytes()


@pytest.mark.slow
def test_files_of_others_stay(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint)
    hub.add(*MODEL, {"thoughts.txt": b"mine"})
    assert "only there, and left alone: thoughts.txt" in publish(checkpoint).stdout
    assert hub.repos[MODEL].files["thoughts.txt"] == b"mine"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", "spaces.*/commit/", status=500),
        Fault("POST", "spaces.*/commit/"),
        Fault("POST", "spaces.*/preupload/", status=503, times=99),
        Fault("POST", "validate-yaml", status=502, times=99),
        Fault("PUT", "settings", status=500),
    ],
)
@pytest.mark.slow
def test_a_failure_leaves_nothing_half_made_and_the_next_run_goes_on(
    hub: LoopbackHub, publish: Any, checkpoint: Path, fault: Fault
) -> None:
    publish(checkpoint)
    hub.faults.append(fault)
    failed = publish(checkpoint, "density", code=1)
    assert "run" in message(failed)
    if SPACE in hub.repos:  # whatever there is of it, nobody else can see it
        assert hub.repos[SPACE].private
        assert "add --public" in message(failed)
    hub.faults.clear()
    hub.asked.clear()
    publish(checkpoint, "density", "--public")
    assert not hub.repos[SPACE].private
    assert "density.py" in hub.repos[SPACE].files
    assert len(hub.repos[SPACE].commits) == 2
    assert not [one for one in hub.uploads() if "/tiny" in one.path]


@pytest.mark.slow
def test_a_broken_upload_of_weights_is_resumed(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    broken = Fault("PUT", "/upload/", times=99)
    hub.faults.append(broken)
    assert "the Hub or the network failed" in message(publish(checkpoint, code=1))
    assert hub.repos[MODEL].files == {}
    assert hub.repos[MODEL].private
    broken.times = 0
    publish(checkpoint, "--public")
    hub.asked.clear()
    # The weights are on the Hub by now: another repository does not need them a second time.
    publish(checkpoint, "--org", "ann")
    assert [one for one in hub.uploads() if one.method == "PUT" and "/upload/" in one.path] == []


@pytest.mark.slow
def test_private_stays_private_until_it_is_opened(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint, "--private")
    assert hub.repos[MODEL].private
    assert "it stays private; --public opens it" in publish(checkpoint).stdout
    assert hub.repos[MODEL].private
    assert "private, becomes public" in publish(checkpoint, "--public").stdout
    assert not hub.repos[MODEL].private
    publish(checkpoint, "--private")
    assert hub.repos[MODEL].private


@pytest.mark.slow
def test_a_tag_pins_what_was_published(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint, "--tag", "v1")
    first = hub.repos[MODEL].refs["main"]
    assert hub.repos[MODEL].tags == {"v1": first}
    hub.asked.clear()
    publish(checkpoint, "--tag", "v1")
    assert hub.uploads() == []
    (checkpoint / "tokenizer.json").write_text((checkpoint / "tokenizer.json").read_text() + "\n")
    refused = message(publish(checkpoint, "--tag", "v1", code=2))
    assert "tags do not move" in refused
    assert hub.uploads() == []


@pytest.mark.slow
def test_merged_weights_need_no_base_encoder(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    before = Density(checkpoint).score(**ROWS).values
    publish(checkpoint, "--merge")
    repo = hub.repos["models", "dialeval/tiny-merged"]
    assert not any(name.startswith("adapter") for name in repo.files)
    card = repo.files["README.md"].decode()
    assert "`dialeval/tiny` with its adapter merged" in card
    assert ModelCard(card).data.base_model_relation == "finetune"
    del hub.repos["models", "someone/tiny-encoder"]
    assert Density("dialeval/tiny-merged").score(**ROWS).values == pytest.approx(before, abs=1e-5)
    hub.add("models", "someone/tiny-encoder", {})
    hub.asked.clear()
    publish(checkpoint, "--merge")
    assert hub.uploads() == []
    whole = checkpoint.parent / "whole"
    from dialeval.approaches.density import DensityNetwork

    DensityNetwork.from_pretrained("dialeval/tiny-merged").save_pretrained(whole)
    assert "full model already" in message(publish(whole, "--merge", code=2))


def results_folder(folder: Path, checkpoint: Path, **changes: Any) -> Path:
    """Tables as `dialeval agreement` writes them, for these weights and for others."""
    name = f"tiny@{weights_digest(checkpoint)[:12]}"
    common = {"metric": "density", "signature": "benchmark:x|interval:0.95 percentile, 10 resamples|metric:[a|b]"}
    rows = [
        result(**common, metric_signature=f"metric:density|checkpoint:{name}|scoring:mahalanobis", **changes),
        result(**common, metric_signature="metric:density|checkpoint:tiny@000000000000", benchmark="other_weights"),
    ]
    folder.mkdir(exist_ok=True)
    (folder / "agreement.jsonl").write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return folder


@pytest.mark.slow
def test_results_reach_the_card_and_the_hubs_own_files(
    hub: LoopbackHub, publish: Any, checkpoint: Path, tmp_path: Path
) -> None:
    changes = {"benchmark": "convai2_grade", "statistic": "spearman", "value": 0.51239, "low": 0.4, "high": 0.6}
    results = results_folder(tmp_path / "results", checkpoint, **changes, contaminated=True)
    publish(checkpoint, "--results", results)
    files = hub.repos[MODEL].files
    card = ModelCard(files["README.md"].decode())
    (entry,) = card.data.eval_results or []
    assert (entry.dataset_type, entry.metric_type, entry.metric_value) == (
        "dialeval/convai2_grade",
        "spearmanr",
        0.5124,
    )
    assert "0.512 [0.400, 0.600]" in card.text
    assert "| contaminated |" in card.text
    assert "other_weights" not in card.text
    (wanted,) = parse_eval_result_entries(yaml.safe_load(files[".eval_results/convai2_grade.yaml"]))
    assert (wanted.dataset_id, wanted.value) == ("dialeval/convai2_grade", 0.5124)
    assert "95% interval 0.400 to 0.600, contaminated" in str(wanted.notes)

    # Weights change: what the old ones reached must not stand beside the new ones.
    weights = checkpoint / "model.safetensors"
    from safetensors.torch import load_file, save_file

    save_file({key: tensor + 1 for key, tensor in load_file(weights).items()}, weights)
    hub.add(*MODEL, {".eval_results/someone_elses.yaml": b"- value: 1\n"})
    shown = publish(checkpoint, "--results", results).stdout
    assert "- .eval_results/convai2_grade.yaml  results of other weights" in shown
    assert "the card shows none" in shown
    after = hub.repos[MODEL].files
    assert ".eval_results/convai2_grade.yaml" not in after
    assert ".eval_results/someone_elses.yaml" in after
    assert "eval_results" not in ModelCard(after["README.md"].decode()).data.to_dict()


@pytest.mark.slow
def test_the_namespace_is_the_one_that_cards_tell(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint, "density", "--org", "ann")
    assert 'checkpoint="ann/tiny"' in hub.repos["models", "ann/tiny"].files["README.md"].decode()
    assert 'evaluate.load("ann/density")' in hub.repos["spaces", "ann/density"].files["README.md"].decode()


def make_foreign(hub: LoopbackHub, files: dict[str, bytes], place: tuple[str, str] = MODEL) -> None:
    hub.add(*place, files)


@pytest.mark.parametrize(
    ("prepare", "arguments", "wanted"),
    [
        (lambda hub, patch: patch.delenv("HF_TOKEN"), (), "there is no token"),
        (lambda hub, patch: hub.users.clear(), (), "does not accept the token"),
        (lambda hub, patch: hub.users.update({TOKEN: User("ann", {}, "read")}), (), "can only read"),
        (lambda hub, patch: None, ("--org", "elsewhere"), "cannot write under elsewhere; choose --org from: ann, dial"),
        (lambda hub, patch: None, ("--org", "readers"), "may only read in readers"),
        (lambda hub, patch: make_foreign(hub, {"weights.bin": b""}), (), "not dialeval's (it has no config.json)"),
        (lambda hub, patch: make_foreign(hub, {"config.json": b'{"model_type": "bert"}'}), (), "not a checkpoint of"),
        (lambda hub, patch: make_foreign(hub, {"config.json": b"{"}), (), "not a checkpoint of"),
        (
            lambda hub, patch: make_foreign(hub, {"config.json": b'{"model_type": "dialeval", "approach": "deb"}'}),
            (),
            "a checkpoint of deb, not of density",
        ),
        (
            lambda hub, patch: hub.faults.append(Fault("POST", "repos/create", 403)),
            (),
            "no right to do this (told to fail for <token>)",
        ),
        (lambda hub, patch: hub.faults.append(Fault("POST", "repos/create", 402)), (), "asks for payment"),
        (lambda hub, patch: hub.faults.append(Fault("POST", "repos/create", 409)), (), "this token may not see it"),
        (lambda hub, patch: hub.faults.append(Fault("POST", "validate-yaml", 400)), (), "checking the card of"),
        (lambda hub, patch: patch.setattr(constants, "HF_HUB_OFFLINE", True), (), "HF_HUB_OFFLINE is set"),
    ],
)
@pytest.mark.slow
def test_refusals_say_why_and_come_before_anything_is_made(
    hub: LoopbackHub,
    publish: Any,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[LoopbackHub, pytest.MonkeyPatch], None],
    arguments: tuple[str, ...],
    wanted: str,
) -> None:
    find_encoder("someone/tiny-encoder")  # is in the cache before anything goes wrong
    prepare(hub, monkeypatch)
    known = set(hub.repos)
    assert wanted in message(publish(checkpoint, *arguments, code=2))
    assert set(hub.repos) == known
    assert not [one for one in hub.uploads() if one.status == 200]


def test_a_space_of_somebody_else(hub: LoopbackHub, publish: Any) -> None:
    hub.add(*SPACE, {"app.py": b"", "requirements.txt": b"numpy\n"})
    assert "is not a Space of dialeval" in message(publish("density", code=2))


@pytest.mark.slow
def test_somebody_commits_between_plan_and_push(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    publish(checkpoint)
    (checkpoint / "tokenizer.json").write_text((checkpoint / "tokenizer.json").read_text() + "\n")
    client, options = Hub(), PublishOptions("dialeval")
    plan = make_plan(model_upload(checkpoint, "dialeval", None), client, options)
    hub.add(*MODEL, {"theirs.txt": b"1"})
    with pytest.raises(PublishError, match="somebody changed it at the same time"):
        push(plan, client, options)
    assert hub.repos[MODEL].files["theirs.txt"] == b"1"


def test_no_network(publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be reached; nothing was sent" in message(publish(checkpoint, code=1))


@pytest.mark.slow
def test_an_interruption(hub: LoopbackHub, publish: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    def interrupt(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HfApi, "create_commit", interrupt)
        publish(checkpoint, code=130)
    assert hub.repos[MODEL].private
    publish(checkpoint, "--public")
    assert not hub.repos[MODEL].private
    assert "config.json" in hub.repos[MODEL].files


def test_what_nobody_else_could_load_is_refused(publish: Any, checkpoint: Path) -> None:
    raw = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(raw | {"encoder": raw["encoder"] | {"id": "/some/folder"}}))
    assert "a folder of this machine" in message(publish(checkpoint, code=2))
    (checkpoint / "config.json").write_text(json.dumps(raw))
    path = checkpoint / "adapter" / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "adapter_model.safetensors is damaged" in message(publish(checkpoint, code=2))


def test_two_of_the_same_name(hub: LoopbackHub, publish: Any, checkpoint: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint, tmp_path / "other")
    shown = message(publish(checkpoint, tmp_path / "other", code=2))
    assert shown.startswith("two of what you named would become dialeval/tiny")
    assert hub.uploads() == []


def test_only_data_is_published(hub: LoopbackHub, publish: Any, checkpoint: Path) -> None:
    (checkpoint / "optimizer.pt").write_bytes(b"pickle")
    (checkpoint / ".hidden").write_bytes(b"")
    assert "optimizer.pt is left out" in publish(checkpoint).stdout
    assert not {"optimizer.pt", ".hidden"} & set(hub.repos[MODEL].files)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("densty",), "did you mean 'density'?"),
        (("nowhere/at/all",), "there is no 'nowhere/at/all' to publish"),
        (("density", "--results", "no-such-folder"), "there is no folder no-such-folder"),
        (("density", "--message", " "), "the commit message is empty"),
    ],
)
def test_wrong_usage(publish: Any, arguments: tuple[str, ...], wanted: str) -> None:
    assert wanted in message(publish(*arguments, code=2))


def test_a_folder_that_is_neither(publish: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "neither a checkpoint (no config.json) nor a Space" in message(publish(tmp_path / "empty", code=2))
    for name in ("app.py", "requirements.txt"):
        (tmp_path / "empty" / name).touch()
    (tmp_path / "empty" / "README.md").write_text("# No header\n")
    assert "does not say sdk: gradio" in message(publish(tmp_path / "empty", code=2))


@pytest.mark.parametrize(
    ("card", "is_free"),
    [
        ("", True),
        ("---\nlicense: mit\n---\n", True),
        ("---\ntitle: X\n---\n\nCheck out the configuration reference at https://huggingface.co/docs/hub/x\n", True),
        ("---\r\nlicense: mit\r\ntags: []\r\n---\r\n", True),
        ("---\n---\n", True),
        ("# What I am going to put here\n", False),
        ("---\nlicense: mit\nbase_model: someone/else\n---\n", False),
        ("---\ntags: [dialeval]\nlibrary_name: dialeval\n---\n", False),
        ("---\ntags: [dialeval]\n---\n\n# Another project that is about dialeval\n", False),
        ("---\nlicense: [\n---\n", False),
        ("---\nlicense: mit\n", False),
        ("---\n- license\n---\n", False),
        ("---\nlicense: mit\n---\n---\nmore: here\n---\n", False),
        ("x" * 2**21, False),
        ("---\nlicense: mit\n---\n\nWork in progress, please do not touch.\n", False),
    ],
)
def test_a_card_that_somebody_wrote_is_spared(
    hub: LoopbackHub, publish: Any, checkpoint: Path, card: str, is_free: bool
) -> None:
    repo = hub.add(*MODEL, {"README.md": card.encode()})
    before = dict(repo.files)
    if is_free:
        publish(checkpoint)
        assert "config.json" in repo.files
    else:
        assert "README" in message(publish(checkpoint, code=2))
        assert repo.files == before


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(
    ("place", "files", "is_free"),
    [
        (MODEL, {}, True),
        (MODEL, {".gitattributes": b"*.bin filter=lfs\n"}, True),
        (MODEL, {"README.md": b"\xff\xfe# Mine"}, False),
        (MODEL, {"readme.md": b""}, False),
        (MODEL, {"LICENSE": b""}, False),
        (MODEL, {"config.json": b"[" * 200_000}, False),
        (MODEL, {"config.json": b" " * 2**21}, False),
        (SPACE, {}, True),
        (SPACE, {"README.md": b"---\ntitle: X\nsdk: gradio\n---\n"}, True),
        (SPACE, {"README.md": b"---\ntitle: X\nsdk: gradio\n---\n\n# Mine\n"}, False),
        (SPACE, {"requirements.txt": b"not-dialeval-at-all\n", "README.md": b"---\ntitle: DENSITY\n---\n"}, False),
        (SPACE, {"requirements.txt": b"dialeval\n", "README.md": b"---\ntitle: Our own page\n---\n"}, False),
        (SPACE, {"requirements.txt": b"dialeval\n", "app.py": b""}, False),
    ],
)
def test_what_is_there_is_spared_unless_it_is_empty_or_ours(
    hub: LoopbackHub,
    publish: Any,
    checkpoint: Path,
    place: tuple[str, str],
    files: dict[str, bytes],
    is_free: bool,
    private: bool,
) -> None:
    repo = hub.add(*place, files, private=private)
    # Of another kind, and so no hindrance.
    others = [hub.add(kind, place[1], {"theirs.txt": b"1"}) for kind in ("datasets", "models", "spaces")
              if kind != place[0]]  # fmt: skip
    before, whole = dict(repo.files), [dict(one.files) for one in others]
    what = checkpoint if place == MODEL else "density"
    if is_free:
        publish(what)
        assert len(repo.files) > 3
        assert repo.private is private
    else:
        message(publish(what, code=2))
        assert repo.files == before
    assert [one.files for one in others] == whole


class _Cut(BaseException):
    """The power goes; nothing handles it."""


@pytest.mark.parametrize("is_heard", [True, False], ids=["the answer is lost", "the request is lost"])
def test_a_power_cut_at_any_request(
    is_heard: bool,
    hub: LoopbackHub,
    publish: Callable[..., Outcome],
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cut before each request that changes something, or after it; the same command then ends as an undisturbed one."""
    left = -1
    # Whichever library this Hub client asks through.
    client: Any = type(_http.get_session())
    send = client.send

    def counted(self: Any, request: Any, **options: Any) -> Any:
        nonlocal left
        if request.method in ("GET", "HEAD"):
            return send(self, request, **options)
        if left == 0 and not is_heard:
            raise _Cut
        answer = send(self, request, **options)
        if left == 0:
            raise _Cut
        left -= 1
        return answer

    monkeypatch.setattr(client, "send", counted)
    before = set(hub.repos)
    command = (checkpoint, "--public")

    def outcome() -> dict[Any, Any]:
        return {key: (repo.private, repo.files) for key, repo in hub.repos.items()}

    publish(*command)
    whole = outcome()
    assert hub.repos[MODEL].private is False
    for request in itertools.count():
        for key in set(hub.repos) - before:
            del hub.repos[key]
        left = request
        try:
            publish(*command)
        except _Cut:
            left = -1
            publish(*command)
            assert outcome() == whole, f"after a cut at request {request}"
        else:
            break  # that many requests there are not
    assert request >= 3
