"""What goes into one repository of the Hub: checkpoints, modules and Spaces as named contents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from dialeval.weights.find import DATA_FILES

Kind = Literal["model", "space"]

#: Of the harness's results, what a page shows.
_SHOWN_RESULTS = ("agreement.jsonl", "overall.jsonl", "plots/*.png")


class PublishError(ValueError):
    """Something may not or cannot be published as asked; the message says what to do."""


@dataclass(frozen=True)
class Content:
    """One file, from disk or rendered."""

    source: Path | bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def is_same(self, name: str) -> bool:
        """Whether the Hub's name of a file, git's or the digest of a large one, names this content."""
        digest = hashlib.sha256() if len(name) == 64 else hashlib.sha1(b"blob %d\0" % self.size)
        if isinstance(self.source, bytes):
            digest.update(self.source)
        else:
            with self.source.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest() == name

    @property
    def text(self) -> str:
        """The content as text."""
        return (self.source if isinstance(self.source, bytes) else self.source.read_bytes()).decode("utf-8")


@dataclass(frozen=True)
class Upload:
    """The files of one repository, and what a reader of the plan should know about them."""

    kind: Kind
    repo_id: str
    files: Mapping[str, Content]
    #: For models, the approach: a repository that holds another one's weights is not overwritten.
    approach: str = ""
    notes: tuple[str, ...] = field(default=())


def model_upload(folder: Path, org: str, results: Path | None) -> Upload:
    """A checkpoint folder, with its card and results rendered anew."""
    from dialeval.cards import Measurements, render_card
    from dialeval.weights.config import CheckpointConfig

    config = CheckpointConfig.read(folder)
    _check_loads(folder, config)
    measured = Measurements.of(folder, config, results)
    card = render_card(config, measured, org=org)
    name = config.name or folder.name
    return _of_weights(folder, f"{org}/{name}", config.approach, card, measured, org)


def merged_upload(folder: Path, org: str, results: Path | None, workspace: Path) -> Upload:
    """The same weights as one full model, merged into `workspace`, which must stay until it was sent."""
    from dialeval.approaches import network_class
    from dialeval.cards import Measurements, render_card
    from dialeval.weights.config import CheckpointConfig

    config = CheckpointConfig.read(folder)
    if config.encoder.tuning == "full":
        raise PublishError(f"{folder} is a full model already; leave out --merge")
    _check_loads(folder, config)
    network_class(config.approach).from_pretrained(folder, device="cpu").save_pretrained(workspace, merged=True)
    measured = Measurements.of(folder, config, results)
    whole = CheckpointConfig.read(workspace)
    card = render_card(whole, measured, org=org, merged_from=f"{org}/{config.name or folder.name}")
    return _of_weights(workspace, f"{org}/{whole.name}", config.approach, card, measured, org)


def space_upload(folder: Path, org: str, results: Path | None = None) -> Upload:
    """A Space: a metric's module, or any folder with app.py and a card whose header says `sdk: gradio`.

    One whose card carries the tag `leaderboard` shows results, and finds them in a folder of its own.
    """
    import yaml

    for name in ("README.md", "app.py", "requirements.txt"):
        if not (folder / name).is_file():
            raise PublishError(
                f"{folder} is neither a checkpoint (no config.json) nor a Space (no {name}); name a folder that is one"
            )
    header = (folder / "README.md").read_text(encoding="utf-8").split("---\n")
    card = yaml.safe_load(header[1]) if len(header) > 2 else None
    if not isinstance(card, dict) or card.get("sdk") != "gradio":
        raise PublishError(f"the header of {folder / 'README.md'} does not say sdk: gradio, so it is no Space")
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _is_scrap(path.relative_to(folder))]
    files = {path.relative_to(folder).as_posix(): Content(path) for path in found}
    if "leaderboard" in (card.get("tags") or ()) and results is not None:
        shown = [path for pattern in _SHOWN_RESULTS for path in sorted(results.glob(pattern))]
        files |= {f"results/{path.relative_to(results).as_posix()}": Content(path) for path in shown}
    # The card tells where to load from, which is where it is published.
    readme = files["README.md"].text.replace(f'"dialeval/{folder.name}"', f'"{org}/{folder.name}"')
    return Upload("space", f"{org}/{folder.name}", {**files, "README.md": Content(readme.encode())})


def _of_weights(folder: Path, repo_id: str, approach: str, card: str, measured: object, org: str) -> Upload:
    from dialeval.cards import Measurements
    from dialeval.cards.measured import eval_results

    assert isinstance(measured, Measurements)
    files: dict[str, Content] = {}
    notes = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if _is_scrap(path.relative_to(folder)):
            continue
        if any(fnmatch(name, pattern) for pattern in DATA_FILES):
            files[name] = Content(path)
        else:
            notes.append(f"{name} is left out: only weights, settings and tokenizer files are published")
    if not measured.rows:
        notes.append(f"no results of {measured.checkpoint} were found, so the card shows none")
    results = {path: Content(text.encode()) for path, text in eval_results(measured.rows, org).items()}
    return Upload("model", repo_id, {**files, **results, "README.md": Content(card.encode())}, approach, tuple(notes))


def _check_loads(folder: Path, config: object) -> None:
    """Refuse weights that nobody else could load; damaged ones raise `CheckpointError` here."""
    from dialeval.approaches import network_class
    from dialeval.cards import is_hub_id
    from dialeval.weights.config import CheckpointConfig

    assert isinstance(config, CheckpointConfig)
    if not is_hub_id(config.encoder.id):
        raise PublishError(
            f"{folder} stands on the encoder {config.encoder.id}, a folder of this machine that nobody else has; "
            "train on an encoder named as on the Hub, or put its name there into config.json"
        )
    network_class(config.approach).from_pretrained(folder, device="cpu")


def _is_scrap(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
