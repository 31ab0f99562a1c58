"""From what a user names to uploads: checkpoints, modules, Spaces, or all of a kind."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialeval.publishing.uploads import PublishError, Upload, merged_upload, model_upload, space_upload
from dialeval.weights.find import WEIGHTS, embedded_checkpoints

#: Words that stand for all of a kind.
KINDS = ("models", "modules", "spaces", "all")
_CHECKOUT = WEIGHTS.parents[2]


@dataclass(frozen=True)
class Targets:
    """Folders of checkpoints, and folders of Spaces."""

    models: tuple[Path, ...]
    spaces: tuple[Path, ...]


def find_targets(names: Sequence[str]) -> Targets:
    """Folders behind names; embedded checkpoints and modules go by their names, anything else is a folder."""
    modules, spaces = {folder.name: folder for folder in _modules()}, {path.name: path for path in _spaces()}
    checkpoints = {name: WEIGHTS / name for name in embedded_checkpoints()}
    all_of = {"models": checkpoints, "modules": modules, "spaces": spaces}
    models: list[Path] = []
    others: list[Path] = []
    for name in names:
        if name in KINDS:
            for kind in all_of if name == "all" else (name,):
                (models if kind == "models" else others).extend(all_of[kind].values())
        elif name in checkpoints:
            models.append(checkpoints[name])
        elif name in {**spaces, **modules}:
            others.append({**spaces, **modules}[name])
        else:
            folder = Path(name).expanduser()
            (models if (folder / "config.json").is_file() else others).append(_checked(name, folder, all_of))
    if not models and not others:
        raise PublishError(f"there is nothing to publish in this installation for {', '.join(names)}; name a folder")
    return Targets(tuple(dict.fromkeys(models)), tuple(dict.fromkeys(others)))


def make_uploads(targets: Targets, org: str, *, results: Path | None, merge: bool, workspace: Path) -> Iterable[Upload]:
    """The uploads of all targets, models first, because Spaces speak of them."""
    for folder in targets.models:
        yield model_upload(folder, org, results)
        if merge:
            yield merged_upload(folder, org, results, workspace / f"{len(list(workspace.iterdir()))}")
    for folder in targets.spaces:
        yield space_upload(folder, org, results)


def default_results() -> Path | None:
    """`results/` of the source checkout around this package, if it is one."""
    folder = _CHECKOUT / "results"
    return folder if folder.is_dir() else None


def _modules() -> list[Path]:
    from dialeval.publishing.modules import module_folders

    return module_folders()


def _spaces() -> list[Path]:
    return sorted(path.parent for path in (_CHECKOUT / "spaces").glob("*/app.py"))


def _checked(name: str, folder: Path, all_of: dict[str, dict[str, Path]]) -> Path:
    if folder.is_dir():
        return folder
    known = [*KINDS, *(one for group in all_of.values() for one in group)]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}, and folders of checkpoints"
    raise PublishError(f"there is no {name!r} to publish; {hint}")
