"""What goes to the Hub, and sending it: checkpoints with their cards, the metrics' modules and other Spaces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import DATA_FILES, SHARED, WEIGHTS, embedded_checkpoints, find_tuned, parts_of
from dialeval.core.specs import did_you_mean
from dialeval.hub.modules import module_folders
from dialeval.io.files import first_line, inside, is_stream
from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval.hub.card import CardResults

#: Words that stand for all of a kind.
KINDS = ("models", "modules", "spaces", "all")
#: What a Space with the tag `leaderboard` shows.
_SHOWN_RESULTS = ("agreement.jsonl", "overall.jsonl", "published.json")
_SCRAP = ("__pycache__", ".*")
#: Seconds in which the Hub may say nothing; its client would wait for ever.
PATIENCE = 300.0
_CHECKOUT = WEIGHTS.parents[2]


class PublishError(ValueError):
    """Something cannot be published; the message says why."""


class Unsent(Exception):
    """The Hub or the network failed; the message says what is there now."""


@dataclass(frozen=True)
class Upload:
    """A folder as it goes to one repository."""

    repo_id: str
    kind: Literal["model", "space"]
    folder: Path

    @property
    def files(self) -> list[Path]:
        """What is sent."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())


def find_folders(names: Sequence[str]) -> list[Path]:
    """Folders behind names of embedded checkpoints, modules and Spaces, or behind paths; checkpoints first."""
    spaces = {path.parent.name: path.parent for path in (_CHECKOUT / "spaces").glob("*/app.py")}
    all_of = {
        "models": {folder.name: folder for folder in embedded_checkpoints().values()},
        "modules": {folder.name: folder for folder in module_folders()},
        "spaces": spaces,
    }
    known = {name: folder for group in all_of.values() for name, folder in group.items()}
    folders: list[Path] = []
    for name in names:
        if name in KINDS:
            folders += [folder for kind in (all_of if name == "all" else (name,)) for folder in all_of[kind].values()]
        elif name in known or Path(name).expanduser().is_dir():
            folders.append(known.get(name, Path(name).expanduser()))
        else:
            names = [*KINDS, *known]
            hint = did_you_mean(name, names, f"there are {', '.join(names)}, and folders")
            raise PublishError(f"there is no {name!r} to publish; {hint}")
    return sorted(dict.fromkeys(folders), key=lambda folder: not (folder / "config.json").is_file())


def default_results() -> Path | None:
    """`results/` of the source checkout around this package, if it is one."""
    folder = _CHECKOUT / "results"
    return folder if folder.is_dir() else None


def make_uploads(
    folders: Sequence[Path], org: str, workspace: Path, *, results: Path | None = None, merge: bool = False
) -> Iterator[Upload]:
    """Copies in `workspace`, complete and with their cards, ready to be sent."""
    for folder in folders:
        if (folder / "config.json").is_file():
            yield _model(folder, org, workspace, results, merge=False)
            if merge:
                yield _model(folder, org, workspace, results, merge=True)
        else:
            yield _space(folder, org, workspace, results)


def send(upload: Upload, *, private: bool = False, tag: str | None = None, message: str | None = None) -> str:
    """Create the repository if there is none, send what changed in one commit, and return the commit's address."""
    from huggingface_hub import HfApi, get_session

    get_session().timeout = PATIENCE
    api = HfApi()
    where: dict[str, Any] = {"repo_id": upload.repo_id, "repo_type": upload.kind}
    state = "nothing was sent"
    try:
        is_new = not _is_ours(api, upload)
        if private and not is_new and not api.repo_info(**where).private:
            raise PublishError(f"{upload.repo_id} is public on the Hub; make it private there, or leave out --private")
        api.create_repo(**where, private=private, exist_ok=True, space_sdk="gradio" if upload.kind == "space" else None)
        held = "is there now, and empty" if is_new else "holds what it held before"
        state = f"the repository {held}, unless the commit came through"
        done = api.upload_folder(
            **where,
            folder_path=upload.folder,
            commit_message=message or f"{upload.repo_id.split('/')[1]}, made with dialeval {__version__}",
        )
        state = "all files are there, without the tag"
        if tag is not None and not _is_tagged(api, where, tag, done.oid):
            api.create_tag(**where, tag=tag, revision=done.oid)
    except (PublishError, MemoryError):
        raise
    except Exception as error:  # of an answer that is not the Hub's, its client raises what comes
        done_so_far = f"{upload.repo_id}: {first_line(error)}; {state}"
        raise Unsent(f"{done_so_far}; run the same command again, which sends what is missing") from error
    return str(done.commit_url)


def _model(folder: Path, org: str, workspace: Path, results: Path | None, *, merge: bool) -> Upload:
    from dialeval.hub.card import CardResults, is_hub_id
    from dialeval.papers import network_class

    config = CheckpointConfig.read(folder)
    if not is_hub_id(config.encoder.id):
        raise PublishError(
            f"{folder} uses a local encoder, {config.encoder.id}; publish it, or set encoder.id in config.json to a "
            "Hub id"
        )
    # Damaged weights stop here.
    network = network_class(config.approach).from_pretrained(folder, device="cpu")
    measured, name = CardResults.of(folder, config, results), config.name or folder.name
    copy = inside(workspace, f"{name}-merged" if merge else name)
    if copy.exists():
        raise PublishError(f"two checkpoints are called {name}; publish them separately, under different names")
    if merge and config.encoder.tuning == "full":
        raise PublishError(f"{folder} is a full model already; leave out --merge")
    if merge:
        network.save_pretrained(copy, merged=True)
        config = CheckpointConfig.read(copy)
    else:
        for path in filter(_is_sent, parts_of(folder)):
            target = copy / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if (shared := SHARED.get(config.encoder.tuning)) and config.encoder.layers:  # they may be another checkpoint's
            tuned = find_tuned(folder, config.encoder.layers, shared)
            (copy / shared).parent.mkdir(exist_ok=True)
            for path in (tuned, *tuned.parent.glob("adapter_config.json")):
                shutil.copyfile(path, (copy / shared).with_name(path.name))
    card = card_of(config, folder, measured, org=org, merged_from=f"{org}/{name}" if merge else "")
    (copy / "README.md").write_text(card, encoding="utf-8")
    return Upload(_repository(org, config.name or copy.name), "model", copy)


def _repository(org: str, name: str) -> str:
    """The id on the Hub, which takes few characters in one; what a checkpoint calls itself may hold any."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # documented there

    try:
        validate_repo_id(f"{org}/{name}")
    except HFValidationError as error:
        raise PublishError(f"{first_line(error)}; choose another --org, or another name in config.json") from None
    return f"{org}/{name}"


def _is_sent(path: Path) -> bool:
    """Data, and nothing hidden: what else lies in a checkpoint's folder stays at home."""
    return path.is_file() and not path.name.startswith(".") and any(map(path.match, DATA_FILES))


def card_of(config: CheckpointConfig, folder: Path, measured: CardResults | None = None, **names: str) -> str:
    """The card of a checkpoint that somebody else may have written, whose record of training may be anything."""
    from jinja2 import TemplateError

    from dialeval.hub.card import render_card

    try:
        return render_card(config, measured, **names)
    except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise PublishError(
            f"no card can be made of {folder}, whose config.json records its training in another form "
            f"({first_line(error)}); correct it"
        ) from None


def _space(folder: Path, org: str, workspace: Path, results: Path | None) -> Upload:
    for name in ("README.md", "app.py", "requirements.txt"):
        if not (folder / name).is_file():
            raise PublishError(f"{folder} is neither a checkpoint (no config.json) nor a Space (no {name})")
    for path in folder.rglob("*"):
        inside(folder, path.relative_to(folder))  # a link must not bring along what lies elsewhere
        if is_stream(path):
            raise PublishError(f"{path} is no plain file; a Space holds files only")
    copy = inside(workspace, f"space-{folder.name}")
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*_SCRAP))
    readme = (copy / "README.md").read_text(encoding="utf-8", errors="surrogateescape")
    if results is not None and "- leaderboard" in readme:
        (copy / "results").mkdir()
        for path in (results / name for name in _SHOWN_RESULTS):
            if path.is_file():
                shutil.copyfile(path, copy / "results" / path.name)
    # The card says where to load from, which is where it is published.
    readme = readme.replace(f'"dialeval/{folder.name}"', f'"{org}/{folder.name}"')
    (copy / "README.md").write_text(readme, "utf-8", "surrogateescape")
    return Upload(_repository(org, folder.name), "space", copy)


def _is_tagged(api: Any, where: Mapping[str, Any], tag: str, commit: str) -> bool:
    """Whether an earlier run set the tag on the same commit; one that stands elsewhere is not moved."""
    from huggingface_hub.errors import RevisionNotFoundError

    try:
        tagged = api.repo_info(**where, revision=tag).sha
    except RevisionNotFoundError:
        return False
    if tagged != commit:
        raise PublishError(f"{where['repo_id']} was sent, but its tag {tag} is on another commit; choose another --tag")
    return True


def _is_ours(api: Any, upload: Upload) -> bool:
    """Whether there is such a repository; one that holds something else is refused."""
    if not api.repo_exists(upload.repo_id, repo_type=upload.kind):
        return False
    marker = "config.json" if upload.kind == "model" else "requirements.txt"
    files = set(api.list_repo_files(upload.repo_id, repo_type=upload.kind)) - {".gitattributes", "README.md"}
    text = ""
    if marker in files:
        path = api.hf_hub_download(upload.repo_id, marker, repo_type=upload.kind)
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    is_ours = json.dumps("dialeval") in text if upload.kind == "model" else "dialeval" in text
    if files and not is_ours:
        raise PublishError(f"{upload.repo_id} on the Hub is not dialeval's; choose another --org or name")
    return True
